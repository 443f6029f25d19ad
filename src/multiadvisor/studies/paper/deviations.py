"""Choices that the paper does not state: which of its conclusions depend on them?

Every multi-advisor setting is run again with one choice changed at a time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from multiadvisor.core.intervals import estimate, paired, stratified
from multiadvisor.runs.jobs import Job
from multiadvisor.studies.paper.pac_boy_study import ADVISORS, BEST, EMPATHIC, Setting, final, job, with_rules
from multiadvisor.studies.study import ALL, FULL_EPOCHS, Evidence, Figure, Plan, Study

# Each choice: what is changed, and to what. The one without a change is the report's own.
CHOICES: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "rules": (("paper", {}), ("hra", {"rules": "hra"})),
    "epsilon": (("0.01", {"epsilon": 0.01}), ("0.05", {}), ("0.1", {"epsilon": 0.1}), ("0.2", {"epsilon": 0.2})),
    "alpha": (
        ("0.1, constant", {}),
        ("halved after 500,000", {"alpha_half": 500_000}),
        ("halved after 100,000", {"alpha_half": 100_000}),
        ("halved after 20,000", {"alpha_half": 20_000}),
    ),
    "next action": (("the real one", {}), ("an estimate f_j", {"planning": "estimate"})),
}


def changed(setting: Setting, change: dict[str, Any], plan: Plan) -> Setting:
    """The setting with one choice changed; an estimate of the aggregator is for empathic advisors only."""
    if "planning" in change and setting.planning != "empathic":
        return with_rules(setting, plan)
    return replace(with_rules(setting, plan), **change)


def variants(plan: Plan) -> list[tuple[str, str, Setting, Setting]]:
    """(choice, option, the setting as in the report, the setting changed)."""
    return [
        (choice, option, with_rules(setting, plan), changed(setting, change, plan))
        for choice, options in CHOICES.items() for option, change in options for setting in settings_of(choice)
    ]  # fmt: skip


def settings_of(choice: str) -> tuple[Setting, ...]:
    """The settings that a choice concerns."""
    return (EMPATHIC,) if choice == "next action" else ADVISORS


def jobs(plan: Plan) -> list[Job]:
    """Every variant with every seed."""
    return [job(new, seed, plan) for _, _, _, new in variants(plan) for seed in plan.each]


# The paper's conclusions, each as a yes or no for one way of choosing; `at` gives the runs' measures by setting.
def conclusions(evidence: Evidence, change: dict[str, Any]) -> dict[str, bool]:
    """Which of the paper's conclusions hold under a change, each decided by an interval over seeds."""
    plan = evidence.plan

    def at(setting: Setting, measure: str = "score") -> np.ndarray:
        return final(evidence, changed(setting, change, plan), measure)

    low, high, fearful, kind = ADVISORS
    fewer = paired(at(kind, "terminated"), at(fearful, "terminated"))
    return {
        "egocentric 0.4 is near-optimal": estimate(at(low)).low >= 0.9 * BEST,
        "empathic 0.9 is near-optimal": estimate(at(kind)).low >= 0.9 * BEST,
        "egocentric 0.9 is stuck": estimate(at(high, "terminated")).high < 0.05,
        "agnostic 0.9 finishes fewer episodes than empathic": fewer.low > 0,
        "empathic almost as good as egocentric 0.4": paired(at(low), at(kind)).high < 0.05 * BEST,
        "egocentric 0.4 finishes sooner than empathic": paired(at(kind, "length"), at(low, "length")).low > 0,
    }


def verdicts(evidence: Evidence) -> list[tuple[str, str, dict[str, bool]]]:
    """The conclusions for every option of every choice."""
    return [
        (choice, option, conclusions(evidence, change))
        for choice, options in CHOICES.items() for option, change in options
    ]  # fmt: skip


def depending(evidence: Evidence) -> dict[str, list[str]]:
    """For each conclusion that does not hold throughout: under which options it fails."""
    failing: dict[str, list[str]] = {}
    for choice, option, held in verdicts(evidence):
        for name, holds in held.items():
            if not holds:
                failing.setdefault(name, []).append(f"{choice} {option}")
    return failing


def figures(evidence: Evidence) -> list[Figure]:
    """Final scores under each choice, and which conclusions survive."""
    from multiadvisor.viz import paper_plots

    plan = evidence.plan
    scores = {(choice, option, old.name): final(evidence, new) for choice, option, old, new in variants(plan)}
    found = []
    for choice, options in CHOICES.items():
        names = [setting.name for setting in settings_of(choice)]
        own = next(option for option, change in options if not change)
        effects = []
        for option in (option for option, change in options if change):
            apart = [scores[choice, option, name] - scores[choice, own, name] for name in names]
            low, high = stratified(apart)
            effects.append(f"{option}: {np.mean(apart):+.2f} [{low:.2f}, {high:.2f}]")
        over = "over the four settings (stratified by setting)" if len(names) > 1 else f"of {names[0]}"
        text = f"Change of the final score against {own}, paired by seed, mean {over}: " + "; ".join(effects) + "."
        if choice == "next action":
            text += " " + _compared(evidence, changed(EMPATHIC, options[1][1], plan), with_rules(EMPATHIC, plan))
        bars = {name: [(option, scores[choice, option, name]) for option, _ in options] for name in names}
        found.append(Figure(f"deviations-{choice}", _TITLES[choice], text, (partial(paper_plots.choices, bars),)))
    return [*found, _conclusions_figure(evidence)]


def _conclusions_figure(evidence: Evidence) -> Figure:
    """The table of conclusions and choices."""
    table, failing, epochs = verdicts(evidence), depending(evidence), evidence.plan.epochs
    names = list(table[0][2])
    rows = [(f"{c}: {o}", *("holds" if held else "✗ fails" for held in held_by.values())) for c, o, held_by in table]
    steady = [name for name in names if name not in failing]
    text = f"After {epochs} of {FULL_EPOCHS} epochs: of" if epochs < FULL_EPOCHS else "Of"
    text += f" {len(names)} conclusions {len(steady)} hold whatever is chosen"
    text += f": {'; '.join(steady)}. " if steady else ". "
    text += " ".join(f'"{name}" fails with {", ".join(where)}.' for name, where in failing.items())
    table_ = (("choice", *names), *rows)
    return Figure("deviations-conclusions", "Which conclusions depend on it?", text, table=table_)


def _compared(evidence: Evidence, new: Setting, old: Setting) -> str:
    """How two ways of one setting differ in everything but the score."""
    names = {"length": "steps of an episode", "terminated": "share of episodes finished",
             "touches": "touches an episode"}  # fmt: skip
    found = {name: paired(final(evidence, new, m), final(evidence, old, m)) for m, name in names.items()}
    return "Changes besides: " + ", ".join(f"{name} {change}" for name, change in found.items()) + "."


_TITLES = {
    "rules": "Rules of the ghosts", "epsilon": "Exploration", "alpha": "Learning rate",
    "next action": "What empathic advisors expect of the aggregator",
}  # fmt: skip


STUDY = Study(
    "deviations", "Choices that the paper does not state", 50, jobs, figures, report=ALL,
    about="choices that the paper does not state: what depends on them?",
)  # fmt: skip
