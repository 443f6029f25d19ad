"""Arbi-Q (Simpkins and Isbell 2019): an arbitrator learns who should be in control, and scales do not matter."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.intervals import Estimate, estimate
from multiadvisor.envs.worlds.bunny import CELLS
from multiadvisor.runs.jobs import Job, Tell, kind, silent
from multiadvisor.studies.claims import JudgedClaim, above, seen
from multiadvisor.studies.study import Evidence, Panel, panel, system
from multiadvisor.task import Advisor, Task

COMPARED = {"sum": "the sum", "arbi_q": "Arbi-Q"}
SCALES = {"as they are": (1.0, 1.0), "food x 100": (100.0, 1.0), "wolf x 100": (1.0, 100.0)}
STEPS, EVALUATIONS, EPISODES = 40_000, 5, 40


def scaled(food: float, wolf: float) -> Task:
    """The bunny's task, whose advisors are paid as told, while the arbitrator is paid what the task itself pays."""
    import gymnasium

    env = gymnasium.make("multiadvisor/mo-Bunny-v0", max_episode_steps=100)
    return Task.from_gymnasium(
        env,
        [
            Advisor("food", lambda t: food * t.reward[0], lambda x: int(x) // (4 * CELLS) * 4 + int(x) % 4, 4 * CELLS),
            Advisor("wolf", lambda t: wolf * t.reward[1], lambda x: int(x) // 4, CELLS * CELLS),
        ],
        name="bunny, scaled", extra_advisor=Advisor("arbitrator", lambda t: float(t.reward.sum())),
    )  # fmt: skip


@kind("scale")
def scale_work(config: dict[str, Any], folder: Path | None = None, tell: Tell = silent) -> dict[str, Any]:
    """Learn with rewards on these scales, and score the episodes as the task pays them."""
    scales = np.array(SCALES[config["scale"]])
    agent = MultiAdvisor(
        scaled(*scales),
        planning="egocentric",
        aggregation=config["aggregation"],
        gamma=0.9,
        epsilon=0.1,
        seed=config["seed"],
    )
    scores = []
    for number in range(config["evaluations"]):
        agent.learn(config["steps"] // config["evaluations"], progress=False)
        scores.append(float((agent.evaluate(EPISODES, seeds=(number,)).played.returns / scales).sum(axis=1).mean()))
        tell((number + 1) / config["evaluations"])
    return {"scores": scores}


def job(aggregation: str, scale: str, seed: int) -> Job:
    """A run."""
    return Job(
        "scale", {"aggregation": aggregation, "scale": scale, "steps": STEPS, "evaluations": EVALUATIONS, "seed": seed}
    )


def moved(evidence: Evidence, aggregation: str, scale: str) -> Estimate:
    """By how much a scale moves the final score of a seed, up or down."""
    first, other = (evidence.over(partial(job, aggregation, each), "scores")[:, -1] for each in ("as they are", scale))
    return estimate(np.abs(other - first))


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """Arbi-Q stays, the sum moves, either way."""
    found = []
    for scale in list(SCALES)[1:]:
        own, name = moved(evidence, "arbi_q", scale), scale.replace(" x ", "-")
        found += [
            seen(f"arbi-q-{name}", f"Arbi-Q, {scale}: the score of a run does not change.", own, own.high < 1e-9),
            above(f"sum-{name}", f"The sum, {scale}: it does.", moved(evidence, "sum", scale)),
        ]
    return found


def panels(evidence: Evidence) -> list[Panel]:
    """Learning curves, and where they end."""
    steps = np.arange(1, EVALUATIONS + 1) * (STEPS // EVALUATIONS)
    curves = {
        f"{name}, {scale}": evidence.over(partial(job, aggregation, scale), "scores")
        for aggregation, name in COMPARED.items() for scale in SCALES
    }  # fmt: skip
    ends = {name.replace(", ", "\n"): estimate(curve[:, -1]) for name, curve in curves.items()}
    return [
        panel("bands", curves, steps, ("transitions", "score, as the task pays")),
        panel("intervals", ends, "final score"),
    ]


RUNS = [partial(job, aggregation, scale) for aggregation in COMPARED for scale in SCALES]
STUDY = system("arbi-q", "Arbi-Q", 90, RUNS, findings, panels, (12, 4.5))
