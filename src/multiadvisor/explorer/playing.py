"""Greedy play from an agent's tables with weights of one's own."""

from __future__ import annotations

import numpy as np

from multiadvisor.agent import MultiAdvisor, tables_of
from multiadvisor.core.aggregations import greedy


class TablePlayer:
    """An agent of a compiled world that acts as if its advisors had these weights [n]."""

    def __init__(self, agent: MultiAdvisor, weights: np.ndarray) -> None:
        self._learner = tables_of(agent)
        self._weights = np.concatenate([weights, self._learner.weights[len(weights) :]])  # a correction keeps its own

    def act(self, x: np.ndarray, draw: float = 0.0) -> int:
        """The greedy action; `draw` in [0, 1) picks among exactly equal ones."""
        advisors, rows = self._learner.rows(x)
        preferences = self._learner.aggregator.prefer(self._learner.table[rows], self._weights[advisors], advisors)
        return int(greedy(preferences, draw))
