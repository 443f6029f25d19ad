"""Transitions in one table: a row has all of one, so that a batch is one look-up."""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.validation import Arrays, array, require, whole

Rows = Any  # [..., W], NumPy or JAX


class Transitions(NamedTuple):
    """The parts of rows; those of NumPy's rows are views, through which they are written."""

    observation: Rows  # [..., F]
    next_observation: Rows  # [..., F]
    action: Rows  # [..., d], each from -1 to 1
    reward: Rows  # [..., n]; 0 where an advisor was not active
    terminated: Rows  # [..., 1]
    ended: Rows  # [..., n] whose own part ended; [..., 1] where all end with the episode
    active: Rows  # [..., n] who has a part where the transition began; 1 where everybody always has
    next_active: Rows  # [..., n] and where it led; or 1


class Columns(NamedTuple):
    """What stands in a row of W numbers."""

    features: int  # F
    dimensions: int  # d
    advisors: int  # n
    ends: bool
    """Whether an advisor's part may end by itself; else all end with the episode."""
    activity: bool
    """Whether it depends on the state who has a part; else everybody always has."""

    @property
    def widths(self) -> tuple[int, ...]:
        """How many numbers each part of `Transitions` has."""
        n, changing = self.advisors, self.advisors * self.activity
        return (self.features, self.features, self.dimensions, n, 1, n * self.ends, changing, changing)

    @property
    def width(self) -> int:
        """W."""
        return sum(self.widths)

    def split(self, rows: Rows) -> Transitions:
        """The parts of rows [..., W]."""
        seen, following, action, reward, terminated, ended, active, next_active = (
            rows[..., place] for place in _places(self)
        )
        if not self.ends:
            ended = terminated
        if not self.activity:
            active = next_active = 1.0
        return Transitions(seen, following, action, reward, terminated, ended, active, next_active)


@cache
def _places(columns: Columns) -> list[slice]:
    """Where each part stands in a row."""
    ends = accumulate(columns.widths)
    return [slice(end - width, end) for end, width in zip(ends, columns.widths, strict=True)]


class Memory:
    """The last transitions of each of S runs, in rings."""

    def __init__(self, columns: Columns, runs: int, capacity: int) -> None:
        self.columns = columns
        self.table = np.zeros((runs, capacity, columns.width), np.float32)
        self.seen = 0  # transitions of each run

    @property
    def filled(self) -> int:
        """How many rows are in use, in each run."""
        return min(self.seen, self.table.shape[1])

    def add(self, rows: np.ndarray) -> None:
        """One transition more of every episode, [S, episodes, W]; or of those that were played, with one run [1, k,
        W]."""
        count = rows.shape[1]
        place = self.seen % self.table.shape[1]
        if count == 1:
            self.table[:, place] = rows[:, 0]
        else:
            self.table[:, (place + np.arange(count)) % self.table.shape[1]] = rows
        self.seen += count

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """The rows [S, ..., W] with the numbers chosen [S, ...]."""
        return np.stack([np.take(table, each, axis=0) for table, each in zip(self.table, chosen, strict=True)])

    def tensors(self) -> Arrays:
        """The rows in use."""
        return {"table": self.table[:, : self.filled], "seen": np.array([self.seen], np.int64)}

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""
        runs, capacity, width = self.table.shape
        self.seen = int(whole(tensors, "seen", (1,))[0])
        table = array(tensors, "table", (runs, None, width), np.float32)
        require(table.shape[1] == min(self.seen, capacity), "table")
        self.table[:, : table.shape[1]] = table
