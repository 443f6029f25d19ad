"""Shortest sufficient explanations: the fewest advisors that decide one action over another, of a sum.

They follow Juozapaitis et al. (2019), "Explainable Reinforcement Learning via Reward Decomposition", with advisors
instead of reward types.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np


class MSX(NamedTuple):
    """The shortest sufficient explanation: indices of advisors, the strongest first."""

    plus: np.ndarray
    """MSX+: the fewest whose gains together exceed all losses; empty where even all gains do not."""
    minus: np.ndarray
    """MSX-: the fewest whose losses together exceed the gains of MSX+ but for its smallest: why no member of MSX+ can
    be left out. Where losses can only equal that, all of them."""


def msx(difference: np.ndarray) -> MSX:
    """MSX+ and MSX- of differences [m], by sorting; sums are compared exactly, without rounding.

    >>> msx(np.array([0.75, -1.0, 2.0, 0.5, 0.25]))
    MSX(plus=array([2]), minus=array([1]))
    >>> msx(np.array([0.5, -0.75, 0.5, -0.125, 0.25]))
    MSX(plus=array([0, 2]), minus=array([1]))
    """
    given = np.asarray(difference, float)
    gains, losses = np.flatnonzero(given > 0), np.flatnonzero(given < 0)
    gains = gains[np.argsort(-given[gains], kind="stable")]
    losses = losses[np.argsort(given[losses], kind="stable")]
    plus = _fewest(given[gains], given[losses])
    if plus is None:
        return MSX(gains[:0], losses[:0])
    minus = _fewest(-given[losses], -given[gains[: plus - 1]])
    return MSX(gains[:plus], losses if minus is None else losses[:minus])


def _fewest(falling: np.ndarray, other: np.ndarray) -> int | None:
    """The smallest k for which the first k of `falling`, all above 0, and all of `other` sum up to more than 0."""
    sums = np.concatenate([[0.0], np.cumsum(falling)]) + other.sum()
    doubt = (len(falling) + len(other) + 2) * np.finfo(float).eps * (falling.sum() + np.abs(other).sum())

    def enough(k: int) -> bool:
        if abs(sums[k]) > doubt:
            return bool(sums[k] > 0)
        return math.fsum([*falling[:k].tolist(), *other.tolist()]) > 0  # correctly rounded, so that its sign is exact

    k = bisect_left(range(len(falling) + 1), True, key=enough)
    return k if k <= len(falling) else None
