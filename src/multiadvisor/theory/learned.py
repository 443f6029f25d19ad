"""Where a trained agent stands: is this state an attractor by its own learned values, and does its greedy walk rest?

Asked of any agent that has `task`, `settings` and `advice(state)`; mazes are looked at as they lie, ghosts where they
are, and listed worlds state by state. Of other worlds nothing is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.aggregations import LEARNED
from multiadvisor.task import Task
from multiadvisor.theory.attractors import attractor_states, leaves, margins, stable_states, stuck_states
from multiadvisor.theory.boards import board_solution
from multiadvisor.theory.enumerate import enumerate_task
from multiadvisor.theory.solver import Solution
from multiadvisor.worlds.maze import maze_of

_MOST_VALUES = 4_000_000  # beyond it looking around takes longer than anybody would wait for a sentence


class Surroundings(NamedTuple):
    """What is known of one state."""

    leaves: np.ndarray
    """[A] bool: the actions that lead elsewhere, end the game or pay somebody."""
    attractor: bool | None
    """Whether staying seems better than leaving; None where advisors do not plan egocentrically."""
    stable: bool | None
    """Whether the greedy aggregator can remain in it, or in others like it."""
    margin: float | None
    """By how much staying beats the best action that leaves; below 0 where it does not."""
    stuck: bool | None
    """Whether the greedy walk from here never earns and never ends; None where advisors are not summed."""


def _values(task: Task) -> int:
    """How many the agent would be asked for."""
    states = 0 if task.world is None or task.world.sizes is None else task.world.sizes[0]
    return task.n * states * len(task.actions)


def learned_solution(agent: Any, x: np.ndarray) -> tuple[Solution, int] | None:
    """The agent's values over all cells of the board, or all states, and which one x is; None where nobody knows."""
    task: Task = agent.task
    deep = getattr(agent.settings, "deep", None)
    if deep is not None and deep.split != "advisors":
        return None  # its values are not those of the task's advisors
    if any(name in getattr(agent.settings, "aggregation", "sum") for name in LEARNED):
        return None  # the advisors' values alone are not what it acts by
    if (maze := maze_of(task)) is not None:
        fruits = int(x[1 + len(maze.ghost_start) :].sum())
        if fruits == 0 or len(maze.neighbour) * (fruits + len(maze.ghost_start)) * 4 > _MOST_VALUES:
            return None
        return board_solution(task, x, agent.settings.gamma, agent), int(x[0])
    if task.world is not None and task.world.listing is not None and _values(task) <= _MOST_VALUES:
        mdp = enumerate_task(task)
        values, place = np.zeros((mdp.n, mdp.states, len(mdp.actions))), {name: j for j, name in enumerate(task.names)}
        for state in range(mdp.states):
            names, advice = agent.advice(np.array([state]))
            values[[place[name] for name in names], state] = advice
        planning, gamma = agent.settings.planning, agent.settings.gamma
        heard = agent.settings.aggregation
        return Solution(mdp, planning, gamma, values, np.nan, np.inf, True, 0, aggregation=heard), int(x[0])
    return None


def surroundings(agent: Any, state: Any) -> Surroundings | None:
    """What the agent's own values make of this state; None where the world cannot be listed, or nobody has a say.

    >>> import multiadvisor as mad
    >>> task = mad.make("three-fruits")
    >>> here = surroundings(mad.theory.exact_agent(task, "egocentric", 0.6), task.deal())
    >>> here.attractor, here.stable, here.leaves.tolist()
    (True, True, [True, True, False, True])
    """
    if agent.task.world is None:
        return None
    found = learned_solution(agent, agent.task.world.checked(state, agent.task.name))
    if found is None or not (found[0].mdp.local[:, found[1]] >= 0).any():
        return None
    solution, here = found
    away = leaves(solution.mdp)[here]
    if getattr(agent.settings, "aggregation", "sum") != "sum":
        return Surroundings(away, None, None, None, None)  # a solution's preferences are those of a sum
    stuck = bool(stuck_states(solution)[here])
    if solution.planning != "egocentric" or getattr(agent.settings, "learner", "advisors") == "linear":
        return Surroundings(away, None, None, None, stuck)
    attracting = attractor_states(solution)
    stable, margin = bool(stable_states(solution, attracting)[here]), float(margins(solution)[here])
    return Surroundings(away, bool(attracting[here]), stable, margin if np.isfinite(margin) else None, stuck)
