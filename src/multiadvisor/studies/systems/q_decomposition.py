"""Q-decomposition (Russell and Zimdars 2003): advisors that value what the arbitrator does against selfish ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import greedy_policy, solve
from multiadvisor.core.intervals import Estimate, estimate, paired
from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds.fishery import FIRST, LEVELS
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.studies.claims import JudgedClaim, above, below, not_below, seen
from multiadvisor.studies.study import Evidence, Panel, Run, evaluated_at, panel, system

PLANNINGS = {"local Q": "egocentric", "local Sarsa": "sarsa"}
SCHEDULES = {
    "dollars-and-euros": {"steps": 20_000, "eval_every": 2_000, "eval_episodes": 50},
    "racetrack": {"steps": 250_000, "eval_every": 25_000, "eval_episodes": 50},  # some 4,000 episodes
}
SETTINGS: dict[str, dict[str, Any]] = {
    "dollars-and-euros": {"gamma": 0.9},
    # epsilon .25 falls to .0625 within 2,500 episodes, alpha .3 to .01 within all of them
    "racetrack": {"gamma": 1.0, "alpha": 0.3, "alpha_half": 8_600, "epsilon": 0.25, "epsilon_half": 52_000},
}
YEARLY, YEARS = 0.9, 100
FISHING = 2_000_000  # transitions
FLEETS = {
    "local Sarsa": ("sarsa", "fleet"), "local Q": ("egocentric", "fleet"), "each boat for itself": ("sarsa", "boat"),
}  # fmt: skip


# ---- the fishery: the exact fate of a learned policy -----------------------------------------------------------------
def fate(mdp: FiniteMDP, policy: np.ndarray, steps: int) -> dict[str, float]:
    """What is caught in so many steps, in thousands, and the stock that is left then; policy [S, A]."""
    caught = (policy * mdp.reward.sum(axis=-1)).sum(axis=1)  # [S]
    flow = policy[:, :, None] * mdp.going_on  # [S, A, K]
    occupied, total = mdp.start, 0.0
    for _ in range(steps):
        total += float(occupied @ caught)
        after = np.zeros(mdp.states)
        np.add.at(after, mdp.successor, flow * occupied[:, None, None])
        occupied = after
    return {"catch": total, "stock": float(occupied @ np.repeat(LEVELS, mdp.n))}


@kind("fishery")
def fish(config: dict[str, Any]) -> dict[str, Any]:
    """A fleet that learns, or without a seed the exact fixed point of its planning; then a hundred years."""
    whole = make("fishery")
    mdp, gamma = enumerate_task(whole), YEARLY ** (1 / whole.n)  # a year has a step for each boat
    if config["seed"] is None:
        return fate(mdp, solve(mdp, config["planning"], gamma).policy, YEARS * whole.n)
    steps = config["steps"]
    task = make("fishery", heard=config["heard"], start="anywhere", years=5)
    cooling = {"alpha": 0.6, "alpha_half": steps // 3, "epsilon": 0.5, "epsilon_half": steps // 5}
    agent = MultiAdvisor(task, planning=config["planning"], gamma=gamma, seed=config["seed"], **cooling)
    agent.learn(steps, progress=False)
    preferences = np.array([agent.preferences([state]) for state in range(mdp.states)])  # [S, A]
    return fate(mdp, greedy_policy(preferences), YEARS * whole.n)


def fleet(name: str, seed: int | None) -> Job:
    """A fleet that learns; without a seed, its fixed point."""
    planning, heard = FLEETS[name]
    return Job("fishery", {"planning": planning, "heard": heard, "seed": seed, "steps": FISHING})


# ---- the system ------------------------------------------------------------------------------------------------------
def job(planning: str, task: str, seed: int) -> Job:
    """A run on dollars and euros, or on the racetrack."""
    settings = {"planning": planning, "seed": seed, **SETTINGS[task]}
    return Job("train", {"task": task, "settings": settings, "schedule": SCHEDULES[task]})


def exact(name: str) -> Job:
    """The fixed point of a fleet; that of local Sarsa without exploring is the optimum, as for empathic planning."""
    planning = {"local Sarsa": "empathic", "local Q": "egocentric"}[name]
    return Job("fishery", {"planning": planning, "heard": "fleet", "seed": None, "steps": 0})


def findings(evidence: Evidence) -> list[JudgedClaim]:
    """Local Q sits still or crashes, local Sarsa earns."""
    found = []
    for task, claim in (
        ("dollars-and-euros", "Dollars and euros: local Sarsa earns more than local Q, which waits for ever."),
        ("racetrack", "Racetrack: local Sarsa scores more than local Q."),
    ):
        selfish, sarsa = (evidence.curve(partial(job, planning, task))[:, -1] for planning in PLANNINGS.values())
        found.append(above(task, claim, paired(sarsa, selfish)))
    spread = max(float(selfish.std(ddof=1)), 1e-9)
    apart = estimate((sarsa - selfish) / spread)
    claim = "Racetrack: it is ahead by about one standard deviation of local Q's runs, or more."
    found.append(not_below("racetrack-deviations", claim, apart, 1.0))
    return [*found, *fishery_findings(evidence)]


def fishery_findings(evidence: Evidence) -> list[JudgedClaim]:
    """Who sustains the stock, and who lives on it."""
    selfish, best = evidence.result(exact("local Q")), evidence.result(exact("local Sarsa"))
    catch, stock = (evidence.over(partial(fleet, "local Sarsa"), measure) for measure in ("catch", "stock"))
    alone, left = evidence.over(partial(fleet, "each boat for itself"), "stock"), selfish["stock"] / FIRST
    return [
        above("fishery-sustains", "Fishery: with local Sarsa half of the first stock or more is left after 100 years.",
              estimate(stock / FIRST), 0.5),
        above("fishery-catch", "Fishery: local Sarsa catches 90% or more of what is possible in 100 years.",
              estimate(catch / best["catch"]), 0.9),
        above("fishery-ahead", "Fishery: local Sarsa catches more than local Q at its fixed point (thousands of fish).",
              estimate(catch - selfish["catch"])),
        seen("fishery-collapse", "Fishery: at its fixed point local Q leaves less than a tenth of the first stock.",
             left, left < 0.1),
        below("fishery-alone", "Fishery: boats that decide for themselves leave less than a tenth of the first stock.",
              estimate(alone / FIRST), 0.1),
    ]  # fmt: skip


def panels(evidence: Evidence) -> list[Panel]:
    """Learning curves, and what the fleets catch."""
    drawn: list[Panel] = []
    for task, schedule in SCHEDULES.items():
        curves = {name: evidence.curve(partial(job, planning, task)) for name, planning in PLANNINGS.items()}
        steps = evaluated_at(schedule)
        drawn.append(panel("bands", curves, steps, (f"transitions, {task}", "score of an episode")))
    catches = {f"{name}, learned": estimate(evidence.over(partial(fleet, name), "catch")) for name in FLEETS}
    for name in PLANNINGS:
        catch = evidence.result(exact(name))["catch"]
        catches[f"{name}, exact"] = Estimate(catch, catch, catch)
    label = "fishery: thousands of fish caught in 100 years"
    return [*drawn, panel("intervals", catches, label)]


RUNS: list[Run] = [
    *(partial(job, planning, task) for task in SCHEDULES for planning in PLANNINGS.values()),
    *(partial(fleet, name) for name in FLEETS), *(lambda seed, name=name: exact(name) for name in PLANNINGS),
]  # fmt: skip
STUDY = system("q-decomposition", "Q-decomposition", 30, RUNS, findings, panels, (14, 4))
