"""Greedy episodes watched step by step: the paper's five videos, and where an egocentric agent comes to rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.boards import Maze, peaks
from multiadvisor.core.rng import low_half
from multiadvisor.envs.registry import make
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.envs.step import Step
from multiadvisor.runs.jobs import Job, kind
from multiadvisor.settings import Schedule
from multiadvisor.studies.paper.dqn_clipped import dqn_jobs, runs_of
from multiadvisor.studies.paper.pac_boy_study import ADVISORS, DQN, Setting, distances, run_config, trained
from multiadvisor.studies.study import ALL, Evidence, Figure, Plan, Study

STRONGEST = 3  # advisors shown of a step
SETTLED = 60  # steps after which an agent that comes to rest has done so
CLOSE = 4  # steps: a ghost within them is near
Says = list[tuple[str, float]]


def watch(agent: MultiAdvisor, evaluation: int, episodes: int = 1) -> list[list[Step]]:
    """The very episodes of `agent.evaluate(episodes, seeds=(evaluation,))`, step by step."""
    source = EvaluationEpisodes(agent.task, agent.settings.seed, evaluation)
    return [
        list(rollout(source, episode, lambda x, draw: agent.act(x, low_half(np.uint64(draw)))))
        for episode in range(episodes)
    ]


def influence(agent: MultiAdvisor, x: np.ndarray, action: int) -> Says:
    """Who decided: by how much each advisor prefers the action taken to the mean of all, the strongest first."""
    names, advice = agent.advice(x)
    weights = {advisor.name: advisor.weight for advisor in agent.task.advisors}
    wish = np.array([weights[name] for name in names]) * (advice[:, action] - advice.mean(axis=1))
    order = np.argsort(-np.abs(wish), kind="stable")[:STRONGEST]
    return [(names[j], float(wish[j])) for j in order if wish[j] != 0]


@kind("trace")
def trace_work(config: dict[str, Any]) -> dict[str, Any]:
    """Train an agent to the end of its schedule and keep the first episode of the evaluation that follows."""
    return recorded(trained(config["run"]), Schedule(**config["run"]["schedule"]).evaluations, influence)


def recorded(agent: MultiAdvisor, evaluation: int, says: Callable[..., Says] = lambda *_: []) -> dict[str, Any]:
    """The first episode of an evaluation, for drawing; `says` tells who decided a step."""
    grid = agent.task.grid
    (steps,) = watch(agent, evaluation)
    return {
        "movers": [grid.movers(x).tolist() for x in (*(step.state for step in steps), steps[-1].next_state)],
        "fruit": grid.item_cells[grid.lying(steps[0].state)].tolist(),
        "actions": [step.action for step in steps],
        "rewards": [step.gain for step in steps],
        "advisors": [[list(one) for one in says(agent, step.state, step.action)] for step in steps],
    }  # fmt: skip


def _share(what: np.ndarray, among: np.ndarray) -> float:
    """The share of steps in which something is so, among some of them; 0 where there are none of these."""
    return float(what[among].mean()) if among.any() else 0.0


@kind("resting")
def resting_work(config: dict[str, Any]) -> dict[str, Any]:
    """Where a trained agent stands late in its episodes, and where the exact solver has attractors on the same
    boards."""
    agent, last = trained(config["run"]), Schedule(**config["run"]["schedule"]).evaluations
    grid, calm = agent.task.grid, make("pac-boy", ghosts=False)
    episodes = watch(agent, last, config["watched"])
    steps = [step for episode in episodes for step in episode]
    x, after = (np.array(states) for states in zip(*((step.state, step.next_state) for step in steps), strict=True))
    (cell, *ghosts), boards = grid.movers(x).T, grid.lying(x)
    since = np.concatenate([np.arange(len(episode)) for episode in episodes])
    late = since >= SETTLED
    apart = distances(agent.task)
    ghost = np.min([apart[cell, other] for other in ghosts], axis=0)
    peak = peaks(Maze(calm), boards, agent.settings.gamma)[0]  # [steps, cells]
    near = np.any(peak[:, None, :] & (apart <= 1), axis=-1)  # [steps, cells]: an attractor, or next to one
    row = np.arange(len(x))
    moved = np.ones(len(x), bool)  # whether the step led to a cell where it was not one or two steps before
    moved[2:] = (cell[2:] != cell[1:-1]) & (cell[2:] != cell[:-2])
    stood = grid.movers(after)[:, 0] == cell
    far = late & (ghost > CLOSE)
    middle = np.abs(grid.cells - (np.array(grid.shape) - 1) / 2).max(axis=1)  # [cells]
    eaten = boards.sum(axis=1) - grid.lying(after).sum(axis=1)
    return {
        "cells": np.bincount(cell[late], minlength=len(grid.cells)).tolist(),
        "attractors": peak[late].sum(axis=0).tolist(),
        "on": _share(near[row, cell], late),
        "chance": float(near[late].mean()) if late.any() else 0.0,
        "still_far": _share(~moved, far),
        "still_near": _share(~moved, late & ~far),
        "stood_far": _share(stood, far),
        "stood_near": _share(stood, late & ~far),
        "centre": float(middle[cell[late]].mean()) if late.any() else 0.0,
        "centre_chance": float(middle.mean()),
        "eaten_late": float(eaten[late].sum() / config["watched"]),
        "eaten_early": float(eaten[~late].sum() / config["watched"]),
    }


# ---- the videos ------------------------------------------------------------------------------------------------------
def trace_job(setting: Setting, plan: Plan) -> Job:
    """The first episode of the last evaluation of the first seed."""
    return Job("trace", {"run": run_config(setting, 0, plan)})


def jobs(plan: Plan) -> list[Job]:
    """One episode of each setting."""
    return [*(trace_job(setting, plan) for setting in ADVISORS), *dqn_jobs(plan)[:1]]


def described(trace: dict[str, Any], epoch: int) -> str:
    """What is to be seen, in numbers."""
    steps, fruits, score = len(trace["actions"]), set(trace["fruit"]), sum(trace["rewards"])
    eaten = len(fruits & {cell for cell, *_ in trace["movers"]})
    end = "cut off" if eaten < len(fruits) else "all fruit eaten"
    return f"Epoch {epoch}, first episode: score {score:g}, {eaten} of {len(fruits)} fruits, {steps} steps, {end}."


def figures(evidence: Evidence) -> list[Figure]:
    """One episode of each setting at the last epoch."""
    plan = evidence.plan
    found = [(setting.name, evidence.result(trace_job(setting, plan)), plan.epochs) for setting in ADVISORS]
    first = runs_of(evidence, dqn_jobs(plan))[0] if dqn_jobs(plan) else {}
    found += [(DQN, first["episode"], len(first["evaluations"]))] if "episode" in first else []
    return [
        Figure(name.replace(" ", "-"), name, described(trace, epoch), episode=trace) for name, trace, epoch in found
    ]


STUDY = Study(
    "videos", "One episode of each setting", 60, jobs, figures, report=ALL,
    needs=("plots", "video"), about="one episode of each setting, as MP4 and GIF",
)  # fmt: skip
