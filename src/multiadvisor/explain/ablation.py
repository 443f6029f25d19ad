"""What one advisor's silence would change, under any aggregation; and who leads where a wish or a plan decides.

Pure functions on advice [m, A], weights [m] and the `Aggregator` of these m advisors. For a sum, what the difference
between two actions loses without an advisor is that advisor's own weighted difference, and the cost is linear in the
number of advisors, as it is for a maximum and for everything that adds up; others are asked once for each advisor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from multiadvisor.core.aggregations import AGGREGATIONS, Aggregation, maximum, normalised, weighted_sum
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.learners.tabular.rules.gpi import GPIAggregation
from multiadvisor.task import Advisor

_AT_ONCE = 4_000_000  # values of the advice that is looked at together


def summed(m: int) -> Aggregator:
    """m advisors who are heard as a sum."""
    return Aggregator(((AGGREGATIONS["sum"], 0.0),), np.zeros(m, np.int64))


def _parts(advice: np.ndarray, aggregator: Aggregator) -> Iterator[tuple[np.ndarray, Aggregation, float]]:
    """Who is heard together, and how; parts of which nobody speaks are left out."""
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
    return before + after


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


def _silenced(aggregation: Aggregation, parameter: float, advice: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The preferences [m, A] of one part if each of its members were silent."""
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
        heard = np.tile(weights, (len(silent), 1))
        heard[np.arange(len(silent)), silent] = 0.0
        found[silent] = aggregation(np.broadcast_to(advice, (len(silent), *advice.shape)), heard, parameter)
    return found


def without_each(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator) -> np.ndarray:
    """The preferences [m, A] if advisor j were silent, for every j at once."""
    parts, found = list(_parts(advice, aggregator)), np.empty(advice.shape)
    heard = [aggregation(advice[who], weights[who], parameter) for who, aggregation, parameter in parts]
    others = _all_but_each(np.array(heard).reshape(len(parts), advice.shape[1]))
    for (members, aggregation, parameter), rest in zip(parts, others, strict=True):
        found[members] = rest + _silenced(aggregation, parameter, advice[members], weights[members])
    return found


def contributions(
    advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator, action: int, against: int
) -> np.ndarray:  # [m]
    """What the one action's lead over the other loses if advisor j is silent; for a sum w_j (Q_j(a) - Q_j(b)), RDX.

    >>> advice, weights = np.array([[1.0, 0.25], [0.0, 3.0]]), np.array([1.0, -0.5])
    >>> contributions(advice, weights, summed(2), 0, 1)
    array([0.75, 1.5 ])
    >>> contributions(advice, np.ones(2), Aggregator(((AGGREGATIONS["max"], 0.0),), np.zeros(2, int)), 1, 0)
    array([-1.  ,  2.75])
    """
    found = np.empty(len(advice))
    for members, aggregation, parameter in _parts(advice, aggregator):
        own, heard = advice[members], weights[members]
        if aggregation is weighted_sum:
            found[members] = heard * (own[:, action] - own[:, against])
        elif aggregation.additive:
            share = alone(aggregation, parameter, own, heard)
            found[members] = share[:, action] - share[:, against]
        else:
            now, silent = aggregation(own, heard, parameter), _silenced(aggregation, parameter, own, heard)
            found[members] = (now[action] - now[against]) - (silent[:, action] - silent[:, against])
    return found


def rounding(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator) -> float:
    """How far apart two preferences may be by rounding alone."""
    precision = np.finfo(advice.dtype if np.issubdtype(advice.dtype, np.floating) else float).eps
    advice, size = advice.astype(float), 0.0
    for members, aggregation, parameter in _parts(advice, aggregator):
        own, heard = advice[members], weights[members]
        if aggregation.additive:
            largest = np.abs(alone(aggregation, parameter, own, heard)).max(axis=1)  # [m]
            size += (len(members) + 1) * largest.sum()
        elif aggregation is maximum:
            size += 2 * np.abs(heard[:, None] * own).max()
        else:
            size += 8 * (len(members) + 1) * np.abs(aggregation(own, heard, parameter)).max()
    return float(precision * size)


# ---- the strongest wish ----------------------------------------------------------------------------------------------
class Lead(NamedTuple):
    """Who has the strongest wish, and the strongest of those who would rather have another action."""

    advisor: int
    action: int
    value: float
    next: int | None
    """None where nobody would."""
    next_action: int | None
    next_value: float | None


def wishing(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator) -> np.ndarray:
    """The advisors that have a say and of whose wishes only the strongest counts."""
    found = [members for members, aggregation, _ in _parts(advice, aggregator) if aggregation is maximum]
    members = np.concatenate(found) if found else np.zeros(0, np.int64)
    return np.sort(members[weights[members] != 0])


def lead(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator, tolerance: float = 0.0) -> Lead | None:
    """Who leads; None if no wishes are compared. Of equal ones the first in order is named.

    >>> advice = np.array([[0.43, 0.38], [0.42, 0.3], [0.2, 0.41]])
    >>> lead(advice, np.ones(3), Aggregator(((AGGREGATIONS["max"], 0.0),), np.zeros(3, int)))
    Lead(advisor=0, action=0, value=0.43, next=2, next_action=1, next_value=0.41)
    """
    members = wishing(advice, weights, aggregator)
    if not len(members):
        return None
    wished = weights[members, None] * advice[members]
    own = wished.max(axis=1)
    first = int(own.argmax())
    action = int(wished[first].argmax())
    elsewhere = np.flatnonzero(wished[:, action] < own - tolerance)
    if not len(elsewhere):
        return Lead(int(members[first]), action, float(own[first]), None, None, None)
    other = int(elsewhere[own[elsewhere].argmax()])
    return Lead(
        int(members[first]), action, float(own[first]),
        int(members[other]), int(wished[other].argmax()), float(own[other]),
    )  # fmt: skip


# ---- the best plan ---------------------------------------------------------------------------------------------------
class PlanLead(NamedTuple):
    """Whose plan an action follows within one group, and the best of those that would rather take another action."""

    members: np.ndarray  # [k] those of the advisors whom the plan is for
    planner: Advisor
    value: float
    """What the plan is worth to all of them after this action."""
    worth: np.ndarray  # [k] and to each, times its weight
    best: bool
    """Whether no plan with another action is worth more."""
    next: Advisor | None
    """None where no plan would."""
    next_action: int | None
    next_value: float | None


def followed(weights: np.ndarray, aggregator: Aggregator, action: int, tolerance: float = 0.0) -> tuple[PlanLead, ...]:
    """The plans that the action follows, one for each group that is heard by plans; of equal ones the first."""
    found = []
    for part, (aggregation, _) in enumerate(aggregator.parts):
        members = np.flatnonzero(aggregator.of == part)
        if not isinstance(aggregation, GPIAggregation) or not len(members):
            continue
        each = weights[members, None, None] * aggregation.worth  # [k, J, A]
        total = each.sum(axis=0)  # [J, A]
        plan, own = int(total[:, action].argmax()), total.max(axis=1)  # [J]
        elsewhere = np.flatnonzero(total[:, action] < own - tolerance)
        value = float(total[plan, action])
        if not len(elsewhere):
            rest: tuple[Advisor | None, int | None, float | None] = None, None, None
        else:
            other = int(elsewhere[own[elsewhere].argmax()])
            rest = aggregation.planners[other], int(total[other].argmax()), float(own[other])
        best = rest[2] is None or rest[2] <= value + tolerance
        found.append(PlanLead(members, aggregation.planners[plan], value, each[:, plan, action], best, *rest))
    return tuple(found)


def best_plan(aggregation: GPIAggregation, weights: np.ndarray, action: int) -> tuple[Advisor, float]:
    """Whose plan is worth most after this action, and how much."""
    total = weights @ aggregation.worth[:, :, action]  # [J]
    return aggregation.planners[int(total.argmax())], float(total.max())
