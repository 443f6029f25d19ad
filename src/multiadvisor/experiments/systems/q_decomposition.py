"""Q-decomposition (Russell and Zimdars 2003): advisors that value what the arbitrator does against selfish ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.experiments.systems.system import Found, Results, System
from multiadvisor.runs.jobs import Job
from multiadvisor.statistics import paired

PLANNINGS = {"local Q": "egocentric", "local Sarsa": "sarsa"}
SCHEDULE = {"epochs": 10, "transitions": 2_000, "games": 50}


def job(planning: str, seed: int) -> Job:
    """A run on dollars and euros."""
    settings = {"planning": planning, "gamma": 0.9, "seed": seed}
    return Job("train", {"task": "dollars-and-euros", "settings": settings, "schedule": SCHEDULE})


def jobs(seeds: int) -> list[Job]:
    """Both plannings."""
    return [job(planning, seed) for planning in PLANNINGS.values() for seed in range(seeds)]


def scores(results: Results, planning: str, seeds: int) -> np.ndarray:
    """[seeds, epochs]."""
    return np.array([[e["score"] for e in results[job(planning, seed).id]["epochs"]] for seed in range(seeds)])


def statistics(results: Results, seeds: int) -> list[Found]:
    """Local Q sits still, local Sarsa earns."""
    selfish, sarsa = (scores(results, planning, seeds)[:, -1] for planning in PLANNINGS.values())
    claim = "Dollars and euros: local Sarsa earns more than local Q, which waits for ever."
    return [Found.above("dollars-and-euros", claim, paired(sarsa, selfish))]


def draw(results: Results, seeds: int) -> Any:
    """Learning curves."""
    from multiadvisor import plots

    curves = {name: scores(results, planning, seeds) for name, planning in PLANNINGS.items()}
    turns = np.arange(1, SCHEDULE["epochs"] + 1) * SCHEDULE["transitions"]
    return plots.one_axis(plots.bands, curves, turns, ("transitions", "score"))


SYSTEM = System(
    "q-decomposition",
    "Q-decomposition",
    "Russell and Zimdars, ICML 2003",
    30,
    "Advisors that learn by Sarsa on the arbitrator's actions add up to the true values; selfish ones overestimate.",
    focus="one term of the reward each",
    view="the whole state",
    planning="sarsa (against egocentric)",
    aggregator="sum",
    guarantee="the composite optimum, with whole states and enough exploration",
    jobs=jobs,
    statistics=statistics,
    draw=draw,
)
