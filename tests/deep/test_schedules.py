"""How settings change while networks learn: schedules by hand, and what learning makes of them."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv, PendulumEnv

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.core.schedules import SCHEDULES
from multiadvisor.learners.dqn.backend import jax
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.settings import Settings

HALF_WAY = {"constant": 0.1, "linear": 0.45, "cosine": 0.45, "exponential": np.sqrt(0.08)}
FEW = {
    "hidden": (4,), "batch_size": 8, "buffer_size": 100, "learning_starts": 16, "train_freq": 2, "updates_at_once": 4,
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_begins_and_ends_where_it_should(name):
    way = SCHEDULES[name]
    assert way(0.1, 0.8, 0.0) == 0.1
    assert way(0.1, 0.8, 0.5) == pytest.approx(HALF_WAY[name])
    assert way(0.1, 0.8, 1.0) == pytest.approx(0.1 if name == "constant" else 0.8)
    quarter, rest = way(0.1, 0.8, 0.25), way(0.8, 0.1, 0.75)  # the same way from the other end
    assert name == "constant" or quarter == pytest.approx(rest)


def test_epsilon_arrives_and_the_learning_rate_leaves():
    deep = mad.DQN(epsilon_schedule="cosine", epsilon_steps=400, epsilon_start=0.5)
    told = [deep.exploring(0.1, step) for step in (0, 100, 200, 400, 9_999)]
    np.testing.assert_allclose(told, [0.5, 0.1 + 0.4 * (2 + np.sqrt(2)) / 4, 0.3, 0.1, 0.1])
    rate = SAC(
        learning_rate=0.4, lr_schedule="exponential", lr_end=0.1, lr_steps=104, learning_starts=4, train_freq=5,
        updates_at_once=2,
    ).rates(first=9)  # fmt: skip
    np.testing.assert_allclose(rate, [0.4 * 0.25 ** (49 / 104), 0.4 * 0.25 ** (54 / 104)])


def learning(env, **how):
    name = "sac" if isinstance(env.action_space, spaces.Box) else "dqn"
    return mad.MultiAdvisor(mad.Task.from_gymnasium(env), seed=3, learner={"name": name, **FEW, **how})


def networks(agent):
    state = agent._learner.state
    control = getattr(state, "control", None)
    part = state.network if control is None else (control.actor.networks, control.critic.learned.networks)
    return [np.asarray(leaf).copy() for leaf in jax.tree.leaves(part)]


@pytest.mark.slow
@pytest.mark.parametrize("env", [CartPoleEnv, PendulumEnv])
def test_a_learning_rate_of_0_at_the_end_leaves_the_network_alone(env, tmp_path):
    agent = learning(env(), lr_schedule="linear", lr_steps=40, learning_rate=0.01)
    agent.learn(32).save(tmp_path / "a")
    halfway = networks(agent)
    ended = networks(agent.learn(16))
    assert any((a != b).any() for a, b in zip(halfway, ended, strict=True))
    after = networks(agent.learn(40))
    assert all((a == b).all() for a, b in zip(ended, after, strict=True))
    again = mad.load(tmp_path / "a", mad.Task.from_gymnasium(env())).learn(16)
    assert all((a == b).all() for a, b in zip(networks(again), ended, strict=True))


@pytest.mark.slow
def test_random_actions_until_the_first_update():
    """As with an epsilon of 1 until then, and with its own afterwards."""
    own = {"epsilon_start": 0.0, "epsilon_steps": 0}
    taken = []
    for random_start, epsilon in ((True, 0.0), (False, 0.0), (False, 1.0)):
        agent = learning(CartPoleEnv(), random_start=random_start, **own)
        agent._learner.settings = Settings(epsilon=epsilon, seed=3, learner=agent.settings.learner)
        agent.learn(40)
        taken.append(agent._learner.memory.action[0])
        assert agent._learner.epsilon_now() == epsilon
    started, greedy, random = taken
    assert (started[:24] == random[:24]).all()  # 16 steps, and those of the first four updates
    assert (started[:24] != greedy[:24]).any()


def test_an_epsilon_of_0_is_never_reached_by_a_factor(capsys):
    line = ["train", "three-fruits", "--learner", "dqn", "--epsilon-schedule", "exponential", "--epsilon", "0"]
    assert main(line) == 2
    assert "and epsilon is 0, which it never reaches" in capsys.readouterr().err
