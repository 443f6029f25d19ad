"""Small environments whose transitions can be checked by looking at them."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Counter(gymnasium.Env):
    """The observation is (step of the episode, episode, last action); an episode ends after 3 steps, or is cut after
    5."""

    def __init__(self, vector=False, space=None, start=0):
        self.observation_space = space or spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = spaces.Discrete(2, start=start)
        if vector:
            self.reward_space = spaces.Box(-10, 10, (2,))
        self.vector, self.episode, self.start = vector, 0, start

    def see(self):
        return np.array([self.elapsed, self.episode, self.last], np.float64)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.episode = 0
        self.episode += 1
        self.elapsed, self.last, self.over = 0, -1, False
        self.long = bool(self.np_random.integers(2))
        return self.see(), {}

    def step(self, action):
        assert not self.over, "an episode that is over was played on"
        assert action in self.action_space
        self.elapsed, self.last = self.elapsed + 1, int(action)
        terminated, truncated = not self.long and self.elapsed == 3, self.long and self.elapsed == 5
        self.over = terminated or truncated
        reward = np.array([float(self.elapsed), -float(action)]) if self.vector else float(self.elapsed)
        return self.see(), reward, terminated, truncated, {}


class Flaky(Counter):
    """Counter that fails when it is told to, once."""

    fails_in = -1  # steps of all of them together

    def step(self, action):
        Flaky.fails_in -= 1
        if Flaky.fails_in == 0:
            raise RuntimeError("the line was down")
        return super().step(action)


class Spoiled(gymnasium.Env):
    """Two features, one episode of 20 steps after the other; so many steps after it was seeded something goes wrong."""

    def __init__(self, what="nothing", step=100):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.reward_space = spaces.Box(-1, 1, (2,))
        self.what, self.when, self.steps = what, step, 0

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.elapsed, self.steps = 0, 0 if seed is not None else self.steps
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.elapsed += 1
        self.steps += 1
        seen, reward = np.array([self.elapsed / 20, action], np.float32), np.array([1.0, float(action)])
        if self.steps >= self.when:
            if self.what == "observation":
                seen[0] = np.inf
            if self.what == "reward":
                reward[1] = np.nan
            if self.what == "shape":
                seen = np.zeros(3, np.float32)
        return seen, reward, self.elapsed == 20, False, {}


if "tests/Spoiled-v0" not in gymnasium.registry:
    gymnasium.register("tests/Spoiled-v0", Spoiled)
    gymnasium.register("tests/Counter-v0", Counter)
    gymnasium.register("tests/Flaky-v0", Flaky)
