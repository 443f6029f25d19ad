"""How other libraries are measured: their greedy episodes, with actions as their models give them."""

import gymnasium
import numpy as np
import pytest

from multiadvisor.envs import stepping
from multiadvisor.errors import BadInput
from multiadvisor.studies.continuous_study import peer_score
from peers import missing


class Count(gymnasium.Env):
    """As many steps as the seed says, each of which pays the action, or the first number of it."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,))

    def __init__(self, actions):
        self.action_space = actions

    def reset(self, *, seed=None, options=None):
        self.left = 0 if seed is None else seed
        return np.array([self.left], np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), "actions are of the environment's own kind"
        self.left -= 1
        return np.array([self.left], np.float32), float(np.ravel(action)[0]), self.left == 0, False, {}


class Model:
    """A model as Stable-Baselines3 has them: it gives an array, also for a single action."""

    def __init__(self, action):
        self.action = action

    def predict(self, observation, deterministic):
        assert deterministic
        return self.action, None


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        (gymnasium.spaces.Discrete(3), np.array(2)),
        (gymnasium.spaces.Box(0, 5, (1,)), np.array([2.0], np.float32)),
    ],
)
def test_the_score_is_the_mean_return_of_episodes_with_these_seeds(actions, action):
    assert peer_score(Model(action), Count(actions), first=3, episodes=4) == 2.0 * np.mean([3, 4, 5, 6])


def test_an_episode_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(stepping, "LONGEST_EPISODE", 100)
    with pytest.raises(BadInput, match=r"did not end in 100 steps: give it a limit"):
        peer_score(Model(np.array(1)), Count(gymnasium.spaces.Discrete(3)), first=0, episodes=1)


def test_an_environment_that_cannot_be_made_says_why():
    assert missing("CartPole-v1") is None
    assert "NoSuchThing" in missing("NoSuchThing-v0")
