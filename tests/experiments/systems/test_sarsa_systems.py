"""The systems that learn by Sarsa: what they run, and their tasks."""

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.solver import solve
from multiadvisor.studies.systems import gm_sarsa, q_decomposition
from refusal import refused


def test_the_work_of_gm_sarsa_and_its_measures():
    work = gm_sarsa.composite({"planning": "sarsa", "seed": 1, "steps": 300_000})
    assert 0.0 <= work["loss"] < 0.05
    assert 0.0 < work["off"] < 0.3


# ---- the fishery -----------------------------------------------------------------------------------------------------
def test_the_fate_of_a_fleet_that_never_fishes_and_of_one_that_takes_all():
    task = mad.make("fishery")
    mdp = enumerate_task(task)
    idle, all_out = (np.tile(np.eye(len(task.actions))[a], (mdp.states, 1)) for a in (0, -1))
    kept = q_decomposition.fate(mdp, idle, 1000)
    assert kept["catch"] == 0.0
    assert kept["stock"] == pytest.approx(200_000, rel=0.01)
    spent = q_decomposition.fate(mdp, all_out, 1000)
    assert spent["stock"] < 1.0, "fished to extinction"
    # a tenth of the waters at a time, for which every boat pays; the stock can give no more than it has and grows
    first_year = q_decomposition.fate(mdp, all_out, 10)["catch"]
    assert first_year == pytest.approx(150 * (1 - (1 - 0.098) ** 10) - 10, rel=0.02)


@pytest.mark.slow
def test_local_q_hardly_fishes_and_the_sum_of_whole_states_is_the_optimum():
    mdp = enumerate_task(mad.make("fishery"))
    gamma = 0.9**0.1
    selfish = q_decomposition.fate(mdp, solve(mdp, "egocentric", gamma).policy, 1000)
    best = q_decomposition.fate(mdp, solve(mdp, "empathic", gamma).policy, 1000)
    assert best["catch"] > 2500 > 1000 > selfish["catch"]
    assert selfish["stock"] > 150_000 > best["stock"] > 75_000


def test_alone_only_the_boat_that_decides_is_heard():
    agent, generator = mad.MultiAdvisor(mad.make("fishery", heard="boat"), planning="sarsa"), np.random.default_rng(0)
    for j, advisor in enumerate(agent.task.advisors):
        values = generator.normal(size=(advisor.states, len(agent.task.actions)))
        agent.tables.fill(j, np.arange(advisor.states), values)
    names, advice = agent.advice([183])
    assert names == ("boat 4",)
    assert np.array_equal(agent.preferences([183]), advice[0])
    refused("heard", mad.make, "fishery", heard="nobody")


# ---- the racetrack ---------------------------------------------------------------------------------------------------
def driven(x, push):
    from multiadvisor.envs.worlds import racetrack

    world = mad.make("racetrack").world.constants
    after = np.array(x)
    happened = racetrack.drive(world, after, push)
    row, column = world.place[after[0]]
    down, right = divmod(int(after[1]), 7)
    return int(happened), (int(row), int(column)), (down - 3, right - 3)


def test_the_car_moves_crashes_and_laps():
    world = mad.make("racetrack").world.constants
    at = lambda row, column, down=0, right=0: (world.cell[row, column], (down + 3) * 7 + right + 3)  # noqa: E731
    assert driven(at(30, 20), 3) == (0, (30, 21), (0, 1)), "East from rest"
    assert driven(at(30, 30, 0, 3), 3) == (0, (30, 33), (0, 3)), "no faster than 3"
    assert driven(at(30, 38, 0, 3), 0) == (1, (30, 39), (0, 2)), "up to the wall, and back by 1"
    assert driven(at(9, 15, 2, -2), 0) == (1, (9, 15), (1, -1)), "the infield is a wall"
    assert driven(at(30, 18, 0, 3), 0)[0] == 2, "over the line from the West"
    assert driven(at(30, 21, 0, -3), 0) == (1, (30, 20), (0, -2)), "not backwards"
    assert driven(at(4, 21, 0, -3), 0)[0] == 0, "above the infield there is no line"


@pytest.mark.slow
def test_the_numbers_of_the_racetrack_are_the_papers():
    task = mad.make("racetrack")
    world = task.world.constants
    assert (world.cell >= 0).sum() == 35 * 40 - 15 * 20
    listed = list(task.world.outcomes(world, tuple(task.initial_state().tolist()), 1))
    assert [round(one.probability, 3) for one in listed] == [0.9, 0.03, 0.03, 0.01, 0.01, 0.02]
    assert len(task.actions) == 9
    arc = world.arc[world.cell[30, [20, 39]]], world.arc[world.cell[[5, 30], [20, 19]]]
    assert 0 < arc[0][0] < arc[0][1] < arc[1][0] < arc[1][1] < 1, "once around, against the clock"
