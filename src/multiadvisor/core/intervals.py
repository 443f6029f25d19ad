"""Intervals as the field expects them: by bootstrap, with a generator of their own so that they repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Statistic = Callable[..., np.ndarray]
"""A statistic along an axis: `statistic(values, axis=-1)`."""
_BLOCK = 100  # resamples drawn at a time: enough for NumPy, little memory
_ENDS = ((1 - 0.95) / 2, (1 + 0.95) / 2)


def interquartile_mean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean of the middle half: hardly moved by one odd run, and less wasteful than the median.

    Where a quarter of the runs is no whole number, the runs at the edge count in part.

    >>> float(interquartile_mean(np.array([0.0, 1.0, 3.0, 100.0])))
    2.0
    """
    ordered = np.sort(np.moveaxis(np.asarray(values, float), axis, -1), axis=-1)
    n = ordered.shape[-1]
    place = np.arange(n)
    weight = np.clip(np.minimum(place + 1 - n / 4, n - n / 4 - place), 0.0, 1.0)  # [n] how much of each run is inside
    found: np.ndarray = (ordered * weight).sum(axis=-1) / weight.sum()
    return found


def interval(values: np.ndarray, resamples: int = 2000, statistic: Statistic = np.mean) -> tuple[Any, Any]:
    """A percentile bootstrap interval of the mean, or of another statistic, at 95%.

    Of a table, one of every row, from the same resamples: two lists.

    >>> interval(np.array([1.0, 1.0, 1.0])), interval(np.array([[1.0, 1.0], [0.0, 0.0]]))
    ((1.0, 1.0), ([1.0, 0.0], [1.0, 0.0]))
    """
    return stratified([values], resamples, statistic)


def stratified(strata: Sequence[np.ndarray], resamples: int = 2000, statistic: Statistic = np.mean) -> tuple[Any, Any]:
    """The interval of a statistic of the strata's mean, each stratum resampled by itself.

    Runs of different settings are no sample of one population: seeds are drawn again within each setting, and the
    settings stay. With one stratum this is the ordinary bootstrap.

    >>> stratified([np.zeros(5), np.ones(5)])
    (0.5, 0.5)
    """
    groups = [np.asarray(group, float) for group in strata]
    if any(group.shape[-1] < 2 for group in groups):
        middle = np.mean([statistic(group, axis=-1) for group in groups], axis=0).tolist()
        return middle, middle
    generator = np.random.default_rng(0)

    def drawn(group: np.ndarray) -> np.ndarray:
        n = group.shape[-1]
        return statistic(group.take(generator.integers(n, size=(_BLOCK, n)), axis=-1), axis=-1)  # [..., _BLOCK]

    blocks = [np.mean([drawn(group) for group in groups], axis=0) for _ in range(max(resamples // _BLOCK, 1))]
    low, high = np.quantile(np.concatenate(blocks, axis=-1), _ENDS, axis=-1).tolist()
    return low, high


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def estimate(values: np.ndarray | Sequence[float], statistic: Statistic = np.mean) -> Estimate:
    """The mean, or another statistic, with its interval.

    >>> print(estimate([1.0, 1.0]))
    1.00 [1.00, 1.00]
    """
    given = np.asarray(values, float)
    return Estimate(float(statistic(given, axis=-1)), *interval(given, statistic=statistic))


def paired(first: np.ndarray, second: np.ndarray) -> Estimate:
    """The mean of first - second where run k of both had the same seed, and with it the same boards and ghosts.

    >>> print(paired(np.array([2.0, 5.0]), np.array([1.0, 4.0])))
    1.00 [1.00, 1.00]
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    if one.shape != other.shape:
        raise ValueError(f"a paired comparison needs the same seeds on both sides, not {one.shape} and {other.shape}")
    return estimate(one - other)


def unpaired(first: np.ndarray, second: np.ndarray) -> Estimate:
    """The difference of two means whose runs have nothing in common: each side is resampled by itself.

    >>> print(unpaired(np.array([2.0, 2.0]), np.array([1.0, 1.0, 1.0])))
    1.00 [1.00, 1.00]
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    low, high = stratified([2 * one, -2 * other])  # the mean of the two strata is the difference of their means
    return Estimate(float(one.mean() - other.mean()), low, high)
