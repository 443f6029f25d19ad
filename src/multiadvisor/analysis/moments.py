"""Decisive moments: of many episodes, the few most decisive steps, and who was at odds.

At stake is the difference between the best and the worst action in the aggregator's eyes; at odds are advisors who lose
by the action taken what another one would have given them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from multiadvisor.analysis.episodes import CELLS, Episodes
from multiadvisor.analysis.theory.enumeration import flat_row
from multiadvisor.explain.explanation import explain_recorded
from multiadvisor.learners.kinds import own_settings

_LONGEST = 64  # numbers of an observation that are compared one by one
APART = 10
"""So many steps lie at least between two moments of one episode: the next step is hardly another moment."""


@dataclass(frozen=True)
class Moment:
    """One step that mattered."""

    episode: int
    step: int
    where: str
    action: str
    stake: float
    """The preference for the best action less that for the worst."""
    disagreement: float
    """What the advisors together lose, each times its weight, by not having their own best actions."""
    reason: str
    """Why it did what it did."""
    caveat: str = ""
    """How far to trust that, where networks gave the advice."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"episode {self.episode}, step {self.step}, at {self.where}: {self.reason} "
            f"(stake {self.stake:.2f}, disagreement {self.disagreement:.2f})"
        )


def stakes(preferences: np.ndarray) -> np.ndarray:
    """[T] what is at stake, from preferences [T, A]."""
    return np.asarray(np.ptp(preferences, axis=1))


def disagreements(advice: np.ndarray, applied: np.ndarray, choice: np.ndarray) -> np.ndarray:
    """[T] what the advisors lose by the actions taken [T], from advice [T, n, A] and weights [T, n].

    >>> disagreements(np.array([[[1.0, 0.0], [0.0, 3.0]]]), np.ones((1, 2)), np.array([1]))
    array([1.])
    """
    wished = applied[:, :, None] * advice
    got = np.take_along_axis(wished, choice[:, None, None], axis=2)[:, :, 0]
    return np.asarray((wished.max(axis=2) - got).sum(axis=1))


def pick(
    score: np.ndarray, first: np.ndarray, alike: Callable[[int, int], bool], count: int, apart: int = APART
) -> list[int]:
    """The steps with the highest scores [T], no two of an episode nearer than `apart`, and no two `alike`.

    Episodes begin at `first` [G + 1].
    """
    episode = np.searchsorted(first, np.arange(len(score)), side="right") - 1
    picked: list[int] = []
    for step in np.argsort(-score, kind="stable").tolist():
        if len(picked) == count:
            break
        near = (
            (episode[step] == episode[other] and abs(step - other) < apart) or alike(step, other) for other in picked
        )
        if not any(near):
            picked.append(step)
    return picked


def moments(episodes: Episodes, count: int = 5) -> list[Moment]:
    """The moments of the episodes, the most decisive first: by the ranks of stake and disagreement, added."""
    stake = stakes(episodes.preferences)
    # an actor may do what its critics value less than the centre of the box: that is no matter between advisors
    best = episodes.choice if episodes.taken is None else episodes.preferences.argmax(axis=1)
    odds = disagreements(episodes.advice, episodes.applied, best)
    ranks = [np.searchsorted(np.sort(part), part) for part in (stake, odds)]
    score = (ranks[0] + ranks[1]) / len(stake)  # [T]
    if episodes.advice.shape[2] < 2:
        return []
    score = np.where(episodes.explored, -1.0, score)  # what is done by chance has no reason
    picked = pick(score, episodes.first, _alike(episodes), count)
    return [_moment(episodes, at, float(stake[at]), float(odds[at])) for at in picked]


def _alike(episodes: Episodes) -> Callable[[int, int], bool]:
    """Whether two steps are in the same state, or of real numbers in nearly the same: cells have borders anywhere."""
    here = np.arange(len(episodes.choice)) + np.repeat(np.arange(len(episodes)), episodes.length)  # each step's place
    first = flat_row(episodes.positions[0])
    if first.dtype.kind != "f" or len(first) > _LONGEST or own_settings(episodes.settings).points:
        places = episodes.places[here]
        return lambda one, other: bool((places[one] == places[other]).all())
    seen = np.array([flat_row(episodes.positions[k]) for k in here], float)  # [T, d]
    near = np.maximum(np.ptp(seen, axis=0), 1e-9) / CELLS
    return lambda one, other: bool((np.abs(seen[one] - seen[other]) < near).all())


def _moment(episodes: Episodes, at: int, stake: float, odds: float) -> Moment:
    """A step, what was done in it, and why."""
    episode, step = episodes.where(at)
    entropy = int(np.isnan(episodes.parts.paid[at, -1]))  # nobody pays for it, and it comes last
    why = explain_recorded(episodes, episodes, episodes.step(episode, step), beside=entropy)
    where, caveat = episodes.label(episode, step), episodes.settings.caveat
    return Moment(episode, step, where, why.action, stake, odds, why.sentence, caveat)
