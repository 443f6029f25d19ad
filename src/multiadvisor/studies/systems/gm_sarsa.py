"""GM-Sarsa(0) (Sprague and Ballard 2003): modules that learn by Sarsa from the action that is really taken."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.solver import aggregate, evaluate, greedy_policy, optimum
from multiadvisor.core.intervals import estimate, paired
from multiadvisor.envs.builtin import make
from multiadvisor.runs.jobs import Job, Tell, kind
from multiadvisor.studies.claims import Finding, above, below
from multiadvisor.studies.study import Evidence, Figure, Literature, Plan, evaluated_at, system

PLANNINGS = {"GM-Sarsa": "sarsa", "local Q": "egocentric"}
GAMMA, STEPS = 0.9, 10_000_000
SCHEDULES = {
    "three-fruits": {"steps": 100_000, "eval_every": 10_000, "eval_episodes": 50},
    "pac-boy": {"steps": 200_000, "eval_every": 20_000, "eval_episodes": 80},
}


# ---- whole states: against the exact optimum -------------------------------------------------------------------------
@kind("gm-sarsa")
def composite(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
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


def job(planning: str, seed: int, task: str) -> Job:
    """Modules that see their own part of a maze."""
    settings = {"planning": planning, "gamma": GAMMA, "seed": seed}
    return Job("train", {"task": task, "settings": settings, "schedule": SCHEDULES[task]})


def jobs(plan: Plan) -> list[Job]:
    """Both plannings on each task."""
    each = [(planning, seed) for planning in PLANNINGS.values() for seed in plan.each]
    return [*(module(*one) for one in each), *(job(*one, task) for task in SCHEDULES for one in each)]


def composed(evidence: Evidence, planning: str, measure: str) -> np.ndarray:
    """[seeds] how far off the values are, or what the policy loses."""
    return evidence.over(partial(module, planning), measure)


def curves(evidence: Evidence, planning: str, task: str, measure: str) -> np.ndarray:
    """[seeds, evaluations]."""
    return evidence.curve(lambda seed: job(planning, seed, task), measure)


def findings(evidence: Evidence) -> list[Finding]:
    """The composite optimum with whole states, and ahead of local Q with parts."""
    off, loss = (composed(evidence, "sarsa", measure) for measure in ("off", "loss"))
    behind = paired(composed(evidence, "egocentric", "loss"), loss)
    fruits, score = (
        paired(*(curves(evidence, planning, task, measure)[:, -1] for planning in PLANNINGS.values()))
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


def figures(evidence: Evidence) -> list[Figure]:
    """What policies lose with whole states, and scores with parts."""
    from multiadvisor.viz import plots

    losses = {name: estimate(composed(evidence, planning, "loss")) for name, planning in PLANNINGS.items()}
    scores = {name: curves(evidence, planning, "pac-boy", "score") for name, planning in PLANNINGS.items()}
    steps = evaluated_at(SCHEDULES["pac-boy"])
    label = "random MDPs: loss of the greedy policy, as a share of the largest value"
    panels = (
        partial(plots.intervals, losses, label),
        partial(plots.bands, scores, steps, ("transitions, pac-boy", "score of an episode")),
    )
    return [Figure("gm-sarsa", "GM-Sarsa(0)", panels=panels, size=(12, 4))]


LITERATURE = Literature(
    "Sprague and Ballard, IJCAI 2003",
    "Modules that learn by Sarsa know what they get while others decide: nothing is overestimated, the sum is right.",
    advisor="one goal each",
    view="its own part of the state",
    planning="sarsa",
    aggregator="sum",
    guarantee="the composite optimum where every module sees the whole state and exploration fades",
    choices=(
        "Whole states are those of random MDPs, another one for each seed, where the optimum is known exactly.",
        "Parts are those of three-fruits and Pac-Boy, where local Q is known to be greedy; the paper has another grid.",
        "Exploration is epsilon-greedy; with whole states epsilon and alpha fall as 1/(1 + t).",
    ),
)
STUDY = system("gm-sarsa", "GM-Sarsa(0)", 20, jobs, findings, figures, LITERATURE)
