"""Environments that show their own transition table, as Gymnasium's toy texts do: does the greedy walk ever earn?

The table is `env.unwrapped.P`: for each state and action, what may happen as (probability, next state, reward, end).
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from multiadvisor.task import Task, Transition

_MOST_STATES = 20_000  # beyond it looking around takes longer than anybody would wait for a sentence


def transition_table(task: Task) -> Any | None:
    """The table of the task's environment; None where it shows none, or where its observations are not its states."""
    import gymnasium

    if task.adapter is None or task.adapter.vector:
        return None
    env = task.adapter.env
    table = getattr(env.unwrapped, "P", None)
    space = env.observation_space
    if not isinstance(table, dict) or not isinstance(space, gymnasium.spaces.Discrete):
        return None
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.ObservationWrapper | gymnasium.RewardWrapper | gymnasium.ActionWrapper):
            return None
        env = env.env
    return table if len(table) == int(space.n) <= _MOST_STATES and int(space.start) == 0 else None


def _gain(task: Task, state: int, action: int, outcome: Any) -> float:
    """The weighted rewards of what may happen; whatever an advisor' own function raises is the caller's."""
    probability, then, reward, over = outcome
    step = Transition(state, action, reward, then, bool(over), False, {"prob": probability})
    total = 0.0
    for advisor in task.advisors:
        if advisor.reward is not None and not callable(advisor.reward):
            raise TypeError("the reward of a table is a number")
        active = advisor.active is None or advisor.active(state)
        total += advisor.weight * float(reward if advisor.reward is None else advisor.reward(step)) if active else 0.0
    return total


def greedy_stuck(agent: Any, state: Any) -> bool | None:
    """Whether greedy play from this state never earns and never ends; None if not known.

    Ties count as taken at random: every greedy action must stay inside.

    >>> import multiadvisor as mad
    >>> lake = mad.Task.from_gymnasium("FrozenLake-v1", is_slippery=False)
    >>> agent = mad.MultiAdvisor(lake)
    >>> agent.observe(0, 0, 0.5, 0, terminated=False)  # into the wall, and somebody paid for it
    >>> greedy_stuck(agent, 0), greedy_stuck(agent, 14)
    (True, False)
    """
    task: Task = agent.task
    table = transition_table(task)
    if table is None:
        return None
    try:
        return _never_earns(agent, table, index(state))
    except Exception:  # a function of the task's own that wants more than the table has
        return None


def _never_earns(agent: Any, table: Any, state: int) -> bool:
    task: Task = agent.task
    seen, waiting = {state}, [state]
    while waiting:
        here = waiting.pop()
        preferences = np.asarray(agent.preferences(here))
        for action in np.flatnonzero(preferences >= preferences.max() - 1e-9 * np.abs(preferences).max()).tolist():
            played = action + task.first_action
            for outcome in table[here][played]:
                if outcome[0] <= 0:
                    continue
                if outcome[3] or _gain(task, here, played, outcome) > 0:
                    return False
                if (then := index(outcome[1])) not in seen:
                    seen.add(then)
                    waiting.append(then)
    return True
