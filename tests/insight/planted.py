"""Gymnasium environments with a trap whose place, turn and holders are known, for advisors that plan egocentrically.

A corridor of a random length leads to a fork: two goals pay 1 each and end the game, and a third way goes on without
pay, to the next of `forks` places that are all alike, in a ring. Above gamma = 1/2 advisors that each expect to get
their own goal go on in the ring for ever: both goals hold it there.
"""

import gymnasium
import numpy as np
from gymnasium import spaces

import multiadvisor as mad

LONGEST = 6
GO_ON, FIRST, SECOND = range(3)


class Fork(gymnasium.Env):
    """Places 0 .. LONGEST - 1 are the corridor, then come the forks."""

    action_space = spaces.Discrete(3)
    action_names = ("go on", "first goal", "second goal")

    def __init__(self, forks=1, real=False, noise=False, cost=0.0):
        self.forks, self.real, self.noise, self.cost = forks, real, noise, cost
        self.reward_space = spaces.Box(-1.0, 1.0, (3,))
        self.reward_names = ("goal 1", "goal 2", "time")
        whole = spaces.Box(-2.0, 2.0, (2,))
        numbers = spaces.MultiDiscrete([LONGEST + forks, 8]) if noise else spaces.Discrete(LONGEST + forks)
        self.observation_space = whole if real else numbers

    def _look(self):
        if self.real:  # the corridor is a line, the forks are on a circle at its end
            if self.at < LONGEST:
                return np.array([-2.0 + self.at / LONGEST, 0.0], np.float32)
            angle = 2 * np.pi * (self.at - LONGEST) / self.forks
            return np.array([np.cos(angle), np.sin(angle)], np.float32)
        return np.array([self.at, self.np_random.integers(8)]) if self.noise else self.at

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.turn = int(self.np_random.integers(LONGEST)), 0
        self.entered = LONGEST - self.at  # the turn in which the first fork is reached
        return self._look(), {}

    def step(self, action):
        self.turn += 1
        paid, over = np.array([0.0, 0.0, -self.cost], np.float32), False
        if self.at < LONGEST:
            self.at += 1
        elif action == GO_ON:
            self.at = LONGEST + (self.at + 1 - LONGEST) % self.forks
        else:
            paid[action - 1], over = 1.0, True
        return self._look(), paid, over, self.turn >= 60, {}


def still():
    """One fork, and an advisor beside who looks at noise."""

    def place(observation):
        return int(observation[0])

    foci = [mad.Focus("goal 1", 0, state=place), mad.Focus("goal 2", 1, state=place), mad.Focus("noise", 2, state=1)]
    return mad.Task.from_gymnasium(Fork(noise=True), foci, name="still")


def to_and_fro():
    """Two forks."""
    return mad.Task.from_gymnasium(Fork(2), name="to and fro")


def circles():
    """Five forks on a circle, observed as real numbers; time costs a little, so that its advisor would rather go."""
    bins = mad.Bins([-2, -1], [1, 1], [18, 7])
    return mad.Task.from_gymnasium(Fork(5, real=True, cost=0.001), discretise=bins, name="circles")


PLANTED = {"stands still": still, "goes to and fro": to_and_fro, "goes in circles": circles}


def trained(task, planning="egocentric", turns=12_000):
    """An agent that has learned the values of its planning."""
    agent = mad.MultiAdvisor(task, planning=planning, gamma=0.9, alpha=0.3, epsilon=0.5, seed=1)
    return agent.learn(turns, progress=False)
