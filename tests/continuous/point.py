"""A point on a line whose best action is known: small enough to be learned in a second."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Point(gymnasium.Env):
    """Every step begins at a place x in [-1, 1] by chance; the action a in [-2, 2] is paid two terms.

    near = -(a - x)^2 and cheap = -a^2: with weights w and v the best action is w x / (w + v). An episode has 8 steps,
    or ends by itself after 5 of them where it began on the left.
    """

    def __init__(self):
        self.action_space = spaces.Box(-2.0, 2.0, (1,), np.float32)
        self.observation_space = spaces.Box(-1, 1, (1,), np.float64)

    def see(self):
        self.x = self.np_random.uniform(-1, 1, 1)
        return self.x.copy()

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.elapsed = 0
        seen = self.see()
        self.short = seen[0] < 0
        return seen, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        a, x = float(action[0]), float(self.x[0])
        info = {"reward_near": -((a - x) ** 2), "reward_cheap": -(a**2)}
        self.elapsed += 1
        return self.see(), sum(info.values()), self.short and self.elapsed == 5, self.elapsed == 8, info


gymnasium.register("tests/Point-v0", Point)
