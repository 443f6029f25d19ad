"""Claims that are not the paper's: what far-sighted advisors do when they are heard by max, p-norms and blends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from multiadvisor.core.intervals import Estimate, estimate, paired
from multiadvisor.studies.beyond.beyond_study import against_papers, boards, choice, compared, measure, report_cases
from multiadvisor.studies.beyond.schemes import (
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
from multiadvisor.studies.beyond.tours import WALKS
from multiadvisor.studies.claims import BEYOND, Judgement, claim, grade
from multiadvisor.studies.study import Evidence

ONLY_MAX = 0.1  # noise up to which steps are compared
GOAL = 80 / 72.6  # of a near-optimal tour


def _bar(evidence: Evidence, scheme: Scheme, noise: float, **ends: float) -> Judgement:
    """Final means within their ends: `steps` at most, everything else at least."""
    case = pac_boy(noise, evidence.plan.rules)
    found = {name: estimate(measure(evidence, scheme, case, name)) for name in ends}
    good = [found[name].value <= end if name == "length" else found[name].value >= end for name, end in ends.items()]
    listed = ", ".join(f"{name} {one}" for name, one in found.items())
    return grade(found["score"], all(good), sum(good) > 1, f"Measured: {listed}.")


claim(
    "max-without-noise", BEYOND, "Egocentric advisors with gamma 0.9 are near optimal when the strongest wish leads.",
    "score of egocentric 0.9 with max on Pac-Boy, {last}", "35.7 points, 128 steps at most, 98% finished",
)(lambda evidence: _bar(evidence, EGO_MAX, 0.0, score=35.7, length=128.0, terminated=0.98))  # fmt: skip

claim(
    "max-with-noise", BEYOND, "So they are with noise 0.1, under which gamma 0.4 is lost.",
    "score of egocentric 0.9 with max on Pac-Boy, noise 0.1, {last}", "35.5 points, 150 steps at most, 95% finished",
)(lambda evidence: _bar(evidence, EGO_MAX, 0.1, score=35.5, length=150.0, terminated=0.95))  # fmt: skip

claim(
    "empathic-max-with-much-noise", BEYOND, "Empathic advisors with max hold out against noise 0.3.",
    "score of empathic 0.9 with max on Pac-Boy, noise 0.3, {last}", "33.5 points, 55% finished",
)(lambda evidence: _bar(evidence, EMP_MAX, 0.3, score=33.5, terminated=0.55))  # fmt: skip


def _fewer(evidence: Evidence, scheme: Scheme, cases: Sequence[Case]) -> Judgement:
    """Fewer steps than the paper's empathic planning in all cases, by paired intervals; the least gain is shown."""
    found = {case.name: compared(evidence, EMPATHIC, scheme, case, "length") for case in cases}
    least = min(found.values(), key=lambda one: one.low)
    listed = "; ".join(f"{name}: {one}" for name, one in found.items())
    good = [one.low > 0 for one in found.values()]
    return grade(least, all(good), any(good), f"Steps saved: {listed}.")


def _quiet(evidence: Evidence) -> list[Case]:
    return [case for case in cases_of(evidence.plan, "Pac-Boy") if case.noise <= ONLY_MAX]


claim(
    "max-saves-steps", BEYOND, "Egocentric 0.9 with max finishes sooner than empathic planning with the sum.",
    "steps saved on Pac-Boy, {last}, paired by seed, where they are fewest of all noises up to 0.1",
    "the whole interval is above 0 at every noise up to 0.1",
)(lambda evidence: _fewer(evidence, EGO_MAX, _quiet(evidence)))  # fmt: skip

claim(
    "empathic-max-saves-steps", BEYOND, "So does empathic planning itself, with max instead of the sum.",
    "steps saved on Pac-Boy, {last}, paired by seed, where they are fewest of all noises up to 0.1",
    "the whole interval is above 0 at every noise up to 0.1",
)(lambda evidence: _fewer(evidence, EMP_MAX, _quiet(evidence)))  # fmt: skip

claim(
    "max-saves-steps-by-other-rules", BEYOND, "Max saves steps by the other rules of Pac-Boy as well.",
    "steps saved against empathic planning with the sum, {last}, paired by seed, the fewer of both noises",
    "the whole interval is above 0 without noise and with noise 0.1",
)(lambda evidence: _fewer(evidence, EMP_MAX, other_rules(evidence.plan)))  # fmt: skip


@claim(
    "max-learns-faster", BEYOND, "Max learns faster than the paper's two best settings.",
    "score of egocentric 0.9 with max less the better of egocentric 0.4 and empathic 0.9 with the sum, {early}",
    "the whole interval is above 0, paired by seed",
)  # fmt: skip
def _faster(evidence: Evidence) -> Judgement:
    case = pac_boy(0.0, evidence.plan.rules)
    early = [measure(evidence, scheme, case, when="first") for scheme in (EGO_MAX, EGO_LOW, EMPATHIC)]
    ahead = paired(early[0], max(early[1:], key=np.mean))
    return grade(ahead, ahead.low > 0, ahead.value > 0, f"The lead is {ahead} points.")


@claim(
    "never-stuck", BEYOND, "With max no gamma is too high for egocentric advisors; with the sum 0.9 is.",
    "least share of finished episodes of egocentric advisors with max over all gammas from 0.4 to 0.99, no noise, "
    "{last}",
    "at least 95%, and the sum finishes less than half of its episodes at gamma 0.9",
)  # fmt: skip
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


@claim(
    "max-and-bias", BEYOND, "Under much noise egocentric advisors with max fall to their maximisation bias.",
    "score of empathic 0.9 with max less egocentric 0.9 with max on Pac-Boy, noise 0.3, {last}, paired by seed",
    "the whole interval is above 10 points",
)  # fmt: skip
def _bias(evidence: Evidence) -> Judgement:
    apart = compared(evidence, EMP_MAX, EGO_MAX, pac_boy(0.3, evidence.plan.rules))
    return grade(apart, apart.low > 10, apart.low > 0, f"Empathic advisors are ahead by {apart} points.")


@claim(
    "max-in-other-mazes", BEYOND, "In all mazes, with all noises, empathic planning loses nothing by max.",
    "least difference of scores over mazes and noises, empathic 0.9 with max less with the sum, {last}, by seed",
    "no interval is wholly below 0",
)  # fmt: skip
def _other_mazes(evidence: Evidence) -> Judgement:
    found = [(case, compared(evidence, EMP_MAX, EMPATHIC, case)) for case in report_cases(evidence.plan)]
    return _none_behind(found)


def _none_behind(found: Sequence[tuple[Case, Estimate]]) -> Judgement:
    behind = [(case, one) for case, one in found if one.high < 0]
    least = min((one for _, one in found), key=lambda one: one.value)
    listed = "; ".join(f"{case.name}: {one}" for case, one in behind)
    text = f"Behind in {len(behind)} of {len(found)} comparisons" + (f": {listed}." if behind else ".")
    return grade(least, not behind, len(behind) <= 0.05 * len(found), text)


@claim(
    "never-worse", BEYOND, "There is one setting that is nowhere worse than any of the paper's.",
    "least difference of scores, the setting chosen on other mazes and seeds less each of the paper's, {last}, paired",
    "no interval is wholly below 0; partly: at most one in twenty",
)  # fmt: skip
def _never_worse(evidence: Evidence) -> Judgement:
    best = choice(evidence)
    judged = _none_behind([(case, one) for case, _, one in against_papers(evidence, best)])
    return replace(judged, explanation=f"Chosen: {best.name}. {judged.explanation}")


def _walked(evidence: Evidence, aggregation: str, gamma: float) -> np.ndarray:
    return np.array(boards(evidence)["walks"][WALKS.index((aggregation, gamma))], float)


@claim(
    "max-walks-shorter", BEYOND, "Without ghosts max needs fewer steps than the sum at its best gamma.",
    "steps saved by max at gamma 0.9 against the sum at 0.4 on the same boards, exact values",
    "the whole interval over boards is above 0",
)  # fmt: skip
def _shorter(evidence: Evidence) -> Judgement:
    saved = paired(_walked(evidence, "sum", 0.4), _walked(evidence, "max", 0.9))
    return grade(saved, saved.low > 0, saved.value > 0, f"Steps saved: {saved}.")


@claim(
    "max-is-near-the-tour", BEYOND, "Max needs at most a tenth more steps than a near-optimal tour.",
    "steps of max at gamma 0.9 in parts of those of a near-optimal tour of the same boards",
    f"the mean is at most {GOAL:.3f}; partly: at most 1.2",
)  # fmt: skip
def _tour(evidence: Evidence) -> Judgement:
    ratio = estimate(_walked(evidence, "max", 0.9) / np.array(boards(evidence)["tours"], float))
    return grade(ratio, ratio.value <= GOAL, ratio.value <= 1.2, f"It takes {ratio} times the tour.")


@claim(
    "max-away-from-crowds", BEYOND,
    "Of equally strong wishes those away from others first: 80 steps, a tenth over the tour.",
    "steps of max_plus:-0.001 at gamma 0.9 on the same boards, exact values",
    f"the mean is at most 80, and at most {GOAL:.3f} times the tour; partly: fewer than with max, the whole interval",
)  # fmt: skip
def _away(evidence: Evidence) -> Judgement:
    walked = _walked(evidence, "max_plus:-0.001", 0.9)
    steps, ratio = estimate(walked), estimate(walked / np.array(boards(evidence)["tours"], float))
    saved = paired(_walked(evidence, "max", 0.9), walked)
    good = steps.value <= 80 and ratio.value <= GOAL
    return grade(steps, good, saved.low > 0, f"{steps} steps, {ratio} times the tour; {saved} fewer than with max.")


@claim(
    "max-avoids-bad-episodes", BEYOND, "With max hardly any episode has five touches or more.",
    "share of such episodes of egocentric 0.9 with max on Pac-Boy, no noise, {last}",
    "less than 0.2%, and more than 36.3 points; partly: one of both",
)  # fmt: skip
def _bad(evidence: Evidence) -> Judgement:
    case = pac_boy(0.0, evidence.plan.rules)
    bad, score = (estimate(measure(evidence, EGO_MAX, case, name)) for name in ("bad", "score"))
    good = (bad.value < 0.002, score.value > 36.3)
    return grade(bad, all(good), any(good), f"{100 * bad.value:.2f}% of episodes, with {score} points.")
