"""An environment for general value functions: two coins, and somebody who has to find them."""

import gymnasium
import numpy as np

LENGTH = 7


class Corridor(gymnasium.Env):
    """Cells in a row; left and right; a coin at either end, and the episode is over when both are gone."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, LENGTH, (3,), np.int64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = np.array([self.np_random.integers(1, LENGTH - 1), 1, 1])
        return self.x.copy(), {}

    def step(self, action):
        self.x[0] = np.clip(self.x[0] + 2 * action - 1, 0, LENGTH - 1)
        side = {0: 1, LENGTH - 1: 2}.get(int(self.x[0]))
        reward = float(self.x[side]) if side else 0.0
        if side:
            self.x[side] = 0
        return self.x.copy(), reward, not self.x[1:].any(), False, {}
