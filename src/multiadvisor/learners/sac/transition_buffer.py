"""Transitions in one table: a row has all of one, so that a batch is one look-up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.validation import Arrays, array, require, whole

Rows = Any  # [..., W], NumPy or JAX


class Columns(NamedTuple):
    """Where things stand in a row of W numbers."""

    features: int  # F
    dimensions: int  # d
    advisors: int  # n
    ends: bool
    """Whether an advisor's part may end by itself; else all end with the episode."""
    activity: bool
    """Whether it depends on the state who has a part; else everybody always has."""

    @property
    def width(self) -> int:
        """W."""
        own = self.advisors
        return 2 * self.features + self.dimensions + own + 1 + (own if self.ends else 0) + (2 * own * self.activity)

    def observation(self, rows: Rows) -> Rows:
        """[..., F]."""
        return rows[..., : self.features]

    def next_observation(self, rows: Rows) -> Rows:
        """[..., F]."""
        return rows[..., self.features : 2 * self.features]

    def _from(self, rows: Rows, skipped: int, size: int) -> Rows:
        first = 2 * self.features + skipped
        return rows[..., first : first + size]

    def action(self, rows: Rows) -> Rows:
        """[..., d], each from -1 to 1."""
        return self._from(rows, 0, self.dimensions)

    def reward(self, rows: Rows) -> Rows:
        """[..., n]; 0 where an advisor was not active."""
        return self._from(rows, self.dimensions, self.advisors)

    def terminated(self, rows: Rows) -> Rows:
        """[..., 1]."""
        return self._from(rows, self.dimensions + self.advisors, 1)

    def ended(self, rows: Rows) -> Rows:
        """[..., n], or [..., 1] for all of them."""
        if not self.ends:
            return self.terminated(rows)
        return self._from(rows, self.dimensions + self.advisors + 1, self.advisors)

    def active(self, rows: Rows) -> Rows:
        """[..., n] who has a part where the transition began, or 1."""
        return (
            self._from(rows, self.width - 2 * self.features - 2 * self.advisors, self.advisors)
            if self.activity
            else 1.0
        )

    def next_active(self, rows: Rows) -> Rows:
        """[..., n] and where it led, or 1."""
        return rows[..., -self.advisors :] if self.activity else 1.0


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
