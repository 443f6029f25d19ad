"""One `Step` for every environment: a compiled world, Python environments and a vector environment."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import Counter

import multiadvisor as mad
from multiadvisor.core.rng import TRAINING, evaluation_seed, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.observation_encoder import encoder_of
from multiadvisor.envs.python_env import PythonEnv
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout, vector_rollout
from multiadvisor.envs.vector_env import VectorEnv


def compiled():
    task = mad.make("fruit-grid", limit=7)
    return CompiledEnv(task, [stream_key(seed, TRAINING) for seed in range(3)], encoder_of(task), activity=True)


def python():
    task = mad.Task.from_gymnasium(Counter(), [mad.Advisor("all"), mad.Advisor("even", active=lambda o: o[0] % 2 == 0)])
    return PythonEnv(task, [Counter() for _ in range(3)], [(0, place) for place in range(3)], encoder_of(task))


def vector(mode):
    task = mad.Task.from_gymnasium(SyncVectorEnv([Counter] * 3, autoreset_mode=mode), name="counter")
    return VectorEnv(task, 0, encoder_of(task))


ENVS = {
    "compiled": compiled, "python": python, "next step": lambda: vector(AutoresetMode.NEXT_STEP),
    "same step": lambda: vector(AutoresetMode.SAME_STEP),
}  # fmt: skip


@pytest.mark.parametrize("kind", ENVS)
def test_a_step_says_the_same_of_every_environment(kind):
    env = ENVS[kind]()
    n, random = env.task.n, np.random.default_rng(0)
    state, overs = env.reset(), 0
    for _ in range(30):
        before = env.active
        step = env.step(random.integers(len(env.task.actions), size=3))
        assert all(np.array_equal(one, other) for one, other in zip(step.state, state, strict=True))
        assert step.reward.shape == step.advisors.shape == step.ended.shape == step.next_advisors.shape == (3, n)
        assert np.array_equal(step.advisors[~step.begun], before[~step.begun])
        assert not step.reward[~step.advisors].any()
        assert not (step.ended & ~step.advisors).any()
        assert not (step.terminated & step.truncated).any()
        gone = step.advisors & ~step.next_advisors & ~step.over[:, None] & ~step.begun[:, None]
        assert (gone <= step.ended).all(), "whoever is no longer active has ended"
        assert len(env.encode(step.next_state)) == 3
        single = step.single()
        assert single.reward.shape == (n,)
        assert single.over == (single.terminated or single.truncated)
        overs += int(step.over.sum())
        state = env.reset(step.over) if step.over.any() else env.state
        state = [np.copy(one) for one in state]
    assert overs


def test_an_episode_is_the_same_alone_and_beside_others():
    env, action = compiled(), np.array([1, 2, 3])
    first = env.reset()
    together = [step.next_state.copy() for step, _ in vector_rollout(env, lambda: action)]
    for place in range(3):
        alone = CompiledEnv(env.task, env.keys[place : place + 1])
        assert np.array_equal(alone.reset()[0], first[place])
        for step, beside in zip(
            vector_rollout(alone, lambda place=place: action[place : place + 1]), together, strict=False
        ):
            assert np.array_equal(step[0].next_state[0], beside[place])


def test_a_place_whose_episodes_are_over_counts_no_more():
    env = vector(AutoresetMode.NEXT_STEP)
    env.reset()
    lengths = np.zeros((2, 3), int)
    for step, episode in vector_rollout(env, lambda: np.zeros(3, int), each=2):
        for place in np.flatnonzero(episode >= 0):
            lengths[episode[place], place] += 1
            assert not step.begun[place]
    assert set(lengths.ravel()) <= {3, 5}


def test_an_evaluation_plays_what_a_plain_loop_plays():
    task = mad.Task.from_gymnasium("CliffWalking-v1", max_episode_steps=9)
    steps = list(rollout(EvaluationEpisodes(task, 4, 2), 5, lambda seen, bits: bits % 4))
    env = gymnasium.make("CliffWalking-v1", max_episode_steps=9)
    seen, _ = env.reset(seed=evaluation_seed(4, 2, 5))
    for step in steps:
        assert step.state == seen
        seen, reward, terminated, truncated, _ = env.step(step.action)
        assert (step.next_state, step.gain, step.reward.tolist()) == (seen, reward, [reward])
        assert (step.terminated, step.truncated) == (terminated, truncated)
    assert step.over
