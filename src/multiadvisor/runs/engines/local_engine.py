"""The local engine: worker processes on this machine.

Small jobs are handed over several at a time, so that no worker waits for the driver between two of them; a worker does
them in order, so that the first one without an answer is the one it was at when it died.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from multiadvisor.errors import BadInput
from multiadvisor.runs.child_process import Child
from multiadvisor.runs.engines.engine import Crew, Event, Order

_AHEAD_SECONDS = 0.25  # work handed over ahead of time, to each worker
_AHEAD_JOBS = 128
_AHEAD_BYTES = 32 << 10  # at a time: far less than a pipe takes, so that handing over waits for nobody
_STARTS = 5  # workers that may end before their first word, in a row; ten times as many if somebody kills them


class _Worker(Child):
    """A process, and the jobs it has."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        super().__init__("multiadvisor.runs.engines.worker", self.errors)
        self.greeted = False
        self.killed_for = ""
        self.jobs: deque[str] = deque()

    def give(self, order: Order) -> int:
        """Hand an order over, of so many bytes; a worker that is gone is noticed at the next reading."""
        content = json.dumps(order, allow_nan=False).encode()
        self.jobs.append(order.id)
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(content)
        return len(content)

    def read(self) -> tuple[list[Event], bool]:
        """What it has said, and whether there can be more."""
        events = []
        try:
            while self.pipe.poll():
                events.append(Event(*json.loads(self.pipe.recv_bytes())))
        except (EOFError, OSError):
            return events, False
        return events, True

    def last_words(self) -> str:
        """How it ended, with the end of what it wrote to stderr."""
        how = super().last_words()
        if self.killed_for:
            return self.killed_for
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(self.errors.tell() - 1000, 0))
        written = self.errors.read().decode(errors="replace").strip()
        return f"the worker {how}" + (f": {written}" if written else "")

    def close(self) -> None:
        """End it and give everything back."""
        super().close()
        self.errors.close()


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine:
    """Worker processes, never more than there are jobs."""

    def __init__(self, crew: Crew, jobs: int) -> None:
        self._events: list[Event] = []
        self._workers: list[_Worker] = []
        self._spent, self._finished, self._stillborn = 0.0, 0, 0.0
        try:
            for _ in range(min(crew.workers or _cores(), jobs)):
                self._hire()
        except BaseException:
            self.stop()
            raise

    def _hire(self) -> None:
        try:
            worker = _Worker()
        except OSError as error:
            raise BadInput(f"cannot start a worker: {error.strerror}, try fewer of them") from None
        self._workers.append(worker)

    def _ahead(self, waiting: int) -> int:
        """How many jobs each worker should have, the one it works on included."""
        mean = self._spent / self._finished if self._finished else _AHEAD_SECONDS
        fair = -(-(waiting + sum(len(worker.jobs) for worker in self._workers)) // len(self._workers))
        return max(1, min(int(_AHEAD_SECONDS / max(mean, 1e-6)), _AHEAD_JOBS, fair))

    def _short(self, waiting: int) -> list[tuple[_Worker, int]]:
        """The workers that should get more, and how many jobs; only once half of what they had is done."""
        ahead = self._ahead(waiting)
        return [
            (worker, ahead - len(worker.jobs))
            for worker in sorted(self._workers, key=lambda worker: len(worker.jobs))
            if 2 * len(worker.jobs) <= ahead - (ahead > 1)
        ]

    def take(self, waiting: int, draw: Callable[[], Order]) -> None:
        """Deal out as many as keep the workers busy until they are asked again."""
        for worker, count in self._short(waiting):
            size, idle = 0, not worker.jobs
            while count and waiting and size < _AHEAD_BYTES:
                size += worker.give(draw())
                count, waiting = count - 1, waiting - 1
            if idle:
                self._begin(worker)

    def poll(self, seconds: float) -> list[Event]:
        """Read what the workers have to say."""
        pipes: dict[Any, _Worker] = {worker.pipe: worker for worker in self._workers}
        for pipe in wait(list(pipes), 0.0 if self._events else seconds):
            worker = pipes[pipe]
            events, going = worker.read()
            for event in events:
                self._hear(worker, event)
            if not going:
                self._bury(worker)
        found, self._events = self._events, []
        return found

    def _begin(self, worker: _Worker) -> None:
        """Whoever has jobs, and is there, is at the first one."""
        if worker.jobs and worker.greeted:
            self._events.append(Event("begun", worker.jobs[0]))

    def _hear(self, worker: _Worker, event: Event) -> None:
        if event.what == "hello":
            worker.greeted, self._stillborn = True, 0.0
            self._begin(worker)
            return
        self._events.append(event)
        if event.what != "beat":
            worker.jobs.popleft()
            self._spent += event.seconds
            self._finished += 1
            self._begin(worker)

    def _bury(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        words, names = worker.last_words(), list(worker.jobs)
        if names and worker.greeted:
            self._events.append(Event("error", names.pop(0), error=words))
        self._events.extend(Event("returned", name) for name in names)
        worker.close()
        self._stillborn += 0.0 if worker.greeted else 0.1 if (worker.process.returncode or 0) < 0 else 1.0
        if self._stillborn >= _STARTS:
            raise BadInput(f"workers die before they start: {' '.join(words.split())[-300:]}")
        self._hire()

    def kill(self, job: str) -> None:
        """Kill the worker that has this job."""
        for worker in self._workers:
            if worker.jobs and worker.jobs[0] == job:
                worker.killed_for = "it gave no sign of life for the length of its lease: its worker was killed"
                worker.kill()

    def stop(self) -> None:
        """Kill all workers."""
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.close()
        self._workers = []
