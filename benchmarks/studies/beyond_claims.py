"""Claims that are not the paper's: what far-sighted advisors do when they are aggregated by max, p-norms and blends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from multiadvisor.core.intervals import Estimate, estimate, paired
from multiadvisor.studies.claims import Judgement, claim, grade, read_claims
from multiadvisor.studies.paper.tours import WALKS
from multiadvisor.studies.study import Evidence
from studies.beyond import against_papers, boards, choice, compared, measure, report_cases
from studies.schemes import (
    EGO_HIGH,
    EGO_LOW,
    EGO_MAX,
    EMP_MAX,
    EMPATHIC,
    FEW_GAMMAS,
    GAMMAS,
    Case,
    Scheme,
    cases_of,
    other_rules,
    pac_boy,
)

ONLY_MAX = 0.1  # noise up to which steps are compared
GOAL = 80 / 72.6  # of a near-optimal tour
read_claims(Path(__file__).with_suffix(".toml"))


def _bar(evidence: Evidence, scheme: Scheme, noise: float, **ends: float) -> Judgement:
    """Final means within their ends: `steps` at most, everything else at least."""
    case = pac_boy(noise, evidence.plan.rules)
    found = {name: estimate(measure(evidence, scheme, case, name)) for name in ends}
    good = [found[name].value <= end if name == "length" else found[name].value >= end for name, end in ends.items()]
    listed = ", ".join(f"{name} {one}" for name, one in found.items())
    return grade(found["score"], all(good), sum(good) > 1, f"Measured: {listed}.")


claim("max-without-noise")(lambda evidence: _bar(evidence, EGO_MAX, 0.0, score=35.7, length=128.0, terminated=0.98))
claim("max-with-noise")(lambda evidence: _bar(evidence, EGO_MAX, 0.1, score=35.5, length=150.0, terminated=0.95))
claim("empathic-max-with-much-noise")(lambda evidence: _bar(evidence, EMP_MAX, 0.3, score=33.5, terminated=0.55))


def _fewer(evidence: Evidence, scheme: Scheme, cases: Sequence[Case]) -> Judgement:
    """Fewer steps than the paper's empathic planning in all cases, by paired intervals; the least gain is shown."""
    found = {case.name: compared(evidence, EMPATHIC, scheme, case, "length") for case in cases}
    least = min(found.values(), key=lambda one: one.low)
    listed = "; ".join(f"{name}: {one}" for name, one in found.items())
    good = [one.low > 0 for one in found.values()]
    return grade(least, all(good), any(good), f"Steps saved: {listed}.")


def _quiet(evidence: Evidence) -> list[Case]:
    return [case for case in cases_of(evidence.plan, "Pac-Boy") if case.noise <= ONLY_MAX]


claim("max-saves-steps")(lambda evidence: _fewer(evidence, EGO_MAX, _quiet(evidence)))
claim("empathic-max-saves-steps")(lambda evidence: _fewer(evidence, EMP_MAX, _quiet(evidence)))
claim("max-saves-steps-by-other-rules")(lambda evidence: _fewer(evidence, EMP_MAX, other_rules(evidence.plan)))


@claim("max-learns-faster")
def _faster(evidence: Evidence) -> Judgement:
    case = pac_boy(0.0, evidence.plan.rules)
    early = [measure(evidence, scheme, case, when="first") for scheme in (EGO_MAX, EGO_LOW, EMPATHIC)]
    ahead = paired(early[0], max(early[1:], key=np.mean))
    return grade(ahead, ahead.low > 0, ahead.value > 0, f"The lead is {ahead} points.")


@claim("never-stuck")
def _never_stuck(evidence: Evidence) -> Judgement:
    case = pac_boy(0.0, evidence.plan.rules)
    found = {
        gamma: estimate(measure(evidence, Scheme("egocentric", gamma, "fruits=max"), case, "terminated"))
        for gamma in (GAMMAS if evidence.plan.full else FEW_GAMMAS)
    }
    summed = measure(evidence, EGO_HIGH, case, "terminated").mean()
    least = min(found.values(), key=lambda one: one.value)
    listed = ", ".join(f"{100 * one.value:.0f}% at {gamma:g}" for gamma, one in found.items())
    good = least.value >= 0.95
    return grade(least, good and summed < 0.5, good, f"With max {listed}; with the sum {100 * summed:.0f}% at 0.9.")


@claim("max-and-bias")
def _bias(evidence: Evidence) -> Judgement:
    apart = compared(evidence, EMP_MAX, EGO_MAX, pac_boy(0.3, evidence.plan.rules))
    return grade(apart, apart.low > 10, apart.low > 0, f"Empathic advisors are ahead by {apart} points.")


@claim("max-in-other-mazes")
def _other_mazes(evidence: Evidence) -> Judgement:
    found = [(case, compared(evidence, EMP_MAX, EMPATHIC, case)) for case in report_cases(evidence.plan)]
    return _none_behind(found)


def _none_behind(found: Sequence[tuple[Case, Estimate]]) -> Judgement:
    behind = [(case, one) for case, one in found if one.high < 0]
    least = min((one for _, one in found), key=lambda one: one.value)
    listed = "; ".join(f"{case.name}: {one}" for case, one in behind)
    text = f"Behind in {len(behind)} of {len(found)} comparisons" + (f": {listed}." if behind else ".")
    return grade(least, not behind, len(behind) <= 0.05 * len(found), text)


@claim("never-worse")
def _never_worse(evidence: Evidence) -> Judgement:
    best = choice(evidence)
    judged = _none_behind([(case, one) for case, _, one in against_papers(evidence, best)])
    return replace(judged, explanation=f"Chosen: {best.name}. {judged.explanation}")


def _walked(evidence: Evidence, aggregation: str, gamma: float) -> np.ndarray:
    return np.array(boards(evidence)["walks"][WALKS.index((aggregation, gamma))], float)


@claim("max-walks-shorter")
def _shorter(evidence: Evidence) -> Judgement:
    saved = paired(_walked(evidence, "sum", 0.4), _walked(evidence, "max", 0.9))
    return grade(saved, saved.low > 0, saved.value > 0, f"Steps saved: {saved}.")


@claim("max-is-near-the-tour")
def _tour(evidence: Evidence) -> Judgement:
    ratio = estimate(_walked(evidence, "max", 0.9) / np.array(boards(evidence)["tours"], float))
    return grade(ratio, ratio.value <= GOAL, ratio.value <= 1.2, f"It takes {ratio} times the tour.")


@claim("max-away-from-crowds")
def _away(evidence: Evidence) -> Judgement:
    walked = _walked(evidence, "max_plus:-0.001", 0.9)
    steps, ratio = estimate(walked), estimate(walked / np.array(boards(evidence)["tours"], float))
    saved = paired(_walked(evidence, "max", 0.9), walked)
    good = steps.value <= 80 and ratio.value <= GOAL
    return grade(steps, good, saved.low > 0, f"{steps} steps, {ratio} times the tour; {saved} fewer than with max.")


@claim("max-avoids-bad-episodes")
def _bad(evidence: Evidence) -> Judgement:
    case = pac_boy(0.0, evidence.plan.rules)
    bad, score = (estimate(measure(evidence, EGO_MAX, case, name)) for name in ("bad", "score"))
    good = (bad.value < 0.002, score.value > 36.3)
    return grade(bad, all(good), any(good), f"{100 * bad.value:.2f}% of episodes, with {score} points.")
