"""The gallery: small worlds that show one trouble each, with exact values, as agents that the page can look at."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.theory.attractors import attractors, critical_gamma
from multiadvisor.analysis.theory.boards import Maze
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import SOLVED, Solution, best_actions, check_planning, solve
from multiadvisor.envs.registry import make
from multiadvisor.errors import BadInput, unknown
from multiadvisor.explorer.bundle import episode_pack, pack, run_pack
from multiadvisor.settings import number_between
from multiadvisor.task import Task

LARGEST_GAMMA = 0.999  # closer to 1 the exact values of some plannings take many seconds
_LEARNED = 20_000  # transitions of the noisy learner
_alone = threading.Lock()  # one exhibit is solved at a time, whoever asks


@dataclass(frozen=True)
class Exhibit:
    """One world of the gallery, and what to look for in it."""

    title: str
    task: str
    text: str
    planning: str
    gamma: float
    noise: float | None = None
    """None: exact values; else values learned from rewards with this noise."""


EXHIBITS = {
    "three-fruits": Exhibit(
        "Three fruits", "three-fruits",
        "Three fruits, each two steps away. Going South is going nowhere, into the wall. Just above gamma = 0.5 it is "
        "worth most: each advisor would rather stay near its own fruit than see another one approached.",
        "egocentric", 0.6,
    ),
    "four-fruits": Exhibit(
        "Four fruits", "four-fruits",
        "Every step brings one fruit nearer and puts three farther away. Above gamma = 1/3 the middle is an attractor, "
        "though an unstable one: no action stays.",
        "egocentric", 0.45,
    ),
    "two-goal": Exhibit(
        "Two goals", "two-goal",
        "a_0 waits, a_1 and a_2 each end the episode with a reward of 1. Each advisor believes that its own goal comes "
        "next: above gamma = 0.5 waiting promises them more than either goal.",
        "egocentric", 0.9,
    ),
    "bridge": Exhibit(
        "Bridge", "bridge",
        "A bridge over water. Agnostic advisors expect a clumsy player and will not set foot on it; egocentric and "
        "empathic ones cross.",
        "agnostic", 0.9,
    ),
    "noise": Exhibit(
        "Noise", "four-fruits",
        "Values learned from rewards with Gaussian noise. A small gamma leaves little of a distant fruit, 0.4^5 = "
        "0.01, far less than the noise: raise it and the arrows step at random. The share of cells whose greedy action "
        "is one of the exact ones says how many are left.",
        "egocentric", 0.4, 0.3,
    ),
}  # fmt: skip


def listing() -> dict[str, Any]:
    """The exhibits and the plannings they can be solved for, for the page."""
    return {"gallery": [{"id": name, **vars(one)} for name, one in EXHIBITS.items()], "plannings": list(SOLVED)}


@functools.cache
def _mdp(task: str) -> tuple[Task, FiniteMDP, float | None]:
    made = make(task)
    mdp = enumerate_task(made)
    return made, mdp, critical_gamma(mdp)


@functools.lru_cache(maxsize=256)
def _solved(task: str, planning: str, gamma: float) -> Solution:
    return solve(_mdp(task)[1], planning, gamma)


def exact(task: str, planning: str, gamma: float) -> MultiAdvisor:
    """An agent whose tables hold the exact values of a small task under any planning.

    >>> agent = exact("three-fruits", "egocentric", 0.6)
    >>> agent.task.actions[agent.act(agent.task.initial_state())]
    'S'
    """
    made, mdp, _ = _mdp(task)
    solution = _solved(task, planning, gamma)
    agent = MultiAdvisor(made, planning=planning, gamma=gamma)
    for k, name in enumerate(mdp.advisors):
        j = made.names.index(name)
        advises = np.flatnonzero(mdp.local[k] >= 0)
        agent.tables.fill(j, mdp.local[k, advises], solution.values[k, advises])
    return agent


def exhibit(name: str, planning: str, gamma: float, noise: float) -> bytes:
    """One exhibit: a run, its greedy episode, and what the solver says of its first state."""
    if name not in EXHIBITS:
        raise unknown("exhibit", name, EXHIBITS)
    check_planning(planning)
    number_between("gamma", gamma, 0, 1)
    if gamma > LARGEST_GAMMA:
        raise BadInput(f"gamma is {gamma}: choose it at most {LARGEST_GAMMA}, as more takes the solver too long")
    if EXHIBITS[name].noise is not None and not 0.0 <= noise <= 10.0:
        raise BadInput(f"noise is {noise}: choose it between 0 and 10")
    with _alone:
        return _shown(name, EXHIBITS[name], planning, gamma, noise)


def _shown(name: str, one: Exhibit, planning: str, gamma: float, noise: float) -> bytes:
    made, mdp, critical = _mdp(one.task)
    solution = _solved(one.task, planning, gamma)
    agent = exact(one.task, planning, gamma)
    agreement = None
    if one.noise is not None:
        truth = agent
        agent = MultiAdvisor(made, planning=planning, gamma=gamma, epsilon=0.2, noise=noise, seed=1)
        agent.learn(_LEARNED, progress=False)
        agreement = _agreement(agent, truth)
    trace = record(agent, 1, 0)
    first = int(mdp.start.argmax())
    found = attractors(solution) if planning == "egocentric" else []
    here = next((at for at in found if at.state == first), None)
    header = {
        "id": name, "planning": planning, "gamma": gamma, "noise": noise if one.noise is not None else None,
        "critical": critical, "attractor": None if here is None else {"stable": here.stable, "margin": here.margin},
        "converged": solution.converged, "agreement": agreement, "steps": int(trace.length[0]),
        "terminated": bool(trace.terminated[0]), "score": float(trace.score[0]),
    }  # fmt: skip
    parts = [run_pack(agent, one.title), episode_pack(trace, 0, agent)]
    arrays = {name: np.frombuffer(part, np.uint8) for name, part in zip(("run", "episode"), parts, strict=True)}
    return pack(header, arrays)


def _agreement(agent: MultiAdvisor, truth: MultiAdvisor) -> float:
    """The share of cells, all fruit in place, in which the greedy action is one of the exact ones."""
    x, world = agent.task.initial_state(), Maze(agent.task).world
    held = {int(cell) for cell in world.fruit_cell}
    right = []
    for cell in range(len(world.neighbour)):
        if cell not in held:
            state = [cell, *x[1:]]
            right.append(bool(best_actions(truth.preferences(state))[agent.act(state)]))
    return float(np.mean(right))
