"""Which advisors push an action: the slopes of their values at it."""

from __future__ import annotations

import numpy as np


def push_shares(slopes: np.ndarray) -> tuple[np.ndarray, float]:
    """Each advisor's share of the push [m], from slopes [m, d]; and how much is left once opposite ones have cancelled.

    >>> shares, left = push_shares(np.array([[3.0, 0.0], [-1.0, 0.0]]))
    >>> shares.tolist(), left
    ([0.75, 0.25], 0.5)
    """
    lengths = np.linalg.norm(slopes, axis=1)
    total = float(lengths.sum())
    if total == 0.0:
        return np.zeros(len(slopes)), 1.0
    return lengths / total, float(np.linalg.norm(slopes.sum(axis=0)) / total)
