"""Attractors: thresholds of the paper's examples, random boards that are traps, and where a trained agent rests."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.analysis.theory.boards import exact_agent, trap_shares
from multiadvisor.envs.registry import make
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.paper.pac_boy_study import EGO_HIGH, run_config
from multiadvisor.studies.paper.theory_checks import CHECKS, aggregation_jobs, check, check_job, learning_jobs
from multiadvisor.studies.paper.tours import tours_job
from multiadvisor.studies.study import ALL, Evidence, Figure, Plan, Study, panel, unique

GAMMAS = tuple(sorted([0.2, 0.25, 0.3, 1 / 3, 0.35, *(k / 20 for k in range(8, 20)), 0.99]))
WATCHED = 20  # episodes of each agent
TOURS = 40  # boards on which they are compared with near-optimal tours
PATIENT = 3000  # steps: an episode that is not over by then is stuck, not slow


# ---- work -----------------------------------------------------------------------------------------------------------
def traps_job(plan: Plan) -> Job:
    """Random boards without ghosts, at many gammas."""
    return Job("traps", {"boards": plan.boards, "gammas": list(GAMMAS)})


@kind("traps", lease=600.0)
def traps_work(config: dict[str, Any]) -> dict[str, Any]:
    """The share of boards with attractors, stable ones, and of episodes that end stuck; agnostic episodes beside
    them."""
    task, boards = make("pac-boy", ghosts=False), config["boards"]
    patient = make("pac-boy", ghosts=False, limit=PATIENT)
    fearless = exact_agent(patient, "agnostic", 0.9).evaluate(boards).terminated
    return {"shares": trap_shares(task, config["gammas"], boards), "agnostic_finished": float(fearless)}


def resting_job(seed: int, plan: Plan) -> Job:
    """Where the egocentric agent with a high gamma comes to rest."""
    return Job("resting", {"run": run_config(EGO_HIGH, seed, plan), "watched": WATCHED})


# ---- the study -------------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """Solver and agents."""
    resting = [resting_job(seed, plan) for seed in plan.each]
    checks = [check_job(name, plan) for name in CHECKS if name != "learning"]
    theory = unique([*checks, *learning_jobs(plan), *aggregation_jobs().values()])
    return [*theory, traps_job(plan), walks_job(plan), *resting]


def walks_job(plan: Plan) -> Job:
    """Walks and near-optimal tours on boards without ghosts."""
    return tours_job(min(plan.boards, TOURS))


def walks(evidence: Evidence) -> dict[str, Any]:
    """The same boards, walked and toured."""
    return evidence.result(walks_job(evidence.plan))


def shares(evidence: Evidence) -> list[dict[str, Any]]:
    """The share of trap boards, a row for each gamma."""
    rows: list[dict[str, Any]] = evidence.result(traps_job(evidence.plan))["shares"]
    return rows


def resting(evidence: Evidence, key: str) -> np.ndarray:
    """[seeds] of a figure of the resting agent, or [seeds, cells]."""
    return evidence.over(lambda seed: resting_job(seed, evidence.plan), key)


def figures(evidence: Evidence) -> list[Figure]:
    """Thresholds, traps, resting places."""
    thresholds = [("example", "attractors from gamma", "the paper says", "apart by"), *(
        (row["task"] + "".join(f", {k} = {v:g}" for k, v in row["options"].items()), f"{row['found']:.6f}",
         f"{row['paper']:.6f}", f"{abs(row['found'] - row['paper']):.1e}")
        for row in check(evidence, "thresholds")["rows"]
    )]  # fmt: skip
    places, peaks = (resting(evidence, key).sum(axis=0) for key in ("cells", "attractors"))
    rows = shares(evidence)
    traps = (
        f"{rows[0]['boards']:,} random Pac-Boy boards without ghosts, exact egocentric values. The dotted lines are "
        "the paper's bounds 1/(|A| - 1) and 1/(|A| - 2)."
    )
    rest = (
        f"Egocentric 0.9 after training, {WATCHED} episodes for each of {evidence.plan.seeds} seeds, from step 60 on. "
        f"It eats {resting(evidence, 'eaten_late').mean():.2f} fruits an episode in these steps, and "
        f"{resting(evidence, 'eaten_early').mean():.1f} before them."
    )
    return [
        Figure("attractors-thresholds", "Where attractors begin", "The exact solver against the paper's formulas.",
               table=tuple(thresholds)),
        Figure("attractors-traps", "Boards that are traps", traps, (panel("trap_curves", rows),)),
        Figure("attractors-resting", "Where it comes to rest", rest,
               (panel("resting", make("pac-boy").grid, places, peaks),)),
    ]  # fmt: skip


STUDY = Study(
    "attractors", "Attractors", 40, jobs, figures, report=ALL,
    about="thresholds, boards that are traps, and where a trained agent comes to rest",
)  # fmt: skip
