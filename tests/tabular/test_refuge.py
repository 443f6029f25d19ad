"""Looking ahead in the model of a bank: who gets where, and how long one is safe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_bank import corridor

import multiadvisor as mad
from multiadvisor.aims import REFUGE, Aims, Peril
from multiadvisor.errors import BadInput
from multiadvisor.tabular import bank

CELLS = 6


def walked(ring, heading=True):
    """A room of cells in a row, or in a ring, whose states are a cell and the direction of the last step."""
    facing = np.arange(2 * CELLS) % 2
    room = bank.Room(2 * CELLS, np.arange(2 * CELLS) // 2, 2, 1, 1, facing if heading else None)
    for local in range(2 * CELLS):
        for action in range(2):  # 0: onwards, 1: back
            cell = local // 2 + 1 - 2 * action
            cell = cell % CELLS if ring else min(max(cell, 0), CELLS - 1)
            room.follow(room.state(local), action, room.state(2 * cell + action))
    return room


def test_ghosts_that_never_turn_back_go_all_the_way_round():
    room = walked(ring=True)
    assert room.steps(0).tolist() == [0, 1, 2, 3, 4, 5]
    assert room.steps(1).tolist() == [0, 5, 4, 3, 2, 1]
    assert walked(ring=True, heading=False).steps(0).tolist() == [0, 1, 2, 3, 2, 1]


def test_ways_are_found_again_when_another_one_is_seen():
    room = bank.Room(6, np.arange(6), 1, 1, 1)
    for local in range(3):
        room.follow(room.state(local), 0, room.state(local + 1))
    assert room.steps(0).tolist() == [0, 1, 2, 3, np.inf, np.inf]
    assert np.isinf(room.steps(5)).all(), "nobody was there"
    room.follow(room.state(0), 0, room.state(3))
    assert room.steps(0).tolist() == [0, 1, 2, 1, np.inf, np.inf]


def safety(ahead=10, haven=(), doubt=1e-9, closed=(0, 1, 2, 3, 4, 5)):
    room = walked(ring=False)
    threat = Peril(np.array(closed, float), np.isin(np.arange(CELLS), haven), doubt)
    return room.safety(int(room.number[4]), ahead, threat).tolist()  # in cell 2


def test_who_is_hunted_in_a_corridor_is_caught_at_its_end():
    onwards, back = safety()
    assert onwards == pytest.approx(0.4), "four turns: three on the way, the last of which is at the end, and one more"
    assert back == 0.0, "into the arms of the hunter"


def test_a_haven_in_time_saves():
    assert safety(haven=[5])[0] == pytest.approx(1.0)
    assert safety(haven=[5], closed=(0, 1, 2, 3, 4, 3))[0] == pytest.approx(0.2), "lost before one gets there"


def test_doubt_counts_the_turns_by_which_one_is_ahead():
    """Always two turns ahead, of four that one would like, as long as one can go on; then one, then none."""
    share, value = 0.5, 0.0
    value = 0.25 * (1 + value)  # turn 4: at the end
    for _ in range(3):
        value = share * (1 + value)
    assert safety(doubt=4.0)[0] == pytest.approx(value / 10)


def test_nothing_is_said_of_what_was_never_tried():
    room = bank.Room(4, np.arange(4), 2, 1, 1)
    room.follow(room.state(0), 0, room.state(1))
    threat = Peril(np.array([0.0, 3.0, np.inf, np.inf]), np.zeros(4, bool), 1e-9)
    assert room.safety(0, 5, threat).tolist() == [1.0, 1.0], "there is a way into the unknown"


def test_it_says_what_is_missing():
    task = corridor()
    aimless = replace(task.goals, aim=lambda x, look: Aims(np.array([-1, -1, REFUGE]), np.ones(3)))
    task = replace(task, goals=aimless)
    agent = mad.MultiAdvisor(task, planning="agnostic", gamma=0.9)
    with pytest.raises(BadInput, match="give Goals"):
        agent.learn(10, progress=False)


@pytest.mark.parametrize(
    ("peril", "told"),
    [
        (Peril(np.zeros(3), np.zeros(3, bool), 1.0), r"Goals\.peril gave Peril.*: give Peril, for all 7 places"),
        ((np.zeros(7), np.zeros(7, bool), 1.0), "give Peril, for all 7 places"),
        (Peril(np.full(7, np.nan), np.zeros(7, bool), 1.0), "let it be inf where a place is never lost"),
        (Peril(np.zeros(7), np.zeros(7, bool), 0.0), r"the doubt of Goals\.peril is 0\.0: give a number of at least"),
    ],
)
def test_a_threat_that_does_not_fit_is_refused(peril, told):
    task = corridor()
    goals = replace(
        task.goals, aim=lambda x, look: Aims(np.array([-1, -1, REFUGE]), np.ones(3)), peril=lambda x, look: peril
    )
    with pytest.raises(BadInput, match=told):
        mad.MultiAdvisor(replace(task, goals=goals), planning="agnostic").learn(10, progress=False)
