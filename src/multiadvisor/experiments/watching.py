"""Greedy games watched turn by turn: where Pac-Boy goes, who wanted it, and where an egocentric agent comes to rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.draws import low_half
from multiadvisor.experiments.pac_boy import trained
from multiadvisor.runs.jobs import Tell, kind
from multiadvisor.theory.boards import peaks
from multiadvisor.worlds.builtin import make
from multiadvisor.worlds.episode import Turn, episode, games_of

STRONGEST = 3  # advisors shown of a turn
SETTLED = 60  # turns after which an agent that comes to rest has done so
CLOSE = 4  # steps: a ghost within them is near
Says = list[tuple[str, float]]


def watch(agent: MultiAdvisor, evaluation: int, games: int = 1) -> list[list[Turn]]:
    """The very games of `agent.evaluate(games, seeds=(evaluation,))`, turn by turn."""
    source = games_of(agent.task, agent.settings.seed, evaluation)
    return [
        list(episode(source, game, lambda x, draw: agent.act(x, low_half(np.uint64(draw))))) for game in range(games)
    ]


def earned(agent: MultiAdvisor, turn: Turn) -> float:
    """What a turn added to the score."""
    return float(agent.task.weights[turn.advisors] @ turn.reward)


def influence(agent: MultiAdvisor, x: np.ndarray, action: int) -> Says:
    """Who decided: by how much each advisor prefers the action taken to the mean of all, the strongest first."""
    names, advice = agent.advice(x)
    weights = {focus.name: focus.weight for focus in agent.task.foci}
    wish = np.array([weights[name] for name in names]) * (advice[:, action] - advice.mean(axis=1))
    order = np.argsort(-np.abs(wish), kind="stable")[:STRONGEST]
    return [(names[j], float(wish[j])) for j in order if wish[j] != 0]


def _nobody(agent: MultiAdvisor, x: np.ndarray, action: int) -> Says:
    return []


@kind("trace")
def trace_work(config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None) -> dict[str, Any]:
    """Train an agent to the end of its schedule and keep the first game of the evaluation that follows."""
    return recorded(trained(config["run"]), config["run"]["schedule"]["epochs"], influence)


def recorded(agent: MultiAdvisor, evaluation: int, says: Callable[..., Says] = _nobody) -> dict[str, Any]:
    """The first game of an evaluation, for drawing; `says` tells who decided a turn."""
    grid = agent.task.grid
    (turns,) = watch(agent, evaluation)
    return {
        "movers": [grid.movers(x).tolist() for x in (*(turn.state for turn in turns), turns[-1].after)],
        "fruit": grid.item_cells[grid.lying(turns[0].state)].tolist(),
        "actions": [turn.action for turn in turns],
        "rewards": [earned(agent, turn) for turn in turns],
        "advisors": [[list(one) for one in says(agent, turn.state, turn.action)] for turn in turns],
    }  # fmt: skip


def steps_between(neighbour: np.ndarray) -> np.ndarray:
    """[cells, cells]: the steps from each cell to each other."""
    cells = len(neighbour)
    apart = np.where(np.eye(cells, dtype=bool), 0, cells)
    for _ in range(cells):
        shorter = np.minimum(apart, apart[neighbour].min(axis=1) + 1)
        if np.array_equal(shorter, apart):
            break
        apart = shorter
    return apart


def _share(what: np.ndarray, among: np.ndarray) -> float:
    """The share of turns in which something is so, among some of them; 0 where there are none of these."""
    return float(what[among].mean()) if among.any() else 0.0


@kind("resting")
def resting_work(config: dict[str, Any], folder: Path | None = None, tell: Tell | None = None) -> dict[str, Any]:
    """Where a trained agent stands late in its games, and where the exact solver has attractors on the same boards."""
    agent, epochs = trained(config["run"]), config["run"]["schedule"]["epochs"]
    grid, calm = agent.task.grid, make("pac-boy", ghosts=False)
    games = watch(agent, epochs, config["watched"])
    turns = [turn for game in games for turn in game]
    x, after = (np.array(states) for states in zip(*((turn.state, turn.after) for turn in turns), strict=True))
    (cell, *ghosts), boards = grid.movers(x).T, grid.lying(x)
    since = np.concatenate([np.arange(len(game)) for game in games])
    late = since >= SETTLED
    apart = steps_between(grid.neighbour)
    ghost = np.min([apart[cell, other] for other in ghosts], axis=0)
    peak = peaks(calm, boards, agent.settings.gamma)[0]  # [turns, cells]
    near = np.any(peak[:, None, :] & (apart <= 1), axis=-1)  # [turns, cells]: an attractor, or next to one
    row = np.arange(len(x))
    moved = np.ones(len(x), bool)  # whether the turn led to a cell where it was not one or two turns before
    moved[2:] = (cell[2:] != cell[1:-1]) & (cell[2:] != cell[:-2])
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
        "centre": float(middle[cell[late]].mean()) if late.any() else 0.0,
        "centre_chance": float(middle.mean()),
        "eaten_late": float(eaten[late].sum() / config["watched"]),
        "eaten_early": float(eaten[~late].sum() / config["watched"]),
    }
