"""`run_jobs`: the one call that sweeps and the paper's reproduction run on.

>>> import tempfile
>>> from multiadvisor.runs.jobs import Job
>>> schedule = {"steps": 10, "eval_every": 10, "eval_episodes": 0}
>>> with tempfile.TemporaryDirectory() as folder:
...     jobs = [Job("train", {"task": "bridge", "schedule": schedule, "settings": {"seed": seed}}) for seed in (2, 3)]
...     results = run_jobs(Path(folder), jobs, workers=0)
...     [result["settings"]["seed"] for result in results.values()]
[2, 3]
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from multiadvisor.core.progress import JobsBar
from multiadvisor.errors import BadInput
from multiadvisor.runs.engines.engine import Crew, Engine, Event, Order, engine_class
from multiadvisor.runs.jobs import Job, kind_named
from multiadvisor.runs.ledger import History, Ledger, Outcome, open_ledger, read_result, result_path
from multiadvisor.settings import whole_number

TRIES = 3
_FLUSH_SECONDS = 0.1  # finished results wait at most this long for others to share the way to the disk
_FLUSH_RESULTS = 200
_COMMIT_SECONDS = 1.0  # how old the news of running jobs may be


class Results(Mapping[str, dict[str, Any]]):
    """The results of jobs by id, in the order of the jobs; each is read, and checked, when it is asked for."""

    def __init__(self, folder: Path, jobs: Sequence[Job], past: Mapping[str, History], missing: set[str]) -> None:
        self.folder, self.jobs = folder, tuple(jobs)
        names = dict.fromkeys(job.id for job in jobs)
        known = {name: past.get(name, History()) for name in names}
        self.seconds = {name: one.seconds for name, one in known.items() if name not in missing}
        """What the work of each took, by id; not part of the result, which is the same every time."""
        self.failed = {name: known[name].error for name in names if name in missing}
        """The error of each job that failed, by id."""

    def __getitem__(self, key: str | Job) -> dict[str, Any]:
        name = key.id if isinstance(key, Job) else key
        if name not in self.seconds:
            raise KeyError(name)
        return read_result(self.folder, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.seconds)

    def __len__(self) -> int:
        return len(self.seconds)

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
    crew = Crew(workers, engine, address, lease, progress)
    with open_ledger(Path(folder)) as ledger:
        results = drive(ledger, jobs, crew, title)
    if results.failed and not allow_failures:
        raise BadInput(describe_failures(results))
    return results


def drive(ledger: Ledger, jobs: Sequence[Job], crew: Crew, title: str = "jobs") -> Results:
    """`run_jobs` for somebody who has the ledger open, and looks at failures himself."""
    if crew.workers is not None:
        whole_number("workers", crew.workers)
    engine = engine_class(crew)
    missing, total = ledger.missing(jobs), len({job.id for job in jobs})
    with JobsBar(total, total - len(missing), crew.progress, title or "jobs") as bar:
        failed = set(missing)
        if missing:
            drive = _Drive(ledger, {job.id: job for job in jobs}, missing, bar, crew.lease)
            drive.run(engine(crew, len(missing)))
            failed = drive.failed
    return Results(ledger.folder, jobs, ledger.past, failed)


def describe_failures(results: Results) -> str:
    """One sentence."""
    name, error = next(iter(results.failed.items()))
    count, total = len(results.failed), len(results.failed) + len(results)
    which = f"{count} of {total} jobs failed, the first is {name}" if count > 1 else f"job {name} failed"
    return f"{which} in {str(results.folder)!r}, tried {TRIES} times: {' '.join(error.split())[-500:]}"


class _Drive:
    """Jobs on their way from waiting to done or failed."""

    def __init__(
        self, ledger: Ledger, jobs: Mapping[str, Job], missing: Sequence[str], bar: JobsBar, lease: float | None
    ) -> None:
        self.ledger, self.jobs, self.bar = ledger, jobs, bar
        self.waiting, self.scratch = deque(missing), (ledger.folder / "scratch").absolute()
        self.open = set(missing)  # neither done nor failed
        self.failed: set[str] = set()
        self.tries: Counter[str] = Counter()
        self.finished: list[Outcome] = []  # not yet on their way to the disk
        self.writing: tuple[list[Outcome], Future[None]] | None = None
        self.writer = ThreadPoolExecutor(1)
        self.silent: dict[str, float] = {}  # running: seconds without a sign of life, as far as they were watched
        self.fraction: dict[str, float] = {}
        self.leases = {name: lease or kind_named(jobs[name].kind).lease for name in missing}
        self.flushed = self.committed = self.listened = time.monotonic()

    def run(self, engine: Engine) -> None:
        """Until nothing is open. Whatever interrupts this, finished results are kept."""
        with ExitStack() as end:
            end.callback(self.writer.shutdown)
            end.callback(self._flush, force=True)
            end.callback(self.silent.clear)
            end.callback(engine.stop)  # which comes first
            while self.open:
                engine.take(len(self.waiting), self._draw)
                events = engine.poll(self._patience())
                self._listen()
                for event in events:
                    self._hear(event)
                for name in [name for name, silence in self.silent.items() if silence > self.leases[name]]:
                    engine.kill(name)
                    self.silent[name] = 0.0
                self._flush(force=not self.silent)

    def _patience(self) -> float:
        """How long the engine may wait for something to happen."""
        soon = _FLUSH_SECONDS / 2 if self.finished or self.writing else 0.5
        return min([soon, *(self.leases[name] / 4 for name in self.silent)])

    def _draw(self) -> Order:
        name = self.waiting.popleft()
        job = self.jobs[name]
        return Order(name, job.kind, kind_named(job.kind).module, job.config, f"{self.scratch}/{name}")

    def _hear(self, event: Event) -> None:
        name = event.id
        if event.what == "begun":
            self.silent[name], self.fraction[name] = 0.0, 0.0
            self.tries[name] += 1
            self.ledger.note(name, "begun")
        elif event.what == "beat":
            self.silent[name], self.fraction[name] = 0.0, event.fraction
        else:
            was_running = self.silent.pop(name, None) is not None
            if event.what == "done":
                assert event.result is not None
                self.finished.append((name, event.result, event.seconds))
            elif event.what == "returned":
                self.tries[name] -= was_running
                self.waiting.append(name)
            elif self.tries[name] < TRIES:
                self.waiting.append(name)
            else:
                self.ledger.note(name, "failed", tries=self.tries[name], error=event.error)
                self.open.discard(name)
                self.failed.add(name)
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
            future.result()
            self.ledger.record(batch)
            self.open.difference_update(name for name, _, _ in batch)
            self.bar.done(len(batch))
        due = force or now - self.flushed > _FLUSH_SECONDS or len(self.finished) >= _FLUSH_RESULTS
        if self.finished and self.writing is None and due:
            batch, self.finished, self.flushed = self.finished, [], now
            self.writing = batch, self.writer.submit(self.ledger.write, self.jobs, batch)
            if force:
                self._flush(force=True)
        elif force or now - self.committed > _COMMIT_SECONDS:
            self.ledger.commit({name: self.fraction[name] for name in self.silent})
            self.committed = now
