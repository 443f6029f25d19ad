"""Banks of general value functions: exact values, replay, discovery, groups, checkpoints."""

from __future__ import annotations

import re
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from corridor import LENGTH, Corridor
from multiadvisor.learners.gvf import bank
from multiadvisor.learners.gvf.gvf_spec import FRONTIER, Aims, Goals
from refusal import refused


def aim(x, look):
    coins = np.where(x[1:] == 1, (0, LENGTH - 1), -1)
    met = look.met[:2] | (look.steps > 100_000)  # an advisor is there once its coin was found
    return Aims(np.array([*np.where(met, coins, -1), FRONTIER if look.steps < 40 else -1]), np.ones(3))


def paid(before, after, reward):
    return np.array([*(before[1:] - after[1:]), 0.0])


def corridor(kind=Corridor, **how):
    advisors = [
        mad.Advisor("left", group="coins"), mad.Advisor("right", group="coins", gamma=0.5, planning="egocentric"),
        mad.Advisor("frontier"),
    ]  # fmt: skip
    goals = Goals(LENGTH, np.arange(LENGTH), lambda x: int(x[0]), aim, paid, sweeps=200)
    return replace(mad.Task.from_gymnasium(gymnasium.wrappers.TimeLimit(kind(), 60), advisors), goals=goals, **how)


@pytest.fixture(scope="module")
def agent():
    return mad.MultiAdvisor(corridor(), planning="agnostic", gamma=0.9, epsilon=1.0, seed=3).learn(600)


def q_of(agent, kind, place):
    """Q [states, A] of one goal under one planning and gamma, with states in the order of the corridor."""
    room = agent._learner.rooms[0]
    table = room.tables[agent._learner.kinds.index(kind)]
    return table.q[room.number, :, room.column[place]]


@pytest.mark.slow
def test_egocentric_values_are_powers_of_gamma(agent):
    values = q_of(agent, ("egocentric", 0.5), 0)
    for cell in range(1, LENGTH):
        assert values[cell, 0] == pytest.approx(0.5 ** (cell - 1), abs=1e-6)
    assert values[1, 1] == pytest.approx(0.5**2, abs=1e-6)  # one step away and two back


def test_agnostic_values_solve_the_random_walk(agent):
    """V of every cell but the goal: the mean over both ways, of 1 at the goal and of gamma V elsewhere."""
    goal, values = 2, q_of(agent, ("agnostic", 0.9), 2).mean(axis=1)
    matrix, bias = np.eye(LENGTH), np.zeros(LENGTH)
    for cell in range(LENGTH):
        for action in (-1, 1):
            following = int(np.clip(cell + action, 0, LENGTH - 1))
            if following == goal:
                bias[cell] += 0.5
            else:
                matrix[cell, following] -= 0.45
    assert values == pytest.approx(np.linalg.solve(matrix, bias), abs=1e-4)


@pytest.mark.slow
def test_every_goal_learns_from_every_transition_and_is_reached_greedily(agent):
    room = agent._learner.rooms[0]
    assert (room.states, room.goals) == (LENGTH, LENGTH + 1)
    seen = agent.evaluate(20)
    assert seen.terminated == 1.0
    assert seen.length <= 11  # the farthest start, both ends
    assert seen.advisors == {"left": 1.0, "right": 1.0, "frontier": 0.0}


def test_advisors_appear_when_their_goal_is_first_met():
    fresh = mad.MultiAdvisor(corridor(), planning="agnostic", gamma=0.9)
    names, advice = fresh.advice(np.array([3, 1, 1]))
    assert names == ()
    assert advice.shape == (0, 2)
    fresh.learn(60)
    assert set(fresh.advice(np.array([3, 1, 0]))[0]) == {"left"}


def test_what_was_never_tried_draws_the_frontier():
    room = bank.Room(3, np.arange(3), 2, [(bank.BEST, 0.9)], 1)
    assert [room.state(local) for local in (0, 1, 2)] == [0, 1, 2]
    for state, action, following in ((0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 2), (2, 0, 1)):
        bank.count_follower(state, action, following, room.model)
    room.sweep(50)
    values = room.tables[0].q[:3, :, bank.FRONTIER_COLUMN]
    assert values[2, 1] == 1.0  # nobody went on from the end
    assert values[0, 1] == pytest.approx(0.81)
    assert values[0, 0] == pytest.approx(0.9 * 0.81)


def test_empathic_advisors_expect_what_the_aggregator_chose():
    agent = mad.MultiAdvisor(corridor(), planning="empathic", gamma=0.9, epsilon=0.5, seed=1)
    agent.learn(400)
    room, kinds = agent._learner.rooms[0], agent._learner.kinds
    table = room.tables[kinds.index(("empathic", 0.9))]
    chosen = room.chosen[: room.states]
    assert (chosen.sum(axis=1) > 0).any()
    share = chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1.0)
    assert table.policy[: room.states] == pytest.approx(np.where(chosen.sum(axis=1, keepdims=True) > 0, share, 0.5))


class Spoiled(Corridor):
    """A coin pays what is not a number."""

    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, float("nan") if reward else 0.0, *rest


def test_a_reward_that_is_not_finite_is_refused(agent):
    line = "the reward of the environment is nan: let it be a finite number"
    spoiled = mad.MultiAdvisor(corridor(Spoiled), planning="agnostic")
    refused(line, spoiled.learn, 100)
    spoiled._learner.restore(agent._learner.tensors())
    refused(line, spoiled.evaluate, 1)
    refused(line, spoiled.observe, np.array([1, 1, 1]), 0, float("nan"), np.array([0, 0, 1]), False)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"aim": lambda x, look: Aims(np.array([0, 1]), np.ones(2))}, "a place and a factor for each of 3 advisors"),
        ({"aim": lambda x, look: (np.array([0, 1, 2]), np.ones(3))}, "a place and a factor for each of 3 advisors"),
        ({"aim": lambda x, look: Aims(np.array([0, LENGTH, -1]), np.ones(3))}, "REFUGE, or from 0 to 6"),
        ({"aim": lambda x, look: Aims(np.array([0, -4, -1]), np.ones(3))}, "REFUGE, or from 0 to 6"),
        ({"aim": lambda x, look: Aims(np.array([0.0, 1.0, -1.0]), np.ones(3))}, "REFUGE, or from 0 to 6"),
        ({"aim": lambda x, look: Aims(np.array([0, 1, -1]), np.array([1, np.nan, 1]))}, "let them be finite"),
        ({"local": lambda x: LENGTH}, "Goals.local is 7: give an integer of at most 6"),
        ({"local": lambda x: -1}, "Goals.local is -1: give an integer of at least 0"),
        ({"local": lambda x: 1.5}, "Goals.local is 1.5: give an integer of at least 0"),
        ({"room": lambda x: 1}, "Goals.room is 1: give an integer of at most 0"),
        ({"paid": lambda before, after, reward: 1.0}, "a finite number for each of 3 advisors"),
        ({"paid": lambda before, after, reward: np.array([np.inf, 0, 0])}, "a finite number for each of 3 advisors"),
        ({"place": np.arange(3)}, "Goals(place=...) has to be an array of 7 integers"),
        ({"place": np.full(LENGTH, -2)}, "a place below -1"),
        ({"place": np.full(LENGTH, -1)}, "or none at all"),
        ({"place": list(range(LENGTH))}, "Goals(place=...) has to be an array of 7 integers"),
        ({"heading": np.zeros(2, np.int64)}, "Goals(heading=...) has to be an array of 7 integers"),
        ({"sweeps": -1}, "Goals(sweeps=...) is -1: give an integer of at least 0"),
        ({"rooms": 1.5}, "Goals(rooms=...) is 1.5: give an integer of at least 1"),
        ({"restless": 7}, "Goals(restless=...) is 7: give a number between 0 and 1"),
    ],
)
def test_goals_that_do_not_fit_are_refused_in_one_line(change, told):
    def learned():
        goals = replace(corridor().goals, **change)
        mad.MultiAdvisor(replace(corridor(), goals=goals), planning="agnostic").learn(100)

    refused(re.escape(told), learned)


def test_a_forged_checkpoint_is_refused(agent):
    forged = {
        "room0.met": 99, "room0.follower": 99, "clock": -1, "trail": 7, "room0.policy0": 9.0, "room0.q0": 3e38,
        "room0.v1": -1.0, "room0.chosen": -1.0,
    }  # fmt: skip
    for name, wrong in forged.items():
        tensors = {key: value.copy() for key, value in agent._learner.tensors().items()}
        tensors[name][...] = wrong
        refused("checkpoint", mad.MultiAdvisor(agent.task, agent.settings)._learner.restore, tensors)


def test_transitions_that_others_played_are_learned_from():
    agent = mad.MultiAdvisor(corridor(), planning="egocentric", gamma=0.5)
    for cell in (3, 2, 1):
        agent.observe(np.array([cell, 1, 1]), 0, float(cell == 1), np.array([cell - 1, int(cell != 1), 1]), False)
    assert agent.steps == 3
    assert agent.advice(np.array([1, 1, 1]))[1].tolist() == [[1.0, 0.0]]


def test_what_a_bank_cannot_do_is_said_in_a_sentence(agent):
    refused("knows egocentric", mad.MultiAdvisor, corridor(), planning="sarsa")
    refused("no table of values", agent.values, "left")
    refused("knows no goals", mad.MultiAdvisor, corridor(), learner=mad.DQN())
    refused("noise", mad.MultiAdvisor, corridor(), noise=1.0)


def test_usual_settings_are_those_of_the_task_unless_others_are_given():
    task = corridor(defaults={"planning": "agnostic", "gamma": 0.8, "steps": 3})
    assert mad.MultiAdvisor(task).settings.gamma == 0.8
    assert mad.MultiAdvisor(task, gamma=0.7).settings.gamma == 0.7
    assert mad.MultiAdvisor(task, gamma=0.7).settings.planning == "agnostic"


def test_an_advisor_may_say_how_it_is_heard():
    advisors = (mad.Advisor("a", aggregation="max"), mad.Advisor("b", aggregation="max"), mad.Advisor("c"))
    task = replace(corridor(), advisors=advisors)
    agent = mad.MultiAdvisor(task, planning="agnostic", aggregation="sum")
    assert [part.name for part, _ in agent.aggregator.parts] == ["max", "sum"]
    assert agent.aggregator.of.tolist() == [0, 0, 1]
