"""The study of continuous actions: what its runs show, figures, and a table of how well values are calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.intervals import Estimate, estimate, paired
from multiadvisor.errors import BadInput
from multiadvisor.runs.jobs import Job
from multiadvisor.storage.sealed import strict_json
from multiadvisor.studies.claims import JudgedClaim, above, not_below, seen
from multiadvisor.studies.study import Evidence, Figure, Plan, Study
from studies.continuous_runs import Run, missing
from studies.given import given_results

SHORT, FULL = 20_000, 100_000  # transitions of a run
ENVIRONMENTS = ("Pendulum-v1", "LunarLanderContinuous-v3", "HalfCheetah-v5", "Hopper-v5", "Ant-v5", "racetrack-v0")
KINDS = ("separate", "shared", "sbx")
COLOURS = {"separate": "tab:blue", "shared": "tab:orange", "sbx": "tab:green", "summed": "tab:red"}  # of what is drawn
DESIGNS = {
    "shared": "a shared decomposed critic",
    "summed": "a shared critic that fits the sum too",
    "auxiliary": "a head of the sum on the advisors' hidden layers",
    "apart": "a network for each advisor",
    "normalised": "a shared critic with normalised errors",
    "flax": "a plain critic with first weights as SBX draws them",
}
"""What is compared with `separate`, whose control is plain soft actor-critic."""
LARGE_SHARE, CORRELATED, BIASED = 0.05, 0.8, 0.5  # of all terms; correlation at least; deviations at most
Runs = Sequence[Mapping[str, Any]]


# ---- what the runs show ----------------------------------------------------------------------------------------------
def by_seed(found: Runs, environment: str, kind: str) -> dict[int, list[float]]:
    """The returns of each seed at each evaluation, from the runs that have them."""
    parts = [one for one in found if one["environment"] == environment and one["kind"] == kind and "returns" in one]
    return {seed: scores for one in parts for seed, scores in zip(one["seeds"], one["returns"], strict=False)}


def late(found: Runs, environment: str, *kinds: str) -> list[np.ndarray] | None:
    """[seeds] of each kind: of a seed that all have, the mean of the later half of those evaluations that all have.

    None where one of them has not been run.
    """
    returns = [by_seed(found, environment, kind) for kind in kinds]
    common = sorted(set.intersection(*map(set, returns)))
    if len(common) < 2:
        return None
    lengths = {seed: min(len(each[seed]) for each in returns) for seed in common}
    return [
        np.array([np.mean(each[seed][length // 2 : length]) for seed, length in lengths.items()]) for each in returns
    ]


def returns_found(found: Runs) -> list[JudgedClaim]:
    """What advisors cost: against SBX's plain critic, and in each design whose actor follows them.

    Where some runs were stopped early, those that came to their end are compared once more, by themselves.
    """
    rows = []
    for environment in names(found):
        for part, which, runs in _parts(found, environment):
            against = late(runs, environment, "separate", "sbx")
            if against is not None:
                claim = f"{environment}{which}: advisors' returns are not below those of SBX."
                rows.append(not_below(f"{environment}{part}-sbx", claim, paired(*against)))
            for kind, design in DESIGNS.items():
                other = late(runs, environment, kind, "separate")
                if other is not None:
                    claim = f"{environment}{which}: {design} costs nothing in return."
                    rows.append(not_below(f"{environment}{part}-{kind}", claim, paired(*other)))
    return rows


def _parts(found: Runs, environment: str) -> list[tuple[str, str, Runs]]:
    """All runs of an environment, and where not all came to their end, those that did: names, words and runs."""
    runs = [one for one in found if one["environment"] == environment and "returns" in one]
    ended = [one for one in runs if all(len(scores) == one["evaluations"] for scores in one["returns"])]
    parts: list[tuple[str, str, Runs]] = [("", "", runs)]
    for steps in sorted({one["of_steps"] for one in ended}) if len(ended) < len(runs) else ():
        parts.append((f"-{steps}", f", {steps:,} transitions", [one for one in ended if one["of_steps"] == steps]))
    return parts


def names(found: Runs) -> list[str]:
    """The environments, in the order of the runs."""
    return list(dict.fromkeys(one["environment"] for one in found))


class Fit(NamedTuple):
    """How one term's values follow what then came, over seeds whose runs have ended."""

    environment: str
    kind: str
    term: str
    share: float
    correlation: Estimate
    bias: Estimate

    @property
    def large(self) -> bool:
        """Whether it is enough of all to be judged."""
        return self.share >= LARGE_SHARE

    @property
    def holds(self) -> bool:
        """Whether both are as they should be."""
        return self.correlation.value >= CORRELATED and abs(self.bias.value) <= BIASED


def fits_of(found: Runs) -> list[Fit]:
    """Of every environment, kind and term; a seed in whose episodes a term never came says nothing of it."""
    rows = []
    for environment in names(found):
        for kind in COLOURS:
            fits = [fit for one in found if (one["environment"], one["kind"]) == (environment, kind)
                    for fit in one.get("calibration", [])]  # fmt: skip
            for term in fits[0] if fits else ():
                share = float(np.mean([fit[term]["share"] for fit in fits]))
                came = [fit[term] for fit in fits if fit[term]["share"] > 0] or [fit[term] for fit in fits]
                both = (estimate([each[what] for each in came]) for what in ("correlation", "bias"))
                rows.append(Fit(environment, kind, term, share, *both))
    return rows


def calibration_found(found: Runs) -> list[JudgedClaim]:
    """Whether each large term's values follow what then came, with the critics that are the default."""
    rows = []
    for fit in fits_of(found):
        if fit.kind == "separate" and fit.large:
            claim = (f"{fit.environment}, {fit.term} ({fit.share:.0%} of all): the values' correlation with what "
                     f"followed is at least {CORRELATED:g}, and the bias ({fit.bias}) at most {BIASED:g} "
                     "deviations.")  # fmt: skip
            rows.append(seen(f"{fit.environment}-{fit.term}-calibrated", claim, fit.correlation, fit.holds))
    return rows


def reweight_found(found: Runs) -> list[JudgedClaim]:
    """Other weights on the way: what each way to go on is worth by the new ones."""
    rows = []
    for one in found:
        ways = {name: np.array(value) for name, value in one.items() if ", after " in name}
        if one["kind"] != "reweight" or not ways:
            continue
        where, before = one["environment"], np.array(one["policy as it was"])
        first, last = (f"after {count}" for count in sorted({int(name.rsplit(" ", 1)[1]) for name in ways}))
        for when in (first, last):
            anew, kept = ways[f"critic anew, {when}"], ways[f"critic kept, {when}"]
            claim = f"{where}, ten times the control cost, {when}: a reinitialised critic is better than the one kept."
            rows.append(above(f"{where}-anew-{when.replace(' ', '-')}", claim, paired(anew, kept)))
        claim = f"{where}, ten times the control cost: going on is better than the policy as it was."
        rows.append(above(f"{where}-going-on", claim, paired(ways[f"critic anew, {first}"], before)))
        scratch = ways.get(f"from scratch, {last}")
        if scratch is not None:
            claim = f"{where}: changed on the way, it is as good as with the new weights from the first transition on."
            rows.append(not_below(f"{where}-scratch", claim, paired(ways[f"critic anew, {last}"], scratch)))
    return rows


def runs_of(evidence: Evidence) -> Runs:
    """All runs, of jobs or from a file."""
    return list(evidence.results.values())


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """What is compared."""
    runs = runs_of(evidence)
    found = [*returns_found(runs), *calibration_found(runs), *reweight_found(runs)]
    if not found:
        raise BadInput("the runs have no two kinds of learners of one environment to compare: run more of them")
    return found


# ---- pictures --------------------------------------------------------------------------------------------------------
def _steps_and_returns(found: Runs, environment: str, kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each seed, after how many transitions it was evaluated, and its returns; runs need not have the same steps."""
    rows = []
    for one in found:
        if (one["environment"], one["kind"]) == (environment, kind):
            for scores in one.get("returns", ()):
                steps = (np.arange(len(scores)) + 1) * one["of_steps"] / one["evaluations"]
                rows.append((steps, np.array(scores)))
    return rows


def _panel(curves: dict[str, np.ndarray], across: np.ndarray, words: tuple[str, str], axis: Any) -> Any:
    """One environment; a kind has the same colour in all of them."""
    from multiadvisor.viz import plots

    axis.set_prop_cycle(color=[COLOURS[kind] for kind in curves])
    return plots.bands(curves, across, words, axis)


def _drawn(found: Runs, environment: str) -> Runs:
    """The longest runs that came to their end, if they are of all kinds; else all runs."""

    def kinds(runs: Runs) -> set[str]:
        return {one["kind"] for one in runs if one["kind"] in COLOURS}

    *_, (_, _, longest) = parts = _parts(found, environment)
    whole = parts[0][2]
    return longest if kinds(longest) == kinds(whole) else whole


_ACROSS = 3  # panels in a row


def _panels(found: Runs) -> list[Any]:
    """The returns of every environment, interpolated to the steps that any of its runs has."""
    panels = []
    for environment in names(found):
        rows = _drawn(found, environment)
        shown = {kind: runs for kind in COLOURS if (runs := _steps_and_returns(rows, environment, kind))}
        if shown:
            each = [steps for runs in shown.values() for steps, _ in runs]
            across = np.unique(np.concatenate([steps[steps <= min(one[-1] for one in each)] for steps in each]))
            across = across[across >= max(steps[0] for steps in each)]
            curves = {kind: np.array([np.interp(across, *one) for one in runs]) for kind, runs in shown.items()}
            panels.append(partial(_panel, curves, across / 1000, (f"thousand transitions, {environment}", "return")))
    return panels


def figures(evidence: Evidence) -> list[Figure]:
    """The returns, and how far values are what then came."""
    runs = runs_of(evidence)
    panels = _panels(runs)
    size = (4.2 * min(len(panels), _ACROSS), 3.4 * -(-len(panels) // _ACROSS))
    head = ("environment", "critics", "term", "share", "correlation", "bias", "holds")
    rows = [
        (fit.environment, fit.kind, fit.term, f"{fit.share:.0%}", str(fit.correlation), str(fit.bias),
         ("yes" if fit.holds else "no") if fit.large else "small") for fit in fits_of(runs)
    ]  # fmt: skip
    about = (f"A term with at least {LARGE_SHARE:.0%} of all should have a correlation of at least {CORRELATED:g} and "
             f"a bias of at most {BIASED:g} deviations.")  # fmt: skip
    return [
        Figure("continuous", "Returns", panels=tuple(panels), size=size, across=_ACROSS),
        Figure("continuous-calibration", "Values and what followed", about, table=(head, *rows) if rows else ()),
    ]


# ---- the study -------------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """A job for each environment, kind and seed that can be run here."""
    steps = FULL if plan.full else SHORT
    here = [name for name in ENVIRONMENTS if not missing(name)]
    kinds = [kind for kind in KINDS if kind != "sbx" or find_spec("sbx")]
    made = [Run(name, kind, (seed,), steps) for name in here for kind in kinds for seed in plan.each]
    made += [Run("HalfCheetah-v5", "reweight", (seed,), steps // 2) for seed in plan.each if "HalfCheetah-v5" in here]
    return [Job("continuous", {**asdict(run), "seeds": list(run.seeds)}) for run in made]


def runs_by_place(text: str) -> dict[str, dict[str, Any]]:
    """The runs in a file, by their place."""
    runs = strict_json(text)["runs"]
    if not all(isinstance(one[name], str) for one in runs for name in ("environment", "kind")):
        raise TypeError("a run names its environment and its kind")
    return {str(k): one for k, one in enumerate(runs)}


def summary(evidence: Evidence) -> list[str]:
    """What was run: a line for each environment and kind."""
    runs, lines = runs_of(evidence), []
    for environment, kind in dict.fromkeys((one["environment"], one["kind"]) for one in runs):
        parts = [one for one in runs if (one["environment"], one["kind"]) == (environment, kind)]
        steps, seeds = min(one["steps"] for one in parts), sum(len(one["seeds"]) for one in parts)
        last = [scores[-1] for one in parts for scores in one.get("returns", [])]
        end = f", last return {estimate(last)}" if last else ""
        lines.append(f"{environment}, {kind}: {seeds} seeds, {steps:,} transitions{end}.")
    return lines


STUDY = Study(
    "continuous", "Continuous actions", 80, jobs, figures, findings, summary=summary,
    given=given_results(runs_by_place, "benchmarks/continuous_study.py"), only_given=True,
    about="soft actor-critic with a critic for each advisor, beside SBX: hours; --from judges a study",
    seeds=(5, 5), flags=("full", "given"), runs_need=("deep",),
)  # fmt: skip
