"""The attractors of a board, by the theory lab: of exact values and of those that were learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.attractors import attractors
from multiadvisor.analysis.theory.boards import board_solution
from multiadvisor.analysis.theory.solver import Solution
from multiadvisor.core.aggregator import learned_beside
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.explorer.playing import own_weights, reweighted
from multiadvisor.learners.registry import own_settings


def attractor_layer(
    agent: MultiAdvisor, x: np.ndarray, weights: list[float] | None = None, learned: bool = True
) -> dict[str, Any]:
    """The attractors of the board x, aggregated as the agent does: of exact egocentric values, and of the learned ones.

    Learned values of another planning have no attractors by definition; without `learned` they are not looked at.
    """
    task = reweighted(agent.task, own_weights(agent, weights))
    if (maze := maze_of(task)) is None:
        raise BadInput(
            f"attractors of single boards are for mazes: `multiadvisor solve {task.name}` looks at all states"
        )
    if beside := learned_beside(agent.settings.aggregation):
        raise BadInput(
            f"attractors are those of the advisors' own values, and this run acts by more ({beside[0]}): its sentence "
            "says whether the walk from here earns"
        )
    gamma = agent.settings.gamma
    found: dict[str, list[dict[str, Any]] | None] = {"exact": [], "learned": [] if learned else None}
    egocentric = not own_settings(agent.settings).summed and agent.settings.planning == "egocentric"
    if x[1 + len(maze.ghost_start) :].any():
        found["exact"] = _listed(board_solution(task, x, gamma, aggregation=_aggregation(agent)))
        found["learned"] = _listed(board_solution(task, x, gamma, agent)) if learned and egocentric else None
    return {"gamma": gamma, "planning": _kind(agent), **found}


def _kind(agent: MultiAdvisor) -> str:
    """How its values were learned: a linear learner has a planning in its settings, and does not use it."""
    own = own_settings(agent.settings)
    return own.name if own.summed else agent.settings.planning


def _aggregation(agent: MultiAdvisor) -> str:
    """How it combines the task's advisors; beside a network that has others than these they are summed."""
    return agent.settings.aggregation if own_settings(agent.settings).per_advisor else "sum"


def _listed(solution: Solution) -> list[dict[str, Any]]:
    return [
        {"cell": one.state, "stable": one.stable, "margin": one.margin, "action": one.action,
         "advisors": list(one.advisors[:5])}
        for one in attractors(solution)
    ]  # fmt: skip
