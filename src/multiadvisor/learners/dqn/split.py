"""Whom the outputs of a network are for: the task's advisors, its groups, or one for all; and the aggregator's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from multiadvisor.core.learned import LearnedAggregation
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, Task


@dataclass(frozen=True, eq=False)
class Split:
    """Which advisors the network has: the task's, its groups, or one for everything."""

    advisors: tuple[Advisor, ...]  # [k]
    gammas: np.ndarray  # [k]
    members: tuple[tuple[int, ...], ...]
    """For each, the task's advisors it stands for; nobody for the aggregator's own."""
    merge: np.ndarray | None = None
    """[n, k]: how the task's n advisors pay into these; None: they are the same."""
    added: bool = False
    """Whether the last one is the aggregator's own."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """[k]."""
        return tuple(advisor.name for advisor in self.advisors)

    @cached_property
    def weights(self) -> np.ndarray:
        """[k]."""
        return np.array([advisor.weight for advisor in self.advisors])

    def add(self, array: np.ndarray, value: int) -> np.ndarray:
        """[N, n] of the task's advisors to [N, k], with this value for the aggregator's own."""
        if not self.added:
            return array
        return np.concatenate([array, np.full((len(array), 1), value, array.dtype)], axis=1)


def split_task(task: Task, gamma: float, split: str) -> Split:
    """The network's advisors.

    >>> import multiadvisor as mad
    >>> split_task(mad.make("pac-boy"), 0.9, "groups").names
    ('ghosts', 'fruits')
    """
    own = task.gammas(gamma)
    if split == "advisors":
        return Split(task.advisors, own, tuple((j,) for j in range(task.n)))
    groups = ["reward" if split == "none" else advisor.group or advisor.name for advisor in task.advisors]
    names = tuple(dict.fromkeys(groups))
    members = tuple(tuple(j for j, group in enumerate(groups) if group == name) for name in names)
    merge, gammas = np.zeros((task.n, len(names))), np.full(len(names), gamma)
    for k, part in enumerate(members):
        merge[list(part), k] = task.weights[list(part)]
        if len(set(own[list(part)])) == 1:
            gammas[k] = own[part[0]]
    advisors = tuple(Advisor(name, gamma=own) for name, own in zip(names, gammas.tolist(), strict=True))
    return Split(advisors, gammas, members, merge)


def with_own(split: Split, task: Task, gamma: float, learned: LearnedAggregation, weight: float) -> Split:
    """The same advisors, and behind them the one that the aggregator adds."""
    if task.extra_advisor is not None:
        raise BadInput(
            f"the {learned.added} of task {task.name!r} names features, which are for tables: a network sees the whole "
            "observation, leave Task.extra_advisor out"
        )
    learned.check(task)
    advisor = Advisor(learned.added, weight=weight, group=learned.added, planning="egocentric")
    return replace(
        split, advisors=(*split.advisors, advisor), gammas=np.append(split.gammas, gamma),
        members=(*split.members, ()), added=True,
        merge=None if split.merge is None else np.pad(split.merge, ((0, 0), (0, 1))),
    )  # fmt: skip
