"""Whom the outputs of a network are for: the task's advisors, its groups, or one for all; and the aggregator's own.

The correction (`theory.correction`) is one more output, of weight -1, with a network of its own that sees the whole
observation: what the sum of the others promises too much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from multiadvisor.core.aggregations import CORRECTION
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, Task


@dataclass(frozen=True)
class Split:
    """Which advisors the network has: the task's, its groups, or one for everything."""

    names: tuple[str, ...]
    weights: np.ndarray  # [k]
    gammas: np.ndarray  # [k]
    merge: np.ndarray | None
    """[n, k]: how the task's n advisors pay into these; None: they are the same."""
    members: tuple[tuple[int, ...], ...]
    """For each, the task's advisors it stands for; nobody for the correction."""
    correcting: bool = False
    """Whether the last one is the correction."""

    def add(self, array: np.ndarray, value: int) -> np.ndarray:
        """[N, n] of the task's advisors to [N, k], with this value for the correction."""
        if not self.correcting:
            return array
        return np.concatenate([array, np.full((len(array), 1), value, array.dtype)], axis=1)


def split_task(task: Task, gamma: float, split: str) -> Split:
    """The network's advisors.

    >>> import multiadvisor as mad
    >>> split_task(mad.make("pac-boy"), 0.9, "groups").names
    ('ghosts', 'fruits')
    """
    if split == "advisors":
        return Split(task.names, task.weights, task.gammas(gamma), None, tuple((j,) for j in range(task.n)))
    groups = ["reward" if split == "none" else advisor.group or advisor.name for advisor in task.advisors]
    names = tuple(dict.fromkeys(groups))
    members = tuple(tuple(j for j, group in enumerate(groups) if group == name) for name in names)
    merge = np.zeros((task.n, len(names)))
    own = task.gammas(gamma)
    gammas = np.full(len(names), gamma)
    for k, part in enumerate(members):
        merge[list(part), k] = task.weights[list(part)]
        if len(set(own[list(part)])) == 1:
            gammas[k] = own[part[0]]
    return Split(names, np.ones(len(names)), gammas, merge, members)


def with_correction(split: Split, task: Task, gamma: float) -> Split:
    """The same advisors, and the correction behind them."""
    if task.correction is not None:
        raise BadInput(
            f"the correction of task {task.name!r} names features, which are for tables: a network sees the whole "
            "observation, leave Task.correction out"
        )
    if any(advisor.advises is not None for advisor in task.advisors) or (
        task.world is not None and (task.world.advises or task.world.joins)
    ):
        raise BadInput(
            f"some advisors of task {task.name!r} fall silent or join, and the correction is of a sum of the same "
            "advisors throughout: let everybody speak, or choose another aggregation"
        )
    merge = split.merge
    return replace(
        split, names=(*split.names, CORRECTION), weights=np.append(split.weights, -1.0),
        gammas=np.append(split.gammas, gamma), members=(*split.members, ()), correcting=True,
        merge=None if merge is None else np.concatenate([merge, np.zeros((len(merge), 1))], axis=1),
    )  # fmt: skip


def advisors_of(task: Task, split: Split) -> tuple[Advisor, ...]:
    """The network's advisors as advisors: the task's own where they are the same."""
    own = len(split.names) - split.correcting
    advisors = task.advisors
    if split.merge is not None:
        each = zip(split.names[:own], split.weights.tolist(), split.gammas.tolist(), strict=False)
        advisors = tuple(Advisor(name, weight=weight, gamma=gamma) for name, weight, gamma in each)
    return (
        (*advisors, Advisor(CORRECTION, weight=-1.0, group=CORRECTION, planning="egocentric"))
        if split.correcting
        else advisors
    )
