"""A point that is pushed along a line, what may be wrong with it, and policies that fail in it."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

LENGTH = 25


class Line(gymnasium.Env):
    """What it is paid stands in info; `fault` goes wrong from the ninth episode on."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    chance = np.random.default_rng(0)  # that no seed reaches and no copy holds

    def __init__(self, finite=False, fault=""):
        self.action_space = Discrete(3) if finite else Box(-1.0, 1.0, (1,), np.float64)
        self.finite, self.fault, self.episodes = finite, fault, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time, self.episodes = float(self.np_random.uniform(-1, 1)), 0, self.episodes + 1
        return self._seen(), {}

    def _seen(self):
        return np.array([self.place, self.time / LENGTH])

    def step(self, action):
        move = float(action - 1) if self.finite else float(action[0])
        self.place += 0.1 * move + (0.01 * self.chance.normal() if self.fault == "forgets" else 0)
        self.time += 1
        terms = {"move": move, "against": -2.0 * move, "alive": 1.0, "near": -abs(self.place), "never": 0.0}
        if self.episodes > 9 and self.fault in ("infinite", "missing"):
            terms = {**terms, "near": np.inf} if self.fault == "infinite" else {}
        return self._seen(), sum(terms.values()), self.time >= LENGTH, False, {f"r_{k}": v for k, v in terms.items()}


def towards(seen):
    """Goes to the middle."""
    return np.clip(-2 * seen[:1], -1, 1)


def late(wrong):
    """Fails near the right end."""
    return lambda seen: np.full(1, 0.1) if seen[0] < 0.9 else wrong


nan, shape, outside = map(late, (np.full(1, np.nan), np.zeros(3), np.full(1, 7.0)))
asked = []


def keeps(seen):
    """Does not do the same in the same state."""
    asked.append(1)
    return np.array([len(asked) % 5 / 10])
