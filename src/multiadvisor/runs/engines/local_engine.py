"""The local engine: worker processes on this machine.

Small jobs are handed over several at a time, so that no worker waits for the driver between two of them; a worker does
them in order, so that the first one without an answer is the one it was at when it died.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence

from multiadvisor.core.plugins import IMPORTED
from multiadvisor.errors import BadInput
from multiadvisor.runs.engines.engine import Crew, Event, Order
from multiadvisor.runs.engines.worker import environment

_AHEAD_SECONDS = 0.25  # work handed over ahead of time, to each worker
_AHEAD_JOBS = 128
_AHEAD_BYTES = 32 << 10  # below a pipe's 64 KiB: handing over never waits for a busy worker
_STARTS = 5  # workers that may end before their first word, in a row; ten times as many if somebody kills them


class _Worker:
    """A process, its pipes and the jobs it has."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        read, self.lifeline = os.pipe()
        os.set_inheritable(read, True)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "multiadvisor.runs.engines.worker", str(read), *IMPORTED],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment(),
            pass_fds=(read,), process_group=0,
        )  # fmt: skip
        os.close(read)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.into, self.out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.out, False)
        self.buffer = b""
        self.greeted = False
        self.killed_for = ""
        self.jobs: deque[tuple[str, int]] = deque()  # id, bytes

    def give(self, orders: Sequence[Order]) -> None:
        """Hand orders over; a worker that is gone is noticed at the next reading."""
        lines = [json.dumps(order, allow_nan=False).encode() + b"\n" for order in orders]
        self.jobs.extend((order.id, len(line)) for order, line in zip(orders, lines, strict=True))
        content = memoryview(b"".join(lines))
        with contextlib.suppress(BrokenPipeError):
            while content:
                content = content[os.write(self.into, content) :]

    def read(self) -> tuple[list[Event], bool]:
        """Whole messages, and whether there can be more."""
        going = True
        try:
            content = os.read(self.out, 1 << 20)
            going = bool(content)
            self.buffer += content
        except BlockingIOError:
            pass
        *lines, self.buffer = self.buffer.split(b"\n")
        return [Event(*json.loads(line)) for line in lines], going

    def last_words(self) -> str:
        """How it ended, with the end of what it wrote to stderr."""
        code = self.process.wait()
        if self.killed_for:
            return self.killed_for
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(self.errors.tell() - 1000, 0))
        written = self.errors.read().decode(errors="replace").strip()
        return f"the worker was {how}" + (f": {written}" if written else "")

    def kill(self) -> None:
        """At once; what it started goes with it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def close(self) -> None:
        """End it and give everything back."""
        self.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        os.close(self.lifeline)


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine:
    """Worker processes, never more than there are jobs."""

    def __init__(self, crew: Crew, jobs: int) -> None:
        self._select = selectors.DefaultSelector()
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
        self._select.register(worker.out, selectors.EVENT_READ, worker)

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
            if 2 * len(worker.jobs) <= ahead - (ahead > 1) and sum(size for _, size in worker.jobs) < _AHEAD_BYTES
        ]

    def take(self, waiting: int, draw: Callable[[], Order]) -> None:
        """Deal out as many as keep the workers busy until they are asked again."""
        for worker, count in self._short(waiting):
            size, batch = 0, list[Order]()
            while waiting and len(batch) < count and size < _AHEAD_BYTES:
                batch.append(draw())
                waiting -= 1
                size += len(json.dumps(batch[-1].config)) + 200
            if batch and not worker.jobs and worker.greeted:
                self._events.append(Event("begun", batch[0].id))
            worker.give(batch)

    def poll(self, seconds: float) -> list[Event]:
        """Read what the workers have to say."""
        for key, _ in self._select.select(0.0 if self._events else seconds):
            worker: _Worker = key.data
            events, going = worker.read()
            for event in events:
                self._hear(worker, event)
            if not going:
                self._bury(worker)
        found, self._events = self._events, []
        return found

    def _hear(self, worker: _Worker, event: Event) -> None:
        if event.what == "hello":
            worker.greeted, self._stillborn = True, 0.0
            if worker.jobs:
                self._events.append(Event("begun", worker.jobs[0][0]))
            return
        self._events.append(event)
        if event.what != "beat":
            worker.jobs.popleft()
            self._spent += event.seconds
            self._finished += 1
            if worker.jobs:
                self._events.append(Event("begun", worker.jobs[0][0]))

    def _bury(self, worker: _Worker) -> None:
        self._select.unregister(worker.out)
        self._workers.remove(worker)
        words = worker.last_words()
        names = [name for name, _ in worker.jobs]
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
            if worker.jobs and worker.jobs[0][0] == job:
                worker.killed_for = "it gave no sign of life for the length of its lease: its worker was killed"
                worker.kill()

    def stop(self) -> None:
        """Kill all workers."""
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.close()
        self._workers = []
        self._select.close()
