"""Intervals as the field expects them: by bootstrap, with a generator of their own so that they repeat."""

from __future__ import annotations

import numpy as np


def interval(values: np.ndarray, level: float = 0.95, resamples: int = 2000) -> tuple[float, float]:
    """A percentile bootstrap interval of the mean.

    >>> interval(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    values = np.asarray(values, float)
    if len(values) < 2:
        return float(values.mean()), float(values.mean())
    generator = np.random.default_rng(0)
    means = np.concatenate(
        [values[generator.integers(len(values), size=(100, len(values)))].mean(axis=1) for _ in range(resamples // 100)]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
