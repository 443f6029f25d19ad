"""Actions that are several choices at once: all combinations in one list, as tables and networks have them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multiadvisor.errors import BadInput, short

LARGEST_CHOICE = 1_000  # combinations: each has a value of every advisor


class MultiDiscreteActions:
    """The combinations of a MultiDiscrete or MultiBinary space, counted from 0; the last choice changes fastest.

    >>> from gymnasium.spaces import MultiDiscrete
    >>> actions = MultiDiscreteActions(MultiDiscrete([2, 3]))
    >>> actions.names[:4], actions.to_environment(4), actions.number([1, 1])
    (('0/0', '0/1', '0/2', '1/0'), array([1, 1]), 4)
    """

    def __init__(self, space: Any) -> None:
        sizes = np.asarray(getattr(space, "nvec", np.full(space.shape, 2)))  # MultiBinary has no nvec
        self.space, self._sizes = space, tuple(int(size) for size in sizes.ravel())
        self._start = np.asarray(getattr(space, "start", np.zeros(space.shape, int)), np.int64).ravel()
        self.count = math.prod(self._sizes)
        if self.count > LARGEST_CHOICE:
            raise BadInput(
                f"the environment's actions are {short(str(space), 60)}, {self.count} combinations, and at most "
                f"{LARGEST_CHOICE} are learned: wrap the environment so that it offers fewer"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers of each combination [A], such as 0/2."""
        return tuple("/".join(map(str, row)) for row in self._rows(np.arange(self.count)).tolist())

    def _rows(self, numbers: Any) -> np.ndarray:
        """[..., choices]."""
        return np.stack(np.unravel_index(numbers, self._sizes), axis=-1) + self._start

    def to_environment(self, numbers: Any) -> np.ndarray:
        """The environment's actions [..., *shape] of combinations [...]."""
        rows = self._rows(numbers)
        return rows.astype(self.space.dtype).reshape(rows.shape[:-1] + self.space.shape)

    def number(self, action: Any) -> int:
        """The number of one of the environment's actions, or -1."""
        try:
            given = np.asarray(action)
        except (TypeError, ValueError):
            return -1
        if given.shape != self.space.shape or given.dtype.kind not in "iub":
            return -1
        row = given.ravel().astype(np.int64) - self._start
        if (row < 0).any() or (row >= self._sizes).any():
            return -1
        return int(np.ravel_multi_index(tuple(row), self._sizes))
