"""Leaving one advisor out: what that would change, under any aggregation.

Pure functions on advice [m, A], weights [m] and the `Aggregator` of these m advisors. For a sum, what the difference
between two actions loses without an advisor is that advisor's own weighted difference, and the cost is linear in the
number of advisors, as it is for a maximum and for everything that adds up; others are computed once for each advisor.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from multiadvisor.core.aggregations import AGGREGATIONS, Aggregation, maximum, normalised, weighted_sum
from multiadvisor.core.aggregator import Aggregator

_AT_ONCE = 4_000_000  # values of the advice that is looked at together


def summed(m: int) -> Aggregator:
    """The aggregator of m advisors that are summed."""
    return Aggregator(((AGGREGATIONS["sum"], 0.0),), np.zeros(m, np.int64))


def parts_of(advice: np.ndarray, aggregator: Aggregator) -> Iterator[tuple[np.ndarray, Aggregation, float]]:
    """Who is combined together, and how; parts without active advisors are left out."""
    for part, (aggregation, parameter) in enumerate(aggregator.parts):
        members = np.flatnonzero(aggregator.of == part) if len(aggregator.parts) > 1 else np.arange(len(advice))
        if len(members):
            yield members, aggregation, parameter


def alone(aggregation: Aggregation, parameter: float, advice: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What each advisor by itself would make the aggregator prefer [m, A]."""
    found: np.ndarray = aggregation(advice[:, None, :], weights[:, None], parameter)
    return found


def _all_but_each(shares: np.ndarray) -> np.ndarray:
    """The sums [k, A] of all other rows, for every row at once: never a difference of large numbers."""
    zero = np.zeros((1, shares.shape[1]))
    before = np.concatenate([zero, np.cumsum(shares, axis=0)[:-1]])[: len(shares)]
    after = np.concatenate([np.cumsum(shares[::-1], axis=0)[::-1][1:], zero])[: len(shares)]
    others: np.ndarray = before + after
    return others


def _second_to_each(advice: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The largest wish [m, A] of all others."""
    wished = np.where(weights[:, None] != 0, weights[:, None] * advice, -np.inf)
    first = wished.argmax(axis=0)  # [A]
    columns = np.arange(wished.shape[1])
    others = wished.copy()
    others[first, columns] = -np.inf
    leads = np.arange(len(wished))[:, None] == first
    found = np.where(leads, others.max(axis=0), wished.max(axis=0))
    return np.where(np.isneginf(found), 0.0, found)


def _left_out(aggregation: Aggregation, parameter: float, advice: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The preferences [m, A] of one part with each of its members left out."""
    if aggregation.additive:
        return _all_but_each(alone(aggregation, parameter, advice, weights))
    if aggregation is maximum:
        return _second_to_each(advice, weights)
    if aggregation is normalised:  # the wishes of all others, as one row
        others = _all_but_each(np.maximum(weights[:, None] * advice, 0.0))
        return alone(aggregation, parameter, others, np.ones(len(others)))
    m, found = len(advice), np.empty(advice.shape)
    size = max(_AT_ONCE // advice.size, 1)
    for start in range(0, m, size):
        silent = np.arange(start, min(start + size, m))
        applied = np.tile(weights, (len(silent), 1))
        applied[np.arange(len(silent)), silent] = 0.0
        found[silent] = aggregation(np.broadcast_to(advice, (len(silent), *advice.shape)), applied, parameter)
    return found


def without_each(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator) -> np.ndarray:
    """The preferences [m, A] without advisor j, for every j at once."""
    parts, found = list(parts_of(advice, aggregator)), np.empty(advice.shape)
    by_part = [aggregation(advice[who], weights[who], parameter) for who, aggregation, parameter in parts]
    others = _all_but_each(np.array(by_part).reshape(len(parts), advice.shape[1]))
    for (members, aggregation, parameter), rest in zip(parts, others, strict=True):
        found[members] = rest + _left_out(aggregation, parameter, advice[members], weights[members])
    return found


def contributions(
    advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator, action: int, against: int
) -> np.ndarray:  # [m]
    """What the one action's lead over the other loses without advisor j; for a sum w_j (Q_j(a) - Q_j(b)), RDX.

    >>> advice, weights = np.array([[1.0, 0.25], [0.0, 3.0]]), np.array([1.0, -0.5])
    >>> contributions(advice, weights, summed(2), 0, 1)
    array([0.75, 1.5 ])
    >>> contributions(advice, np.ones(2), Aggregator(((AGGREGATIONS["max"], 0.0),), np.zeros(2, int)), 1, 0)
    array([-1.  ,  2.75])
    """
    found = np.empty(len(advice))
    for members, aggregation, parameter in parts_of(advice, aggregator):
        own, applied = advice[members], weights[members]
        if aggregation is weighted_sum:
            found[members] = applied * (own[:, action] - own[:, against])
        elif aggregation.additive:
            share = alone(aggregation, parameter, own, applied)
            found[members] = share[:, action] - share[:, against]
        else:
            now, silent = aggregation(own, applied, parameter), _left_out(aggregation, parameter, own, applied)
            found[members] = (now[action] - now[against]) - (silent[:, action] - silent[:, against])
    return found


def rounding(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator) -> float:
    """How far apart two preferences may be by rounding alone."""
    precision = np.finfo(advice.dtype if np.issubdtype(advice.dtype, np.floating) else float).eps
    advice, size = advice.astype(float), 0.0
    for members, aggregation, parameter in parts_of(advice, aggregator):
        own, applied = advice[members], weights[members]
        if aggregation.additive:
            largest = np.abs(alone(aggregation, parameter, own, applied)).max(axis=1)  # [m]
            size += (len(members) + 1) * largest.sum()
        elif aggregation is maximum:
            size += 2 * np.abs(applied[:, None] * own).max()
        else:
            size += 8 * (len(members) + 1) * np.abs(aggregation(own, applied, parameter)).max()
    return float(precision * size)


def best(preferences: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    """[..., A] bool: the greedy actions, all of those that are equal up to the tolerance."""
    found: np.ndarray = preferences >= preferences.max(axis=-1, keepdims=True) - tolerance
    return found


def influence(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator | None = None) -> np.ndarray:
    """[m] bool: without whom the greedy actions would be others.

    >>> influence(np.array([[1.0, 0.0], [0.0, 3.0], [0.5, 0.0]]), np.ones(3))
    array([False,  True, False])
    """
    aggregator = aggregator or summed(len(advice))
    tolerance = rounding(advice, weights, aggregator)
    now = best(aggregator.prefer(advice, weights), tolerance)
    changed: np.ndarray = (best(without_each(advice, weights, aggregator), tolerance) != now).any(axis=1)
    return changed


def disagreement(advice: np.ndarray, weights: np.ndarray) -> float:
    """Of a sum: what each could have at best, summed up, less the most that all can have together; never below 0.

    >>> disagreement(np.array([[1.0, 0.0], [0.0, 3.0]]), np.ones(2))
    1.0
    """
    wished = weights[:, None] * advice
    return max(float(wished.max(axis=1).sum() - weighted_sum(advice, weights).max()), 0.0)
