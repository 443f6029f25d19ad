"""Games that are learned from at the same time: each has a seat, whose environment runs in a process of its own.

The seats take turns. While one environment steps, actions are chosen for the others: the learning is one, and its order
is fixed, so that a run with so many seats is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.restored import Arrays, array, require, whole
from multiadvisor.task import Task
from multiadvisor.worlds.remote import Remote
from multiadvisor.worlds.stretch import Stretch

NOTHING = -1


class Seat:
    """One game: where it is, and the action that is on its way."""

    def __init__(self, task: Task, seed: int, place: int) -> None:
        self._task = task
        self._remote: Remote | None = None
        self.stretch = Stretch(task.name, seed, place)
        self.observation: Any = None
        self.sent, self.greedy = NOTHING, 0
        self.score = 0.0

    @property
    def remote(self) -> Remote:
        """Its environment, brought to where the game is."""
        if self._remote is None:
            self._remote = Remote(self._task)
            if self.sent != NOTHING or self.stretch.trail:
                over = self.stretch.again(self.reset, self._step)
                if over:
                    self.observation = None
                if over and self.sent != NOTHING:  # the action is of the next game
                    self.reset(None)
            if self.sent != NOTHING:
                self._remote.send(self.sent + self._task.first_action)
        return self._remote

    def reset(self, seed: int | None) -> None:
        """Begin a game."""
        self.observation = self.remote.reset(seed)

    def _step(self, action: int) -> tuple[bool, bool]:
        self.remote.send(action + self._task.first_action)
        self.observation, _, terminated, truncated = self.remote.receive()
        return terminated, truncated

    def send(self, action: int, greedy: int) -> None:
        """An action begins."""
        self.remote.send(action + self._task.first_action)
        self.sent, self.greedy = action, greedy

    def leave(self) -> None:
        """Give the process back; the next one goes on from here."""
        if self._remote is not None:
            self._remote.close()
            self._remote = self.observation = None

    def __del__(self) -> None:
        self.leave()


class Seats:
    """All of them, and whose turn it is."""

    def __init__(self, task: Task, seed: int, count: int) -> None:
        self.all = [Seat(task, seed, place) for place in range(count)]
        self.next = 0

    @property
    def waiting(self) -> int:
        """How many actions are on their way."""
        return sum(seat.sent != NOTHING for seat in self.all)

    def run(self, turns: int, receive: Callable[[Seat], None], send: Callable[[Seat], None]) -> None:
        """So many turns: each receives what its action brought, and sends the next."""
        try:
            for seat in self.all:
                seat.remote  # noqa: B018 all processes start at once
            for seat in self.all:
                if seat.sent == NOTHING:
                    send(seat)
            for _ in range(turns):
                seat = self.all[self.next]
                receive(seat)
                self.next = (self.next + 1) % len(self.all)
                send(seat)
        except BaseException:
            for seat in self.all:
                seat.leave()  # nobody knows where the environments are
            raise

    def tensors(self) -> Arrays:
        """Where all games are."""
        trails = [np.array(seat.stretch.trail, np.int64) for seat in self.all]
        return {
            "seats.next": np.array([self.next], np.int64),
            "seats.sent": np.array([[seat.sent, seat.greedy] for seat in self.all], np.int64),
            "seats.score": np.array([seat.score for seat in self.all], float),
            "seats.seeded_at": np.array([seat.stretch.seeded_at for seat in self.all], np.int64),
            "seats.length": np.array([len(trail) for trail in trails], np.int64),
            "seats.trail": np.concatenate(trails),
        }

    def restore(self, tensors: Arrays, actions: int) -> None:
        """Take up what `tensors` gave."""
        count = len(self.all)
        sent = whole(tensors, "seats.sent", (count, 2), NOTHING, actions)
        seeded_at, length = (whole(tensors, f"seats.{name}", (count,)) for name in ("seeded_at", "length"))
        score = array(tensors, "seats.score", (count,), np.float64)
        trail = whole(tensors, "seats.trail", (None,), 0, actions)
        require(length.sum() == len(trail), "seats.length")
        self.next = int(whole(tensors, "seats.next", (1,), 0, count)[0])
        ends = np.cumsum(length)
        for k, seat in enumerate(self.all):
            seat.leave()
            seat.sent, seat.greedy, seat.score = int(sent[k, 0]), int(sent[k, 1]), float(score[k])
            seat.stretch.seeded_at = int(seeded_at[k])
            seat.stretch.trail = trail[ends[k] - length[k] : ends[k]].tolist()
