"""Pac-Boy with noise on every advisor's reward, and how far a fruit advisor can see through it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.analysis.theory.boards import Maze
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.paper import pac_boy_study as pac_boy
from multiadvisor.studies.paper.pac_boy_study import AGNOSTIC, EGO_HIGH, EGO_LOW, EMPATHIC, Setting
from multiadvisor.studies.study import ALL, Evidence, Figure, Plan, Study, panel

SIGMAS = (0.01, 0.1)
NOISELESS = (EGO_LOW, EMPATHIC, AGNOSTIC)
RIGHT = 0.9  # an advisor perceives its fruit at a distance where it points the right way this often


def noisy(setting: Setting, sigma: float) -> Setting:
    """The setting with noise."""
    return replace(setting, noise=sigma)


NOISY = tuple(noisy(setting, sigma) for setting in NOISELESS for sigma in SIGMAS)
SEEN = tuple(noisy(s, sigma) for s in (EGO_LOW, EGO_HIGH) for sigma in SIGMAS)


# ---- how far an advisor sees ----------------------------------------------------------------------------------------
def radius_job(setting: Setting, seed: int, plan: Plan) -> Job:
    """What the fruit advisors of a trained agent know of their own fruit, learned from random play: an agent that is
    stuck hardly visits most cells, which would pass for short sight."""
    return Job("perception", {"run": pac_boy.run_config(replace(setting, epsilon=1.0), seed, plan)})


@kind("perception")
def radius_work(config: dict[str, Any]) -> dict[str, Any]:
    """By distance to its fruit: how often an advisor's own best action leads closer, over all cells and advisors."""
    agent = pac_boy.trained(config["run"])
    task = agent.task
    away = Maze(task).distances  # [fruits, cells]
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
    return evidence.over(lambda seed: radius_job(setting, seed, evidence.plan), "right")


def radius(evidence: Evidence, setting: Setting) -> np.ndarray:
    """[seeds]: the largest distance up to which advisors point the right way nearly always."""
    return np.asarray(np.cumprod(perceived(evidence, setting) >= RIGHT, axis=1).sum(axis=1).astype(float))


def farthest(evidence: Evidence, setting: Setting) -> int:
    """The largest distance that the maze has: no sight can be measured beyond it."""
    return int(perceived(evidence, setting).shape[1])


def _reach(evidence: Evidence, setting: Setting) -> str:
    """The radius of sight in words; where it is the maze that ends, nothing more than a lower bound is known."""
    found, end = radius(evidence, setting), farthest(evidence, setting)
    if (found == end).all():
        return f"{end} or more, as far as the maze goes ({setting.name})"
    return f"{'at least ' * bool((found == end).any())}{found.mean():.1f} ({setting.name})"


# ---- the study -------------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """Without noise for comparison, then both strengths of it."""
    runs = [pac_boy.job(s, seed, plan) for s in (*NOISELESS, *NOISY) for seed in plan.each]
    return [*runs, *(radius_job(s, seed, plan) for s in SEEN for seed in plan.each)]


def figures(evidence: Evidence) -> list[Figure]:
    """Learning under noise, and the advisors' sight."""
    sight = (
        "How often a fruit advisor's own best action leads closer to its fruit, against the distance, after learning "
        f"from random play, in which all cells are visited. It does so at least {100 * RIGHT:.0f}% of the time up to "
        f"a distance of {', '.join(_reach(evidence, s) for s in SEEN)}."
    )
    curves = {s.name: pac_boy.curve(evidence, s) for s in NOISY}
    learning = panel("learning_curves", curves, "score", "score of an episode", "from 0 on", lowest=0)
    seen = panel("sight", {s.name: perceived(evidence, s) for s in SEEN}, RIGHT)
    rows = [pac_boy.row_of(evidence, s) for s in (*NOISELESS, *NOISY)]
    about = "As in the table without noise; the noise is on while learning only."
    text = "Every advisor's reward carries Gaussian noise while learning; episodes are scored without it."
    return [
        Figure("noise-score", "Pac-Boy, noisy rewards", text, (learning,)),
        Figure("noise-sight", "How far an advisor sees through the noise", sight, (seen,)),
        Figure("noise-table", "The table", about, table=pac_boy.text_table(rows)),
    ]


STUDY = Study(
    "noise", "Pac-Boy with noisy rewards", 20, jobs, figures, report=ALL,
    about="the same with noise on the rewards",
)  # fmt: skip
