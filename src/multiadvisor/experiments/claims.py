"""The paper's checkable sentences as data: each with a statistic, a test, and a verdict computed from the runs.

The sentences stand in `claims_planning` (abstract, section 4) and `claims_results` (sections 5 and 6). No verdict is
ever written down: `judge_all` computes them from the evidence of a report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

from multiadvisor.experiments.parts import Evidence, Missing
from multiadvisor.statistics import Estimate

REPRODUCED, PARTLY, NOT = "reproduced", "partly", "not reproduced"
VERDICTS = (REPRODUCED, PARTLY, NOT)


@dataclass(frozen=True)
class Judgement:
    """What the runs say about a claim."""

    value: float
    interval: tuple[float, float] | None
    verdict: str
    explanation: str
    """What was seen where the claim does not, or not wholly, reproduce."""


@dataclass(frozen=True)
class Claim:
    """One checkable sentence, in our own words."""

    id: str
    where: str
    claim: str
    statistic: str
    """What is measured: this is what `value` and `interval` are."""
    test: str
    """When it counts as reproduced."""
    judge: Callable[[Evidence], Judgement]


@dataclass(frozen=True)
class Judged:
    """A claim with its judgement, or with the reason why there is none."""

    claim: Claim
    judgement: Judgement | None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """A row of claims.json."""
        assert self.judgement is not None
        words = {item.name: getattr(self.claim, item.name) for item in fields(self.claim) if item.name != "judge"}
        found = asdict(self.judgement)
        return {**words, **found, "interval": list(found["interval"]) if found["interval"] else None}


CLAIMS: list[Claim] = []


def claim(id: str, where: str, text: str, statistic: str, test: str) -> Callable[..., Callable[[Evidence], Judgement]]:
    """Registers the function below it as the judge of this claim."""

    def register(judge: Callable[[Evidence], Judgement]) -> Callable[[Evidence], Judgement]:
        CLAIMS.append(Claim(id, where, text, statistic, test, judge))
        return judge

    return register


def grade(value: Estimate | float, holds: bool, partly: bool, seen: str) -> Judgement:
    """The judgement of a number: reproduced where it `holds`, else partly, else not; `seen` is said of the last two."""
    number, ends = (value.value, value.interval) if isinstance(value, Estimate) else (float(value), None)
    verdict = REPRODUCED if holds else PARTLY if partly else NOT
    return Judgement(float(number), ends, verdict, "" if holds else seen)


def all_claims() -> list[Claim]:
    """Every claim, in the paper's order."""
    from multiadvisor.experiments import claims_planning, claims_results  # noqa: F401  they register themselves

    order = ("abstract", "section 4", "section 5", "section 6", "appendix")

    def place(one: Claim) -> tuple[int, str]:
        return next(k for k, name in enumerate(order) if one.where.startswith(name)), one.where

    return sorted(CLAIMS, key=place)


def judge_all(evidence: Evidence) -> list[Judged]:
    """Every claim judged, or with the reason why it cannot be in this report."""
    found = []
    for one in all_claims():
        try:
            found.append(Judged(one, one.judge(evidence)))
        except Missing as error:
            found.append(Judged(one, None, str(error)))
    return found


def counts(judged: list[Judged]) -> dict[str, int]:
    """How many of each verdict."""
    return {
        verdict: sum(one.judgement is not None and one.judgement.verdict == verdict for one in judged)
        for verdict in VERDICTS
    }
