"""The folder of many jobs. The results are the truth; a log beside them says what happened on the way.

    results/ID.json   a job's result, under a checksum: whoever has one is done
    jobs.log          a line for each job that is begun, done or has failed, each under a checksum
    running.json      how far the jobs are that run now; it means nothing without a driver
    scratch/ID        what an unfinished job keeps for itself
    driver.lock       held by the driver, and only then there

A result is on disk before the log says `done`, and no line waits for the disk: a log that is behind, damaged or lost
costs nothing but what it said of times and errors. Whose turn it is to live or die is decided by the driver's monotonic
clock; no decision looks at the time of day.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multiadvisor.errors import BadInput
from multiadvisor.runs.jobs import Job
from multiadvisor.storage.files import check_writable, plainly, write_together
from multiadvisor.storage.folder_lock import holder_of, locked
from multiadvisor.storage.sealed import canonical, read_sealed, seal, strict_json

FORMAT = 1
_LOCK, _LOG, _RUNNING = "driver.lock", "jobs.log", "running.json"
_RESULT = "multiadvisor result"
_REMEDY = "remove it and run again: it will be computed again"
Outcome = tuple[str, dict[str, Any], float]  # id, result, seconds


@dataclass
class History:
    """What the log says of a job."""

    starts: int = 0
    """How often it was begun, by any driver."""
    tries: int = 0
    """How often the driver that gave it up had it tried."""
    done: bool = False
    seconds: float = 0.0
    """What the work took."""
    error: str = ""
    """What went wrong in the last try, if it has failed and was not begun since."""


class Ledger:
    """The folder of many jobs, open for writing; only `open_ledger` makes one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.past = folder, read_log(folder)
        self._lines = [b"\n"]  # the last line may be one that a killed driver did not finish

    def missing(self, jobs: Iterable[Job]) -> list[str]:
        """The jobs without a result, each once; a result that the log does not know of is looked at first."""
        found, wanted = finished_ids(self.folder), dict.fromkeys(job.id for job in jobs)
        for name in wanted:
            if name in found and not self.past.get(name, History()).done:
                read_result(self.folder, name)
        for path in (self.folder / "scratch").glob("*"):
            if path.name in found and path.name in wanted:
                shutil.rmtree(path, ignore_errors=True)  # its driver was killed between the result and this
        return [name for name in wanted if name not in found]

    def note(self, name: str, what: str, **more: Any) -> None:
        """A line for the log, written at the next `commit`: `begun`, `done` with seconds, `failed` with its error."""
        line = {"job": name, "what": what, **more}
        _apply(self.past, line)
        content = canonical(line)
        self._lines.append(b"%08x %s\n" % (zlib.crc32(content), content))

    def commit(self, running: Mapping[str, float] | None = None) -> None:
        """Append the lines; and say how far the jobs are that run now."""
        content, self._lines = b"".join(self._lines), []
        with plainly(f"write to {str(self.folder)!r}"):
            with open(self.folder / _LOG, "ab") as file:
                file.write(content)
            if running is not None:
                part = self.folder / f".{_RUNNING}.part"
                part.write_bytes(canonical(dict(running)))
                part.replace(self.folder / _RUNNING)

    def write(self, jobs: Mapping[str, Job], finished: Sequence[Outcome]) -> None:
        """Results to disk; may run in another thread, as it touches nothing but files."""
        contents = {}
        for name, result, _ in finished:
            job = {"kind": jobs[name].kind, "config": jobs[name].config}
            contents[f"{name}.json"] = seal(_RESULT, FORMAT, {"id": name, "job": job, "result": result})
        write_together(self.folder / "results", contents)

    def record(self, finished: Sequence[Outcome]) -> None:
        """What is on disk is done."""
        for name, _, seconds in finished:
            self.note(name, "done", seconds=seconds)
        self.commit()
        for name, _, _ in finished:
            if (scratch := self.folder / "scratch" / name).exists():
                shutil.rmtree(scratch, ignore_errors=True)


# ---- opening ---------------------------------------------------------------------------------------------------------
@contextmanager
def open_ledger(folder: Path) -> Iterator[Ledger]:
    """The folder's ledger, made where there is none; refused while another driver has it."""
    check_writable(folder)
    known = (_LOG, _LOCK, "results", "sweep.json")
    if folder.exists() and any(folder.iterdir()) and not any((folder / name).exists() for name in known):
        raise BadInput(f"{str(folder)!r} exists and holds no jobs: name a new or empty folder")
    with locked(folder, _LOCK):
        with plainly(f"write {str(folder)!r}"):
            (folder / "results").mkdir(exist_ok=True)
            for left in (*folder.glob(".*.part"), *(folder / "results").glob(".*.part")):
                left.unlink(missing_ok=True)
        try:
            yield Ledger(folder)
        finally:
            with contextlib.suppress(OSError):
                (folder / _RUNNING).unlink(missing_ok=True)


def driver_of(folder: Path) -> str | None:
    """Who drives the jobs of a folder at this moment."""
    return holder_of(folder / _LOCK)


# ---- looking ---------------------------------------------------------------------------------------------------------
def finished_ids(folder: Path) -> set[str]:
    """The jobs that have a result."""
    try:
        return {name[:-5] for name in os.listdir(folder / "results") if name.endswith(".json") and name[0] != "."}
    except FileNotFoundError:
        return set()


def read_log(folder: Path) -> dict[str, History]:
    """What happened to each job, by id; for somebody who only looks, too. Damaged and unfinished lines are left out."""
    path = folder / _LOG
    with plainly(f"read {str(path)!r}"):
        lines = path.read_bytes().splitlines() if path.exists() else []
    past: dict[str, History] = {}
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, KeyError, OverflowError):
            if int(line[:8], 16) == zlib.crc32(line[9:]):
                _apply(past, strict_json(line[9:]))
    return past


def _apply(past: dict[str, History], line: dict[str, Any]) -> None:
    """One more line."""
    entry = past.setdefault(str(line["job"]), History())
    if line["what"] == "begun":
        entry.starts, entry.error = entry.starts + 1, ""
    elif line["what"] == "done":
        entry.done, entry.seconds = True, float(line["seconds"])
    elif line["what"] == "failed":
        entry.tries, entry.error = int(line["tries"]), str(line["error"])


def read_running(folder: Path) -> dict[str, float]:
    """How far the jobs are that run at this moment, by id."""
    if driver_of(folder) is None:
        return {}
    try:
        found = strict_json((folder / _RUNNING).read_bytes())
        return {name: min(max(float(fraction), 0.0), 1.0) for name, fraction in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # nothing has begun yet


def result_path(folder: Path, name: str) -> Path:
    """Where the result of a job is."""
    return folder / "results" / f"{name}.json"


def read_result(folder: Path, name: str) -> dict[str, Any]:
    """A job's result, or what is wrong with it."""
    path = result_path(folder, name)
    body = read_sealed(path, _RESULT, FORMAT, _REMEDY)
    job, result = body.get("job"), body.get("result")
    try:
        own = Job(job["kind"], job["config"]).id  # type: ignore[index]
    except (BadInput, KeyError, TypeError):
        own = ""
    if body.get("id") != name or own != name or not isinstance(result, dict):
        raise BadInput(f"{str(path)!r} is the result of another job: {_REMEDY}")
    return result
