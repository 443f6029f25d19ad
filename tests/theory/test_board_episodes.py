"""Greedy episodes with exact values: who gets stuck, from which gamma on, and what `solve --board` advises."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multiadvisor as mad
from multiadvisor.analysis import theory
from multiadvisor.analysis.theory import board_episodes
from multiadvisor.analysis.theory.boards import Maze
from multiadvisor.cli import main
from multiadvisor.core.aggregator import aggregator_of
from multiadvisor.envs.compiled_env import CompiledEnv

ROOM = ["......" + ("............" if row == 3 else "#" * 12) for row in range(6)]  # and a corridor of 12 cells
ROOM[3] = ROOM[3][:3] + "P" + ROOM[3][4:]


def maze_of(tmp_path, lines):
    path = tmp_path / "maze.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def task_of(tmp_path, lines):
    return mad.make("pac-boy", ghosts=False, maze=str(maze_of(tmp_path, lines)))


def ending(task, seed, gamma):
    x = task.initial_state(seed)
    maze = Maze(task)
    return board_episodes.greedy_episode(maze, x, board_episodes.fruit_advice(maze, gamma))


def played(task, seed, gamma, steps):
    """The same episode by an agent with exact values, in the compiled world: steps until the last fruit, fruit left."""
    from multiadvisor.core.rng import ENVIRONMENT, stream_key

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
def test_the_advice_of_a_board_is_about_episodes(tmp_path, capsys, seed):
    """A room with a corridor: almost no board has an attractor that holds, and almost every episode gets stuck at
    0.9."""
    path = maze_of(tmp_path, ROOM)
    assert main(["solve", "pac-boy", "--no-ghosts", "--maze", str(path), "--board", str(seed), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    keep = found["episodes"]["keep_gamma"]
    assert f"keep gamma at or below {keep:.4f}" in found["verdict"]
    task = mad.make("pac-boy", ghosts=False, maze=str(path))
    share = {g: 1 - theory.exact_agent(task, "egocentric", g, seed=1).evaluate(500).terminated for g in (keep, 0.9)}
    assert share[0.9] > 0.95
    assert share[keep] < 0.005
    assert found["episodes"]["others_stuck"] == pytest.approx(share[0.9], abs=0.05)
    assert ending(task, seed, keep).left == 0
    assert ending(task, seed, found["critical_gamma_stuck"]).left > 0
    assert found["episodes"]["safe_gamma"] == pytest.approx(found["critical_gamma_stuck"] - 1e-4)


def test_the_board_of_a_gadget_is_its_only_episode(capsys):
    assert main(["solve", "three-fruits", "--board", "0", "--gamma", "0.6"]) == 0
    text = capsys.readouterr().out
    assert "it never eats the last 3 fruits, held at (2, 2)" in text
    assert "keep gamma at or below 1/2" in text
    assert "random boards" not in text


@pytest.mark.parametrize(("name", "threshold"), [("three-fruits", 1 / 2), ("four-fruits", 1 / np.sqrt(3))])
def test_episodes_get_stuck_from_the_thresholds_that_are_derived_by_hand(name, threshold):
    task = mad.make(name)
    found = board_episodes.outlook(task, task.initial_state(), 0.4)
    assert found.ending.left == 0
    assert found.safe <= threshold <= found.stuck
    assert found.stuck - found.safe == pytest.approx(1e-4)
    assert found.keep == found.safe
    assert found.others == 0


def test_a_corridor_is_safe_at_any_gamma(tmp_path, capsys):
    """The potential of a corridor is convex: it has no peak between the fruits."""
    path = maze_of(tmp_path, ["F__F_P__F"])
    assert main(["solve", "pac-boy", "--maze", str(path), "--board", "0"]) == 0
    text = capsys.readouterr().out
    assert "gets stuck at no gamma that was tried" in text
    assert "what to do" not in text


def test_an_episode_beyond_the_limit_is_said(tmp_path, capsys):
    path = maze_of(tmp_path, ["F__F_P__F"])
    assert main(["solve", "pac-boy", "--maze", str(path), "--limit", "5", "--board", "0", "--gamma", "0.5"]) == 0
    assert "it is finished after 13 steps, beyond the limit of 5" in capsys.readouterr().out


def test_the_search_tells_what_it_does(tmp_path):
    told = []
    task = task_of(tmp_path, ["..P..", "....."])
    board_episodes.outlook(task, task.initial_state(), 0.9, tell=told.append)
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
    assert all(one.left == 0 for one in board_episodes.endings(Maze(task), task.initial_state(seed), gamma))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.4, 0.99))
def test_a_walk_is_stuck_where_the_solver_says(seed, gamma):
    task = mad.make("fruit-grid", width=5, height=5, fruits=8)
    x, maze = task.initial_state(seed), Maze(task)
    advice = board_episodes.fruit_advice(maze, gamma)
    walk = board_episodes._Walk(maze, advice, maze.fruit(x), aggregator_of(task, "sum"))
    stuck = theory.stuck_states(theory.board_solution(task, x, gamma))
    free = [cell for cell in range(25) if not walk.holds(cell)]
    assert [walk.stuck(cell) for cell in free] == stuck[free].tolist()


def test_a_tie_is_played_both_ways(tmp_path):
    """North and South are alike at first, and both episodes are finished; more than one is played."""
    task = task_of(tmp_path, ["F", "_", "P", "_", "F"])
    found = list(board_episodes.endings(Maze(task), task.initial_state(), 0.4))
    assert len(found) > 1
    assert {one.left for one in found} == {0}
    assert {one.cell for one in found} == {0, 4}


@given(st.integers(1, 9999))
def test_thresholds_are_found_on_the_lattice(first):
    safe, caught = board_episodes.safe_and_caught(lambda g: g * 10_000 >= first - 0.5, 10_000, 100)
    assert (round(safe * 10_000), round(caught * 10_000)) == (first - 1, first)


def test_nothing_caught_and_known_to_be_safe():
    tried = []
    assert board_episodes.safe_and_caught(lambda g: tried.append(g) is not None, 100, 5, above=1 / 3) == (0.99, None)
    assert tried[0] == 0.35
    assert tried[-1] == 0.99
