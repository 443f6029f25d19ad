"""Orchestrated value mapping (Fatemi and Tavakoli 2022): a logarithm keeps the action gaps of a small gamma."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory import enumerate_task, optimum
from multiadvisor.core.intervals import estimate, paired
from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds import finite
from multiadvisor.runs.jobs import Job, Tell, kind, silent
from multiadvisor.settings import Settings
from multiadvisor.studies.claims import JudgedClaim, above, below
from multiadvisor.studies.study import Evidence, Panel, Run, panel, system
from multiadvisor.task import Task

GAMMAS = (0.1, 0.5, 0.8, 0.9, 0.96)
SMALL = GAMMAS[:3]
SCALES = {"plain": (None, 0.1, 1.0), "logarithm": ("log:100", 1.0, 0.1)}  # mapping, alpha, mapped_alpha
SCHEDULE = {"steps": 200_000, "eval_every": 200_000, "eval_episodes": 200}
CHANNELS = ("log:50", None, "log:20")  # of the three advisors of a random MDP
LOOKS = (20_000, 200_000, 2_000_000)  # transitions
NEAR = 0.05


def job(scale: str, gamma: float, seed: int) -> Job:
    """Linear Q-learning on a chain that is seen through tiles."""
    mapping, alpha, mapped_alpha = SCALES[scale]
    settings = {"learner": "linear", "gamma": gamma, "alpha": alpha, "epsilon": 1.0, "seed": seed}
    options = {"mapped_alpha": mapped_alpha} | ({} if mapping is None else {"mapping": mapping})
    return Job("train", {"task": "tile-chain", "options": options, "settings": settings, "schedule": SCHEDULE})


def channels_job(seed: int) -> Job:
    """Advisors with scales of their own on a random MDP."""
    return Job("mapped-channels", {"mappings": list(CHANNELS), "looks": list(LOOKS), "seed": seed})


@kind("mapped-channels", lease=600.0)
def work(config: dict[str, Any], folder: Path | None = None, tell: Tell = silent) -> dict[str, Any]:
    """How far the advisors' sum is from the optimum, over its largest value, after each number of transitions."""
    task = channels(config["mappings"], config["seed"])
    settings = Settings("empathic", gamma=0.9, alpha=0.5, alpha_half=2_000, epsilon=1.0, seed=config["seed"])
    best, _ = optimum(enumerate_task(task), 0.9)
    agent, errors = MultiAdvisor(task, settings), []
    for steps in config["looks"]:
        agent.learn(steps - agent.steps, progress=False)
        values = np.sum([agent.values(j) for j in range(task.n)], axis=0)  # [states, A]
        errors.append(float(np.abs(values - best).max() / best.max()))
        tell(steps / config["looks"][-1])
    return {"errors": errors}


def channels(mappings: list[str | None], instance: int) -> Task:
    """A random MDP with rewards of at least 0, whose advisors have these scales and see the whole state."""
    task = make("random-mdp", instance=instance)
    assert task.world is not None
    constants = task.world.constants._replace(reward=np.abs(task.world.constants.reward))
    advisors = [
        replace(f, mapping=mapping, mapped_alpha=0.9) for f, mapping in zip(task.advisors, mappings, strict=True)
    ]
    return replace(task, advisors=tuple(advisors), world=finite.world_of(constants))


def finished(evidence: Evidence, scale: str) -> np.ndarray:
    """[seeds, gammas] the share of greedy episodes that reach the goal."""
    return np.stack([evidence.curve(partial(job, scale, gamma), "terminated")[:, -1] for gamma in GAMMAS], axis=1)


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """Where plain values drown, the logarithm learns; and channels of different scales settle at the optimum."""
    plain, log = (finished(evidence, scale) for scale in SCALES)
    off, small = evidence.over(channels_job, "errors"), len(SMALL)
    return [
        above("small-gamma", f"At gamma {SMALL[0]} to {SMALL[-1]} the logarithm finishes more episodes than plain "
              "values.", paired(log[:, :small].mean(axis=1), plain[:, :small].mean(axis=1))),
        above("any-gamma", f"At every gamma from {GAMMAS[0]} to {GAMMAS[-1]} it finishes at least 95% of them: the "
              "smallest share.", estimate(log.min(axis=1)), 0.95),
        below("converges", f"Three advisors with scales of their own end within {NEAR:.0%} of the optimum.",
              estimate(off[:, -1]), NEAR),
        below("settles", "Their error falls from look to look: the largest ratio of two.",
              estimate((off[:, 1:] / off[:, :-1]).max(axis=1)), 1.0),
    ]  # fmt: skip


def panels(evidence: Evidence) -> list[Panel]:
    """Episodes finished against gamma, and the error of the channels."""
    shares = {scale: finished(evidence, scale) for scale in SCALES}
    words = ("gamma", "share of greedy episodes that reach the goal")
    off = {"log, plain, log": evidence.over(channels_job, "errors")}
    return [
        panel("bands", shares, np.array(GAMMAS), words),
        panel("bands", off, np.log10(LOOKS), ("transitions, as a power of 10", "error / largest value")),
    ]


RUNS: list[Run] = [*(partial(job, scale, gamma) for scale in SCALES for gamma in GAMMAS), channels_job]
STUDY = system("value-mapping", "Orchestrated value mapping", 100, RUNS, findings, panels, (10, 4))
