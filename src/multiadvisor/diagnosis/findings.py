"""What to change in a reward: sentences, each with its evidence, about terms that do not do what one would think.

Thresholds stand here, once. A finding is said only where the numbers leave no doubt: an interval that reaches the
threshold is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.core.intervals import Estimate

if TYPE_CHECKING:
    from multiadvisor.diagnosis.diagnosis import Measurements

TINY = 0.005
"""Of all that is paid, and of the push: below this a term hardly matters."""
LARGE = 0.9
"""Of all that is paid: above this one of three or more terms leaves nothing to the others."""
SAME = 0.995
"""The correlation, step by step, from which on two terms count the same thing."""
CANCELLED = 0.1
"""Of what two opposite terms pay: where less than this is left of both together, they cancel each other."""
OPPOSED = -0.3
"""The cosine of two terms' effects below which they pull in opposite directions."""
IDLE_SHARE, IDLE_PUSH = 0.2, 0.02
"""A term that is at least this much of what is paid and at most this much of the push is paid whatever is done."""
MISSING = 1e-3
"""Of the reward: where the terms leave out more than this, they do not add up."""
STUCK = 0.2
"""Of the episodes: from this on the policy is said to be stuck, or to linger."""
_NAMED = 2  # terms


@dataclass(frozen=True)
class Finding:
    """One thing worth changing or knowing."""

    kind: str
    terms: tuple[str, ...]
    sentence: str
    size: float
    """How much of the reward it concerns, 0 to 1: what is largest is said first."""
    evidence: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "terms": list(self.terms)}


def percent(share: float) -> str:
    """A share in words, never rounded to nothing.

    >>> percent(0.774), percent(0.0021), percent(0.0), percent(0.00001)
    ('77%', '0.2%', '0%', 'under 0.1%')
    """
    if share == 0:
        return "0%"
    return "under 0.1%" if abs(share) < 0.001 else f"{share:.1%}" if abs(share) < 0.05 else f"{share:.0%}"


def _between(one: Estimate) -> str:
    return f"{percent(one.value)} [{percent(one.low)}, {percent(one.high)}]"


# ---- counting --------------------------------------------------------------------------------------------------------
def _never_paid(seen: Measurements) -> Iterator[Finding]:
    for k, name in enumerate(seen.names):
        if not seen.paid[:, k].any():
            yield Finding(
                "never paid", (name,),
                f"{name} never paid in {len(seen.paid):,} steps: check that it can be reached and that its weight is "
                "not 0, or drop it",
                1.0, {"steps": len(seen.paid)},
            )  # fmt: skip


def _hardly_matters(seen: Measurements) -> Iterator[Finding]:
    for k, name in enumerate(seen.names):
        push = None if seen.push is None else seen.push[k]
        most = np.abs(seen.paid[:, k]).max()
        large = most > seen.sizes.sum() if push is None else push.high >= TINY  # seldom and much may matter most of all
        if not most or seen.shares[k] >= TINY or large:
            continue
        pushed = "" if push is None else f", {percent(push.value)} of the push"
        factor = 10 ** int(np.ceil(np.log10(0.1 / max(seen.shares[k], 1e-6))))
        yield Finding(
            "hardly matters", (name,),
            f"{name} hardly matters: {percent(seen.shares[k])} of what is paid{pushed}: drop it, or raise its weight "
            f"{factor:,}-fold if you meant it to count",
            1 - seen.shares[k], {"share": seen.shares[k], "push": None if push is None else push.value},
        )  # fmt: skip


def _dominates(seen: Measurements) -> Iterator[Finding]:
    k = int(seen.shares.argmax())
    if len(seen.names) < 3 or not seen.shares[k] >= LARGE:
        return
    others = float(np.delete(seen.sizes, k).max())
    ratio = f"{seen.sizes[k] / others:,.0f} times what the next one pays" if others else "and no other one pays at all"
    yield Finding(
        "dominates", (seen.names[k],),
        f"{seen.names[k]} is {percent(seen.shares[k])} of all that is paid, {ratio}: unless that is meant, divide its "
        "weight accordingly",
        seen.shares[k], {"share": seen.shares[k]},
    )  # fmt: skip


def _same_or_opposite(seen: Measurements) -> Iterator[Finding]:
    for one, other in combinations(range(len(seen.names)), 2):
        pair = seen.paid[:, [one, other]]
        if (pair.std(axis=0) <= 1e-9 * np.abs(pair).max(axis=0)).any():
            continue
        together = float(np.corrcoef(pair.T)[0, 1])
        names = (seen.names[one], seen.names[other])
        evidence = {"correlation": together, "steps": len(pair)}
        left = float(np.abs(pair.sum(axis=1)).mean() / np.abs(pair).sum(axis=1).mean())
        if together <= -SAME and left < CANCELLED:
            yield Finding(
                "cancel", names,
                f"{names[0]} and {names[1]} cancel each other: step by step they correlate at {together:.3f}, and "
                f"{percent(left)} is left of both: drop both, or change the sign of one",
                float(seen.shares[[one, other]].sum()), {**evidence, "left": left},
            )  # fmt: skip
        elif together >= SAME:
            yield Finding(
                "counted twice", names,
                f"{names[0]} and {names[1]} count the same thing: step by step they correlate at {together:.3f}: drop "
                "one of them, and give its weight to the other if you meant it",
                float(seen.shares[[one, other]].min()), evidence,
            )  # fmt: skip


def _does_not_add_up(seen: Measurements) -> Iterator[Finding]:
    size = float(np.abs(seen.reward).mean())
    missing = float(np.abs(seen.reward - seen.paid.sum(axis=1)).mean())
    if size > 0 and missing > MISSING * size:
        yield Finding(
            "does not add up", seen.names,
            f"the terms do not add up to the reward: {percent(missing / size)} of it is missing or too much: name the "
            'other terms, or add Advisor("remainder", reward="remainder")',
            min(missing / size, 1.0), {"missing": missing / size},
        )  # fmt: skip


def _stuck(seen: Measurements) -> Iterator[Finding]:
    if seen.stuck and seen.stuck["share"] >= STUCK:
        yield Finding(
            "stuck", (),
            f"the policy is stuck in {percent(seen.stuck['share'])} of its episodes: it {seen.stuck['kind']}, earns "
            f"nothing and does not end, in episode {seen.stuck['episode']} from step {seen.stuck['since']} on",
            float(seen.stuck["share"]), dict(seen.stuck),
        )  # fmt: skip


def _lingers(seen: Measurements) -> Iterator[Finding]:
    found = seen.lingers
    stuck = seen.stuck is not None and seen.stuck["share"] >= STUCK
    if not found or stuck or found["share"] < STUCK or not (found["earned first"] or found["better"] >= STUCK):
        return
    order = np.argsort(found["terms"])[:_NAMED]
    paid = ", ".join(f"{seen.names[k]} {found['terms'][k]:+.2g}" for k in order if found["terms"][k] < 0)
    beside = (
        f"{percent(found['better'])} end by themselves and bring more than any of these"
        if found["better"] >= STUCK
        else f"the first half brought {found['first half']:+.2g} a step"
    )
    low, high = found["interval"]
    yield Finding(
        "lingers", (),
        f"in {percent(found['share'])} of its episodes the policy goes on until the limit and earns "
        f"{found['second half']:.2g} [{low:.2g}, {high:.2g}] a step in their second half ({paid}), while {beside}: if "
        "it is meant to end, let every step cost more, or a bad ending less",
        float(found["share"]), dict(found),
    )  # fmt: skip


# ---- branching -------------------------------------------------------------------------------------------------------
def _pull_apart(seen: Measurements) -> Iterator[Finding]:
    push = seen.push or []
    for (one, other), cosine in seen.conflicts.items():
        if cosine.high < OPPOSED and min(push[one].low, push[other].low) >= TINY:  # else their weights decide nothing
            names = (seen.names[one], seen.names[other])
            yield Finding(
                "opposed", names,
                f"{names[0]} and {names[1]} pull in opposite directions: {cosine.value:+.2f} [{cosine.low:+.2f}, "
                f"{cosine.high:+.2f}]: their weights decide between them",
                float(seen.shares[[one, other]].min()), {"cosine": cosine.value, "interval": cosine.interval},
            )  # fmt: skip


def _paid_whatever_is_done(seen: Measurements) -> Iterator[Finding]:
    for k, name in enumerate(seen.names):
        push = None if seen.push is None else seen.push[k]
        if push is not None and seen.shares[k] >= IDLE_SHARE and push.high <= IDLE_PUSH:
            yield Finding(
                "paid whatever is done", (name,),
                f"{name} is {percent(seen.shares[k])} of what is paid and {_between(push)} of the push: this policy "
                "gets it whatever it does, so that its weight changes the score and hardly the behaviour",
                float(seen.shares[k]), {"share": seen.shares[k], "push": push.value, "interval": push.interval},
            )  # fmt: skip


RULES: tuple[Callable[[Measurements], Iterator[Finding]], ...] = (
    _stuck, _lingers, _does_not_add_up, _never_paid, _dominates, _same_or_opposite, _hardly_matters, _pull_apart,
    _paid_whatever_is_done,
)  # fmt: skip


def findings(seen: Measurements) -> tuple[Finding, ...]:
    """All that is found, rule by rule, and within a rule what concerns most of the reward first."""
    return tuple(one for rule in RULES for one in sorted(rule(seen), key=lambda found: -found.size))
