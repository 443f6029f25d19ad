"""Ensembles of learners (Wiering and van Hasselt 2008): several on the whole task, and a vote; empathy is safe."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import evaluate, optimum, solve
from multiadvisor.core.intervals import estimate, paired
from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds.dyna_maze import LEARNERS
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.claims import JudgedClaim, above, not_below, seen
from multiadvisor.studies.study import Evidence, Panel, Run, evaluated_at, panel, system

GAMMA = 0.95
VOTES = {
    "Boltzmann product": "boltzmann_product", "majority": "majority", "ranks": "ranks",
    "Boltzmann sum": "boltzmann_sum",
}  # fmt: skip
SCHEDULE = {"steps": 600_000, "eval_every": 2_000, "eval_episodes": 50}
LEARNED = 20  # evaluations after which everybody knows the way: the mean of the others is the final performance


def job(learners: tuple[str, ...], aggregation: str, seed: int) -> Job:
    """A run with these learners; all of them together have weight 1."""
    return Job("train", {
        "task": "dyna-maze", "weights": {name: (name in learners) / len(learners) for name in LEARNERS},
        "settings": {"aggregation": aggregation, "gamma": GAMMA, "alpha": 0.5, "epsilon": 0.1, "seed": seed},
        "schedule": SCHEDULE,
    })  # fmt: skip


ALONE = {name: partial(job, (name,), "sum") for name in LEARNERS}
TOGETHER = {name: partial(job, tuple(LEARNERS), vote) for name, vote in VOTES.items()}


# ---- empathic planning with whole states -----------------------------------------------------------------------------
def shaped(mdp: FiniteMDP, potentials: np.ndarray, gamma: float) -> FiniteMDP:
    """The same task for an ensemble, each with a potential of its own [n, S], 0 where episodes end."""
    n, weights = len(potentials), mdp.weights @ np.moveaxis(mdp.reward, -1, 0).reshape(mdp.n, -1)
    whole = weights.reshape(mdp.reward.shape[:2])  # [S, A] the reward of the task
    ahead = (mdp.going_on[None] * potentials[:, mdp.successor]).sum(axis=-1)  # [n, S, A]
    reward = whole[None] + gamma * ahead - potentials[:, :, None]
    return replace(
        mdp, advisors=tuple(f"member {j + 1}" for j in range(n)), reward=np.moveaxis(reward, 0, -1),
        weights=np.full(n, 1.0 / n), local=np.tile(np.arange(mdp.states), (n, 1)), gammas=(), groups=(),
    )  # fmt: skip


@kind("whole-ensemble")
def empathic(config: dict[str, Any]) -> dict[str, Any]:
    """Exact empathic values of an ensemble on a random MDP: what its policy loses, and how far each is from Q*."""
    gamma, aggregation = config["gamma"], config["aggregation"]
    mdp = enumerate_task(make("random-mdp", advisors=1, instance=config["seed"]))
    best, _ = optimum(mdp, gamma)
    potentials = np.random.default_rng(config["seed"]).normal(size=(3, mdp.states))
    found = solve(shaped(mdp, potentials, gamma), "empathic", gamma, aggregation=aggregation)
    worth = (found.policy * evaluate(mdp, found.policy, gamma).values[0]).sum(axis=1)  # [S]
    scale = float(np.abs(best).max())
    return {
        "loss": float((best.max(axis=1) - worth).max()) / scale,
        "off": float(np.abs(found.values + potentials[:, :, None] - best).max()) / scale,
    }


def safe(name: str, seed: int) -> Job:
    """Three shapings of a random MDP, empathic, combined by a vote or by the sum."""
    return Job("whole-ensemble", {"aggregation": VOTES.get(name, "sum"), "gamma": GAMMA, "seed": seed})


# ---- the system ------------------------------------------------------------------------------------------------------
def curves(evidence: Evidence) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """[seeds, evaluations] the scores of single learners and of ensembles, by name."""
    alone, together = ({name: evidence.curve(run) for name, run in runs.items()} for runs in (ALONE, TOGETHER))
    return alone, together


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """Votes against single learners and against each other; and the safety of empathy."""
    alone, together = (
        {name: runs[:, LEARNED:].mean(axis=1) for name, runs in found.items()} for found in curves(evidence)
    )
    best = max(alone, key=lambda name: alone[name].mean())
    average = np.mean(list(alone.values()), axis=0)
    found = []
    for name, runs in together.items():
        claim = f"{name}: scores more than the mean of single learners."
        found.append(above(f"{VOTES[name]}-singles".replace("_", "-"), claim, paired(runs, average)))
    for name in ("Boltzmann product", "majority"):
        claim = f"{name}: scores at least as much as the best single learner, without choosing it."
        short = VOTES[name].replace("_", "-")
        found.append(not_below(f"{short}-best", claim, paired(together[name], alone[best])))
    for first, second in (("Boltzmann product", "Boltzmann sum"), ("majority", "ranks")):
        names = f"{VOTES[first]}-{VOTES[second]}".replace("_", "-")
        claim = f"The order of the paper: {first} scores more than {second}."
        found.append(above(names, claim, paired(together[first], together[second])))
    for measure, claim in (
        ("loss", "Empathic planning with whole states loses nothing, however the ensemble is aggregated (exact)."),
        ("off", "Every empathic member then has the true values, less its own potential (exact)."),
    ):
        worst = float(max(evidence.over(partial(safe, name), measure).max() for name in (*VOTES, "sum")))
        found.append(seen(f"empathic-{measure}", claim, worst, worst < 1e-9))
    return found


def panels(evidence: Evidence) -> list[Panel]:
    """Learning curves, and the final performance."""
    alone, together = curves(evidence)
    shown = alone | {f"ensemble, {name}": runs for name, runs in together.items()}
    last = {name: estimate(runs[:, LEARNED:].mean(axis=1)) for name, runs in shown.items()}
    across = evaluated_at(SCHEDULE)
    return [
        panel("bands", shown, across, ("transitions, dyna-maze", "score of an episode")),
        panel("intervals", last, "score of an episode, once the way is known"),
    ]


RUNS: list[Run] = [*ALONE.values(), *TOGETHER.values(), *(partial(safe, name) for name in (*VOTES, "sum"))]
STUDY = system("ensembles", "Ensembles of learners", 50, RUNS, findings, panels, (12, 4.5))
