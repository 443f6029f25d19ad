"""Episodes that go on and earn nothing: stuck in the same few places, or lingering until the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multiadvisor.analysis.stuck import cheapest, resting
from multiadvisor.core.intervals import estimate
from multiadvisor.diagnosis.sample import Sample, picture

LEAST = 2
"""Episodes that reach their limit, below which nothing is said of lingering."""
_BOUNDED = 1e6  # the size of a bound from which on it is none
_CELLS = 10  # of each number of an observation: places, for finding out whether the policy is stuck


def stuck(sample: Sample) -> dict[str, Any] | None:
    """In how many episodes the policy stays in the same few places without being paid, and the first of them."""
    gains = [episode.terms @ sample.terms.weights for episode in sample.episodes]
    if picture(sample.episodes[0].observations[0]):
        return None
    met = np.concatenate(gains)
    places = _cells([one.observations for one in sample.episodes], sample.space)
    actions = _cells([one.actions for one in sample.episodes], None)
    if places is None or actions is None:
        return None
    found = []
    for number, (episode, gain, walk, moves) in enumerate(zip(sample.episodes, gains, places, actions, strict=True)):
        rest = resting(walk, moves, gain, episode.terminated)
        if rest is not None and rest.until == len(episode.actions) and not cheapest(met, gain, rest):
            found.append((number, rest))
    if not found:
        return None
    number, rest = found[0]
    return {"share": len(found) / len(sample.episodes), "episode": number, "since": rest.since, "kind": rest.kind}


def _cells(given: Sequence[Sequence[Any]], space: Any) -> list[np.ndarray] | None:
    """Observations or actions of each episode as numbers of cells [T]; None where they are not numbers.

    A cell is a tenth of a number's range in its space or, where that has no bounds, of what was seen in all episodes.
    """
    try:
        rows = np.array([np.ravel(one) for part in given for one in part], float)
    except (TypeError, ValueError):
        return None
    low, width = rows.min(axis=0), np.ptp(rows, axis=0)
    if hasattr(space, "low"):
        bounds = np.ravel(space.low).astype(float), np.ravel(space.high).astype(float)
        bounded = (np.abs(bounds) < _BOUNDED).all(axis=0)
        low = np.where(bounded, bounds[0], low)
        width = np.where(bounded, bounds[1] - bounds[0], width)
    cells = np.floor((rows - low) / np.where(width > 1e-9, width, 1.0) * _CELLS)
    whole = np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)
    return np.split(whole, np.cumsum([len(part) for part in given])[:-1])


def lingers(sample: Sample) -> dict[str, Any] | None:
    """In how many episodes the policy goes on until the limit and earns nothing in their second half, although episodes
    can end; with what each term pays in such a step, what was earned before, and how many end and bring more."""
    whole = [one for one in sample.episodes if one.complete]
    cut = [one.terms * sample.terms.weights for one in whole if not one.terminated]
    ended = [float((one.terms @ sample.terms.weights).sum()) for one in whole if one.terminated]
    if len(cut) < LEAST or not ended:
        return None
    parts = [np.split(one, [len(one) // 2]) for one in cut]
    halves = [np.array([part[k].mean(axis=0) for part in parts]) for k in (0, 1)]
    before, after = (estimate(half.sum(axis=1)) for half in halves)
    if after.high >= 0:
        return None
    most = max(float(one.sum()) for one in cut)
    return {
        "share": len(cut) / len(whole), "better": sum(one > most for one in ended) / len(whole),
        "first half": before.value, "earned first": bool(before.low > 0), "second half": after.value,
        "interval": after.interval, "terms": halves[1].mean(axis=0).tolist(),
    }  # fmt: skip
