"""Which advisor drives it: how often, and by how much, the action would change without each of them.

Pure functions on the advice of steps; the aggregator is asked again with each advisor silent, whatever it makes of
advice. Where several actions are then equally good, one of them is taken at random, and that counts as such a chance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregator import Aggregator
from multiadvisor.explain.ablation import rounding, without_each


class Influence(NamedTuple):
    """Of each advisor, or of each group of them [n]."""

    spoke: np.ndarray  # steps in which it had a say
    changed: np.ndarray  # the share of all steps in which the action would be another one without it
    # in those, by how much another action would then be preferred, on average; 0 where there are none
    margin: np.ndarray
    push: np.ndarray | None = None  # where actions are real numbers, in the place of the last two: its mean share of
    # what pushes the action along its slopes; NaN of who has none

    def of(self, j: int) -> dict[str, Any]:
        """One advisor's, for JSON."""
        if self.push is not None:
            push = None if np.isnan(self.push[j]) else float(self.push[j])
            return {"spoke": int(self.spoke[j]), "changed": None, "margin": None, "push": push}
        return {"spoke": int(self.spoke[j]), "changed": float(self.changed[j]), "margin": float(self.margin[j])}

    @property
    def strength(self) -> np.ndarray:
        """[n] by which they are compared: the share of steps, or of the push."""
        return self.changed if self.push is None else self.push


def change(silent: np.ndarray, now: np.ndarray, chosen: Any, tolerance: Any) -> tuple[np.ndarray, np.ndarray]:
    """What silence would bring [...]: the chance of another action, and by how much the one taken is then behind.

    From preferences without somebody [..., A], those with everybody [..., A], and the action taken [...].

    >>> change(np.array([1.0, 0.0]), np.array([1.0, 3.0]), 1, 0.0)
    (array(1.), array(1.))
    >>> change(np.array([2.0, 2.0]), np.array([1.0, 3.0]), 1, 0.0)  # now it is a tie
    (array(0.5), array(0.))
    """
    tolerance = np.asarray(tolerance)[..., None]
    chosen = np.broadcast_to(np.asarray(chosen)[..., None], (*silent.shape[:-1], 1))
    best = silent >= silent.max(axis=-1, keepdims=True) - tolerance
    before = now >= now.max(axis=-1, keepdims=True) - tolerance
    kept, there = (np.take_along_axis(values, chosen, axis=-1)[..., 0] for values in (best, silent))
    chance = np.where((best == before).all(axis=-1), 0.0, 1.0 - kept / best.sum(axis=-1))
    return chance, np.where(kept, 0.0, silent.max(axis=-1) - there)


def influence(advice: np.ndarray, applied: np.ndarray, aggregator: Aggregator, choice: np.ndarray) -> Influence:
    """From advice [T, n, A], weights [T, n] (0: no say), how these n are combined, and the actions taken [T].

    >>> from multiadvisor.explain.ablation import summed
    >>> advice = np.array([[[1.0, 0.0], [0.0, 3.0], [0.5, 0.0]]])
    >>> influence(advice, np.ones((1, 3)), summed(3), np.array([1])).of(1)
    {'spoke': 1, 'changed': 1.0, 'margin': 1.5}
    """
    steps, n, _ = advice.shape
    chance, fall = np.zeros((steps, n)), np.zeros((steps, n))
    for step in range(steps):
        who = np.flatnonzero(applied[step])
        if len(who):
            own, given, weights = aggregator._replace(of=aggregator.of[who]), advice[step, who], applied[step, who]
            silent, now = without_each(given, weights, own), own.prefer(given, weights)  # [m, A], [A]
            tolerance = rounding(given, weights, own)
            chance[step, who], fall[step, who] = change(silent, now, int(choice[step]), tolerance)
    return _summary((applied != 0).sum(axis=0), chance, fall)


def group_influence(
    advice: np.ndarray, applied: np.ndarray, aggregator: Aggregator, choice: np.ndarray, members: list[np.ndarray]
) -> Influence:
    """The same of groups of advisors, each of which is silent as a whole; `members` are the indices of each."""
    now = aggregator.prefer(advice, applied)  # [T, A]
    size = np.abs(applied[:, :, None] * advice).sum(axis=1).max(axis=1)  # [T]
    tolerance = np.finfo(float).eps * (advice.shape[1] + 1) * size
    chance, fall = np.zeros((2, len(members), len(advice)))
    for k, group in enumerate(members):
        without = applied.copy()
        without[:, group] = 0.0
        chance[k], fall[k] = change(aggregator.prefer(advice, without), now, choice, tolerance)
    return _summary(_spoke(applied, members), chance.T, fall.T)


def pushing(push: np.ndarray, applied: np.ndarray, members: list[np.ndarray]) -> Influence:
    """Of groups of advisors, from shares of the push [T, n]; NaN where nobody of them had one.

    >>> pushing(np.array([[0.75, 0.25], [0.25, 0.75]]), np.ones((2, 2)), [np.array([0]), np.array([0, 1])]).push
    array([0.5, 1. ])
    """
    known = np.array([np.isfinite(push[:, group]).any() for group in members], bool)
    total = np.array([np.nansum(push[:, group]) for group in members])
    nothing, share = np.full(len(members), np.nan), np.where(known, total / max(len(push), 1), np.nan)
    return Influence(_spoke(applied, members), nothing, nothing, share)


def _spoke(applied: np.ndarray, members: list[np.ndarray]) -> np.ndarray:
    """[groups] steps in which somebody of a group had a say."""
    return np.array([(applied[:, group] != 0).any(axis=1).sum() for group in members], np.int64)


def _summary(spoke: np.ndarray, chance: np.ndarray, fall: np.ndarray) -> Influence:
    """From chances and falls [T, n]."""
    times = chance.sum(axis=0)
    by = np.divide(fall.sum(axis=0), times, out=np.zeros(len(times)), where=times > 0)
    return Influence(spoke, times / max(len(chance), 1), by)
