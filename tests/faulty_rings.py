"""Rings that are not what Gymnasium asks for, by class and registered as `faulty/NAME-v0`."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Ring(gymnasium.Env):
    """Five places in a ring, seen as [place, 0]; action 1 leads on, and the last place pays."""

    def __init__(self, space=None):
        self.action_space = spaces.Discrete(2)
        self.observation_space = space or spaces.Box(0, 4, (2,), np.int64)

    def look(self):
        return np.array([self.at, 0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = 0, 0
        return self.look(), {}

    def step(self, action):
        self.at, self.steps = (self.at + int(action)) % 5, self.steps + 1
        return self.look(), self.pay(), False, self.steps == 12, {}

    def pay(self):
        return float(self.at == 4)


class OldReset(Ring):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]  # an array of two, which could be taken for (observation, info)


class NoSeed(Ring):
    def reset(self):
        return super().reset()


class Lists(Ring):
    def look(self):
        return [self.at, 0]


class Rich(Ring):
    def pay(self):
        return 1e308


class Raising(Ring):
    def pay(self):
        if self.at == 3:
            raise RuntimeError("the purse\n is empty")  # WHERE
        return 0.0


class InsideNumpy(Ring):
    def pay(self):
        return np.linalg.inv(np.zeros((2, 2)))[0, 0]  # INSIDE


class Unmade(Ring):
    def __init__(self):
        raise OSError("no such board")


for kind in (OldReset, NoSeed, Lists, Rich, Raising, InsideNumpy, Unmade):
    gymnasium.register(f"faulty/{kind.__name__}-v0", kind, max_episode_steps=50)
