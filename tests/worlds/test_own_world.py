"""A compiled world of one's own, in one file: learned, saved, drawn, listed, solved and shown like the others."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed
from multiadvisor.analysis import theory
from multiadvisor.analysis.episodes import record
from multiadvisor.core.board_layout import Grid, Item, Sprite, Tile
from multiadvisor.core.rng import WORLD, below, draw
from multiadvisor.envs import render
from multiadvisor.envs.registry import TASKS, register_task
from multiadvisor.envs.slots import slot_of
from multiadvisor.envs.world_envs import WorldEnv
from multiadvisor.envs.worlds.board import parse_maze
from multiadvisor.explorer import export
from multiadvisor.explorer.bundle import describe, episode_pack, run_pack, sends_table
from multiadvisor.explorer.questions import attractor_layer
from multiadvisor.task import Outcome
from refusal import refused

pytestmark = pytest.mark.slow

LEFT, RIGHT = 0, 1


# ---- the world: a shuttle fetches a parcel at the end of a corridor in which a drone flies about ---------------------
class Shuttle(NamedTuple):
    length: int


@mad.compiled
def moved(world, cell, action):
    return min(max(cell + 2 * action - 1, 0), world.length - 1)


@mad.compiled
def reset(world, x, key):
    x[0], x[1], x[2] = 0, world.length - 1, 1


@mad.compiled
def begin(world, x, advisors):
    advisors[0] = 0
    advisors[1] = 1
    return 1 + x[2]


@mad.compiled
def local_states(world, x, advisors, m, local):
    for i in range(m):
        local[i] = x[0] * world.length + x[1] if advisors[i] == 0 else x[0]


@mad.compiled
def step(world, x, action, key, advisors, m, reward, ended):
    x[0], x[1] = moved(world, x[0], action), moved(world, x[1], below(draw(key, WORLD), 2))
    if x[0] == x[1]:
        reward[0] = -2.0
    if x[0] == world.length - 1:
        x[2] = 0
        slot = slot_of(advisors, m, 1)
        reward[slot], ended[slot] = 1.0, 1
        return True
    return False


def outcomes(world, x, action):
    cell = moved.py_func(world, x[0], action)
    for way in (LEFT, RIGHT):
        drone, arrived = moved.py_func(world, x[1], way), cell == world.length - 1
        reward = ({0: -2.0} if cell == drone else {}) | ({1: 1.0} if arrived else {})
        yield Outcome(0.5, (cell, drone, 0 if arrived else 1), reward, arrived)


def shuttle(length: int = 4) -> mad.Task:
    """A shuttle, a drone and a parcel in a corridor.

    length: cells.
    """
    cells = np.arange(length)
    board = Grid(
        shape=(2, length), cells=np.stack([cells * 0, cells], axis=1), vectors=((0, -1), (0, 1)),
        neighbour=np.stack([np.maximum(cells - 1, 0), np.minimum(cells + 1, length - 1)], axis=1),
        sprites=(Sprite("player", 0), Sprite("drone", 1)), items=(Item("parcel", 2, length - 1, 1),),
        terms=(((0, length), (1, 1)), ((0, 1),)), tiles=(*(Tile("wall", 1, cell) for cell in range(length)),),
    )  # fmt: skip
    world = mad.World(
        Shuttle(length), 3, reset, begin, local_states, step, sizes=(length, length, 2), outcomes=outcomes,
        bounds=np.array([[-2.0, 0.0], [0.0, 1.0]]),
    )  # fmt: skip
    advisors = (mad.Advisor("drone", states=length * length), mad.Advisor("parcel", states=length))
    return mad.Task("shuttle", ("left", "right"), advisors, world, limit=50, options={"length": length}, board=board)


def silent(task: mad.Task) -> mad.Task:
    """The same world, which answers nothing."""
    assert task.world is not None
    world = dataclasses.replace(task.world, outcomes=None, bounds=None)
    return dataclasses.replace(task, world=world, board=None)


@pytest.fixture
def named():
    """Registered, and forgotten afterwards."""
    register_task("shuttle")(shuttle)
    yield
    del TASKS["shuttle"]
    for name in ("Shuttle", "mo-Shuttle"):
        del gymnasium.registry[f"multiadvisor/{name}-v0"]


@pytest.fixture(scope="module")
def agent():
    return mad.MultiAdvisor(shuttle(), planning="egocentric", gamma=0.5, epsilon=0.3, seed=0).learn(20_000)


# ---- what it can do --------------------------------------------------------------------------------------------------
def test_it_is_sound_and_its_answers_agree_with_what_it_does():
    report = mad.check_task(shuttle())
    assert report.ok, str(report)


def test_it_is_learned_and_explained(agent):
    assert agent.evaluate(episodes=20).terminated == 1.0
    assert np.allclose(agent.values(1)[:3, RIGHT], [0.25, 0.5, 1.0], atol=1e-6)  # gamma to the power of the steps
    assert "right" in str(agent.explain([2, 0, 1]))


def test_it_is_solved_from_its_outcomes():
    mdp = theory.enumerate_task(shuttle())
    assert mdp.states == 3 * 4  # the parcel is fetched in the last cell, and that is the end
    assert mdp.labels[0] == "(0, 0) drones (0, 3) parcel (0, 3)"
    assert np.allclose(mdp.probability.sum(axis=-1), 1.0)
    solution = theory.solve(mdp, "egocentric", 0.5)
    place = {label: number for number, label in enumerate(mdp.labels)}
    at = place["(0, 1) drones (0, 0) parcel (0, 3)"]
    assert solution.values[1, at].tolist() == [0.125, 0.5]
    assert mdp.reward[at].tolist() == [[-1.0, 0.0], [0.0, 0.0]]  # half of -2


def test_it_is_drawn(agent):
    task = agent.task
    assert render.text(task, [1, 3, 1]).splitlines()[1:3] == ["██  P   G·██", "████████████"]
    assert render.picture(task, [1, 3, 1]).shape == (48, 96, 3)
    [shown] = task.grid.planes(task.initial_state()[None])
    assert shown.shape == (4, 2, 4)
    assert [plane[0].tolist() for plane in shown[1:]] == [[0, 0, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0]]


def test_its_rewards_are_bounded_in_gymnasium():
    space = WorldEnv(shuttle(), vector_reward=True).reward_space
    assert (space.low.tolist(), space.high.tolist()) == ([-2.0, 0.0], [0.0, 1.0])


def test_it_is_shown_on_the_page(agent, tmp_path):
    trace = record(agent, 1, 0)
    assert sends_table(agent)
    assert describe(agent, "mine")["grid"]["columns"] == 4
    assert run_pack(agent, "mine")
    assert episode_pack(trace, 0, agent)
    assert export({"mine": agent}, tmp_path / "episode.html") > 0
    refused("attractors of single boards are for mazes", attractor_layer, agent, np.array([0, 3, 1]))


def test_registered_it_has_a_name_everywhere(named, tmp_path, capsys):
    assert mad.make("shuttle", length=5).world.sizes == (5, 5, 2)
    env = gymnasium.make("multiadvisor/mo-Shuttle-v0", length=3).unwrapped
    assert env.reward_names == ("drone", "parcel")
    out = tmp_path / "run"
    train = ["train", "shuttle", "--length", "3", "--eval-every", "500", "--steps", "1000", "--out", out]
    assert printed(capsys, *train)
    assert printed(capsys, "evaluate", out)
    assert printed(capsys, "tasks")["shuttle"]["options"] == {"length": {"default": 4, "help": "cells."}}
    assert len(printed(capsys, "solve", "shuttle", "--gamma", "0.5")["states"]) == 12
    assert mad.load(out).task.board.shape == (2, 3)
    refused("a task called 'shuttle' is registered already", lambda: register_task("shuttle")(lambda: None))


# ---- what it does not answer -----------------------------------------------------------------------------------------
def test_a_world_that_answers_nothing_is_learned_in_and_refused_in_one_line_elsewhere():
    task = silent(shuttle())
    assert mad.check_task(task).ok
    assert mad.MultiAdvisor(task, seed=0).learn(500).evaluate(episodes=2).length > 0
    space = WorldEnv(task, vector_reward=True).reward_space
    assert not np.isfinite([space.low, space.high]).any()
    assert render.text(task, [1, 2, 1]) == "shuttle: state [1, 2, 1]"
    refused("'shuttle' is random and does not list its outcomes", theory.enumerate_task, task)
    refused("'shuttle' has no board", render.picture, task, [1, 2, 1])
    refused("'shuttle' is not a maze", theory.exact_agent, task, "egocentric", 0.5)


def half(world, x, action):
    return list(outcomes(world, x, action))[:1]


def test_answers_that_do_not_fit_are_refused():
    task = shuttle()
    assert task.world is not None
    assert task.board is not None
    for change, message in (
        ({"board": parse_maze("P.")}, "the board of task 'shuttle' is a Board: give a Grid"),
        ({"board": dataclasses.replace(task.board, terms=())}, "the board of task 'shuttle' has 0 terms: give 2"),
        ({"board": dataclasses.replace(task.board, items=(Item("parcel", 3, 0, 1),))}, "places from 0 to 2 of x"),
        ({"board": dataclasses.replace(task.board, sprites=(Sprite("player", 0),))}, "name place 1 of x, no sprite's"),
        ({"world": dataclasses.replace(task.world, bounds=np.zeros((3, 2)))}, r"reward \[2, 2\]"),
        ({"world": dataclasses.replace(task.world, bounds=np.array([[0, -1], [0, 1]]))}, r"reward \[2, 2\]"),
    ):
        refused(message, dataclasses.replace, task, **change)
    torn = dataclasses.replace(task, world=dataclasses.replace(task.world, outcomes=half))
    refused(r"outcomes of task 'shuttle' after left in \[0, 3, 1\] .* sum to 0.5", theory.enumerate_task, torn)


@pytest.mark.parametrize("name", ["Shuttle", "two words", "gymnasium:shuttle", "", "-x"])
def test_names_that_no_task_can_have(name):
    refused("cannot name a task", register_task, name)


@pytest.mark.parametrize("rules", ["paper", "hra"])
def test_the_outcomes_of_the_maze_are_what_the_compiled_rules_do(rules):
    """Where two ghosts and Pac-Boy meet in a small maze, with dead ends and a ghost that cannot move."""
    for maze in ("GP.G\n.#..", "PF#G\n..##", "PGF"):
        report = mad.check_task(mad.make("pac-boy", maze=f"{maze}\n{'#' * len(maze.split()[0])}", rules=rules))
        assert report.ok, str(report)
