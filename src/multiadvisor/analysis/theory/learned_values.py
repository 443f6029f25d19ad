"""Where a trained agent stands: is this state an attractor by its own learned values, and does its greedy walk rest?

Asked of any agent that has `task`, `settings` and `advice(state)`; mazes are looked at as they lie, ghosts where they
are, and listed worlds and environments that show their own table state by state. Of others nothing is known.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from multiadvisor.analysis.theory.attractors import (
    attractor_states,
    leaves,
    margins,
    stable_states,
    stuck_by,
    stuck_states,
)
from multiadvisor.analysis.theory.boards import Maze, advised_solution
from multiadvisor.analysis.theory.enumeration import enumerate_task, of_environment
from multiadvisor.analysis.theory.environment_model import has_table
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import Solution
from multiadvisor.core.aggregator import learned_in
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.learners.kinds import own_settings
from multiadvisor.task import Task

_MOST_VALUES = 4_000_000  # beyond it looking around takes longer than anybody would wait for a sentence


class Surroundings(NamedTuple):
    """What is known of one state."""

    leaves: np.ndarray | None = None
    """[A] bool: the actions that lead elsewhere, end the episode or pay somebody; None if not known."""
    attractor: bool | None = None
    """Whether staying seems better than leaving; None where advisors do not plan egocentrically, or the aggregator acts
    by more than their values."""
    stable: bool | None = None
    """Whether the greedy aggregator can remain in it, or in others like it."""
    margin: float | None = None
    """By how much staying beats the best action that leaves; below 0 where it does not."""
    stuck: bool | None = None
    """Whether the greedy walk from here never earns and never ends."""


NOTHING_KNOWN = Surroundings()


class _Around(NamedTuple):
    """The board as it lies, or all states of a task that is listed."""

    mdp: FiniteMDP
    states: list[Any]  # [S] as the agent is asked about them
    here: int  # which of them it is


_TABLES: WeakKeyDictionary[Task, tuple[FiniteMDP, list[Any]] | None] = WeakKeyDictionary()


def _table_of(task: Task) -> tuple[FiniteMDP, list[Any]] | None:
    """What a task's environment lists, once for each task, and an observation of each state; None where it lists
    none."""
    if task not in _TABLES:
        _TABLES[task] = None
        with contextlib.suppress(Exception):  # a function of the task's own that wants more than the table has
            if has_table(task):
                _TABLES[task] = of_environment(task)
    return _TABLES[task]


def _around(agent: Any, state: Any) -> _Around | None:
    """Where a state stands among others; None if nothing lists them."""
    task: Task = agent.task
    own = own_settings(agent.settings)
    if task.world is None:
        found = _table_of(task)
        return None if found is None or state not in found[1] else _Around(*found, found[1].index(state))
    x = task.world.checked(state, task.name)
    if not (own.per_advisor or own.summed):
        return None  # its values are not those of the task's advisors
    if maze_of(task) is not None:
        maze = Maze(task)
        used = maze.advisors_on(x)
        if len(used) == maze.ghosts or maze.cells * len(used) * 4 > _MOST_VALUES:
            return None
        return _Around(maze.board_mdp(x, used), maze.states(x), int(x[0]))
    states = 0 if task.world.sizes is None else task.world.sizes[0]
    if task.world.listing is None or task.n * states * len(task.actions) > _MOST_VALUES:
        return None
    mdp = enumerate_task(task)
    return _Around(mdp, [np.array([one]) for one in range(mdp.states)], int(x[0]))


def _beside(agent: Any) -> bool:
    """Whether it acts by more than the advisors' values."""
    return bool(learned_in(getattr(agent.settings, "aggregation", "sum")))


def learned_solution(agent: Any, x: np.ndarray) -> tuple[Solution, int] | None:
    """The agent's values over all cells of the board, or all states, and which one x is; None if not known."""
    if _beside(agent) or (found := _around(agent, x)) is None:
        return None
    return advised_solution(agent, found.mdp, found.states), found.here


def greedy_stuck(agent: Any, state: Any) -> bool | None:
    """Whether greedy play from this state never earns and never ends, where the transitions are known.

    None where they are not. Ties count as taken at random: every greedy action must stay inside.

    >>> import multiadvisor as mad
    >>> lake = mad.Task.from_gymnasium("FrozenLake-v1", is_slippery=False)
    >>> agent = mad.MultiAdvisor(lake)
    >>> agent.observe(0, 0, 0.5, 0, terminated=False)  # into the wall, and somebody paid for it
    >>> greedy_stuck(agent, 0), greedy_stuck(agent, 14)
    (True, False)
    """
    found = _around(agent, state)
    if found is None:
        return None
    preferences = np.array([agent.preferences(one) for one in found.states], float)
    return bool(stuck_by(found.mdp, preferences)[found.here])


def surroundings(agent: Any, state: Any) -> Surroundings:
    """What the agent's own values make of this state, aggregated as it does, as far as it is known.

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
        return Surroundings(stuck=greedy_stuck(agent, state))
    found = _around(agent, state)
    if found is None or not found.mdp.active[found.here]:
        return NOTHING_KNOWN
    mdp, states, here = found
    away = leaves(mdp)[here]
    if _beside(agent):
        return Surroundings(away, stuck=greedy_stuck(agent, state))
    solution = advised_solution(agent, mdp, states)
    stuck = bool(stuck_states(solution)[here])
    if solution.planning != "egocentric" or own_settings(agent.settings).summed:
        return Surroundings(away, stuck=stuck)
    attracting = attractor_states(solution)
    stable, margin = bool(stable_states(solution, attracting)[here]), float(margins(solution)[here])
    return Surroundings(away, bool(attracting[here]), stable, margin if np.isfinite(margin) else None, stuck)
