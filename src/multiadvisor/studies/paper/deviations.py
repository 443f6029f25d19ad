"""Choices that the paper does not state: which of its conclusions depend on them?

Every multi-advisor setting is run again with one choice changed at a time, and in mazes of as many cells.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.core.intervals import estimate, paired, stratified
from multiadvisor.runs.jobs import Job
from multiadvisor.studies.paper.dqn_clipped import MEASURES
from multiadvisor.studies.paper.other_mazes import SHAPES, grown
from multiadvisor.studies.paper.pac_boy_study import ADVISORS, AGNOSTIC, BEST, EMPATHIC, Setting, final, job
from multiadvisor.studies.study import ALL, FULL_EPOCHS, Evidence, Figure, Plan, Study, many, panel

Options = dict[str, dict[str, Any]]
"""What each of them changes; the one without a change is the report's own."""
CHOICES: dict[str, tuple[str, Options]] = {
    "rules": ("Rules of the ghosts", {"paper": {}, "hra": {"rules": "hra"}}),
    "epsilon": ("Exploration", {
        "0.01": {"epsilon": 0.01}, "0.05": {}, "0.1": {"epsilon": 0.1}, "0.2": {"epsilon": 0.2},
    }),
    "alpha": ("Learning rate", {
        "0.1, constant": {},
        **{f"halved after {steps:,}": {"alpha_half": steps} for steps in (500_000, 100_000, 20_000)},
    }),
    "next action": ("What empathic advisors expect of the aggregator", {
        "the real one": {}, "an estimate f_j": {"planning": "estimate"},
    }),
}  # fmt: skip
"""Each with its title."""


def changed(setting: Setting, change: dict[str, Any]) -> Setting:
    """The setting with one choice changed; an estimate of the aggregator is for empathic advisors only."""
    return setting if "planning" in change and setting != EMPATHIC else replace(setting, **change)


def settings_of(choice: str) -> tuple[Setting, ...]:
    """The settings that a choice concerns."""
    return (EMPATHIC,) if choice == "next action" else ADVISORS


def jobs(plan: Plan) -> list[Job]:
    """Every variant with every seed, and the mazes."""
    variants = [changed(setting, change) for choice, (_, options) in CHOICES.items() for change in options.values()
                for setting in settings_of(choice)]  # fmt: skip
    return [*(job(setting, seed, plan) for setting in variants for seed in plan.each), *maze_jobs(plan)]


def conclusions(at: Callable[..., np.ndarray]) -> dict[str, bool]:
    """Which of the paper's conclusions hold, each decided by an interval over seeds; one seed has none.

    `at` gives the final figures [seeds] of a setting: its score, or another measure.
    """
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


def figures(evidence: Evidence) -> list[Figure]:
    """Final scores under each choice, and which conclusions survive."""
    found = []
    for choice, (title, options) in CHOICES.items():
        settings = settings_of(choice)
        scores = {o: [final(evidence, changed(s, change)) for s in settings] for o, change in options.items()}
        own = next(option for option, change in options.items() if not change)
        effects = []
        for option in (option for option, change in options.items() if change):
            apart = [new - old for new, old in zip(scores[option], scores[own], strict=True)]
            low, high = stratified(apart)
            effects.append(f"{option}: {np.mean(apart):+.2f} [{low:.2f}, {high:.2f}]")
        over = "over the four settings (stratified by setting)" if len(settings) > 1 else f"of {settings[0].name}"
        text = f"Change of the final score against {own}, paired by seed, mean {over}: " + "; ".join(effects) + "."
        text += " " + _compared(evidence, replace(EMPATHIC, planning="estimate")) if choice == "next action" else ""
        bars = {s.name: [(option, column[k]) for option, column in scores.items()] for k, s in enumerate(settings)}
        found.append(Figure(f"deviations-{choice.replace(' ', '-')}", title, text, (panel("choices", bars),)))
    return [*found, _conclusions_figure(evidence), *maze_figures(evidence)]


# ---- the maze, which the paper does not print ------------------------------------------------------------------------
MAZES = 8  # of each shape: 32 with as many cells as the paper's


def mazes() -> list[tuple[str, int]]:
    """Shape and number of each."""
    return [*itertools.product(SHAPES, range(MAZES))]


def in_maze(setting: Setting, maze: tuple[str, int]) -> Setting:
    """The setting in this maze."""
    return replace(setting, maze=grown(*maze))


def maze_plan(plan: Plan) -> Plan:
    """How much is run in each."""
    return replace(plan, seeds=min(plan.seeds, plan.wide_seeds), epochs=plan.maze_epochs)


def maze_jobs(plan: Plan) -> list[Job]:
    """The multi-advisor settings in random mazes."""
    few = maze_plan(plan)
    return [job(in_maze(setting, maze), seed, few) for maze in mazes() for setting in ADVISORS for seed in few.each]


def maze_figures(evidence: Evidence) -> list[Figure]:
    """In how many mazes each conclusion holds, and how far the settings' figures spread."""
    plan, there = evidence.plan, replace(evidence, plan=maze_plan(evidence.plan))
    held = {maze: conclusions(lambda setting, measure="score", maze=maze: final(there, in_maze(setting, maze), measure))
            for maze in mazes()}  # fmt: skip

    def among(name: str, shapes: Iterable[str]) -> str:
        answers = [one[name] for (shape, _), one in held.items() if shape in shapes]
        return f"{sum(answers)} of {len(answers)}"

    def means(setting: Setting, measure: str) -> list[float]:
        return [final(there, in_maze(setting, maze), measure).mean() for maze in held]

    names = list(next(iter(held.values())))
    counted = [(name, *(among(name, (shape,)) for shape in SHAPES), among(name, SHAPES)) for name in names]
    least, low, high, most = (100 * np.quantile(means(AGNOSTIC, "terminated"), (0, 0.25, 0.75, 1))).tolist()
    about = (
        f"The paper prints no maze. {len(held)} random ones with its 76 cells and two ghosts, "
        f"{many(plan.wide_seeds, 'seed')} of {many(plan.maze_epochs, 'epoch')} each: in how many each conclusion holds."
        f" The share of episodes that agnostic 0.9 finishes lies between {least:.0f}% and {most:.0f}%, in half of the "
        f"mazes between {low:.0f}% and {high:.0f}%."
    )
    spread = [
        (s.name, *("{:.2f} / {:.2f} / {:.2f}".format(*np.quantile(means(s, m), (0, 0.5, 1))) for m in MEASURES))
        for s in ADVISORS
    ]
    return [
        Figure("deviations-maze", "The maze", about, table=(("conclusion", *SHAPES, "all"), *counted)),
        Figure("deviations-maze-spread", "How far the mazes spread",
               "The least, the median and the largest of all mazes.",
               table=(("setting", "score", "steps", "all fruit eaten", "touches"), *spread)),
    ]  # fmt: skip


def _conclusions_figure(evidence: Evidence) -> Figure:
    """The table of conclusions and choices."""

    def under(change: dict[str, Any]) -> dict[str, bool]:
        return conclusions(lambda s, measure="score": final(evidence, changed(s, change), measure))

    found = {f"{choice}: {option}": under(change) for choice, (_, options) in CHOICES.items()
             for option, change in options.items()}  # fmt: skip
    names, epochs = list(next(iter(found.values()))), evidence.plan.epochs
    rows = [(choice, *("holds" if one else "✗ fails" for one in held.values())) for choice, held in found.items()]
    steady = [name for name in names if all(held[name] for held in found.values())]
    text = f"After {epochs} of {FULL_EPOCHS} epochs: of" if epochs < FULL_EPOCHS else "Of"
    text += f" {len(names)} conclusions {len(steady)} hold whatever is chosen{': ' * bool(steady)}{'; '.join(steady)}."
    title = "Which conclusions depend on it?"
    return Figure("deviations-conclusions", title, text, table=(("choice", *names), *rows))


def _compared(evidence: Evidence, new: Setting) -> str:
    """How an empathic setting differs from the report's in everything but the score."""
    names = {"length": "steps of an episode", "terminated": "share of episodes finished",
             "touches": "touches an episode"}  # fmt: skip
    found = {name: paired(final(evidence, new, m), final(evidence, EMPATHIC, m)) for m, name in names.items()}
    return "Changes besides: " + ", ".join(f"{name} {change}" for name, change in found.items()) + "."


STUDY = Study(
    "deviations", "Choices that the paper does not state", 50, jobs, figures, report=ALL,
    about="choices that the paper does not state: what depends on them?",
)  # fmt: skip
