"""`multiadvisor reproduce continuous`: runs with continuous actions in, a verdict on each question and figures out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.intervals import Estimate, estimate, paired
from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job
from multiadvisor.storage.files import write_atomically
from multiadvisor.studies.continuous_study import Run, missing
from multiadvisor.studies.systems.system import Statistic, verdict
from multiadvisor.studies.systems.systems_reproduction import seen, take_folder

NAME = "continuous"
SEEDS = 5
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
_CALIBRATED = "-calibrated"  # ends the names of those statistics
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


def returns_found(found: Runs) -> list[Statistic]:
    """What advisors cost: against SBX's plain critic, and in each design whose actor follows them.

    Where some runs were stopped early, those that came to their end are compared once more, by themselves.
    """
    told = []
    for environment in names(found):
        for part, which, runs in _parts(found, environment):
            against = late(runs, environment, "separate", "sbx")
            if against is not None:
                claim = f"{environment}{which}: advisors' returns are not below those of SBX."
                told.append(Statistic.not_below(f"{environment}{part}-sbx", claim, paired(*against)))
            for kind, design in DESIGNS.items():
                other = late(runs, environment, kind, "separate")
                if other is not None:
                    claim = f"{environment}{which}: {design} costs nothing in return."
                    told.append(Statistic.not_below(f"{environment}{part}-{kind}", claim, paired(*other)))
    return told


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
    told = []
    for environment in names(found):
        for kind in COLOURS:
            fits = [fit for one in found if (one["environment"], one["kind"]) == (environment, kind)
                    for fit in one.get("calibration", [])]  # fmt: skip
            for term in fits[0] if fits else ():
                share = float(np.mean([fit[term]["share"] for fit in fits]))
                came = [fit[term] for fit in fits if fit[term]["share"] > 0] or [fit[term] for fit in fits]
                both = (estimate([each[what] for each in came]) for what in ("correlation", "bias"))
                told.append(Fit(environment, kind, term, share, *both))
    return told


def calibration_found(found: Runs) -> list[Statistic]:
    """Whether each large term's values follow what then came, with the critics that are the default."""
    told = []
    for fit in fits_of(found):
        if fit.kind == "separate" and fit.large:
            claim = (f"{fit.environment}, {fit.term} ({fit.share:.0%} of all): the values' correlation with what "
                     f"followed is at least {CORRELATED:g}, and the bias ({fit.bias}) at most {BIASED:g} "
                     "deviations.")  # fmt: skip
            name = f"{fit.environment}-{fit.term}{_CALIBRATED}"
            told.append(Statistic(name, claim, fit.correlation.value, fit.correlation.interval, fit.holds))
    return told


def reweight_found(found: Runs) -> list[Statistic]:
    """Other weights on the way: what each way to go on is worth by the new ones."""
    told = []
    for one in found:
        ways = {name: np.array(value) for name, value in one.items() if ", after " in name}
        if one["kind"] != "reweight" or not ways:
            continue
        where, before = one["environment"], np.array(one["policy as it was"])
        first, last = (f"after {count}" for count in sorted({int(name.rsplit(" ", 1)[1]) for name in ways}))
        for when in (first, last):
            anew, kept = ways[f"critic anew, {when}"], ways[f"critic kept, {when}"]
            claim = f"{where}, ten times the control cost, {when}: a reinitialised critic is better than the one kept."
            told.append(Statistic.above(f"{where}-anew-{when.replace(' ', '-')}", claim, paired(anew, kept)))
        claim = f"{where}, ten times the control cost: going on is better than the policy as it was."
        told.append(Statistic.above(f"{where}-going-on", claim, paired(ways[f"critic anew, {first}"], before)))
        scratch = ways.get(f"from scratch, {last}")
        if scratch is not None:
            claim = f"{where}: changed on the way, it is as good as with the new weights from the first transition on."
            told.append(Statistic.not_below(f"{where}-scratch", claim, paired(ways[f"critic anew, {last}"], scratch)))
    return told


def judged(found: Runs) -> dict[str, Any]:
    """The verdict as data."""
    parts = [*returns_found(found), *calibration_found(found), *reweight_found(found)]
    if not parts:
        raise BadInput("the runs have no two kinds of learners of one environment to compare: run more of them")
    return {"name": NAME, "verdict": verdict(parts), "statistics": [asdict(one) for one in parts]}


# ---- pictures --------------------------------------------------------------------------------------------------------
def _steps_and_returns(found: Runs, environment: str, kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each seed, after how many transitions it was evaluated, and its returns; runs need not have the same steps."""
    told = []
    for one in found:
        if (one["environment"], one["kind"]) == (environment, kind):
            for scores in one.get("returns", ()):
                steps = (np.arange(len(scores)) + 1) * one["of_steps"] / one["evaluations"]
                told.append((steps, np.array(scores)))
    return told


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


def draw(found: Runs) -> Any:
    """The returns of every environment."""
    from multiadvisor.viz import plots

    panels = []
    for environment in names(found):
        told = _drawn(found, environment)
        seen = {kind: runs for kind in COLOURS if (runs := _steps_and_returns(told, environment, kind))}
        if seen:
            end = min(steps[-1] for runs in seen.values() for steps, _ in runs)
            across = np.unique(np.concatenate([steps[steps <= end] for runs in seen.values() for steps, _ in runs]))
            across = across[across >= max(steps[0] for runs in seen.values() for steps, _ in runs)]
            curves = {kind: np.array([np.interp(across, *one) for one in runs]) for kind, runs in seen.items()}
            panels.append(partial(_panel, curves, across / 1000, (f"thousand transitions, {environment}", "return")))
    rows = -(-len(panels) // _ACROSS)
    return plots.several(*panels, size=(4.2 * min(len(panels), _ACROSS), 3.4 * rows), across=_ACROSS)


# ---- the command -----------------------------------------------------------------------------------------------------
def jobs(seeds: int, full: bool) -> list[Job]:
    """A job for each environment, kind and seed that can be run here."""
    steps = FULL if full else SHORT
    made = [Run(name, kind, (seed,), steps) for name in _made() for kind in _kinds() for seed in range(seeds)]
    made += [
        Run("HalfCheetah-v5", "reweight", (seed,), steps // 2) for seed in range(seeds) if "HalfCheetah-v5" in _made()
    ]
    return [Job(NAME, {**asdict(run), "seeds": list(run.seeds)}) for run in made]


def _made() -> list[str]:
    """The environments whose packages are installed."""
    return [name for name in ENVIRONMENTS if not missing(name)]


def _kinds() -> list[str]:
    from importlib.util import find_spec

    return [kind for kind in KINDS if kind != "sbx" or find_spec("sbx")]


def given_runs(path: Path) -> list[dict[str, Any]]:
    """The runs in a file of benchmarks/continuous_study.py."""
    from multiadvisor.storage.sealed import strict_json

    try:
        found = strict_json(path.read_bytes())
        runs = found["runs"]
        assert all(isinstance(one["environment"], str) and isinstance(one["kind"], str) for one in runs)
    except OSError as error:
        raise BadInput(
            f"cannot read {str(path)!r}: {error.strerror}; give a file that benchmarks/continuous_study.py has written"
        ) from None
    except (ValueError, KeyError, TypeError, AssertionError):
        raise BadInput(
            f"{str(path)!r} holds no runs: give a file that benchmarks/continuous_study.py has written"
        ) from None
    return list(runs)


def reproduce(out: Path, seeds: int | None, full: bool, workers: int | None, given: Path | None) -> dict[str, Any]:
    """Run what is missing, or take what was run elsewhere; write figure, page and verdict."""
    from multiadvisor.viz import plots

    require("plots")
    require("deep")
    runs: list[dict[str, Any]] = given_runs(given) if given else []
    take_folder(out)
    if not given:
        asked = jobs(SEEDS if seeds is None else seeds, full)
        results = run_jobs(out / "runs", asked, workers=workers, title=NAME)
        runs = [results[job.id] for job in asked]
    found = judged(runs)
    svg, png = plots.both(draw(runs), NAME)
    write_atomically(out / f"{NAME}.svg", svg)
    write_atomically(out / f"{NAME}.png", png)
    write_atomically(out / f"{NAME}.json", (json.dumps(found, indent=1, allow_nan=False) + "\n").encode())
    write_atomically(out / f"{NAME}.md", (page(found, runs) + "\n").encode())
    return found


def lengths(runs: Runs) -> list[str]:
    """What was run: a line for each environment and kind."""
    lines = []
    for environment in names(runs):
        for kind in dict.fromkeys(one["kind"] for one in runs if one["environment"] == environment):
            parts = [one for one in runs if (one["environment"], one["kind"]) == (environment, kind)]
            steps, seeds = min(one["steps"] for one in parts), sum(len(one["seeds"]) for one in parts)
            last = [scores[-1] for one in parts for scores in one.get("returns", [])]
            end = f", last return {Estimate.__str__(estimate(last))}" if last else ""
            lines.append(f"- {environment}, {kind}: {seeds} seeds, {steps:,} transitions{end}")
    return lines


def page(found: dict[str, Any], runs: Runs) -> str:
    """What was seen, on a page."""
    parts = [one for one in found["statistics"] if not one["name"].endswith(_CALIBRATED)]
    rows = [f"| {one['claim']} | {seen(one)} | {'yes' if one['holds'] else 'no'} |" for one in parts]
    fits = [
        f"| {fit.environment} | {fit.kind} | {fit.term} | {fit.share:.0%} | {fit.correlation} | {fit.bias} | "
        f"{('yes' if fit.holds else 'no') if fit.large else 'small'} |"
        for fit in fits_of(runs)
    ]
    return "\n".join([
        "# Continuous actions", "", f"`multiadvisor reproduce {NAME}`", "", *lengths(runs), "",
        f"![returns]({NAME}.png)", "", "| what should be seen | seen | holds |", "|---|---|---|", *rows, "",
        f"Values and what followed: a term with at least {LARGE_SHARE:.0%} of all should have a correlation of at "
        f"least {CORRELATED:g} and a bias of at most {BIASED:g} deviations.", "",
        "| environment | critics | term | share | correlation | bias | holds |", "|---|---|---|---|---|---|---|", *fits,
    ])  # fmt: skip
