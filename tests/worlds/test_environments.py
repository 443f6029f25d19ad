"""The Gymnasium environments: what Gymnasium asks for, the same episodes one by one and together, rewards by name."""

from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import multiadvisor as mad
from multiadvisor.envs.registry import ENVIRONMENTS, TASKS, environment_name
from multiadvisor.envs.world_envs import WorldEnv, WorldVectorEnv
from refusal import refused

NAMES = [environment_name(task) for task in TASKS if task not in ENVIRONMENTS]
BOARDS = ["PacBoy", "FruitGrid", "ThreeFruits", "FourFruits", "TwoGoal", "Bridge"]
SHORT = {"Racetrack": {"limit": 60}, "Fishery": {"years": 6}, "DynaMaze": {"limit": 60}}  # so that episodes end here
BOTH = [(name, "compact") for name in NAMES] + [(name, "image") for name in BOARDS]


def the_same(one, other) -> bool:
    return type(one) is type(other) and np.array_equal(one, other)


# ---- Gymnasium's own demands -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("name", "observation"), BOTH)
def test_gymnasiums_checker_has_nothing_to_say(name, observation):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"multiadvisor/{name}-v0", observation=observation, disable_env_checker=True)
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


# ---- many episodes ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "observation"), BOTH)
def test_many_episodes_are_the_single_ones_step_for_step(name, observation):
    """The single ones are made with Gymnasium's passive checker."""
    episodes, steps, seed = 5, 330, 11
    options = {"observation": observation, **SHORT.get(name, {})}
    envs = gymnasium.make_vec(f"multiadvisor/{name}-v0", num_envs=episodes, **options)
    assert isinstance(envs, WorldVectorEnv)
    singles = [gymnasium.make(f"multiadvisor/{name}-v0", **options) for _ in range(episodes)]
    observations, _ = envs.reset(seed=seed)
    for b, env in enumerate(singles):
        assert np.array_equal(env.reset(seed=seed + b)[0], observations[b])
    rng, over, ends = np.random.default_rng(0), np.zeros(episodes, bool), 0
    for _ in range(steps):
        actions = rng.integers(envs.single_action_space.n, size=episodes)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert observations in envs.observation_space
        assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float64, bool, bool)
        for b, env in enumerate(singles):
            expected = (env.reset()[0], 0.0, False, False, None) if over[b] else env.step(actions[b])
            assert expected[0] in env.observation_space
            assert np.array_equal(observations[b], expected[0])
            assert type(expected[1]) is float
            assert (rewards[b], terminated[b], truncated[b]) == expected[1:4]
            own = [0.0] * envs.task.n if over[b] else list(expected[4]["rewards"].values())
            assert infos["rewards"][b].tolist() == own
            assert infos["_rewards"][b] == (not over[b])
        over = terminated | truncated
        ends += over.sum()
    assert ends >= episodes


def test_the_batch_does_as_gymnasiums_own_does():
    """The same seeds, actions and resets through SyncVectorEnv."""
    kinds = ["vector_entry_point", "sync"]
    ours, theirs = (gymnasium.make_vec("multiadvisor/FruitGrid-v0", 3, k, limit=20) for k in kinds)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert (ours.observation_space, ours.action_space) == (theirs.observation_space, theirs.action_space)
    assert np.array_equal(ours.reset(seed=2)[0], theirs.reset(seed=2)[0])
    rng = np.random.default_rng(0)
    for step in range(100):
        if step == 50:
            assert np.array_equal(ours.reset()[0], theirs.reset()[0])
        actions = rng.integers(4, size=3)
        for mine, other in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            assert np.array_equal(mine, other)


def test_what_a_step_returned_stays_as_it_was():
    envs = WorldVectorEnv("pac-boy", num_envs=2)
    envs.reset(seed=0)
    returned = envs.step(np.array([1, 1]))
    kept = [part.copy() for part in returned[:4]]
    for _ in range(30):
        envs.step(np.array([1, 0]))
    assert all(np.array_equal(a, b) for a, b in zip(returned, kept, strict=False))


def test_seeds_may_be_given_one_by_one():
    envs, env = WorldVectorEnv("pac-boy", num_envs=2), WorldEnv("pac-boy")
    observations, _ = envs.reset(seed=[7, 3])
    assert [the_same(env.reset(seed=s)[0], observations[b]) for b, s in enumerate([7, 3])] == [True, True]
    assert envs.np_random_seed == 7
    unseeded = WorldVectorEnv("pac-boy", num_envs=2).reset()[0]
    assert not np.array_equal(unseeded[0], unseeded[1])


def test_gymnasiums_wrappers_take_the_batch():
    envs = gymnasium.make_vec("multiadvisor/PacBoy-v0", num_envs=4, limit=5)
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    envs.reset(seed=0)
    for _ in range(5):
        infos = envs.step(np.full(4, 1))[4]
    assert infos["episode"]["l"].tolist() == [5] * 4


# ---- observations and rewards ----------------------------------------------------------------------------------------
def test_the_compact_observation_is_the_state():
    env = WorldEnv("pac-boy")
    assert env.observation_space.nvec.tolist() == [76] * 3 + [2] * 75
    assert WorldEnv("two-goal").observation_space == gymnasium.spaces.Discrete(1)
    agent = mad.MultiAdvisor(env.task)
    assert agent.preferences(env.reset(seed=0)[0]).shape == (4,)


def test_the_image_has_a_channel_for_each_kind():
    compact, image = WorldEnv("pac-boy"), WorldEnv("pac-boy", observation="image")
    board = image.task.board
    x, _ = compact.reset(seed=4)
    shown, _ = image.reset(seed=4)
    assert shown.shape == (4, 11, 11)
    assert image.observation_space == gymnasium.spaces.Box(0, 1, (4, 11, 11), np.uint8)
    for action in (1, 0, 0, 1, 1):
        walls, ghosts, fruits, pac_boy = shown
        assert (walls == board.walls).all()
        assert {tuple(at) for at in np.argwhere(ghosts)} == {tuple(board.cells[c]) for c in x[1:3]}
        assert np.argwhere(pac_boy).tolist() == [board.cells[x[0]].tolist()]
        assert (fruits[tuple(board.cells[board.item_cells].T)] == x[3:]).all()
        assert fruits.sum() == x[3:].sum()
        x, shown = compact.step(action)[0], image.step(action)[0]
    assert board.planes(x[None]).shape == (1, 4, 11, 11)


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
@pytest.mark.parametrize("rewards", ["advisors", "groups"])
def test_the_twins_components_add_up_to_the_scalar(name, rewards):
    scalar = gymnasium.make(f"multiadvisor/{name}-v0")
    vector = gymnasium.make(f"multiadvisor/mo-{name}-v0", rewards=rewards)
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
        assert other[1].sum() == pytest.approx(reward)
        assert other[2:] == (terminated, truncated, info)
        if rewards == "advisors":
            assert dict(zip(twin.reward_names, other[1].tolist(), strict=True)) == info["rewards"]
        if terminated or truncated:
            scalar.reset()
            vector.reset()


def test_groups_are_weighted_and_advisors_are_not():
    task = mad.make("pac-boy").with_weights(ghosts=0.5, fruits=-2.0)
    groups, advisors = WorldEnv(task, rewards="groups"), WorldEnv(task, rewards="advisors")
    assert groups.reward_names == ("ghosts", "fruits")
    assert advisors.reward_names == task.names
    assert (groups.reward_space.low.tolist(), groups.reward_space.high.tolist()) == ([-10.0, -150.0], [0.0, 0.0])
    groups.reset(seed=0)
    advisors.reset(seed=0)
    total, parts = np.zeros(2), np.zeros(77)
    for action in np.random.default_rng(0).integers(4, size=200):
        total += groups.step(action)[1]
        parts += advisors.step(action)[1]
    assert parts[:2].sum() < 0 < parts[2:].sum()
    assert total.tolist() == [0.5 * parts[:2].sum(), -2.0 * parts[2:].sum()]
    assert WorldEnv("two-goal", rewards="groups").reward_names == ("goal 1", "goal 2")


def test_many_episodes_with_a_vector_reward():
    envs = gymnasium.make_vec("multiadvisor/mo-PacBoy-v0", num_envs=3, rewards="groups")
    env = WorldEnv("pac-boy", rewards="groups")
    envs.reset(seed=4)
    env.reset(seed=5)
    for action in np.random.default_rng(0).integers(4, size=50):
        rewards = envs.step(np.full(3, action))[1]
        assert rewards.shape == (3, 2)
        assert np.array_equal(rewards[1], env.step(action)[1])


def test_mo_gymnasium_takes_the_twin():
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    env = mo_gymnasium.make("multiadvisor/mo-PacBoy-v0", rewards="groups")
    env = mo_gymnasium.wrappers.LinearReward(env, weight=np.array([0.1, 1.0]))
    env.reset(seed=0)
    for action in np.random.default_rng(0).integers(4, size=100):
        _, reward, _, _, info = env.step(action)
        assert reward == pytest.approx(info["vector_reward"] @ [0.1, 1.0])


@pytest.mark.parametrize("rewards", ["advisors", "groups"])
def test_the_twin_is_a_task_again(rewards):
    env = gymnasium.make("multiadvisor/mo-ThreeFruits-v0", rewards=rewards)
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
    assert WorldVectorEnv("three-fruits", num_envs=2).render() is None
    envs = WorldVectorEnv("three-fruits", num_envs=2, render_mode="ansi")
    envs.reset(seed=0)
    assert envs.render() == (text.render(), text.render())


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"observation": "pixels"}, "unknown observation 'pixels': choose one of compact, image"),
        ({"observations": "image"}, "did you mean 'observation'"),
        ({"rule": "hra"}, "did you mean 'rules'"),
        ({"rules": "both"}, "unknown rules 'both'"),
    ],
)
@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_options_that_are_refused(make, options, sentence):
    refused(sentence, make, "multiadvisor/PacBoy-v0", **options)


def test_further_options_that_are_refused():
    refused("unknown render mode 'tv'", WorldEnv, "pac-boy", render_mode="tv")
    refused("task 'random-mdp' has no board to make an image of", WorldEnv, "random-mdp", observation="image")
    refused("unknown rewards 'all'", WorldEnv, "pac-boy", rewards="all")
    refused("unknown task 'pacboy': did you mean 'pac-boy'", WorldEnv, "pacboy")
    refused("no 'rules'", WorldEnv, mad.make("pac-boy"), rules="hra")
    refused("'FrozenLake-v1' has no compiled world", WorldEnv, "FrozenLake-v1")
    refused("at least 1 episode", WorldVectorEnv, "pac-boy", num_envs=0)


@pytest.mark.parametrize("action", [-1, 4, 2**63, 1.0, "N", None, [1]])
def test_actions_that_are_refused(action):
    env = WorldEnv("three-fruits")
    env.reset(seed=0)
    refused("action", env.step, action)
    assert env.step(1)[0].tolist() == [11, 1, 1, 1]  # nothing was played


@pytest.mark.parametrize("actions", [[0], [0, 4], [0, -1], [0.0, 1.0], [[0, 1]]])
def test_actions_for_many_episodes_that_are_refused(actions):
    envs = WorldVectorEnv("three-fruits", num_envs=2)
    envs.reset(seed=0)
    refused("action", envs.step, np.array(actions))


def test_calls_out_of_order_are_refused():
    for env, action in ((WorldEnv("two-goal"), 1), (WorldVectorEnv("two-goal", num_envs=1), np.array([1]))):
        refused("reset", env.step, action)
        refused("'level'", env.reset, options={"level": 3})
    env = WorldEnv("two-goal")
    env.reset(seed=0)
    assert env.step(1)[2]
    refused("no episode is on", env.step, 1)
    refused("3 seeds were given for 1 episodes", lambda: WorldVectorEnv("two-goal", num_envs=1).reset(seed=[1, 2, 3]))
