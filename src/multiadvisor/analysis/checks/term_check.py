"""What the terms of a reward come to while a task is checked: remarks on them, which are no defects.

Advisors of one group are one term: of a hundred fruits some lie where random actions never lead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from multiadvisor.task import Task, nothing

REMARKS: dict[str, str] = {
    "never-paid": "a term was 0 in every step that was played",
    "dominates-by-scale": "one term is nearly all of what is paid, times the weights",
    "original-reward-differs": "the weighted terms do not add up to what info says that the reward was",
    "healthy-in-every-component": "the reward for being healthy is in every component, and counts several times",
    "may-get-stuck": "egocentric advisors would be stuck in some states, by the environment's own table of transitions",
}
_STEPS = 500  # so many at least before a term is said never to pay
_SHARE = 0.95  # of all that is paid
_MOSTLY = 0.9  # of the steps: in so many terms must add up for weights to be proposed
_ROWS = 2000  # steps that are kept to look for weights
_TOLERANCE = 1e-3  # of the environment's own reward, which may be a float32
_HEALTHY = ("mo-ant", "mo-hopper", "mo-humanoid", "mo-walker2d")


def _fitted(terms: np.ndarray, original: np.ndarray, weights: np.ndarray, scale: float) -> tuple[np.ndarray, float]:
    """Weights [n] with which terms [T, n] add up to the reward [T], and in which share of steps.

    The last step of an episode often has rules of its own, so that the fit is repeated without what fits worst; who is
    not paid in what is left keeps its weight.
    """
    keep = np.ones(len(terms), bool)
    for _ in range(5):
        found = np.linalg.lstsq(terms[keep], original[keep], rcond=None)[0]
        found = np.where((terms[keep] != 0).any(axis=0), found, weights)
        off = np.abs(terms @ found - original)
        keep = off <= max(scale, float(np.quantile(off, _MOSTLY)))
    return found, float((off <= scale).mean())


class TermTotals:
    """Adds up what everybody is paid."""

    def __init__(self, task: Task) -> None:
        self.task = task
        names = [advisor.group or advisor.name for advisor in task.advisors]
        self.units = list(dict.fromkeys(names))
        self.unit = np.array([self.units.index(name) for name in names])  # [n]
        self.steps = np.zeros(task.n, np.int64)  # in which each had a part
        self.sizes = np.zeros(task.n)  # the sum of |w_j r_j|
        self.paid = np.zeros(task.n, bool)
        self.rows: list[tuple[np.ndarray, float]] = []

    def hear(self, advisors: Iterable[int], rewards: Iterable[float | None]) -> None:
        """One step: what these advisors were paid."""
        for j, reward in zip(advisors, rewards, strict=True):
            self.steps[j] += 1
            if reward is not None and math.isfinite(reward):
                self.sizes[j] += abs(self.task.advisors[j].weight * reward)
                self.paid[j] |= reward != 0

    def compare(self, rewards: list[float | None], original: Any) -> None:
        """One step: the terms [n] and the reward that they are said to be terms of."""
        known = isinstance(original, int | float | np.floating | np.integer) and not isinstance(original, bool)
        if known and len(self.rows) < _ROWS and all(r is not None and math.isfinite(r) for r in rewards):
            self.rows.append((np.array(rewards, float), float(original)))

    def remarks(self) -> list[tuple[str, str | None, str]]:
        """Each as its name, whose it is, and what to do about it."""
        return [*self._never_paid(), *self._dominant(), *self._original(), *self._healthy()]

    def _never_paid(self) -> Iterable[tuple[str, str | None, str]]:
        for k, name in enumerate(self.units):
            members = np.flatnonzero(self.unit == k)
            steps = int(self.steps[members].max())
            meant = all(self.task.advisors[j].reward is nothing for j in members)
            if steps >= _STEPS and not self.paid[members].any() and not meant:
                mend = "correct its reward, or see with a trained agent (--run) whether it is just rare"
                yield "never-paid", name, f"it was paid nothing in {steps} steps of random actions: {mend}"

    def _dominant(self) -> Iterable[tuple[str, str | None, str]]:
        size = np.bincount(self.unit, self.sizes, len(self.units))
        largest, total = int(size.argmax()), float(size.sum())
        if (size > 0).sum() > 1 and size[largest] > _SHARE * total:
            rest = ", ".join(name for k, name in enumerate(self.units) if k != largest)
            what = f"it is {size[largest] / total:.1%} of all that was paid, times the weights"
            message = f"{what}, and {rest} is hardly noticed next to it: is that intended? weights scale terms"
            yield "dominates-by-scale", self.units[largest], message

    def _original(self) -> Iterable[tuple[str, str | None, str]]:
        if not self.rows:
            return
        terms, original = np.array([row for row, _ in self.rows]), np.array([paid for _, paid in self.rows])
        scale = _TOLERANCE * max(1.0, float(np.abs(original).max()))
        off = np.abs(terms @ self.task.weights - original)
        if off.max() <= scale:
            return
        found, fits = _fitted(terms, original, self.task.weights, scale)
        hint = "no weights make them add up, as it is not their sum"
        if fits > _MOSTLY:
            weights = ",".join(f"{name}={w:.3g}" for name, w in zip(self.task.names, found, strict=True))
            hint = f"with --weights {weights!r} they would" + ("" if fits == 1.0 else f", in {fits:.1%} of the steps")
        message = (
            f"in {(off > scale).mean():.0%} of the steps the weighted terms do not add up to info['original_reward'], "
            f"by up to {off.max():.3g}: {hint}"
        )
        yield "original-reward-differs", None, message

    def _healthy(self) -> Iterable[tuple[str, str | None, str]]:
        adapter = self.task.adapter
        if adapter is None or adapter.components < 2:
            return
        spec = getattr(adapter.env.unwrapped, "spec", None)
        bonus = getattr(adapter.env.unwrapped, "_healthy_reward", 0.0)
        if spec is not None and str(spec.id).startswith(_HEALTHY) and bonus:
            what = f"being healthy pays {bonus:g} in each component, and their sum counts it {adapter.components} times"
            yield "healthy-in-every-component", None, f"{what}: take the terms from info (info:reward_*)"
