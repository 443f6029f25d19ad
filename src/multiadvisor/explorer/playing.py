"""Greedy play from an agent's tables, by a compiled function that is kept on disk: a first game without compiling."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.aggregations import greedy
from multiadvisor.compiling import specialise


def begin(constants, x, advisors):
    """Bound to the world's function before compiling, as is the one below."""


def local_states(constants, x, advisors, m, local):
    """See `begin`."""


def look(constants, x, advisors, local):
    """Who is active in x, and in which local state."""
    m = begin(constants, x, advisors)
    local_states(constants, x, advisors, m, local)
    return m


class TablePlayer:
    """What `record` needs of an agent: the same actions, or with weights of one's own those that these prefer."""

    def __init__(self, agent: MultiAdvisor, weights: np.ndarray | None = None) -> None:
        assert agent.task.world is not None
        self.task, self.settings, self.turns = agent.task, agent.settings, agent.turns
        self._learner: Any = agent._learner
        self._world = agent.task.world
        self._look = specialise(look, begin=self._world.begin, local_states=self._world.local_states)
        self._weights = agent.task.weights if weights is None else weights

    def speaking(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The active advisors [m] and their rows [m] of the table."""
        advisors, local = np.zeros(self.task.n, np.int64), np.zeros(self.task.n, np.int64)
        m = self._look(self._world.constants, x, advisors, local)
        advisors = advisors[:m]
        offset, stride = self._learner.layout
        return advisors, offset[advisors] + stride[advisors] * local[:m]

    def act(self, x: np.ndarray, draw: float = 0.0) -> int:
        """The greedy action; `draw` in [0, 1) picks among exactly equal ones."""
        advisors, rows = self.speaking(x)
        preferences = self._learner.voices.prefer(self._learner.table[rows], self._weights[advisors], advisors)
        return int(greedy(preferences, draw))
