"""Looking ahead in the model of a bank: who gets where, and how long one is safe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_bank import corridor

import multiadvisor as mad
from multiadvisor.learners.gvf import bank
from multiadvisor.learners.gvf.gvf_spec import REFUGE, Aims, Threat
from refusal import refused

CELLS = 6
TABLES = [(bank.BEST, 0.9)]


def walked(ring, heading=True):
    """A room of cells in a row, or in a ring, whose states are a cell and the direction of the last step."""
    facing = np.arange(2 * CELLS) % 2
    room = bank.Room(2 * CELLS, np.arange(2 * CELLS) // 2, 2, TABLES, 1, facing if heading else None)
    for local in range(2 * CELLS):
        for action in range(2):  # 0: onwards, 1: back
            cell = local // 2 + 1 - 2 * action
            cell = cell % CELLS if ring else min(max(cell, 0), CELLS - 1)
            room.follow(room.state(local), action, room.state(2 * cell + action))
    return room


def test_ghosts_that_never_turn_back_go_all_the_way_round():
    room = walked(ring=True)
    assert room.distances(0).tolist() == [0, 1, 2, 3, 4, 5]
    assert room.distances(1).tolist() == [0, 5, 4, 3, 2, 1]
    assert walked(ring=True, heading=False).distances(0).tolist() == [0, 1, 2, 3, 2, 1]


def test_ways_are_found_again_when_another_one_is_seen():
    room = bank.Room(6, np.arange(6), 1, TABLES, 1)
    for local in range(3):
        room.follow(room.state(local), 0, room.state(local + 1))
    assert room.distances(0).tolist() == [0, 1, 2, 3, np.inf, np.inf]
    assert np.isinf(room.distances(5)).all(), "nobody was there"
    room.follow(room.state(0), 0, room.state(3))
    assert room.distances(0).tolist() == [0, 1, 2, 1, np.inf, np.inf]


def safety(ahead=10, haven=(), doubt=1e-9, closed=(0, 1, 2, 3, 4, 5)):
    room = walked(ring=False)
    threat = Threat(np.array(closed, float), np.isin(np.arange(CELLS), haven), doubt)
    return room.safety(int(room.number[4]), ahead, threat).tolist()  # in cell 2


def test_who_is_hunted_in_a_corridor_is_caught_at_its_end():
    onwards, back = safety()
    assert onwards == pytest.approx(0.4), "four steps: three on the way, the last of which is at the end, and one more"
    assert back == 0.0, "into the arms of the hunter"


def test_a_haven_in_time_saves():
    assert safety(haven=[5])[0] == pytest.approx(1.0)
    assert safety(haven=[5], closed=(0, 1, 2, 3, 4, 3))[0] == pytest.approx(0.2), "lost before one gets there"


def test_doubt_counts_the_steps_by_which_one_is_ahead():
    """Always two steps ahead, of four that one would like, as long as one can go on; then one, then none."""
    share, value = 0.5, 0.0
    value = 0.25 * (1 + value)  # step 4: at the end
    for _ in range(3):
        value = share * (1 + value)
    assert safety(doubt=4.0)[0] == pytest.approx(value / 10)


def test_nothing_is_said_of_what_was_never_tried():
    room = bank.Room(4, np.arange(4), 2, TABLES, 1)
    room.follow(room.state(0), 0, room.state(1))
    threat = Threat(np.array([0.0, 3.0, np.inf, np.inf]), np.zeros(4, bool), 1e-9)
    assert room.safety(0, 5, threat).tolist() == [1.0, 1.0], "there is a way into the unknown"


def test_it_says_what_is_missing():
    task = corridor()
    aimless = replace(task.goals, aim=lambda x, look: Aims(np.array([-1, -1, REFUGE]), np.ones(3)))
    task = replace(task, goals=aimless)
    agent = mad.MultiAdvisor(task, planning="agnostic", gamma=0.9)
    refused("give Goals", agent.learn, 10)


@pytest.mark.parametrize(
    ("threat", "told"),
    [
        (Threat(np.zeros(3), np.zeros(3, bool), 1.0), r"Goals\.threat gave Threat.*: give Threat, for all 7 places"),
        ((np.zeros(7), np.zeros(7, bool), 1.0), "give Threat, for all 7 places"),
        (Threat(np.full(7, np.nan), np.zeros(7, bool), 1.0), "let it be inf where a place is never lost"),
        (Threat(np.zeros(7), np.zeros(7, bool), 0.0), r"the doubt of Goals\.threat is 0\.0: give a number of at least"),
    ],
)
def test_a_threat_that_does_not_fit_is_refused(threat, told):
    task = corridor()
    goals = replace(
        task.goals, aim=lambda x, look: Aims(np.array([-1, -1, REFUGE]), np.ones(3)), threat=lambda x, look: threat
    )
    refused(told, lambda: mad.MultiAdvisor(replace(task, goals=goals), planning="agnostic").learn(10))


# ---- against plain loops ---------------------------------------------------------------------------------------------
class Known:
    """A room, and beside it a plain dictionary of everything that was told to it."""

    def __init__(self, seed):
        self.draw = np.random.default_rng(seed)
        self.states, self.actions = int(self.draw.integers(4, 12)), int(self.draw.integers(1, 4))
        self.place = self.draw.integers(-1, int(self.draw.integers(1, 8)), self.states)
        self.place[0] = max(self.place[0], 0)
        self.headings = int(self.draw.choice([1, 2, 4]))
        self.heading = self.draw.integers(0, self.headings, self.states)
        self.heading[0] = self.headings - 1
        self.room = bank.Room(
            self.states, self.place, self.actions, TABLES, 1, self.heading if self.headings > 1 else None
        )  # fmt: skip
        self.met, self.followed, self.now = set(), {}, 0

    def event(self):
        """A step, or somewhere a new life begins."""
        if self.draw.random() < 0.2:
            self.now = int(self.draw.integers(self.states))
            self.room.state(self.now)
            self.met.add(self.now)
            return
        action, then = int(self.draw.integers(self.actions)), int(self.draw.integers(self.states))
        self.room.follow(self.room.state(self.now), action, self.room.state(then))
        self.met |= {self.now, then}
        self.followed.setdefault((self.now, action), []).append(then)
        self.now = then

    def steps(self, local):
        """The fewest steps to each place, by trying all ways, one step longer each time."""
        here = self.place[local]
        reach = {local} if local in self.met else {s for s in self.met if here >= 0 and self.place[s] == here}
        found, seen = np.full(self.place.max() + 1, np.inf), set()
        for count in range(self.states + 1):
            for state in reach:
                if self.place[state] >= 0:
                    found[self.place[state]] = min(found[self.place[state]], count)
            seen |= reach
            reach = {
                then for state in reach for action in range(self.actions)
                for then in self.followed.get((state, action), [])
                if self.headings == 1 or (self.heading[then] - self.heading[state]) % self.headings != self.headings / 2
            } - seen  # fmt: skip
        return found.tolist()

    def safety(self, start, ahead, threat):
        """Value iteration over all states from the last step to the first."""
        value = {}
        for step in range(ahead, -1, -1):
            best = {}
            for state in self.met:
                at = self.place[state]
                threatened = step > 0 and at >= 0
                sure = min(max((threat.closed[at] - step) / threat.doubt, 0.0), 1.0) if threatened else 1.0
                worth = {}
                for action in range(self.actions):
                    after = self.followed.get((state, action), [])
                    if after and step < ahead:
                        worth[action] = sum(value[then] for then in after) / len(after)
                onward = max(worth.values(), default=ahead - step)
                if threatened and threat.haven[at]:
                    onward = ahead - step
                best[state] = sure * (1.0 + onward)
                if (step, state) == (0, start):
                    return [worth.get(action, onward) / ahead for action in range(self.actions)]
            value = best
        raise AssertionError


@pytest.mark.parametrize("seed", range(40))
def test_ways_and_safety_are_those_of_plain_loops(seed):
    known = Known(seed)
    known.room.state(0)
    known.met.add(0)
    for _ in range(40):
        known.event()
        for local in range(known.states):
            assert known.room.distances(local).tolist() == known.steps(local), local
        ahead, places = int(known.draw.integers(1, 9)), int(known.place.max()) + 1
        closed = np.where(known.draw.random(places) < 0.3, np.inf, known.draw.integers(0, 8, places))
        threat = Threat(closed, known.draw.random(places) < 0.2, float(known.draw.choice([1e-9, 0.5, 2.0, 3.7])))
        for local in known.met:
            told = known.room.safety(int(known.room.number[local]), ahead, threat).tolist()
            assert told == pytest.approx(known.safety(local, ahead, threat), abs=1e-12), (local, ahead)
