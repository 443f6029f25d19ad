"""Where a trained agent stands: is this state an attractor by its own learned values, and does its greedy walk rest?

Asked of any agent that has `task`, `settings` and `advice(state)`; mazes are looked at as they lie, ghosts where they
are, and listed worlds state by state. Of other worlds nothing is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.analysis.theory.attractors import (
    attractor_states,
    leaves,
    margins,
    stable_states,
    stuck_by,
    stuck_states,
)
from multiadvisor.analysis.theory.boards import Maze, board_solution
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import Solution
from multiadvisor.core.aggregator import learned_beside
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.learners.registry import own_settings
from multiadvisor.task import Task

_MOST_VALUES = 4_000_000  # beyond it looking around takes longer than anybody would wait for a sentence


class Surroundings(NamedTuple):
    """What is known of one state."""

    leaves: np.ndarray | None
    """[A] bool: the actions that lead elsewhere, end the episode or pay somebody; None if not known."""
    attractor: bool | None
    """Whether staying seems better than leaving; None where advisors do not plan egocentrically, or the aggregator acts
    by more than their values."""
    stable: bool | None
    """Whether the greedy aggregator can remain in it, or in others like it."""
    margin: float | None
    """By how much staying beats the best action that leaves; below 0 where it does not."""
    stuck: bool | None
    """Whether the greedy walk from here never earns and never ends."""


def _foreign(agent: Any) -> bool:
    """Whether its values are not those of the task's advisors."""
    own = own_settings(agent.settings)
    return not (own.per_advisor or own.summed)


def _heard(agent: Any) -> str:
    return getattr(agent.settings, "aggregation", "sum")


def _around(agent: Any, x: np.ndarray) -> tuple[FiniteMDP, list[np.ndarray]] | None:
    """The board x or the listed task as an MDP, and the state x of each of its S states; None if there is none."""
    task: Task = agent.task
    if _foreign(agent) or task.world is None:
        return None
    if maze_of(task) is not None:
        maze = Maze(task)
        lying = [maze.ghosts + place for place in np.flatnonzero(maze.fruit(x)).tolist()]
        if not lying or maze.cells * (len(lying) + maze.ghosts) * 4 > _MOST_VALUES:
            return None
        return maze.board_mdp(x, lying), [np.array([cell, *x[1:]]) for cell in range(maze.cells)]
    states = 0 if task.world.sizes is None else task.world.sizes[0]
    if task.world.listing is None or task.n * states * len(task.actions) > _MOST_VALUES:
        return None
    mdp = enumerate_task(task)
    return mdp, [np.array([state]) for state in range(mdp.states)]


def learned_solution(agent: Any, x: np.ndarray) -> tuple[Solution, int] | None:
    """The agent's values over all cells of the board, or all states, and which one x is; None if not known."""
    task, settings = agent.task, agent.settings
    if learned_beside(_heard(agent)) or (found := _around(agent, x)) is None:
        return None  # the advisors' values alone are not what it acts by
    if maze_of(task) is not None:
        return board_solution(task, x, settings.gamma, agent), int(x[0])
    mdp, states = found
    values, place = np.zeros((mdp.n, mdp.states, len(mdp.actions))), {name: j for j, name in enumerate(task.names)}
    for state, at in enumerate(states):
        names, advice = agent.advice(at)
        values[[place[name] for name in names], state] = advice
    return (
        Solution(mdp, settings.planning, settings.gamma, values, np.nan, np.inf, True, 0, aggregation=_heard(agent)),
        int(x[0]),
    )


def learned_preferences(agent: Any, x: np.ndarray) -> tuple[FiniteMDP, np.ndarray, int] | None:
    """What the agent prefers [S, A] over all cells or states, of whatever it is made, and which one x is."""
    if (found := _around(agent, x)) is None:
        return None
    mdp, states = found
    return mdp, np.array([agent.preferences(state) for state in states], float), int(x[0])


def surroundings(agent: Any, state: Any) -> Surroundings | None:
    """What the agent's own values make of this state, heard as it hears them; None where the world cannot be listed.

    >>> import multiadvisor as mad
    >>> task = mad.make("three-fruits")
    >>> here = surroundings(mad.theory.exact_agent(task, "egocentric", 0.6), task.initial_state())
    >>> here.attractor, here.stable, here.leaves.tolist()
    (True, True, [True, True, False, True])
    >>> here = surroundings(mad.theory.exact_agent(task, "egocentric", 0.6, aggregation="max"), task.initial_state())
    >>> here.attractor, here.stuck
    (False, False)
    """
    if agent.task.world is None:
        return None
    x = agent.task.world.checked(state, agent.task.name)
    if learned_beside(_heard(agent)):
        return _by_preferences(learned_preferences(agent, x))
    found = learned_solution(agent, x)
    if found is None or not found[0].mdp.active[found[1]]:
        return None
    solution, here = found
    away, stuck = leaves(solution.mdp)[here], bool(stuck_states(solution)[here])
    if solution.planning != "egocentric" or own_settings(agent.settings).summed:
        return Surroundings(away, None, None, None, stuck)
    attracting = attractor_states(solution)
    stable, margin = bool(stable_states(solution, attracting)[here]), float(margins(solution)[here])
    return Surroundings(away, bool(attracting[here]), stable, margin if np.isfinite(margin) else None, stuck)


def _by_preferences(found: tuple[FiniteMDP, np.ndarray, int] | None) -> Surroundings | None:
    """Where the aggregator acts by more than the advisors' values: no word on attractors, which are theirs."""
    if found is None or not found[0].active[found[2]]:
        return None
    mdp, preferences, here = found
    return Surroundings(leaves(mdp)[here], None, None, None, bool(stuck_by(mdp, preferences)[here]))
