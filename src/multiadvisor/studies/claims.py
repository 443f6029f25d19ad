"""Claims and what the runs say about them. A claim is data and a judge; no verdict is ever written down.

The paper's sentences stand in `paper/claims.toml`, their judges in `paper/claims_*.py`; a system of the literature
makes its findings directly, with `above`, `below` and `not_below`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from multiadvisor.core.intervals import Estimate
from multiadvisor.runs.jobs import Job, experiments
from multiadvisor.studies.study import Evidence, MissingResult, Plan, epochs_of_job, stretch

REPRODUCED, PARTLY, NOT = VERDICTS = ("reproduced", "partly", "not reproduced")
HOLDS, _, FAILS = OWN_VERDICTS = ("holds", PARTLY, "does not hold")  # of claims that are not the paper's
BEYOND, KNOWN = "beyond the paper", "known behaviour"
EARLY = 5  # epochs in which learning is looked at for its speed


@dataclass(frozen=True)
class Judgement:
    """What the runs say about a claim."""

    value: float
    interval: tuple[float, float] | None
    verdict: str
    explanation: str = ""
    """What was seen where the claim does not, or not wholly, hold."""
    at_least: bool = False
    """The value is a lower bound: what was measured ended where the measure does."""


Judge = Callable[[Evidence], Judgement]


@dataclass(frozen=True)
class Claim:
    """One checkable sentence, in our own words."""

    id: str
    where: str
    claim: str
    statistic: str = ""
    """What is measured: this is what `value` and `interval` are; {last} and the like stand for a stretch of epochs."""
    test: str = ""
    """When it counts as reproduced."""

    @property
    def papers(self) -> bool:
        """Whether the paper makes it."""
        return self.where not in (BEYOND, KNOWN)


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its judgement, or with the reason why there is none."""

    claim: Claim
    judgement: Judgement | None
    reason: str = ""

    @property
    def verdict(self) -> str | None:
        """None where it is not judged."""
        return None if self.judgement is None else self.judgement.verdict

    @property
    def holds(self) -> bool:
        """Wholly."""
        return self.verdict in (REPRODUCED, HOLDS)

    def as_dict(self) -> dict[str, Any]:
        """A row of claims.json."""
        assert self.judgement is not None
        found = asdict(self.judgement)
        return {**asdict(self.claim), **found, "interval": list(found["interval"]) if found["interval"] else None}


# ---- what a system is known for --------------------------------------------------------------------------------------
def seen(id: str, text: str, value: Estimate | float, holds: bool) -> JudgedClaim:
    """Whether a part of the known behaviour is seen."""
    judgement = grade(value, holds, False)
    return JudgedClaim(Claim(id, KNOWN, text), replace(judgement, verdict=HOLDS if holds else FAILS))


def above(id: str, text: str, value: Estimate, bar: float = 0.0) -> JudgedClaim:
    """It is seen where the whole interval lies above the bar."""
    return seen(id, text, value, value.low > bar)


def below(id: str, text: str, value: Estimate, bar: float = 0.0) -> JudgedClaim:
    """It is seen where the whole interval lies below the bar."""
    return seen(id, text, value, value.high < bar)


def not_below(id: str, text: str, value: Estimate, bar: float = 0.0) -> JudgedClaim:
    """It is seen where the interval reaches the bar: at least as good, as far as the runs can tell."""
    return seen(id, text, value, value.high >= bar)


def verdict(found: Sequence[JudgedClaim]) -> str:
    """Of all findings together."""
    held = [one.holds for one in found]
    return REPRODUCED if all(held) else PARTLY if any(held) else NOT


# ---- claims and their judges -----------------------------------------------------------------------------------------
CLAIMS: dict[str, Claim] = {}
JUDGES: dict[str, Judge] = {}
ENOUGH: dict[str, int] = {}
"""Where so many epochs are enough, not all of a run."""


def read_claims(path: Path) -> None:
    """Registers the claims in a file, in its order."""
    for id, words in tomllib.loads(path.read_text("utf-8")).items():
        if "epochs" in words:
            ENOUGH[id] = words.pop("epochs")
        CLAIMS[id] = Claim(id, **words)


def claim(id: str) -> Callable[[Judge], Judge]:
    """Registers the function below it as the judge of this claim."""

    def register(judge: Judge) -> Judge:
        JUDGES[id] = judge
        return judge

    return register


def grade(value: Estimate | float, holds: bool, partly: bool, text: str = "", at_least: bool = False) -> Judgement:
    """The judgement of a number: reproduced where it `holds`, else partly, else not; `text` is what the runs show."""
    number, ends = (value.value, value.interval) if isinstance(value, Estimate) else (float(value), None)
    return Judgement(float(number), ends, REPRODUCED if holds else PARTLY if partly else NOT, text, at_least)


@dataclass(frozen=True)
class _Noted(Evidence):
    """Evidence that notes which results a judge looks at."""

    asked: list[Job] = field(default_factory=list)

    def result(self, job: Job) -> dict[str, Any]:
        self.asked.append(job)
        return super().result(job)


def judged(one: Claim, evidence: Evidence) -> Judgement:
    """The judgement; runs that were cut short can show at most a part of what is said about long ones."""
    noted, enough = _Noted(evidence.plan, evidence.results), ENOUGH.get(one.id)
    found = JUDGES[one.id](noted)
    lengths = (length for job in noted.asked if (length := epochs_of_job(job)) is not None)
    short = sorted({(had, enough or full) for had, full in lengths if had < (enough or full)})
    good = found.verdict == REPRODUCED
    if short:
        listed = " and ".join(f"{had} of {full}" for had, full in short)
        text = f"After {listed} epochs: {found.explanation} So far the test {HOLDS if good else FAILS}."
        found = replace(found, verdict=PARTLY if good else found.verdict, explanation=text)
    elif good and one.papers:
        found = replace(found, explanation="")
    return found if one.papers else replace(found, verdict=OWN_VERDICTS[VERDICTS.index(found.verdict)])


def _words(plan: Plan) -> dict[str, str]:
    """What stands in a statistic's braces: it depends on how long the runs are."""
    return {
        "last": stretch("last", plan.last, plan.epochs),
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


def all_claims(papers: bool = True) -> list[Claim]:
    """Every claim of the paper, in its order; or those that are not the paper's."""
    experiments()  # they register their claims
    return [one for one in CLAIMS.values() if one.papers == papers]


def judge_all(evidence: Evidence, papers: bool = True) -> list[JudgedClaim]:
    """Every claim judged, or with the reason why it cannot be in this report."""
    found, words = [], _words(evidence.plan)
    for one in all_claims(papers):
        told = replace(one, statistic=one.statistic.format_map(words))
        try:
            found.append(JudgedClaim(told, judged(one, evidence)))
        except MissingResult as error:
            found.append(JudgedClaim(told, None, str(error)))
    return found


def counts(findings: Sequence[JudgedClaim]) -> dict[str, int]:
    """How many of each verdict."""
    words = VERDICTS if all(one.claim.papers for one in findings) else OWN_VERDICTS
    return {word: sum(one.verdict == word for one in findings) for word in words}
