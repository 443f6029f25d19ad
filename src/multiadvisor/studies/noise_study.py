"""Pac-Boy with noise on every advisor's reward, and how far a fruit advisor can see through it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.analysis.theory.boards import distances
from multiadvisor.core.intervals import paired
from multiadvisor.runs.jobs import Job, Tell, kind
from multiadvisor.studies.pac_boy_study import (
    AGNOSTIC,
    EGO_HIGH,
    EGO_LOW,
    EMPATHIC,
    MEASURES,
    Setting,
    curves,
    final,
    job,
    row,
    run_config,
    text_table,
    trained,
    with_rules,
)
from multiadvisor.studies.parts import Evidence, Figure, Part, Plan

SIGMAS = (0.01, 0.1)
NOISELESS = (EGO_LOW, EMPATHIC, AGNOSTIC)
RIGHT = 0.9  # an advisor perceives its fruit at a distance where it points the right way this often


def noisy(setting: Setting, sigma: float) -> Setting:
    """The setting with noise."""
    return replace(setting, noise=sigma)


NOISY = tuple(noisy(setting, sigma) for setting in NOISELESS for sigma in SIGMAS)
# Learned from random play: an agent that is stuck hardly visits most cells, which would pass for short sight.
SEEN = tuple(replace(noisy(s, sigma), epsilon=1.0) for s in (EGO_LOW, EGO_HIGH) for sigma in SIGMAS)


# ---- how far an advisor sees ----------------------------------------------------------------------------------------
def radius_job(setting: Setting, seed: int, plan: Plan) -> Job:
    """What the fruit advisors of a trained agent know of their own fruit."""
    return Job("perception", {"run": run_config(replace(with_rules(setting, plan), epsilon=1.0), seed, plan)})


@kind("perception")
def radius_work(config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None) -> dict[str, Any]:
    """By distance to its fruit: how often an advisor's own best action leads closer, over all cells and advisors."""
    agent = trained(config["run"])
    task = agent.task
    away = distances(task)  # [fruits, cells]
    ghosts = task.n - len(away)
    hits: dict[int, list[float]] = {}
    for fruit, steps in enumerate(away):
        values = agent.values(ghosts + fruit)  # [cells, A]
        closer = steps[task.grid.neighbour] < steps[:, None]  # [cells, A]
        best = values == values.max(axis=1, keepdims=True)
        right = (best & closer).sum(axis=1) / best.sum(axis=1)
        for distance in range(1, int(steps.max()) + 1):
            hits.setdefault(distance, []).extend(right[steps == distance].tolist())
    return {"right": [float(np.mean(hits[distance])) for distance in sorted(hits)]}


def perceived(evidence: Evidence, setting: Setting) -> np.ndarray:
    """[seeds, distances]: the share of cells at distance 1, 2, ... from which an advisor points the right way."""
    plan = evidence.plan
    runs = [evidence.result(radius_job(setting, seed, plan))["right"] for seed in range(plan.seeds)]
    return np.array(runs, float)


def radius(evidence: Evidence, setting: Setting) -> np.ndarray:
    """[seeds]: the largest distance up to which advisors point the right way nearly always."""
    return np.cumprod(perceived(evidence, setting) >= RIGHT, axis=1).sum(axis=1).astype(float)


def farthest(evidence: Evidence, setting: Setting) -> int:
    """The largest distance that the maze has: no sight can be measured beyond it."""
    return perceived(evidence, setting).shape[1]


def _reach(evidence: Evidence, setting: Setting) -> str:
    """The radius of sight in words; where it is the maze that ends, nothing more than a lower bound is known."""
    found, end = radius(evidence, setting), farthest(evidence, setting)
    if (found == end).all():
        return f"{end} or more, as far as the maze goes ({setting.name})"
    return f"{'at least ' * bool((found == end).any())}{found.mean():.1f} ({setting.name})"


# ---- the experiment -------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """Without noise for comparison, then both strengths of it."""
    settings = [with_rules(s, plan) for s in (*NOISELESS, *NOISY)]
    runs = [job(s, seed, plan) for s in settings for seed in range(plan.seeds)]
    return [*runs, *(radius_job(s, seed, plan) for s in SEEN for seed in range(plan.seeds))]


def figures(evidence: Evidence) -> list[Figure]:
    """Learning under noise, and the advisors' sight."""
    plan = evidence.plan
    at = {s.name: final(evidence, with_rules(s, plan)) for s in (*NOISELESS, *NOISY)}
    key = paired(at["empathic 0.9, noise 0.1"], at["egocentric 0.4, noise 0.01"])
    falls = {name: [paired(at[f"{name}, noise {sigma:g}"], at[name]) for sigma in SIGMAS] for name in
             ("egocentric 0.4", "empathic 0.9", "agnostic 0.9")}  # fmt: skip
    text = (
        "Every advisor's reward carries Gaussian noise while learning; episodes are scored without it. Change of the "
    )
    text += "final score against no noise, paired by seed: " + "; ".join(
        f"{name} " + ", ".join(f"{one} at {sigma:g}" for one, sigma in zip(found, SIGMAS, strict=True))
        for name, found in falls.items()
    )
    text += f". Empathic 0.9 with noise 0.1 against egocentric 0.4 with noise 0.01, a hundredth of the variance: {key}."

    def draw() -> Any:
        from multiadvisor.viz import paper_plots

        return paper_plots.curves_figure(curves(evidence, NOISY), "score", "score of an episode", "from 0 on", 0)

    sight = {s.name: perceived(evidence, s) for s in SEEN}
    seen = "How often a fruit advisor's own best action leads closer to its fruit, against the distance, after "
    seen += "learning from random play, in which all cells are visited. It does so at "
    seen += f"least {100 * RIGHT:.0f}% of the time up to a distance of "
    seen += ", ".join(_reach(evidence, s) for s in SEEN) + "."

    def draw_sight() -> Any:
        from multiadvisor.viz import paper_plots

        return paper_plots.sight_figure(sight, RIGHT)

    rows = [row(s.name, {m: final(evidence, with_rules(s, plan), m) for m in MEASURES}) for s in (*NOISELESS, *NOISY)]
    return [
        Figure("noise-score", "Pac-Boy, noisy rewards", text, draw),
        Figure("noise-sight", "How far an advisor sees through the noise", seen, draw_sight),
        Figure(
            "noise-table",
            "The table",
            "As in the table without noise; the noise is on while learning only.",
            table=text_table(rows),
        ),
    ]


PART = Part("noise", "Pac-Boy with noisy rewards", 20, jobs, figures, about="the same with noise on the rewards")
