"""An ensemble of shapings (Harutyunyan and others 2015): one reward, several potentials, and a vote."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from multiadvisor.core.intervals import estimate, paired
from multiadvisor.envs.worlds.mountain_car import SHAPINGS
from multiadvisor.runs.jobs import Job
from multiadvisor.studies.systems.system import Results, Statistic, System, evaluated_at, fresh

PLAIN, *SHAPED = SHAPINGS
VOTES = ("majority", "ranks")
GAMMA, SCALE = 0.99, 50.0
SCHEDULE = {"steps": 1_000_000, "eval_every": 100_000, "eval_episodes": 20}


def job(heard: tuple[str, ...], aggregation: str, seed: int) -> Job:
    """A run in which these advisors are heard."""
    return Job("train", {
        "task": "mountain-car", "options": {"scale": SCALE, "discount": GAMMA, "limit": 1000},
        "weights": {name: float(name in heard) for name in SHAPINGS},
        "settings": {"planning": "egocentric", "aggregation": aggregation, "gamma": GAMMA, "alpha": 0.2, "seed": seed},
        "schedule": SCHEDULE,
    })  # fmt: skip


def member(name: str, seed: int) -> Job:
    """One advisor alone."""
    return job((name,), "sum", seed)


def ensemble(vote: str, seed: int) -> Job:
    """All shapings, and a vote."""
    return job(tuple(SHAPED), vote, seed)


def jobs(seeds: int) -> list[Job]:
    """Everybody alone, and the ensembles."""
    alone = [member(name, seed) for name in SHAPINGS for seed in fresh(seeds)]
    return [*alone, *(ensemble(vote, seed) for vote in VOTES for seed in fresh(seeds))]


def steps(results: Results, made: Any, name: str, seeds: int) -> np.ndarray:
    """[seeds, evaluations] steps of a greedy episode."""
    return np.array([[one["length"] for one in results[made(name, seed).id]["evaluations"]] for seed in fresh(seeds)])


def statistics(results: Results, seeds: int) -> list[Statistic]:
    """Votes against the best member, and against no shaping."""
    alone = {name: steps(results, member, name, seeds).mean(axis=1) for name in SHAPINGS}
    best = min(SHAPED, key=lambda name: alone[name].mean())
    found = []
    for vote in VOTES:
        together = steps(results, ensemble, vote, seeds).mean(axis=1)
        ahead, plain = paired(alone[best], together), paired(alone[PLAIN], together)
        claim = f"By {vote}: takes no more steps than its best member alone, over all of learning (steps saved)."
        found.append(Statistic.not_below(f"{vote}-best", claim, ahead))
        found.append(Statistic.above(f"{vote}-plain", f"By {vote}: takes fewer steps than without shaping.", plain))
    worst = max(SHAPED, key=lambda name: alone[name].mean())
    claim = "It matters which shaping one would have chosen: the best saves steps against the worst."
    return [*found, Statistic.above("members", claim, paired(alone[worst], alone[best]))]


def draw(results: Results, seeds: int) -> Any:
    """Learning curves, and their means."""
    from multiadvisor.viz import plots

    curves = {f"{name} alone": steps(results, member, name, seeds) for name in SHAPINGS}
    curves |= {f"ensemble, {vote}": steps(results, ensemble, vote, seeds) for vote in VOTES}
    means = {name: estimate(runs.mean(axis=1)) for name, runs in curves.items()}
    across = evaluated_at(SCHEDULE)
    return plots.several(
        partial(plots.bands, curves, across, ("transitions, mountain-car", "steps of an episode")),
        partial(plots.intervals, means, "steps of an episode, mean over all of learning"),
        size=(12, 4),
    )


SYSTEM = System(
    "shaping",
    "An ensemble of shapings",
    "Harutyunyan, Brys, Vrancx and Nowe, 2015",
    40,
    "Several shapings of one reward learn side by side and vote: as good as the best of them, without choosing one.",
    advisor="the whole reward, shaped by a potential of its own",
    view="the whole state",
    planning="egocentric",
    aggregator="majority or ranks",
    guarantee="every member learns the same policy, as a potential changes none",
    jobs=jobs,
    statistics=statistics,
    draw=draw,
    choices=(
        "Tables on 36 x 28 cells of position and speed, not tile coding; Q-learning, not Greedy-GQ.",
        "The members share what the ensemble does, and explore with it (epsilon .05); the paper explores at random.",
        "Potentials are functions of the cells, between -50 (a good episode costs 70, discounted) and 0, and 0 at the "
        "goal, so that with tables they change no policy.",
        "Episodes are cut off after 1000 steps, not 200.",
    ),
)
