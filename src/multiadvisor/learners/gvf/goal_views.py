"""What the goals of a task say to those who show its episodes; nothing of a task without goals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.task import Task


def mark_of(task: Task) -> Callable[[np.ndarray, int, float], None] | None:
    """What draws a goal into the environment's picture; None where nobody can."""
    return None if task.goals is None else task.goals.mark


def goal_name(task: Task, state: Any) -> str | None:
    """What people call a state, where the goals say so."""
    return None if task.goals is None or task.goals.label is None else task.goals.label(state)


def goal_cells(task: Task, states: list[Any]) -> np.ndarray | None:
    """[T] the local states that goals are learned in, other numbers in every room; None where there are no goals."""
    if task.goals is None:
        return None
    each = [task.goals.at(state) for state in states]
    return np.array([room * task.goals.states + local for room, local in each], np.int64)
