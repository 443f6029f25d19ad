"""W-learning (Humphrys 1996): in control is who would lose most if it were not obeyed, and the sum beside it."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory import enumerate_task, evaluate, solve
from multiadvisor.core.intervals import estimate, paired
from multiadvisor.envs.worlds.gadgets import finite_task
from multiadvisor.errors import Caution
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.claims import JudgedClaim, above, below, not_below, seen
from multiadvisor.studies.study import Evidence, Panel, panel, system
from multiadvisor.task import Task

COMPARED = {"sum": "the sum", "max": "the strongest wish", "w_learning": "W-learning"}
CROWDS = {"alike": "five of one mind against one", "apart": "six interests of their own"}
STATES, ACTIONS, ADVISORS, OUTCOMES = 20, 4, 6, 3
STAKE, CONSTANT = 2.0, 5.0
GAMMA, STEPS = 0.9, 500_000


def crowd(instance: int, minds: str, constant: float = 0.0) -> Task:
    """A random endless MDP with six advisors; `alike`: the first five want the same, and the last has more at stake.

    The constant is added to what the first one gets, step by step.
    """
    generator, shape = np.random.default_rng([instance, STATES]), (STATES, ACTIONS, OUTCOMES)
    probability, successor = generator.dirichlet(np.ones(OUTCOMES), shape[:2]), generator.integers(STATES, size=shape)
    reward = generator.random((*shape, ADVISORS))
    if minds == "alike":
        reward[..., :-1] = reward[..., :1]
        reward[..., -1] *= STAKE
    reward[..., 0] += constant
    return finite_task(
        "crowd", tuple(f"a_{a}" for a in range(ACTIONS)), tuple(f"advisor {j + 1}" for j in range(ADVISORS)),
        np.full(STATES, 1.0 / STATES), probability, successor, reward, np.zeros(shape), limit=100,
    )  # fmt: skip


@kind("regret")
def regret_work(config: dict[str, Any]) -> dict[str, Any]:
    """Learn in a crowd, then ask exactly what the greedy policy costs each advisor, as if it had been in control."""
    task = crowd(config["seed"], config["minds"], config["constant"])
    settings: dict[str, Any] = {"planning": "egocentric", "gamma": GAMMA, "epsilon": 0.2, "alpha": 0.2,
                                "alpha_half": 20_000}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        agent = MultiAdvisor(task, aggregation=config["aggregation"], seed=config["seed"], **settings)
        agent.learn(config["steps"], progress=False)
    mdp = enumerate_task(task)
    policy = np.eye(ACTIONS)[[agent.act(np.array([state])) for state in range(STATES)]]  # [S, A]
    alone = solve(mdp, "egocentric", GAMMA).values.max(axis=-1) @ mdp.start  # [n]
    got = (evaluate(mdp, policy, GAMMA).values * policy).sum(axis=-1) @ mdp.start
    return {"regret": (alone - got).tolist()}


def job(aggregation: str, minds: str, constant: float, seed: int) -> Job:
    """A run."""
    return Job(
        "regret", {"aggregation": aggregation, "minds": minds, "constant": constant, "steps": STEPS, "seed": seed}
    )


def cases() -> list[tuple[str, str, float]]:
    """The aggregation, who they are, and the constant."""
    return [
        *((aggregation, minds, 0.0) for aggregation in ("sum", "w_learning") for minds in CROWDS),
        ("max", "alike", 0.0), *((aggregation, "alike", CONSTANT) for aggregation in COMPARED),
    ]  # fmt: skip


def worst(evidence: Evidence, aggregation: str, minds: str = "alike", constant: float = 0.0) -> np.ndarray:
    """The regret of who regrets most [seeds]."""
    return np.asarray(evidence.over(partial(job, aggregation, minds, constant), "regret").max(axis=1))


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """The worst regret, and what a constant changes."""
    alike, apart = (paired(*(worst(evidence, one, minds) for one in ("w_learning", "sum"))) for minds in CROWDS)
    changes = {one: paired(worst(evidence, one, "alike", CONSTANT), worst(evidence, one)) for one in COMPARED}
    own = changes["w_learning"]
    return [
        below("worst-regret", "Five of one mind against one with more at stake: the worst regret is smaller than with "
              "the sum.", alike),
        not_below("independent", "Six independent interests: it is not smaller there, as the sum is a compromise and "
                  "control is not.", apart),
        seen("constants", f"With {CONSTANT:g} added to what one of the five gets in each step, the worst regret stays "
             "as it is.", own, own.low <= 0.0 <= own.high),
        above("strongest-wish", "The strongest wish in control (max) is not immune: the same constant raises its worst "
              "regret.", changes["max"]),
    ]  # fmt: skip


def panels(evidence: Evidence) -> list[Panel]:
    """The worst regrets."""
    found = {
        **{f"{COMPARED[aggregation]}\n{CROWDS[minds]}": estimate(worst(evidence, aggregation, minds))
           for minds in CROWDS for aggregation in ("sum", "w_learning")},
        **{f"{name}\n{CROWDS['alike']}, + {CONSTANT:g}": estimate(worst(evidence, aggregation, "alike", CONSTANT))
           for aggregation, name in COMPARED.items()},
    }  # fmt: skip
    return [panel("intervals", found, "worst regret (discounted)")]


STUDY = system("w-learning", "W-learning", 80, [partial(job, *case) for case in cases()], findings, panels, (8, 4.5))
