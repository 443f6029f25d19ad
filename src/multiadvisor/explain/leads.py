"""Who leads where the strongest wish decides, and whose plan is followed where plans are compared.

Pure functions on advice [m, A], weights [m] and the `Aggregator` of these m advisors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregations import PlanAggregation, maximum
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.explain.ablation import parts_of
from multiadvisor.task import Advisor


class Lead(NamedTuple):
    """Who has the strongest wish, and the strongest of those who would rather have another action.

    Advisors and actions stand there by their places, or by their names.
    """

    advisor: Any
    action: Any
    value: float
    next: Any
    """None where nobody would."""
    next_action: Any
    next_value: float | None

    @property
    def margin(self) -> float | None:
        """The lead over the next."""
        return None if self.next_value is None else self.value - self.next_value


def wishing(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator) -> np.ndarray:
    """The advisors that have a say and of whose wishes only the strongest counts."""
    found = [members for members, aggregation, _ in parts_of(advice, aggregator) if aggregation is maximum]
    members = np.concatenate(found) if found else np.zeros(0, np.int64)
    return np.sort(members[weights[members] != 0])


def _rival(values: np.ndarray, action: int, tolerance: float) -> tuple[int, int, float] | None:
    """The strongest of those [k, A] that would rather have another action: who, which, how strong."""
    own = values.max(axis=1)
    elsewhere = np.flatnonzero(values[:, action] < own - tolerance)
    if not len(elsewhere):
        return None
    other = int(elsewhere[own[elsewhere].argmax()])
    return other, int(values[other].argmax()), float(own[other])


def lead(advice: np.ndarray, weights: np.ndarray, aggregator: Aggregator, tolerance: float = 0.0) -> Lead | None:
    """Who leads; None if no wishes are compared. Of equal ones the first in order is named.

    >>> from multiadvisor.core.aggregations import AGGREGATIONS
    >>> advice = np.array([[0.43, 0.38], [0.42, 0.3], [0.2, 0.41]])
    >>> lead(advice, np.ones(3), Aggregator(((AGGREGATIONS["max"], 0.0),), np.zeros(3, int)))
    Lead(advisor=0, action=0, value=0.43, next=2, next_action=1, next_value=0.41)
    """
    members = wishing(advice, weights, aggregator)
    if not len(members):
        return None
    wished = weights[members, None] * advice[members]
    first, action = divmod(int(wished.argmax()), wished.shape[1])
    rival = _rival(wished, action, tolerance)
    rest = (None, None, None) if rival is None else (int(members[rival[0]]), *rival[1:])
    return Lead(int(members[first]), action, float(wished[first, action]), *rest)


@dataclass(frozen=True)
class FollowedPlan:
    """The plan that the action follows, of those of one group; and the best of those that would rather do otherwise."""

    advisor: str
    value: float
    """What it is worth to all of its group."""
    worth: dict[str, float]
    """And to each, times its weight, the most first."""
    next: str | None
    """None where no plan would; so are the three below."""
    next_action: str | None
    next_value: float | None
    margin: float | None
    """The lead over the next; below 0 where others than the group decided."""


def followed(
    names: Sequence[str], actions: Sequence[str], weights: np.ndarray, aggregator: Aggregator, action: int,
    tolerance: float = 0.0,
) -> tuple[FollowedPlan, ...]:  # fmt: skip
    """The plans that the action follows, one for each group that is combined by plans; of equal ones the first."""
    found = []
    for part, (aggregation, _) in enumerate(aggregator.parts):
        members = np.flatnonzero(aggregator.of == part)
        if not isinstance(aggregation, PlanAggregation) or not len(members):
            continue
        each = weights[members, None, None] * aggregation.worth  # [k, J, A]
        total = each.sum(axis=0)  # [J, A]
        plan, rival = int(total[:, action].argmax()), _rival(total, action, tolerance)
        value, own = float(total[plan, action]), each[:, plan, action]
        worth = {names[members[k]]: float(own[k]) for k in np.argsort(-np.abs(own), kind="stable").tolist()}
        rest: Any = (None,) * 4
        if rival is not None:
            other, instead, most = rival
            rest = aggregation.planners[other].name, actions[instead], most, value - most
        found.append(FollowedPlan(aggregation.planners[plan].name, value, worth, *rest))
    return tuple(found)


def best_plan(aggregation: PlanAggregation, weights: np.ndarray, action: int) -> tuple[Advisor, float]:
    """Whose plan is worth most after this action, and how much."""
    total = weights @ aggregation.worth[:, :, action]  # [J]
    return aggregation.planners[int(total.argmax())], float(total.max())
