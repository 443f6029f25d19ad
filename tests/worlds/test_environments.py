"""The Gymnasium environments: what Gymnasium asks for, the same episodes again, rewards by name."""

from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import multiadvisor as mad
from multiadvisor.envs.registry import ENVIRONMENTS, TASKS, environment_name
from multiadvisor.envs.world_envs import WorldEnv
from refusal import refused

NAMES = [environment_name(task) for task in TASKS if task not in ENVIRONMENTS]


def the_same(one, other) -> bool:
    return type(one) is type(other) and np.array_equal(one, other)


# ---- Gymnasium's own demands -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_checker_has_nothing_to_say(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"multiadvisor/{name}-v0", disable_env_checker=True)
        check_env(env.unwrapped)


def test_names_are_registered_without_loading_the_worlds():
    code = (
        "import sys, multiadvisor.envs.registry as r; r._register_environment('pac-boy');"
        "import gymnasium; gymnasium.spec('multiadvisor/mo-PacBoy-v0');"
        "assert 'numba' not in sys.modules and 'multiadvisor.envs.world_envs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_options_of_the_task_pass_through():
    env = gymnasium.make("multiadvisor/PacBoy-v0", rules="hra", limit=7)
    assert env.unwrapped.task.options == {"rules": "hra", "maze": None, "ghosts": True, "limit": 7}
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]


# ---- seeds -----------------------------------------------------------------------------------------------------------
def play(env, seed, steps=700):
    """Observations, rewards and ends under fixed actions, over several episodes."""
    actions = np.random.default_rng(1).integers(env.action_space.n, size=steps)
    story = [env.reset(seed=seed)[0]]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        story += [observation, reward, terminated, truncated]
        if terminated or truncated:
            story.append(env.reset()[0])
    return story


def test_a_seed_determines_everything_that_follows():
    env = WorldEnv("pac-boy")
    first = play(env, 5)
    assert all(the_same(a, b) for a, b in zip(first, play(env, 5), strict=True))
    assert all(the_same(a, b) for a, b in zip(first, play(WorldEnv("pac-boy"), 5), strict=True))
    assert not all(the_same(a, b) for a, b in zip(first, play(env, 6), strict=True))
    assert env.np_random_seed == 6


def test_resets_without_a_seed_go_on_in_the_stream_even_where_nothing_was_played():
    env = WorldEnv("pac-boy")
    starts = [env.reset(seed=3)[0].tobytes(), *(env.reset()[0].tobytes() for _ in range(4))]
    assert len(set(starts)) == 5
    assert starts == [env.reset(seed=3)[0].tobytes(), *(env.reset()[0].tobytes() for _ in range(4))]


def test_without_any_seed_episodes_come_from_the_environments_own_generator():
    starts = {WorldEnv("pac-boy").reset()[0].tobytes() for _ in range(3)}
    assert len(starts) == 3
    twins = []
    for _ in range(2):
        env = WorldEnv("pac-boy")
        env.np_random = np.random.default_rng(8)
        twins.append(env.reset()[0])
    assert the_same(*twins)


def test_what_a_step_returned_stays_as_it_was():
    env = WorldEnv("pac-boy", vector_reward=True)
    env.reset(seed=0)
    observation, reward, *_ = env.step(1)
    kept = observation.copy(), reward.copy()
    for _ in range(30):
        env.step(0)
    assert the_same(observation, kept[0])
    assert the_same(reward, kept[1])


def test_gymnasium_steps_many_together():
    envs = gymnasium.make_vec("multiadvisor/PacBoy-v0", num_envs=3, limit=5)
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    observations, _ = envs.reset(seed=7)
    assert [the_same(WorldEnv("pac-boy").reset(seed=7 + b)[0], observations[b]) for b in range(3)] == [True] * 3
    for _ in range(5):
        infos = envs.step(np.full(3, 1))[4]
    assert infos["episode"]["l"].tolist() == [5] * 3


# ---- observations and rewards ----------------------------------------------------------------------------------------
def test_the_compact_observation_is_the_state():
    env = WorldEnv("pac-boy")
    assert env.observation_space.nvec.tolist() == [76] * 3 + [2] * 75
    assert WorldEnv("two-goal").observation_space == gymnasium.spaces.Discrete(1)
    agent = mad.MultiAdvisor(env.task)
    assert agent.preferences(env.reset(seed=0)[0]).shape == (4,)


def test_the_reward_is_the_weighted_sum_and_info_has_the_advisors_own():
    task = mad.make("pac-boy").with_weights(ghosts=0.5, fruits=3.0)
    plain, weighted = WorldEnv("pac-boy"), WorldEnv(task)
    plain.reset(seed=0)
    weighted.reset(seed=0)
    assert plain.reset(seed=0)[1] == {}
    rng, seen = np.random.default_rng(0), set()
    for _ in range(200):
        action = int(rng.integers(4))
        _, reward, _, _, info = plain.step(action)
        _, other, _, _, same = weighted.step(action)
        assert info == same
        assert tuple(info["rewards"]) == task.names
        assert reward == sum(info["rewards"].values())
        assert other == sum(w * r for w, r in zip(task.weights, info["rewards"].values(), strict=True))
        seen.add(reward)
    assert {-10.0, 0.0, 1.0} <= seen


def test_rewards_of_the_gadgets_by_name():
    env = WorldEnv("dollars-and-euros", failure=0.0)
    env.reset(seed=0)
    assert env.step(2)[1:] == (1.2, True, False, {"rewards": {"dollars": 0.6, "euros": 0.6}})


# ---- vector rewards --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_the_twins_components_add_up_to_the_scalar(name):
    scalar = gymnasium.make(f"multiadvisor/{name}-v0")
    vector = gymnasium.make(f"multiadvisor/mo-{name}-v0")
    twin = vector.unwrapped
    assert twin.reward_space.shape == (twin.reward_dim,) == (len(twin.reward_names),)
    rng = np.random.default_rng(0)
    assert np.array_equal(scalar.reset(seed=1)[0], vector.reset(seed=1)[0])
    for _ in range(100):
        action = rng.integers(scalar.action_space.n)
        observation, reward, terminated, truncated, info = scalar.step(action)
        other = vector.step(action)
        assert np.array_equal(observation, other[0])
        assert other[1] in twin.reward_space
        assert other[1] @ twin.task.weights == pytest.approx(reward)
        assert other[2:] == (terminated, truncated, info)
        assert dict(zip(twin.reward_names, other[1].tolist(), strict=True)) == info["rewards"]
        if terminated or truncated:
            scalar.reset()
            vector.reset()


def test_mo_gymnasium_takes_the_twin():
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    weights = np.repeat([0.1, 1.0], [2, 75])
    env = mo_gymnasium.make("multiadvisor/mo-PacBoy-v0")
    env = mo_gymnasium.wrappers.LinearReward(env, weight=weights)
    env.reset(seed=0)
    for action in np.random.default_rng(0).integers(4, size=100):
        _, reward, _, _, info = env.step(action)
        assert reward == pytest.approx(info["vector_reward"] @ weights)


def test_the_twin_is_a_task_again():
    env = gymnasium.make("multiadvisor/mo-ThreeFruits-v0")
    task = mad.Task.from_gymnasium(env)
    assert task.n == env.unwrapped.reward_dim
    agent = mad.MultiAdvisor(task, planning="empathic", gamma=0.9, seed=0).learn(3000)
    assert agent.evaluate(episodes=5).score == 3.0


# ---- pictures --------------------------------------------------------------------------------------------------------
def test_rendering_by_mode():
    text, picture = (WorldEnv("three-fruits", render_mode=mode) for mode in ("ansi", "rgb_array"))
    text.reset(seed=0)
    picture.reset(seed=0)
    assert text.render().splitlines()[3] == "██·   P   · ██"
    before = picture.render()
    assert before.shape == (72, 120, 3)
    picture.step(2)  # into the wall: only the mouth steps
    assert (picture.render() != before).any()
    silent = WorldEnv("three-fruits")
    silent.reset(seed=0)
    assert silent.render() is None


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vector_rewards": True}, "did you mean 'vector_reward'"),
        ({"rule": "hra"}, "did you mean 'rules'"),
        ({"rules": "both"}, "unknown rules 'both'"),
    ],
)
@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_options_that_are_refused(make, options, sentence):
    refused(sentence, make, "multiadvisor/PacBoy-v0", **options)


def test_further_options_that_are_refused():
    refused("unknown render mode 'tv'", WorldEnv, "pac-boy", render_mode="tv")
    refused("unknown task 'pacboy': did you mean 'pac-boy'", WorldEnv, "pacboy")
    refused("no 'rules'", WorldEnv, mad.make("pac-boy"), rules="hra")
    refused("'FrozenLake-v1' has no compiled world", WorldEnv, "FrozenLake-v1")


@pytest.mark.parametrize("action", [-1, 4, 2**63, 1.0, "N", None, [1]])
def test_actions_that_are_refused(action):
    env = WorldEnv("three-fruits")
    env.reset(seed=0)
    refused("action", env.step, action)
    assert env.step(1)[0].tolist() == [11, 1, 1, 1]  # nothing was played


def test_calls_out_of_order_are_refused():
    env = WorldEnv("two-goal")
    refused("reset", env.step, 1)
    refused("'level'", env.reset, options={"level": 3})
    env.reset(seed=0)
    assert env.step(1)[2]
    refused("no episode is on", env.step, 1)
