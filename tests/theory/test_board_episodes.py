"""Greedy episodes with exact values: who gets stuck, from which gamma on, and what `solve --board` advises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multiadvisor as mad
from command_line import printed, typed
from multiadvisor.analysis import theory
from multiadvisor.analysis.theory import boards
from multiadvisor.analysis.theory.attractors import safe_and_caught
from multiadvisor.analysis.theory.boards import Maze
from multiadvisor.core.aggregator import aggregator_of
from multiadvisor.core.rng import ENVIRONMENT, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv

ROOM = ["......" + ("............" if row == 3 else "#" * 12) for row in range(6)]  # and a corridor of 12 cells
ROOM[3] = ROOM[3][:3] + "P" + ROOM[3][4:]


def task_of(*lines):
    return mad.make("pac-boy", ghosts=False, maze="\n".join([*lines, ""]))


def ending(task, seed, gamma):
    x = task.initial_state(seed)
    maze = Maze(task)
    return boards.greedy_episode(maze, x, boards.fruit_advice(maze, gamma))


def played(task, seed, gamma, steps):
    """The same episode by an agent with exact values, in the compiled world: steps until the last fruit, fruit left."""
    agent = theory.exact_agent(task, "egocentric", gamma)
    env = CompiledEnv(task, [stream_key(seed, ENVIRONMENT)])
    env.reset()
    for step in range(1, steps + 1):
        if env.step(np.array([agent.act(env.x[0])])).terminated[0]:
            return step, 0
    return steps, int(env.x[0, 1:].sum())


# ---- the advice ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_the_advice_of_a_board_is_about_episodes(capsys, seed):
    """A room with a corridor: almost no board has an attractor that holds, and almost every episode gets stuck at
    0.9."""
    task = task_of(*ROOM)
    found = printed(capsys, "solve", "pac-boy", "--no-ghosts", "--maze", task.options["maze"], "--board", seed)
    keep = found["episodes"]["keep_gamma"]
    assert f"keep gamma at or below {keep:.4f}" in found["verdict"]
    share = {g: 1 - theory.exact_agent(task, "egocentric", g, seed=1).evaluate(500).terminated for g in (keep, 0.9)}
    assert share[0.9] > 0.95
    assert share[keep] < 0.005
    assert found["episodes"]["others_stuck"] == pytest.approx(share[0.9], abs=0.05)
    assert ending(task, seed, keep).left == 0
    assert ending(task, seed, found["critical_gamma_stuck"]).left > 0
    assert found["episodes"]["safe_gamma"] == pytest.approx(found["critical_gamma_stuck"] - 1e-4)


@pytest.mark.parametrize(("words", "told", "untold"), [
    ("three-fruits --board 0 --gamma 0.6",  # the board of a gadget is its only episode
     ["it never eats the last 3 fruits, held at (2, 2)", "keep gamma at or below 1/2"], "random boards"),
    # the potential of a corridor is convex: it has no peak between the fruits
    ("pac-boy --maze {} --board 0", ["gets stuck at no gamma that was tried"], "what to do"),
    ("pac-boy --maze {} --limit 5 --board 0 --gamma 0.5", ["finished after 13 steps, beyond the limit of 5"], "!"),
])  # fmt: skip
def test_what_is_told_of_a_board(tmp_path, capsys, words, told, untold):
    corridor = tmp_path / "maze.txt"
    corridor.write_text("F__F_P__F\n")
    code, text, _ = typed(capsys, "solve", *words.format(corridor).split())
    assert code == 0
    assert all(line in text for line in told)
    assert untold not in text


@pytest.mark.parametrize(("name", "threshold"), [("three-fruits", 1 / 2), ("four-fruits", 1 / np.sqrt(3))])
def test_episodes_get_stuck_from_the_thresholds_that_are_derived_by_hand(name, threshold):
    task = mad.make(name)
    found = boards.outlook(task, task.initial_state(), 0.4)
    assert found.ending.left == 0
    assert found.safe <= threshold <= found.stuck
    assert found.stuck - found.safe == pytest.approx(1e-4)
    assert found.keep == found.safe
    assert found.others == 0


def test_the_search_tells_what_it_does():
    told = []
    task = task_of("..P..", ".....")
    boards.outlook(task, task.initial_state(), 0.9, tell=told.append)
    assert told[0] == "the episode of this board at gamma = 0.01"
    assert any("other episodes at gamma" in line for line in told)


# ---- the episodes ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gamma", [0.3, 0.6, 0.7, 0.9])
@pytest.mark.parametrize("seed", [0, 1])
def test_episodes_are_those_that_an_agent_with_exact_values_plays(gamma, seed):
    task = mad.make("pac-boy", ghosts=False)
    mine = ending(task, seed, gamma)
    steps, left = played(task, seed, gamma, 300)
    assert mine.left == left
    assert mine.left > 0 or mine.steps == steps


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 6), st.floats(0.05, 1 / 3))
def test_below_the_bound_of_theorem_4_no_episode_gets_stuck(seed, width, height, gamma):
    task = mad.make("fruit-grid", width=width, height=height, fruits=min(8, width * height - 1))
    assert all(one.left == 0 for one in boards.endings(Maze(task), task.initial_state(seed), gamma))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.4, 0.99))
def test_a_walk_is_stuck_where_the_solver_says(seed, gamma):
    task = mad.make("fruit-grid", width=5, height=5, fruits=8)
    x, maze = task.initial_state(seed), Maze(task)
    advice = boards.fruit_advice(maze, gamma)
    _, found = boards.greedy_on(maze, advice, maze.fruit(x), aggregator_of(task, "sum"))
    stuck = theory.stuck_states(theory.board_solution(task, x, gamma))
    free = np.setdiff1d(np.arange(25), maze.world.fruit_cell[maze.fruit(x)])
    assert found[free].tolist() == stuck[free].tolist()


def test_a_tie_is_played_both_ways():
    """North and South are alike at first, and both episodes are finished; more than one is played."""
    task = task_of("F", "_", "P", "_", "F")
    found = list(boards.endings(Maze(task), task.initial_state(), 0.4))
    assert len(found) > 1
    assert {one.left for one in found} == {0}
    assert {one.cell for one in found} == {0, 4}


@given(st.integers(1, 9999))
def test_thresholds_are_found_on_the_lattice(first):
    steps = [*(k / 100 for k in range(1, 100)), 0.9999]
    safe, caught = safe_and_caught(lambda g: g * 10_000 >= first - 0.5, steps, 4)
    assert (round(safe * 10_000), round(caught * 10_000)) == (first - 1, first)


def test_nothing_caught_and_known_to_be_safe():
    assert safe_and_caught(lambda g: False, [0.35, 0.99], 2, 0.33) == (0.99, None)
    assert safe_and_caught(lambda g: True, [0.35, 0.99], 2, 0.33) == (0.33, 0.34)
