"""Several policies of one training, in order: which term rose while the whole fell?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from multiadvisor.core.intervals import Estimate, unpaired
from multiadvisor.diagnosis.diagnosis import Diagnosis, diagnose
from multiadvisor.diagnosis.findings import Finding

FELL = 0.1
"""Of the best total return, in size: a smaller fall is no fall."""
ROSE = 0.25
"""Of that fall: a term that rose by less did not cost it."""


def diagnose_checkpoints(env: Any, policies: Mapping[str, Any], *args: Any, **options: Any) -> dict[str, Diagnosis]:
    """A diagnosis of each policy, by name, from the same seeds; without branches unless they are asked for."""
    return {name: diagnose(env, policy, *args, **{"branches": 0, **options}) for name, policy in policies.items()}


def hacked(series: Mapping[str, Diagnosis]) -> tuple[Finding, ...]:
    """RewardTerms that rose, in an episode and in a step, from the best checkpoint to the last, while the total fell.

    A penalty that shrinks only because episodes became shorter does not count: it has to rise in a step as well.
    """
    names = list(series)
    totals = [_totals(one) for one in series.values()]
    best = int(np.argmax([one.mean() for one in totals]))
    fell = unpaired(totals[best], totals[-1])
    if best == len(names) - 1 or fell.low <= 0 or fell.value < FELL * abs(float(totals[best].mean())):
        return ()
    return tuple(_risen(series[names[best]], series[names[-1]], fell, (names[best], names[-1])))


def told(series: Mapping[str, Diagnosis], found: Sequence[Finding]) -> str:
    """What an episode pays in each, in all and by term, and what was found of the series."""
    terms = next(iter(series.values())).terms
    rows = [("checkpoint", "return", *(one.name for one in terms))]
    for name, one in series.items():
        rows.append((name, f"{_totals(one).mean():.1f}", *(f"{term.returned.value:.1f}" for term in one.terms)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([*lines, *([f"- {one.sentence}" for one in found] or ["- no term rose while the whole fell"])])


def _risen(before: Diagnosis, after: Diagnosis, fell: Estimate, between: tuple[str, str]) -> Iterator[Finding]:
    weights = before.sample.terms.weights
    for k, term in enumerate(before.terms):
        rose = unpaired(after.sample.returns[:, k] * weights[k], before.sample.returns[:, k] * weights[k])
        in_a_step = unpaired(_per_step(after, k), _per_step(before, k))
        if rose.low > 0 and in_a_step.low > 0 and rose.value >= ROSE * fell.value:
            yield Finding(
                "hacked", (term.name,),
                f"{term.name} rose by {rose.value:.1f} [{rose.low:.1f}, {rose.high:.1f}] from {between[0]} to "
                f"{between[1]} while the whole fell by {fell.value:.1f} [{fell.low:.1f}, {fell.high:.1f}]: the policy "
                "learned to collect it instead of what it stands for; lower its weight, or pay it for the result alone",
                min(rose.value / fell.value, 1.0), {"rose": rose.value, "fell": fell.value},
            )  # fmt: skip


def _totals(one: Diagnosis) -> np.ndarray:
    """The total return of each episode, by the environment's own reward."""
    return np.array([episode.reward.sum() for episode in one.sample.whole])


def _per_step(one: Diagnosis, k: int) -> np.ndarray:
    """What a term pays in a step, by episode, with its weight."""
    weight = one.sample.terms.weights[k]
    return np.array([weight * episode.terms[:, k].mean() for episode in one.sample.episodes])
