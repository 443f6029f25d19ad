"""The rules of the maze worlds, step by step on mazes small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.core.rng import ENVIRONMENT, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.rollout import vector_rollout
from multiadvisor.envs.world_envs import WorldEnv

N, W, S, E = range(4)
SEEDS = range(40)  # enough for every move of a ghost to occur


def play(maze: str, **options) -> WorldEnv:
    """An episode on a maze given as text."""
    env = WorldEnv("pac-boy", maze=f"{maze}\n", **options)
    env.reset(seed=0)
    return env


def outcomes(maze: str, action: int, **options) -> set[tuple[int, int, float]]:
    """What one step can lead to: Pac-Boy's cell, the ghost's cell, the ghost's reward."""
    env, seen = play(maze, **options), set()
    for seed in SEEDS:
        env.reset(seed=seed)
        x, _, _, _, info = env.step(action)
        seen.add((int(x[0]), int(x[1]), info["rewards"]["ghost 1"]))
    return seen


def test_bumping_into_a_wall_or_the_edge_costs_a_step_and_nothing_else():
    env = play("#F\nP_")  # cells: 0 the fruit, 1 the start, 2 beside it
    for action in (N, W, S):
        x, reward, terminated, truncated, _ = env.step(action)
        assert (x.tolist(), reward, terminated, truncated) == ([1, 1], 0.0, False, False)
    assert env.step(E)[0].tolist() == [2, 1]


def test_actions_are_north_west_south_east():
    env = play("F__\n_P_\n___")  # cells 0 to 8 in reading order, the start is 4
    assert [int(env.step(action)[0][0]) for action in (N, S, W, E, S, N, E, W)] == [1, 4, 3, 4, 7, 4, 5, 4]


def test_a_fruit_is_eaten_once_and_the_last_one_ends_the_episode():
    env = play("FPF")
    x, reward, terminated, truncated, info = env.step(W)
    assert (x.tolist(), reward, terminated, truncated) == ([0, 0, 1], 1.0, False, False)
    assert info["rewards"] == {"fruit (0, 0)": 1.0, "fruit (0, 2)": 0.0}
    assert env.step(W)[1] == 0.0  # it is gone
    env.step(E)
    x, reward, terminated, truncated, info = env.step(E)
    assert (x.tolist(), reward, terminated, truncated) == ([2, 0, 0], 1.0, True, False)
    assert info["rewards"] == {"fruit (0, 0)": 0.0, "fruit (0, 2)": 1.0}


def test_the_limit_truncates_but_the_last_fruit_in_the_last_step_terminates():
    env = play("FP", limit=3)
    ends = [env.step(N)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    assert play("FP", limit=1).step(W)[1:4] == (1.0, True, False)


@pytest.mark.parametrize(("action", "rules", "expected"), [
    (E, "paper", {(3, 2, -10.0), (3, 3, -10.0), (3, 4, -10.0)}),  # onto a ghost, wherever it goes
    (E, "hra", {(3, 2, -10.0), (3, 4, 0.0)}),  # which steps aside, or swaps
    (N, "paper", {(2, 2, -10.0), (2, 3, 0.0), (2, 4, 0.0)}),  # it comes, stays or goes
    (N, "hra", {(2, 2, -10.0), (2, 4, 0.0)}),
    (W, "paper", {(1, 2, 0.0), (1, 3, 0.0), (1, 4, 0.0)}),  # away from it
    (W, "hra", {(1, 2, 0.0), (1, 4, 0.0)}),
])  # fmt: skip
def test_what_is_a_touch(action, rules, expected):
    """Cells 0 to 4; Pac-Boy is on 2, and the ghost on 3 stays (walls), or goes to 2 or 4."""
    assert outcomes("F_PG_", action, rules=rules) == expected


def test_a_ghost_touches_once_a_step_and_each_one_by_itself():
    # The ghosts are walled in with Pac-Boy between them: a step West meets the first one for certain.
    env, seen = play("FP#\n#GG"), set()  # cells: 0 fruit, 1 the start, 2 and 3 the ghosts
    for seed in SEEDS:
        env.reset(seed=seed)
        x, reward, _, _, info = env.step(S)
        first, second = info["rewards"]["ghost 1"], info["rewards"]["ghost 2"]
        assert first == -10.0  # even where it stays, and so is met before and after its move
        assert second == (-10.0 if x[2] == x[0] else 0.0)
        assert reward == first + second
        seen.add((int(x[1]), second))
    assert {(2, 0.0), (2, -10.0), (1, 0.0), (3, 0.0)} <= seen


def test_a_touch_does_not_end_the_episode():
    env = play("#P#\nFGF")
    _, reward, terminated, truncated, info = env.step(S)
    assert (reward, terminated, truncated) == (-10.0, False, False)
    assert [name for name, paid in info["rewards"].items() if paid] == ["ghost 1"]


def test_a_touch_and_the_last_fruit_add_up():
    env = play("P.G")
    fruit = env.unwrapped.task.names.index("fruit (0, 2)")
    assert fruit == 2  # after the ghost and the fruit place beside Pac-Boy
    for seed in SEEDS:
        x, _ = env.reset(seed=seed)
        if x.tolist()[2:] == [0, 1]:  # the only fruit lies under the ghost
            env.step(E)
            x, reward, terminated, _, info = env.step(E)
            assert terminated
            assert info["rewards"]["fruit (0, 2)"] == 1.0
            assert reward == 1.0 + info["rewards"]["ghost 1"]
            break
    else:
        pytest.fail("no episode with a single fruit under the ghost")


def test_ghosts_without_a_way_out_stay_under_both_rules():
    for rules in ("paper", "hra"):
        env = play("FP#\n##G", rules=rules)
        assert env.step(N)[0].tolist() == [1, 2, 1]


def many(episodes: int, name: str, **options) -> CompiledEnv:
    """Episodes of the seeds 0, 1, ..."""
    return CompiledEnv(mad.make(name, **options), [stream_key(seed, ENVIRONMENT) for seed in range(episodes)])


def test_pac_boy_never_starts_on_fruit_and_half_of_the_places_hold_one():
    envs = many(400, "pac-boy")
    x = envs.reset()
    world = envs.task.world.constants
    assert envs.task.board.item_cells.tolist() == [c for c in range(76) if c != world.start]
    assert (x[:, 0] == world.start).all()
    assert (x[:, 1:3] == world.ghost_start).all()
    fruits = x[:, 3:]
    assert abs(fruits.mean() - 0.5) < 4 * 0.5 / np.sqrt(fruits.size)
    assert np.abs(fruits.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(len(fruits))


def test_fruit_grids_have_as_many_fruits_as_asked_for():
    x = many(200, "fruit-grid", width=4, height=3, fruits=5).reset()
    assert (x[:, 1:].sum(axis=1) == 5).all()
    assert (x[np.arange(200), 1 + x[:, 0]] == 0).all()  # none under Pac-Boy, and cells are places here
    assert set(x[:, 0]) == set(range(12))


def random_scores(episodes: int, **options) -> np.ndarray:
    envs, rng = many(episodes, "pac-boy", **options), np.random.default_rng(0)
    envs.reset()
    played = vector_rollout(envs, lambda: rng.integers(4, size=episodes))
    return np.sum([step.reward.sum(axis=1) for step, _ in played], axis=0)


@pytest.mark.parametrize(("rules", "low", "high"), [("paper", -90, -70), ("hra", -75, -57)])
def test_a_random_player_scores_what_it_scores_in_the_paper(rules, low, high):
    assert low < random_scores(400, rules=rules).mean() < high


def test_without_ghosts_a_random_player_never_loses():
    scores = random_scores(20, ghosts=False)
    assert scores.min() > 0
    assert mad.make("pac-boy", ghosts=False).n == 75
