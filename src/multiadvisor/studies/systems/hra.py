"""Hybrid reward architecture (van Seijen and others 2017): plain heads, heads that are general value functions, one."""

from __future__ import annotations

import itertools
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.intervals import Estimate, estimate, paired
from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds.fruit_goals import ON_BOARD
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.runs.jobs import Job, Tell, kind, silent
from multiadvisor.studies.claims import JudgedClaim, above
from multiadvisor.studies.study import Evidence, Panel, panel, system

EPISODES = sorted({round(1.25**k) for k in range(35)})  # after which the greedy policy is looked at: 1 to about 2,000
GREEDY = 300  # greedy ones, each time
REACHED, NEAR = 0.95, 0.90  # of the optimal number of steps
# Samples come from a random policy, as in the paper; nothing else is random here, so that a step size of 1 is sound.
RANDOM = {"epsilon": 1.0, "alpha": 1.0, "planning": "agnostic", "gamma": 0.99}
# Or from the agent itself, which explores a little. Here a sum of far-sighted heads gets stuck, and max does not.
PLAYING = {"epsilon": 0.1, "alpha": 1.0, "planning": "egocentric", "gamma": 0.9, "aggregation": "max"}
LEARNERS: dict[str, dict[str, Any]] = {
    "one head": {"heads": "fruits", "learner": "linear", "gamma": 0.85, "epsilon": 1.0, "alpha": 0.2},
    "heads, whole state": {"heads": "whole", **RANDOM},
    "heads, own cell": {"heads": "fruits", **RANDOM},
    "general value functions": {"heads": "goals", **RANDOM},
    "heads, own cell, playing": {"heads": "fruits", **PLAYING},
    "general value functions, playing": {"heads": "goals", **PLAYING},
}
ONE, WHOLE, CELL, GVF, CELL_PLAYING, GVF_PLAYING = LEARNERS


def job(learner: str, seed: int) -> Job:
    """A run of one kind of heads."""
    settings = {name: value for name, value in LEARNERS[learner].items() if name != "heads"}
    return Job("hra", {"heads": LEARNERS[learner]["heads"], "settings": {**settings, "seed": seed},
                       "episodes": EPISODES, "greedy": GREEDY})  # fmt: skip


@kind("hra", lease=600.0)
def work(config: dict[str, Any], folder: Path | None = None, tell: Tell = silent) -> dict[str, Any]:
    """The mean steps of greedy episodes, and the share that was finished, after each number of episodes."""
    agent = MultiAdvisor(make("hra-fruits", heads=config["heads"]), **config["settings"])
    steps, finished = [], []
    for k, episodes in enumerate(config["episodes"]):
        while (left := episodes - agent.episodes) > 0:  # a little less than they should take: few calls, hardly beyond
            agent.learn(max(100, int(0.9 * left * agent.steps / max(agent.episodes, 1))), progress=False)
        seen = agent.evaluate(config["greedy"])
        steps.append(seen.length)
        finished.append(seen.terminated)
        tell(k / len(config["episodes"]))
    return {"length": steps, "terminated": finished}


@lru_cache(maxsize=1)
def optimum() -> float:
    """The expected length of the shortest tour, over all starts and all boards, exactly."""
    world = maze_of(make("hra-fruits"))
    assert world is not None
    side = round(len(world.neighbour) ** 0.5)
    cells = np.arange(len(world.neighbour))
    row, column = cells // side, cells % side
    apart = abs(row[:, None] - row) + abs(column[:, None] - column)  # [cells, cells]
    orders = np.array(list(itertools.permutations(range(ON_BOARD))))
    by_start: list[list[np.ndarray]] = [[] for _ in cells]
    for board in itertools.combinations(world.fruit_cell.tolist(), ON_BOARD):
        stops = np.array(board)[orders]  # [orders, fruits]
        inner = apart[stops[:, :-1], stops[:, 1:]].sum(axis=1)
        length = (apart[:, stops[:, 0]] + inner).min(axis=1)  # [cells]
        for start in cells:
            if start not in board:
                by_start[start].append(length[start])
    return float(np.mean([np.mean(lengths) for lengths in by_start]))


# ---- what the runs show ----------------------------------------------------------------------------------------------
def shares(evidence: Evidence, learner: str) -> np.ndarray:
    """[seeds, looks] the optimal number of steps over that of the greedy policy."""
    return optimum() / evidence.over(partial(job, learner), "length")


def needed(evidence: Evidence, learner: str) -> np.ndarray:
    """[seeds] the episodes until NEAR the optimum is reached first; the largest number, where it never is."""
    at = shares(evidence, learner) >= NEAR
    return np.where(at.any(axis=1), np.array(EPISODES)[at.argmax(axis=1)], EPISODES[-1])


def ratio(evidence: Evidence, fast: str, slow: str) -> Estimate:
    """How many times the episodes of the one the other needs (at least: where it never gets there it may be more)."""
    return estimate(needed(evidence, slow) / needed(evidence, fast))


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """Who needs how many episodes, and who comes near the optimum at all."""
    near = f"{NEAR:.0%} of the optimal number of steps"
    heads, one = (shares(evidence, name)[:, -1] for name in (CELL, ONE))
    best = estimate(np.maximum(*(shares(evidence, name).max(axis=1) for name in (GVF, GVF_PLAYING))))
    return [
        above("episodes-whole", f"Plain heads on the whole state need more than five times the episodes of general "
              f"value functions to {near}.", ratio(evidence, GVF, WHOLE), 5.0),
        above("episodes-cell", "So do plain heads on the cell.", ratio(evidence, GVF, CELL), 5.0),
        above("episodes-playing", "So do plain heads on the cell where the agent itself plays, both with max.",
              ratio(evidence, GVF_PLAYING, CELL_PLAYING), 5.0),
        above("heads-beat-one", "Plain heads on the cell come nearer to the optimum than one head, at the end.",
              paired(heads, one)),
        above("optimum", f"General value functions come to {REACHED:.0%} of the optimal number of steps.", best,
              REACHED),
    ]  # fmt: skip


def panels(evidence: Evidence) -> list[Panel]:
    """Learning curves, and the optimum at 1."""
    curves = {name: shares(evidence, name) for name in LEARNERS}
    words = ("episodes", "optimal number of steps / steps of the greedy policy")
    return [panel("bands", curves, np.array(EPISODES), words, xscale="log")]


STUDY = system("hra", "Hybrid reward architecture", 75, [partial(job, learner) for learner in LEARNERS], findings,
               panels, (7, 4.5))  # fmt: skip
