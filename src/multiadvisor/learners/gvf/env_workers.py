"""Episodes that are learned from at the same time: each has a worker, whose environment runs in a process of its own.

The workers take steps. While one environment steps, actions are chosen for the others: the learning is one, and its
order is fixed, so that a run with so many workers is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.core.validation import Arrays, array, require, whole
from multiadvisor.envs.python_env import Segment
from multiadvisor.envs.remote import Remote
from multiadvisor.task import Task

NOTHING = -1


class EnvWorker:
    """One episode: where it is, and the action that is on its way."""

    def __init__(self, task: Task, seed: int, place: int) -> None:
        self._task = task
        self._remote: Remote | None = None
        self.segment = Segment(task.name, seed, place)
        self.observation: Any = None
        self.sent, self.greedy = NOTHING, 0
        self.score = 0.0

    @property
    def remote(self) -> Remote:
        """Its environment, brought to where the episode is."""
        if self._remote is None:
            self._remote = Remote(self._task)
            if self.sent != NOTHING or self.segment.actions:
                over = self.segment.play_again(self.reset, self._step)
                if over:
                    self.observation = None
                if over and self.sent != NOTHING:  # the action is of the next episode
                    self.reset(None)
            if self.sent != NOTHING:
                self._remote.send(self.sent + self._task.first_action)
        return self._remote

    def reset(self, seed: int | None) -> None:
        """Begin an episode."""
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


class EnvWorkers:
    """All of them, and whose turn it is."""

    def __init__(self, task: Task, seed: int, count: int) -> None:
        self.all = [EnvWorker(task, seed, place) for place in range(count)]
        self.next = 0

    @property
    def waiting(self) -> int:
        """How many actions are on their way."""
        return sum(worker.sent != NOTHING for worker in self.all)

    def run(self, steps: int, receive: Callable[[EnvWorker], None], send: Callable[[EnvWorker], None]) -> None:
        """So many steps: each receives what its action brought, and sends the next."""
        try:
            for worker in self.all:
                worker.remote  # noqa: B018 all processes start at once
            for worker in self.all:
                if worker.sent == NOTHING:
                    send(worker)
            for _ in range(steps):
                worker = self.all[self.next]
                receive(worker)
                self.next = (self.next + 1) % len(self.all)
                send(worker)
        except BaseException:
            for worker in self.all:
                worker.leave()  # nobody knows where the environments are
            raise

    def tensors(self) -> Arrays:
        """Where all episodes are."""
        trails = [np.array(worker.segment.actions, np.int64) for worker in self.all]
        return {
            "workers.next": np.array([self.next], np.int64),
            "workers.sent": np.array([[worker.sent, worker.greedy] for worker in self.all], np.int64),
            "workers.score": np.array([worker.score for worker in self.all], float),
            "workers.seeded_at": np.array([worker.segment.seeded_at for worker in self.all], np.int64),
            "workers.length": np.array([len(trail) for trail in trails], np.int64),
            "workers.trail": np.concatenate(trails),
        }

    def restore(self, tensors: Arrays, actions: int) -> None:
        """Take up what `tensors` gave."""
        count = len(self.all)
        sent = whole(tensors, "workers.sent", (count, 2), NOTHING, actions)
        seeded_at, length = (whole(tensors, f"workers.{name}", (count,)) for name in ("seeded_at", "length"))
        score = array(tensors, "workers.score", (count,), np.float64)
        trail = whole(tensors, "workers.trail", (None,), 0, actions)
        require(length.sum() == len(trail), "workers.length")
        self.next = int(whole(tensors, "workers.next", (1,), 0, count)[0])
        ends = np.cumsum(length)
        for k, worker in enumerate(self.all):
            worker.leave()
            worker.sent, worker.greedy, worker.score = int(sent[k, 0]), int(sent[k, 1]), float(score[k])
            worker.segment.seeded_at = int(seeded_at[k])
            worker.segment.actions = trail[ends[k] - length[k] : ends[k]].tolist()
