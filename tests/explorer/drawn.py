"""A small environment that draws itself: a walk along a line, with two terms of reward."""

from typing import Any

import gymnasium
import numpy as np

import multiadvisor as mad

CELLS = 6
COLOURS = np.array([[40 * k, 200 - 30 * k, 90] for k in range(CELLS)], np.uint8)
drawn = []
"""The instances that were asked to draw themselves."""


class Line(gymnasium.Env[Any, Any]):
    """From cell 1 to the last one; a step costs 1, arriving pays 10. The picture has the colour of the cell."""

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}  # noqa: RUF012
    observation_names = ("cell",)
    action_names = ("back", "on")

    def __init__(self, render_mode=None, noise=0, slips=False):
        self.render_mode, self.noise, self.slips = render_mode, noise, slips
        self.observation_space, self.action_space = gymnasium.spaces.Discrete(CELLS), gymnasium.spaces.Discrete(2)
        self.cell = 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 1
        return self.cell, {}

    def step(self, action):
        chance = np.random.default_rng() if self.slips else self.np_random
        right = action == 1 and chance.random() < (0.5 if self.slips else 0.9)
        self.cell = min(max(self.cell + (1 if right else -1), 0), CELLS - 1)
        arrived = self.cell == CELLS - 1
        terms = {"time": -1.0, "goal": 10.0 if arrived else 0.0}
        return self.cell, sum(terms.values()), arrived, False, terms

    def render(self):
        drawn.append(id(self))
        if self.render_mode == "ansi":
            return "".join(f"\x1b[41m{k}\x1b[0m" if k == self.cell else "." for k in range(CELLS))
        image = np.broadcast_to(COLOURS[self.cell], (40, 60, 3)).copy()
        if self.noise:
            image = np.random.default_rng(len(drawn)).integers(0, 255, (self.noise, self.noise, 3), np.uint8)
        return image


gymnasium.register("drawn/Line-v0", Line, max_episode_steps=40)


def line(**options):
    """The task: an advisor for each term."""
    return mad.Task.from_gymnasium(gymnasium.make("drawn/Line-v0", **options), advisors="info:time,info:goal")


def walker(**options):
    """Trained until it walks to the end."""
    return mad.MultiAdvisor(line(**options), gamma=0.9, seed=1).learn(2_000, progress=False)
