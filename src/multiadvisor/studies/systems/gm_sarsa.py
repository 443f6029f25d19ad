"""GM-Sarsa(0) (Sprague and Ballard 2003): modules that learn by Sarsa from the action that is really taken."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.solver import aggregate, evaluate, greedy_policy, optimum
from multiadvisor.core.intervals import estimate, paired
from multiadvisor.envs.registry import make
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.claims import JudgedClaim, above, below
from multiadvisor.studies.study import Evidence, Panel, evaluated_at, panel, system

PLANNINGS = {"GM-Sarsa": "sarsa", "local Q": "egocentric"}
GAMMA, STEPS = 0.9, 10_000_000
SCHEDULES = {
    "three-fruits": {"steps": 100_000, "eval_every": 10_000, "eval_episodes": 50},
    "pac-boy": {"steps": 200_000, "eval_every": 20_000, "eval_episodes": 80},
}


# ---- whole states: against the exact optimum -------------------------------------------------------------------------
@kind("gm-sarsa")
def composite(config: dict[str, Any]) -> dict[str, Any]:
    """Learn a random MDP whose advisors see all of it; how far the sum, and its greedy policy, are from the optimum."""
    task = make("random-mdp", instance=config["seed"])
    mdp = enumerate_task(task)
    best, _ = optimum(mdp, GAMMA)
    cooling = {"alpha": 1.0, "alpha_half": 20_000, "epsilon": 1.0, "epsilon_half": config["steps"] // 100}
    agent = MultiAdvisor(task, planning=config["planning"], gamma=GAMMA, seed=config["seed"], **cooling)
    agent.learn(config["steps"], progress=False)
    learned = aggregate(np.array([agent.values(j) for j in range(task.n)]), task.weights)  # [S, A]
    policy = greedy_policy(learned)
    worth = (policy * aggregate(evaluate(mdp, policy, GAMMA).values, task.weights)).sum(axis=1)  # [S]
    scale = float(np.abs(best).max())
    return {
        "off": float(np.abs(learned.max(axis=1) - best.max(axis=1)).max()) / scale,
        "loss": float(mdp.start @ (best.max(axis=1) - worth)) / scale,
    }


def module(planning: str, seed: int) -> Job:
    """Modules that see the whole state of a random MDP."""
    return Job("gm-sarsa", {"planning": planning, "seed": seed, "steps": STEPS})


def job(planning: str, task: str, seed: int) -> Job:
    """Modules that see their own part of a maze."""
    settings = {"planning": planning, "gamma": GAMMA, "seed": seed}
    return Job("train", {"task": task, "settings": settings, "schedule": SCHEDULES[task]})


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """The composite optimum with whole states, and ahead of local Q with parts."""
    off, loss = (evidence.over(partial(module, "sarsa"), measure) for measure in ("off", "loss"))
    behind = paired(evidence.over(partial(module, "egocentric"), "loss"), loss)
    fruits, score = (
        paired(*(evidence.curve(partial(job, planning, task), measure)[:, -1] for planning in PLANNINGS.values()))
        for task, measure in (("three-fruits", "terminated"), ("pac-boy", "score"))
    )
    return [
        below("values", "Whole states: the summed value of every state is within 5% of the optimum.", estimate(off),
              0.05),
        below("policy", "Whole states: the greedy policy loses less than 1%.", estimate(loss), 0.01),
        above("local-q-loss", "Whole states: local Q loses more.", behind),
        above("three-fruits", "Three fruits: finishes where local Q waits in the attractor.", fruits),
        above("pac-boy", "Pac-Boy, each with its own view: scores more than local Q.", score),
    ]  # fmt: skip


def panels(evidence: Evidence) -> list[Panel]:
    """What policies lose with whole states, and scores with parts."""
    losses = {name: estimate(evidence.over(partial(module, planning), "loss")) for name, planning in PLANNINGS.items()}
    scores = {name: evidence.curve(partial(job, planning, "pac-boy")) for name, planning in PLANNINGS.items()}
    steps = evaluated_at(SCHEDULES["pac-boy"])
    label = "random MDPs: loss of the greedy policy, as a share of the largest value"
    return [
        panel("intervals", losses, label),
        panel("bands", scores, steps, ("transitions, pac-boy", "score of an episode")),
    ]


RUNS = [
    *(partial(module, planning) for planning in PLANNINGS.values()),
    *(partial(job, planning, task) for task in SCHEDULES for planning in PLANNINGS.values()),
]
STUDY = system("gm-sarsa", "GM-Sarsa(0)", 20, RUNS, findings, panels, (12, 4))
