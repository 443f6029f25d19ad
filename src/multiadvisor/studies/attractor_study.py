"""Attractors: thresholds of the paper's examples, random boards that are traps, and where a trained agent rests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.analysis.theory.boards import exact_agent, trap_shares
from multiadvisor.core.intervals import estimate
from multiadvisor.envs.builtin import make
from multiadvisor.runs.jobs import Job, Tell, kind
from multiadvisor.studies.pac_boy_study import EGO_HIGH, run_config, with_rules
from multiadvisor.studies.parts import Evidence, Figure, Part, Plan
from multiadvisor.studies.theory_checks import check, learning_jobs, named_jobs

GAMMAS = tuple(sorted([0.2, 0.25, 0.3, 1 / 3, 0.35, *(k / 20 for k in range(8, 20)), 0.99]))
WATCHED = 20  # episodes of each agent
PATIENT = 3000  # steps: an episode that is not over by then is stuck, not slow


# ---- work -----------------------------------------------------------------------------------------------------------
def traps_job(plan: Plan) -> Job:
    """Random boards without ghosts, at many gammas."""
    return Job("traps", {"boards": plan.boards, "gammas": list(GAMMAS)})


@kind("traps", lease=600.0)
def traps_work(config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None) -> dict[str, Any]:
    """The share of boards with attractors, stable ones, and of episodes that end stuck; agnostic episodes beside
    them."""
    task, boards = make("pac-boy", ghosts=False), config["boards"]
    patient = make("pac-boy", ghosts=False, limit=PATIENT)
    fearless = exact_agent(patient, "agnostic", 0.9).evaluate(boards).terminated
    return {"shares": trap_shares(task, config["gammas"], boards), "agnostic_finished": float(fearless)}


def resting_job(seed: int, plan: Plan) -> Job:
    """Where the egocentric agent with a high gamma comes to rest."""
    return Job("resting", {"run": run_config(with_rules(EGO_HIGH, plan), seed, plan), "watched": WATCHED})


# ---- the experiment -------------------------------------------------------------------------------------------------
def jobs(plan: Plan) -> list[Job]:
    """Solver and agents."""
    resting = [resting_job(seed, plan) for seed in range(plan.seeds)]
    return [*named_jobs(plan).values(), *learning_jobs(plan), traps_job(plan), *resting]


def shares(evidence: Evidence) -> list[dict[str, Any]]:
    """The share of trap boards, a row for each gamma."""
    return evidence.result(traps_job(evidence.plan))["shares"]


def resting(evidence: Evidence, key: str) -> np.ndarray:
    """[seeds] of a figure of the resting agent, or [seeds, cells]."""
    plan = evidence.plan
    return np.array([evidence.result(resting_job(seed, plan))[key] for seed in range(plan.seeds)], float)


def figures(evidence: Evidence) -> list[Figure]:
    """Thresholds, traps, resting places."""
    rows = check(evidence, "thresholds")["rows"]
    head = ("example", "attractors from gamma", "the paper says", "apart by")
    cells = [
        (row["task"] + "".join(f", {k} = {v:g}" for k, v in row["options"].items()), f"{row['found']:.6f}",
         f"{row['paper']:.6f}", f"{abs(row['found'] - row['paper']):.1e}")
        for row in rows
    ]  # fmt: skip
    found = shares(evidence)
    first = {
        key: next((row["gamma"] for row in found if row[key] > 0), None) for key in ("attractor", "stable", "stuck")
    }

    def said(key: str) -> str:
        return "at no gamma looked at" if first[key] is None else f"first at {first[key]:.2f}"

    high = min(found, key=lambda row: abs(row["gamma"] - 0.9))
    text = f"{found[0]['boards']:,} random Pac-Boy boards without ghosts, exact egocentric values. Boards with an "
    text += f"attractor appear {said('attractor')}, with a stable one {said('stable')}, episodes that end stuck "
    text += f"{said('stuck')}. At gamma 0.9 it is {100 * high['attractor']:.0f}%, {100 * high['stable']:.0f}% and "
    text += f"{100 * high['stuck']:.0f}%. The dotted lines are the paper's bounds 1/(|A| - 1) and 1/(|A| - 2)."
    on, chance = estimate(resting(evidence, "on")), resting(evidence, "chance").mean()
    rest = (
        f"Egocentric 0.9 after training, {WATCHED} episodes for each of {evidence.plan.seeds} seeds, from step 60 on. "
    )
    rest += f"In {100 * on.value:.0f}% [{100 * on.low:.0f}, {100 * on.high:.0f}] of these steps Pac-Boy stands on an "
    rest += "attractor of the exact solver for the very same board, or next to one; a cell chosen blindly would do so "
    rest += f"in {100 * chance:.0f}%. It eats {resting(evidence, 'eaten_late').mean():.2f} fruits an episode in these "
    rest += f"steps, and {resting(evidence, 'eaten_early').mean():.1f} before them."
    places, peaks = (resting(evidence, key).sum(axis=0) for key in ("cells", "attractors"))

    def draw_traps() -> Any:
        from multiadvisor.viz import plots

        return plots.one_axis(plots.trap_curves, found, size=(4.8, 3.9))

    def draw_rest() -> Any:
        from multiadvisor.viz import paper_plots

        return paper_plots.resting_figure(make("pac-boy").grid, places, peaks)

    return [
        Figure("attractors-thresholds", "Where attractors begin", "The exact solver against the paper's formulas.",
               table=(head, *cells)),
        Figure("attractors-traps", "Boards that are traps", text, draw_traps),
        Figure("attractors-resting", "Where it comes to rest", rest, draw_rest),
    ]  # fmt: skip


PART = Part(
    "attractors",
    "Attractors",
    40,
    jobs,
    figures,
    about="thresholds, boards that are traps, and where a trained agent comes to rest",
)
