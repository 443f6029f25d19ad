"""Real models of Stable-Baselines3 and SBX, where these are installed, and a function as CleanRL has it."""

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.diagnosis.consequences import consequences

TERMS = [
    mad.Advisor("angle", reward=lambda t: -float(np.arctan2(t.observation[1], t.observation[0]) ** 2)),
    mad.Advisor("speed", reward=lambda t: -0.1 * float(t.observation[2] ** 2)),
    mad.Advisor("torque", reward=lambda t: -0.001 * float(t.action[0] ** 2)),
]
ALIVE = [mad.Advisor("alive", reward=lambda t: 1.0), mad.Advisor("centre", reward=lambda t: -abs(t.observation[0]))]


def answered(env, policy, terms):
    found = mad.diagnose(env, policy, terms, steps=450, branches=6, progress=False)
    assert found.branches == 6
    assert not found.random_policy
    asked = consequences(env, policy, terms, steps=450, trials=4, length=5, draws=2, progress=False)
    answer = asked.compare(asked.at(0))
    assert np.isfinite(answer.difference).all()
    assert answer.steps <= 2 * 2 * 5


@pytest.mark.parametrize(("package", "name", "env"), [
    ("stable_baselines3", "DQN", "CartPole-v1"), ("stable_baselines3", "PPO", "CartPole-v1"),
    ("stable_baselines3", "SAC", "Pendulum-v1"), ("sbx", "SAC", "Pendulum-v1"),
])  # fmt: skip
def test_a_real_model_is_diagnosed_and_asked(package, name, env):
    model = getattr(pytest.importorskip(package), name)("MlpPolicy", env, seed=0, device="cpu")
    answered(env, model, ALIVE if env == "CartPole-v1" else TERMS)


def test_a_function_as_cleanrl_has_it():
    weights = np.random.default_rng(0).normal(size=(3, 1))

    def act(seen):  # a batch of one, as networks of one file take it
        return np.tanh(seen[None] @ weights)[0] * 2

    answered("Pendulum-v1", act, TERMS)
