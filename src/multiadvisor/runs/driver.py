"""`run_jobs`: the one call that sweeps and the paper's reproduction run on.

>>> import tempfile
>>> from multiadvisor.runs.jobs import Job
>>> with tempfile.TemporaryDirectory() as folder:
...     results = run_jobs(Path(folder), [Job("rehearsal", {"number": k}) for k in (2, 3)], workers=0)
...     [result["square"] for result in results.values()]
[4, 9]
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from multiadvisor.core.progress import JobsBar
from multiadvisor.errors import BadInput, unknown
from multiadvisor.runs.engine import Engine, Event, Order
from multiadvisor.runs.jobs import Job, lease_of
from multiadvisor.runs.ledger import Ledger, Outcome, open_ledger, read_result, result_path
from multiadvisor.settings import whole_number

TRIES = 3
ENGINES = ("local", "ray")
_FLUSH_SECONDS = 0.1  # finished results wait at most so long for others to share the way to the disk
_FLUSH_RESULTS = 200
_COMMIT_SECONDS = 1.0  # how old the ledger's news of running jobs may be


class Results(Mapping[str, dict[str, Any]]):
    """The results of jobs by id, in the order of the jobs; each is read, and checked, when it is asked for."""

    def __init__(self, folder: Path, jobs: Sequence[Job], ledger: Ledger) -> None:
        self.folder, self.jobs = folder, tuple(jobs)
        rows = {job.id: ledger.rows[job.id] for job in jobs}
        self._digests = {name: row.digest for name, row in rows.items() if row.state == "done"}
        self.seconds = {name: rows[name].seconds for name in self._digests}
        """What the work of each took, by id; not part of the result, which is the same every time."""
        self.failed = {name: row.error for name, row in rows.items() if row.state == "failed"}
        """The error of each job that failed, by id."""

    def __getitem__(self, key: str | Job) -> dict[str, Any]:
        name = key.id if isinstance(key, Job) else key
        return read_result(self.folder, name, self._digests[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._digests)

    def __len__(self) -> int:
        return len(self._digests)

    def path(self, job: Job) -> Path:
        """The file of a result."""
        return result_path(self.folder, job.id)


def run_jobs(
    folder: Path, jobs: Sequence[Job], *, workers: int | None = None, engine: str = "local", title: str = "jobs",
    progress: bool | None = None, allow_failures: bool = False, lease: float | None = None, address: str | None = None,
) -> Results:  # fmt: skip
    """Do the jobs that have no result in the folder yet, and give all results.

    Called again after a crash or Ctrl-C it goes on; nothing that is finished is done again. A job that fails, or whose
    worker dies, is tried three times in all; calling again tries it anew. `workers` is the number of processes
    (default: one for each core, of the whole cluster on Ray; 0: in this process, one after the other). `lease`
    overrides how many seconds a job may be silent (default: what its kind says). `address` is the Ray cluster's.
    Raises BadInput if a job failed, unless `allow_failures`.
    """
    with open_ledger(Path(folder)) as ledger:
        results = drive(
            ledger, jobs, workers=workers, engine=engine, title=title, progress=progress, lease=lease, address=address
        )
    if results.failed and not allow_failures:
        raise BadInput(describe_failures(results))
    return results


def drive(
    ledger: Ledger, jobs: Sequence[Job], *, workers: int | None = None, engine: str = "local", title: str = "jobs",
    progress: bool | None = None, lease: float | None = None, address: str | None = None,
) -> Results:  # fmt: skip
    """`run_jobs` for somebody who has the ledger open, and looks at failures himself."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if workers is not None:
        workers = whole_number("workers", workers)
    ledger.add(jobs)
    wanted = dict.fromkeys(job.id for job in jobs)
    missing = [name for name in wanted if ledger.rows[name].state != "done"]
    with JobsBar(len(wanted), len(wanted) - len(missing), progress, title or "jobs") as bar:
        if missing:
            _Drive(ledger, missing, bar, lease).run(lambda: _engine(engine, workers, len(missing), address))
    return Results(ledger.folder, jobs, ledger)


def describe_failures(results: Results) -> str:
    """One sentence."""
    name, error = next(iter(results.failed.items()))
    count, total = len(results.failed), len(results.failed) + len(results)
    which = f"{count} of {total} jobs failed, the first is {name}" if count > 1 else f"job {name} failed"
    return f"{which} in {str(results.folder)!r}, tried {TRIES} times: {' '.join(error.split())[-500:]}"


def _engine(name: str, workers: int | None, jobs: int, address: str | None) -> Engine:
    if workers == 0:
        from multiadvisor.runs.inline_engine import InlineEngine

        return InlineEngine()
    if name == "ray":
        from multiadvisor.runs.ray_engine import RayEngine

        return RayEngine(workers, address)
    from multiadvisor.runs.local_engine import LocalEngine

    return LocalEngine(min(workers or _cores(), jobs))


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Drive:
    """Jobs on their way from waiting to done or failed."""

    def __init__(self, ledger: Ledger, missing: Sequence[str], bar: JobsBar, lease: float | None) -> None:
        self.ledger, self.bar = ledger, bar
        self.waiting, self.scratch = deque(missing), (ledger.folder / "scratch").absolute()
        self.open = set(missing)  # neither done nor failed
        self.terminated: list[Outcome] = []  # not yet on their way to the disk
        self.writing: tuple[list[Outcome], Future[list[str]]] | None = None
        self.writer = ThreadPoolExecutor(1)
        self.silent: dict[str, float] = {}  # running: seconds without a sign of life, as far as they were watched
        self.leases = {name: lease or lease_of(ledger.rows[name].kind) for name in missing}
        self.flushed = self.committed = self.listened = time.monotonic()

    def run(self, make: Callable[[], Engine]) -> None:
        """Until nothing is open. Whatever interrupts this, finished results are kept."""
        engine = make()
        try:
            try:
                while self.open:
                    engine.take(len(self.waiting), self._draw)
                    patience = min(
                        _FLUSH_SECONDS / 2 if self.terminated or self.writing else 0.5,
                        *(self.leases[name] / 4 for name in self.silent),
                        0.5,
                    )
                    events = engine.poll(patience)
                    self._listen()
                    for event in events:
                        self._hear(event)
                    for name in [name for name, silence in self.silent.items() if silence > self.leases[name]]:
                        engine.kill(name)
                        self.silent[name] = 0.0
                    self._flush(force=not self.silent)
            finally:
                engine.stop()
        finally:
            for name in self.silent:
                self.ledger.change(name, state="waiting")
            try:
                self._flush(force=True)
            finally:
                self.writer.shutdown()

    def _draw(self) -> Order:
        name = self.waiting.popleft()
        row = self.ledger.rows[name]
        return Order(name, row.kind, json.loads(row.config), f"{self.scratch}/{name}")

    def _hear(self, event: Event) -> None:
        row = self.ledger.rows[event.id]
        if event.what == "begun":
            self.silent[event.id] = 0.0
            self.ledger.change(event.id, state="running", tries=row.tries + 1, starts=row.starts + 1, fraction=0.0)
        elif event.what == "beat":
            self.silent[event.id] = 0.0
            self.ledger.change(event.id, fraction=event.fraction)
        elif event.what == "returned":
            if self.silent.pop(event.id, None) is not None:
                self.ledger.change(event.id, state="waiting", tries=row.tries - 1, fraction=0.0)
            self.waiting.append(event.id)
        else:
            self.silent.pop(event.id, None)
            if event.what == "done":
                assert event.result is not None
                self.terminated.append((event.id, event.result, event.seconds))
            elif row.tries < TRIES:
                self.ledger.change(event.id, state="waiting", error=event.error, fraction=0.0)
                self.waiting.append(event.id)
            else:
                self.ledger.change(event.id, state="failed", error=event.error, fraction=0.0)
                self.open.discard(event.id)
                self.bar.failed(1)
        self.bar.running(len(self.silent))

    def _listen(self) -> None:
        """Silence counts only while somebody listens: a driver that was stopped, or slept, blames nobody for it."""
        now = time.monotonic()
        watched, self.listened = now - self.listened, now
        for name in self.silent:
            self.silent[name] += min(watched, self.leases[name] / 2)

    def _flush(self, force: bool = False) -> None:
        """Results on their way to the disk, in a thread of its own: the workers are fed meanwhile."""
        now = time.monotonic()
        if self.writing is not None and (force or self.writing[1].done()):
            batch, future = self.writing
            wait([future])  # the disk may take its time: an interrupt here leaves the batch to the last flush
            self.writing = None
            self.ledger.record(batch, future.result())
            self.open.difference_update(name for name, _, _ in batch)
            self.bar.done(len(batch))
            self.committed = now
        due = force or now - self.flushed > _FLUSH_SECONDS or len(self.terminated) >= _FLUSH_RESULTS
        if self.terminated and self.writing is None and due:
            batch, self.terminated, self.flushed = self.terminated, [], now
            self.writing = batch, self.writer.submit(self.ledger.write, batch)
            if force:
                self._flush(force=True)
        elif force or now - self.committed > _COMMIT_SECONDS:
            self.ledger.commit()
            self.committed = now
