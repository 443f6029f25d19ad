"""`predict` in the form of Stable-Baselines3's models, for one observation and for many."""

import importlib.util

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from refusal import refused

SMALL = {"hidden": (8,), "learning_starts": 50, "batch_size": 16, "buffer_size": 300}
AGENTS = {
    "tables": ("FrozenLake-v1", {}),
    "network": ("CartPole-v1", {"learner": {"name": "dqn", **SMALL}}),
    "continuous": ("Pendulum-v1", {"learner": {"name": "sac", **SMALL}}),
}


@pytest.fixture(scope="module", params=AGENTS)
def agent(request):
    task, settings = AGENTS[request.param]
    return mad.MultiAdvisor(mad.make(task), seed=1, **settings).learn(100)


class OneByOne:
    """A vector environment as Stable-Baselines3 has it: episodes begin again by themselves, and it says so."""

    def __init__(self, name, count):
        self.envs = [gymnasium.make(name) for _ in range(count)]

    def reset(self, seed):
        return self._stacked([env.reset(seed=seed + k)[0] for k, env in enumerate(self.envs)])

    def step(self, actions):
        assert len(actions) == len(self.envs)
        seen, rewards, dones = [], [], []
        for env, action in zip(self.envs, actions, strict=True):
            observation, reward, terminated, truncated, _ = env.step(action)
            seen.append(env.reset()[0] if terminated or truncated else observation)
            rewards.append(reward)
            dones.append(terminated or truncated)
        return self._stacked(seen), np.array(rewards, np.float32), np.array(dones)

    def _stacked(self, observations):
        return np.stack([np.asarray(one) for one in observations])


def evaluate_policy(model, env, episodes):
    """The calls of the function of this name, in its order: mean and deviation of the episodes' rewards."""
    observations, states = env.reset(seed=7), None
    starts, current, found = np.ones(len(env.envs), bool), np.zeros(len(env.envs)), []
    while len(found) < episodes:
        actions, states = model.predict(observations, state=states, episode_start=starts, deterministic=True)
        observations, rewards, starts = env.step(actions)
        current += rewards
        found += current[starts].tolist()
        current[starts] = 0
    return np.mean(found), np.std(found)


def test_one_observation_and_many(agent):
    space = agent.task.adapter.env.observation_space
    space.seed(0)
    many = [space.sample() for _ in range(5)]
    actions, state = agent.predict(np.stack([np.asarray(one) for one in many]))
    assert state is None
    assert len(actions) == 5
    for one, action in zip(many, actions, strict=True):
        alone, _ = agent.predict(one)
        assert np.array_equal(alone, np.asarray(agent.act(one)))
        assert np.allclose(alone, action)
        assert agent.task.adapter.env.action_space.contains(alone if alone.shape else int(alone))


def test_the_calls_of_evaluate_policy(agent):
    mean, deviation = evaluate_policy(agent, OneByOne(agent.task.adapter.env.spec.id, 3), 6)
    assert np.isfinite([mean, deviation]).all()


def test_without_determinism_a_finite_choice_explores():
    agent = mad.MultiAdvisor("FrozenLake-v1", epsilon=0.5, seed=3).learn(2_000)
    greedy, _ = agent.predict(np.full(400, 14))
    chosen, _ = agent.predict(np.full(400, 14), deterministic=False)
    assert len(set(greedy.tolist())) == 1
    assert 0.25 < np.mean(chosen != greedy) < 0.5  # a quarter of the random actions are the greedy one


def test_parts_and_several_numbers():
    parts = gymnasium.spaces.Dict(a=gymnasium.spaces.Discrete(2), b=gymnasium.spaces.Box(0, 1, (2,)))

    class Both(gymnasium.Env):
        observation_space, action_space = parts, gymnasium.spaces.MultiDiscrete([2, 3])

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self.observation_space.sample(), {}

        def step(self, action):
            return self.observation_space.sample(), 1.0, False, bool(self.np_random.random() < 0.2), {}

    task = mad.Task.from_gymnasium(Both(), discretise=lambda seen: int(seen["a"]))
    agent = mad.MultiAdvisor(task).learn(50)
    one = {"a": 1, "b": np.zeros(2, np.float32)}
    assert agent.predict(one)[0].shape == (2,)
    assert agent.predict({"a": np.array([1, 0, 1]), "b": np.zeros((3, 2), np.float32)})[0].shape == (3, 2)
    refused("this one lacks some", agent.predict, {"a": 1})


def test_states_of_a_compiled_world():
    agent = mad.MultiAdvisor("three-fruits").learn(100)
    x = agent.task.initial_state()
    assert agent.predict(x)[0].shape == ()
    assert agent.predict(np.stack([x, x]))[0].shape == (2,)


@pytest.mark.skipif(importlib.util.find_spec("stable_baselines3") is None, reason="gigabytes: the extra benchmarks")
def test_the_package_itself(agent, tmp_path):
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy as theirs
    from stable_baselines3.common.vec_env import VecVideoRecorder

    name = agent.task.adapter.env.spec.id
    envs = make_vec_env(name, n_envs=3, seed=7)
    returns, lengths = theirs(agent, envs, n_eval_episodes=6, return_episode_rewards=True)
    assert len(returns) == len(lengths) == 6
    mean, deviation = theirs(agent, gymnasium.make(name), n_eval_episodes=2, deterministic=False, warn=False)
    assert np.isfinite([mean, deviation]).all()
    if importlib.util.find_spec("moviepy") is not None and importlib.util.find_spec("pygame") is not None:
        shown = make_vec_env(name, n_envs=1, env_kwargs={"render_mode": "rgb_array"})
        recorder = VecVideoRecorder(shown, str(tmp_path), record_video_trigger=lambda step: step == 0, video_length=5)
        seen = recorder.reset()
        for _ in range(6):
            seen, _, _, _ = recorder.step(agent.predict(seen)[0])
        recorder.close()
        assert list(tmp_path.glob("*.mp4"))
