"""An ensemble of shapings (Harutyunyan and others 2015): one reward, several potentials, and a vote."""

from __future__ import annotations

from functools import partial

import numpy as np

from multiadvisor.core.intervals import estimate, paired
from multiadvisor.envs.worlds.mountain_car import SHAPINGS
from multiadvisor.runs.jobs import Job
from multiadvisor.studies.claims import JudgedClaim, above, not_below
from multiadvisor.studies.study import Evidence, Panel, evaluated_at, panel, system

PLAIN, *SHAPED = SHAPINGS
VOTES = ("majority", "ranks")
GAMMA, SCALE = 0.99, 50.0
SCHEDULE = {"steps": 1_000_000, "eval_every": 100_000, "eval_episodes": 20}


def job(advisors: tuple[str, ...], aggregation: str, seed: int) -> Job:
    """A run with these advisors."""
    return Job("train", {
        "task": "mountain-car", "options": {"scale": SCALE, "discount": GAMMA, "limit": 1000},
        "weights": {name: float(name in advisors) for name in SHAPINGS},
        "settings": {"planning": "egocentric", "aggregation": aggregation, "gamma": GAMMA, "alpha": 0.2, "seed": seed},
        "schedule": SCHEDULE,
    })  # fmt: skip


ALONE = {name: partial(job, (name,), "sum") for name in SHAPINGS}
TOGETHER = {vote: partial(job, tuple(SHAPED), vote) for vote in VOTES}


def curves(evidence: Evidence) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """[seeds, evaluations] steps of a greedy episode, of members alone and of votes, by name."""
    alone, votes = ({name: evidence.curve(run, "length") for name, run in runs.items()} for runs in (ALONE, TOGETHER))
    return alone, votes


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """Votes against the best member, and against no shaping."""
    alone, votes = ({name: runs.mean(axis=1) for name, runs in found.items()} for found in curves(evidence))
    best = min(SHAPED, key=lambda name: alone[name].mean())
    found = []
    for vote, together in votes.items():
        ahead, plain = paired(alone[best], together), paired(alone[PLAIN], together)
        claim = f"By {vote}: takes no more steps than its best member alone, over all of learning (steps saved)."
        found.append(not_below(f"{vote}-best", claim, ahead))
        found.append(above(f"{vote}-plain", f"By {vote}: takes fewer steps than without shaping.", plain))
    worst = max(SHAPED, key=lambda name: alone[name].mean())
    claim = "It matters which shaping one would have chosen: the best saves steps against the worst."
    return [*found, above("members", claim, paired(alone[worst], alone[best]))]


def panels(evidence: Evidence) -> list[Panel]:
    """Learning curves, and their means."""
    alone, votes = curves(evidence)
    shown = {f"{name} alone": runs for name, runs in alone.items()}
    shown |= {f"ensemble, {vote}": runs for vote, runs in votes.items()}
    means = {name: estimate(runs.mean(axis=1)) for name, runs in shown.items()}
    across = evaluated_at(SCHEDULE)
    return [
        panel("bands", shown, across, ("transitions, mountain-car", "steps of an episode")),
        panel("intervals", means, "steps of an episode, mean over all of learning"),
    ]


STUDY = system(
    "shaping", "An ensemble of shapings", 40, [*ALONE.values(), *TOGETHER.values()], findings, panels, (12, 4)
)
