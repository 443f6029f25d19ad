"""Merging MDPs (Singh and Cohn 1998): bounds from solved components against plain value iteration on the whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.analysis.theory.merging import MergeResult, merge, random_components, value_iteration
from multiadvisor.core.intervals import estimate
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.claims import JudgedClaim, below, seen
from multiadvisor.studies.study import Evidence, Panel, panel, system

WHOLE = {"components": 3, "states": 6, "own": 4, "busy": 2}  # 216 states, 37 joint actions
GAMMA = 0.9
SHARES = np.linspace(0.0, 1.0, 21)  # of the backups of plain value iteration, for the figure


def job(seed: int) -> Job:
    """A random composite of its own for each seed."""
    return Job("merging", {**WHOLE, "gamma": GAMMA, "seed": seed})


@kind("merging")
def work(config: dict[str, Any]) -> dict[str, Any]:
    """Backups of both, whether they agree, and how many states are decided on the way."""
    gamma = config["gamma"]
    mdp = random_components(**{name: config[name] for name in (*WHOLE, "seed")})
    merged, plain = merge(mdp, gamma), value_iteration(mdp, gamma)
    return {
        "merged": merged.backups, "plain": plain.backups, "components": merged.components,
        "same": float((merged.allowed == plain.allowed).all(axis=1).mean()),
        "inside": bool((merged.lower <= plain.upper).all() and (plain.lower <= merged.upper).all()),
        "decided": [along(one, plain.backups) for one in (merged, plain)],
    }  # fmt: skip


def along(found: MergeResult, backups: int) -> list[float]:
    """The share of decided states after each of `SHARES` of so many backups."""
    shares: list[float] = np.interp(SHARES * backups, found.course[:, 0], found.course[:, 1]).tolist()
    return shares


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """The same policy, with fewer backups."""
    merged, plain, components = (evidence.over(job, key) for key in ("merged", "plain", "components"))
    same = float(evidence.over(job, "same").min())
    fewer, alone = estimate(merged / plain), estimate((merged + components) / plain)
    return [
        seen("same-policy", "The smallest share of states in which both find the same action is 1.", same, same == 1.0),
        below("fewer-backups", "Backups between the components' bounds, over those of plain value iteration, are below "
              "1.", fewer, 1.0),
        below("with-components", "They are below 1 where solving the components is counted as well.", alone, 1.0),
    ]  # fmt: skip


def panels(evidence: Evidence) -> list[Panel]:
    """How many states are decided on the way."""
    course = evidence.over(job, "decided")  # [seeds, 2, points]
    curves = {"between the components' bounds": course[:, 0], "plain value iteration": course[:, 1]}
    words = ("backups, as a share of those of plain value iteration", "share of states decided")
    return [panel("bands", curves, SHARES, words)]


STUDY = system("merging", "Merging MDPs", 10, [job], findings, panels, (7, 4.5))
