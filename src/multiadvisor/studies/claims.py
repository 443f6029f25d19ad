"""The paper's checkable sentences as data: each with a statistic, a test, and a verdict computed from the runs.

The sentences stand in `claims_planning` (abstract, section 4) and `claims_results` (sections 5 and 6). No verdict is
ever written down: `judge_all` computes them from the evidence of a report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from multiadvisor.core.intervals import Estimate
from multiadvisor.runs.jobs import Job
from multiadvisor.studies.parts import Evidence, MissingResult, Plan, epochs_of_job, stretch

REPRODUCED, PARTLY, NOT = "reproduced", "partly", "not reproduced"
VERDICTS = (REPRODUCED, PARTLY, NOT)
HOLDS, FAILS = "holds", "does not hold"  # of claims that are not the paper's
OWN_VERDICTS = (HOLDS, PARTLY, FAILS)
BEYOND = "beyond the paper"
EARLY = 5  # epochs in which learning is looked at for its speed


@dataclass(frozen=True)
class Judgement:
    """What the runs say about a claim."""

    value: float
    interval: tuple[float, float] | None
    verdict: str
    explanation: str
    """What was seen where the claim does not, or not wholly, reproduce."""
    at_least: bool = False
    """The value is a lower bound: what was measured ended where the measure does."""


@dataclass(frozen=True)
class Claim:
    """One checkable sentence, in our own words."""

    id: str
    where: str
    claim: str
    statistic: str
    """What is measured: this is what `value` and `interval` are; {last} and the like stand for a stretch of epochs."""
    test: str
    """When it counts as reproduced."""
    judge: Callable[[Evidence], Judgement]


@dataclass(frozen=True)
class ClaimResult:
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


Judge = Callable[[Evidence], Judgement]


def claim(
    id: str, where: str, text: str, statistic: str, test: str, epochs: int | None = None
) -> Callable[[Judge], Judge]:
    """Registers the function below it as the judge of this claim; `epochs`: so many are enough, not all of a run."""

    def register(judge: Judge) -> Judge:
        CLAIMS.append(Claim(id, where, text, statistic, test, lambda evidence: _at_length(judge, evidence, epochs)))
        return judge

    return register


def grade(value: Estimate | float, holds: bool, partly: bool, seen: str, at_least: bool = False) -> Judgement:
    """The judgement of a number: reproduced where it `holds`, else partly, else not; `seen` is what the runs show."""
    number, ends = (value.value, value.interval) if isinstance(value, Estimate) else (float(value), None)
    verdict = REPRODUCED if holds else PARTLY if partly else NOT
    return Judgement(float(number), ends, verdict, seen, at_least)


def stands(value: Estimate | float, holds: bool, partly: bool, seen: str) -> Judgement:
    """The same of a claim that is not the paper's."""
    found = grade(value, holds, partly, seen)
    return replace(found, verdict=OWN_VERDICTS[VERDICTS.index(found.verdict)])


@dataclass(frozen=True)
class _Noted(Evidence):
    """Evidence that notes which results a judge looks at."""

    asked: list[Job] = field(default_factory=list)

    def result(self, job: Job) -> dict[str, Any]:
        self.asked.append(job)
        return super().result(job)


def _at_length(judge: Judge, evidence: Evidence, enough: int | None) -> Judgement:
    """The judgement; runs that were cut short can show at most a part of what is said about long ones."""
    noted = _Noted(evidence.plan, evidence.results)
    found = judge(noted)
    lengths = (length for job in noted.asked if (length := epochs_of_job(job)) is not None)
    short = sorted({(had, enough or full) for had, full in lengths if had < (enough or full)})
    if not short:
        return replace(found, explanation="") if found.verdict == REPRODUCED else found
    listed = " and ".join(f"{had} of {full}" for had, full in short)
    good = found.verdict in (REPRODUCED, HOLDS)
    holds = "holds" if good else "does not hold"
    text = f"After {listed} epochs: {found.explanation} So far the test {holds}."
    return replace(found, verdict=PARTLY if good else found.verdict, explanation=text)


def _words(plan: Plan) -> dict[str, str]:
    """What stands in a statistic's braces: it depends on how long the runs are."""
    return {
        "last": stretch("last", plan.last, plan.epochs), "dqn_last": stretch("last", plan.dqn_last, plan.dqn_epochs),
        "early": stretch("first", min(EARLY, plan.epochs), plan.epochs),
    }  # fmt: skip


def side(change: Estimate, above: str, below: str) -> str:
    """A difference as a size and a word for its sign; its interval goes with it.

    >>> print(side(Estimate(-2.0, -3.0, 1.0), "ahead", "behind"))
    2.00 [-1.00, 3.00] behind
    """
    if change.value >= 0:
        return f"{change} {above}"
    return f"{Estimate(-change.value, -change.high, -change.low)} {below}"


def all_claims(what: str = "all") -> list[Claim]:
    """Every claim of the paper, in its order; or those that are not the paper's."""
    from multiadvisor.studies import claims_beyond, claims_planning, claims_results  # noqa: F401  they register

    if what == "beyond":
        return [one for one in CLAIMS if one.where == BEYOND]
    order = ("abstract", "section 4", "section 5", "section 6", "appendix")

    def place(one: Claim) -> tuple[int, str]:
        return next(k for k, name in enumerate(order) if one.where.startswith(name)), one.where

    return sorted((one for one in CLAIMS if one.where != BEYOND), key=place)


def judge_all(evidence: Evidence) -> list[ClaimResult]:
    """Every claim judged, or with the reason why it cannot be in this report."""
    found = []
    words = _words(evidence.plan)
    for listed in all_claims(evidence.plan.what):
        one = replace(listed, statistic=listed.statistic.format_map(words))
        try:
            found.append(ClaimResult(one, one.judge(evidence)))
        except MissingResult as error:
            found.append(ClaimResult(one, None, str(error)))
    return found


def counts(judged: list[ClaimResult]) -> dict[str, int]:
    """How many of each verdict."""
    own = any(one.claim.where == BEYOND for one in judged)
    return {
        verdict: sum(one.judgement is not None and one.judgement.verdict == verdict for one in judged)
        for verdict in (OWN_VERDICTS if own else VERDICTS)
    }
