"""The ledger: which jobs there are and how far each is, in one SQLite file with one writer, the driver.

The results are the truth: files `results/<id>.json` under a checksum, on disk before the ledger says `done`. A ledger
that lags behind them catches up when it is opened; one that is lost is made again from them. So SQLite may keep its
log without waiting for the disk (WAL, synchronous NORMAL): what a power cut takes from it is found again.

    jobs.sqlite      the ledger              driver.lock    held by the driver, and only then there
    results/         one file for each job   scratch/       what unfinished jobs keep for themselves

Rows carry a checksum, as SQLite has none. Whose turn it is to live or die is decided by the driver's monotonic clock;
no decision looks at the time of day.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multiadvisor.errors import BadInput, short
from multiadvisor.runs.jobs import Job
from multiadvisor.storage.files import check_writable
from multiadvisor.storage.folder_lock import holder_of, locked
from multiadvisor.storage.sealed import canonical, digest, read_sealed, seal

FORMAT = 1
_LOCK = "driver.lock"
STATES = ("waiting", "running", "done", "failed")
_APPLICATION = 0x6D616A62  # in the file's header: no other program's database is mistaken for a ledger
_RESULT = "multiadvisor result"
_REMEDY = "remove it and run again: it will be computed again"
_SYNCS = 16  # that wait at the same time
Outcome = tuple[str, dict[str, Any], float]  # id, result, seconds
_FIELDS = ("id", "place", "kind", "config", "state", "tries", "starts", "fraction", "seconds", "error", "digest")


@dataclass
class Row:
    """What is known of a job."""

    id: str
    place: int
    kind: str
    config: str
    """As canonical JSON."""
    state: str = "waiting"
    tries: int = 0
    """How often the latest driver had it tried."""
    starts: int = 0
    """How often it was begun, by any driver."""
    fraction: float = 0.0
    seconds: float = 0.0
    """What the work took, where it is done."""
    error: str = ""
    """What went wrong in the latest try that failed."""
    digest: str = ""
    """SHA-256 of the result's file."""

    def plain(self) -> list[Any]:
        """The fields, in order."""
        return [getattr(self, name) for name in _FIELDS]

    @property
    def job(self) -> Job:
        """The job itself."""
        return Job(self.kind, json.loads(self.config))


def _check(plain: Sequence[Any]) -> int:
    return zlib.crc32(canonical(list(plain)))


class Ledger:
    """The ledger of a folder, open for writing; only `open_ledger` makes one."""

    def __init__(self, folder: Path, database: sqlite3.Connection, rows: Iterable[Row]) -> None:
        self.folder, self._database = folder, database
        self.rows = {row.id: row for row in rows}
        self._changed: dict[str, None] = {}

    # ---- jobs --------------------------------------------------------------------------------------------------------
    def add(self, jobs: Iterable[Job]) -> None:
        """Jobs that may be new; those of old that have a result on disk are done, and no others are."""
        found = {path.name.removesuffix(".json") for path in (self.folder / "results").glob("[0-9a-f]*.json")}
        for job in jobs:
            config = canonical(job.config).decode()
            if job.id not in self.rows:
                self.rows[job.id] = Row(job.id, len(self.rows), job.kind, config)
                self.change(job.id)
            row = self.rows[job.id]
            if (row.kind, row.config) != (job.kind, config):
                raise _refuse(self.folder, f"it has another job under the name {job.id}")
            if row.state == "done" and row.id not in found:
                self.change(row.id, state="waiting", tries=0, fraction=0.0, seconds=0.0, digest="")
            elif row.state != "done" and row.id in found:
                read_result(self.folder, row.id)
                known = digest(result_path(self.folder, row.id).read_bytes())
                self.change(row.id, state="done", fraction=1.0, error="", digest=known)
            elif row.state != "done" and (row.state, row.tries) != ("waiting", 0):
                self.change(row.id, state="waiting", tries=0)
        self.commit()
        for path in (self.folder / "scratch").glob("*"):
            if path.name in self.rows and self.rows[path.name].state == "done":
                shutil.rmtree(path, ignore_errors=True)  # its driver was killed between the result and this

    def change(self, name: str, **changes: Any) -> Row:
        """Change a row; the file follows at the next commit."""
        row = self.rows[name]
        for key, value in changes.items():
            setattr(row, key, value)
        self._changed[name] = None
        return row

    def commit(self) -> None:
        """Write what has changed, all of it or nothing."""
        if not self._changed:
            return
        values = []
        for name in self._changed:
            plain = self.rows[name].plain()
            values.append([*plain, _check(plain)])
        try:
            with self._database:
                self._database.executemany(f"REPLACE INTO jobs VALUES ({', '.join('?' * (len(_FIELDS) + 1))})", values)
        except sqlite3.Error as error:
            raise BadInput(f"cannot write the ledger in {str(self.folder)!r}: {error}") from None
        self._changed.clear()

    # ---- results -----------------------------------------------------------------------------------------------------
    def finish(self, finished: Sequence[Outcome]) -> None:
        """Results to disk, then `done` into the ledger."""
        self.record(finished, self.write(finished))

    def write(self, finished: Sequence[Outcome]) -> list[str]:
        """Results to disk, and their digests; may run in another thread, as it touches nothing but files."""
        contents = {}
        for name, result, _ in finished:
            row = self.rows[name]
            job = {"kind": row.kind, "config": json.loads(row.config)}
            contents[f"{name}.json"] = seal(_RESULT, FORMAT, {"id": name, "job": job, "result": result})
        _write_together(self.folder / "results", contents)
        return [digest(content) for content in contents.values()]

    def record(self, finished: Sequence[Outcome], digests: Sequence[str]) -> None:
        """What is on disk is done."""
        for (name, _, seconds), known in zip(finished, digests, strict=True):
            self.change(name, state="done", fraction=1.0, seconds=seconds, error="", digest=known)
        self.commit()
        for name, _, _ in finished:
            if (scratch := self.scratch(name)).exists():
                shutil.rmtree(scratch, ignore_errors=True)

    def scratch(self, name: str) -> Path:
        """A job's own folder, made by itself where it needs one."""
        return self.folder / "scratch" / name


def result_path(folder: Path, name: str) -> Path:
    """Where the result of a job is."""
    return folder / "results" / f"{name}.json"


def read_result(folder: Path, name: str, known: str = "") -> dict[str, Any]:
    """A job's result, or what is wrong with it; `known` is the digest that the ledger has."""
    path = result_path(folder, name)
    body = read_sealed(path, _RESULT, FORMAT, _REMEDY)
    job, result = body.get("job"), body.get("result")
    try:
        own = Job(job["kind"], job["config"]).id  # type: ignore[index]
    except (BadInput, KeyError, TypeError):
        own = ""
    if body.get("id") != name or own != name or not isinstance(result, dict):
        raise BadInput(f"{str(path)!r} is the result of another job: {_REMEDY}")
    if known and digest(path.read_bytes()) != known:
        raise BadInput(f"{str(path)!r} is not the result that the ledger knows: {_REMEDY}")
    return result


def _write_together(folder: Path, contents: dict[str, bytes]) -> None:
    """Several files, each atomically: temporary files, fsync of each, renames, one fsync of the folder.

    The fsyncs wait side by side: a file system settles those that wait together in one go.
    """
    names, parts = list(contents), list[tuple[str, str]]()
    try:
        with ThreadPoolExecutor(_SYNCS) as pool:
            for first in range(0, len(names), _SYNCS):
                handles: list[int] = []
                try:
                    for name in names[first : first + _SYNCS]:
                        part = f"{folder}/.{name}.part"  # whoever holds the lock is alone here
                        handles.append(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW, 0o666))
                        parts.append((part, f"{folder}/{name}"))
                        left = memoryview(contents[name])
                        while left:
                            left = left[os.write(handles[-1], left) :]
                    if len(handles) == 1:
                        os.fsync(handles[0])
                    else:
                        list(pool.map(os.fsync, handles))
                finally:
                    for handle in handles:
                        os.close(handle)
        while parts:
            os.replace(*parts[-1])
            parts.pop()
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise BadInput(f"cannot write to {str(folder)!r}: {error.strerror}; what is finished so far is kept") from None
    finally:
        for part, _ in parts:
            with contextlib.suppress(OSError):
                os.unlink(part)


# ---- opening ---------------------------------------------------------------------------------------------------------
@contextmanager
def open_ledger(folder: Path) -> Iterator[Ledger]:
    """The ledger of a folder, made where there is none; refused while another driver has it."""
    check_writable(folder)
    known = ("jobs.sqlite", _LOCK, "results", "sweep.json")
    if folder.exists() and any(folder.iterdir()) and not any((folder / name).exists() for name in known):
        raise BadInput(f"{str(folder)!r} exists and holds no jobs: name a new or empty folder")
    with locked(folder, _LOCK):
        try:
            (folder / "results").mkdir(exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write {str(folder)!r}: {error.strerror}") from None
        for left in (folder / "results").glob(".*.part"):
            left.unlink(missing_ok=True)
        with contextlib.closing(_connect(folder)) as database:
            ledger = Ledger(folder, database, _rows(database, folder))
            yield ledger


def driver_of(folder: Path) -> str | None:
    """Who drives the jobs of a folder at this moment."""
    return holder_of(folder / _LOCK)


def _refuse(folder: Path, why: object) -> BadInput:
    path = folder / "jobs.sqlite"
    return BadInput(
        f"the ledger {str(path)!r} is damaged ({short(str(why), 200)}): move it away and run again, finished jobs are "
        "taken from results"
    )


def _connect(folder: Path) -> sqlite3.Connection:
    path = folder / "jobs.sqlite"
    columns = ", ".join(["id TEXT PRIMARY KEY", *_FIELDS[1:], "crc"])
    try:
        database = sqlite3.connect(path, isolation_level="DEFERRED", check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                database.executescript(
                    f"BEGIN IMMEDIATE; PRAGMA application_id={_APPLICATION}; PRAGMA user_version={FORMAT};"
                    f"CREATE TABLE jobs ({columns}) WITHOUT ROWID; COMMIT;"
                )
            return database
        except BaseException:
            database.close()
            raise
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
            raise BadInput(f"cannot write the ledger {str(path)!r}: {error}") from None
        raise _refuse(folder, error) from None


def _rows(database: sqlite3.Connection, folder: Path) -> list[Row]:
    """All rows, each checked."""
    try:
        if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            return []  # begun this very moment
        if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise _refuse(folder, "it is the file of another program")
        if (form := database.execute("PRAGMA user_version").fetchone()[0]) > FORMAT:
            raise BadInput(
                f"the ledger in {str(folder)!r} has format {form}, of a newer multiadvisor: upgrade to read it"
            )
        if (found := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise _refuse(folder, found.splitlines()[0])
        rows = []
        for *plain, check in database.execute(f"SELECT {', '.join(_FIELDS)}, crc FROM jobs ORDER BY place"):
            if _check(plain) != check:
                raise _refuse(folder, "a row's checksum differs")
            rows.append(_checked(Row(*plain)))
    except (sqlite3.Error, UnicodeDecodeError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, BadInput):
            raise
        raise _refuse(folder, error) from None
    return rows


_TYPES: dict[str, Any] = {"str": str, "int": int, "float": (int, float)}


def _checked(row: Row) -> Row:
    """A row whose checksum is right may still have been written by somebody else."""
    for name, kind in Row.__annotations__.items():
        if not isinstance(getattr(row, name), _TYPES[kind]):
            raise ValueError(f"{name} of a row is {str(getattr(row, name))[:40]!r}")
    if row.state not in STATES or not 0 <= row.fraction <= 1 or not 0 <= row.seconds < float("inf"):
        raise ValueError(f"the row {row.id[:40]!r} has a state or a number that cannot be")
    return row


def read_rows(folder: Path) -> list[Row]:
    """The rows as they are on disk, for somebody who only looks; the driver is not disturbed."""
    path = folder / "jobs.sqlite"
    if not path.is_file():
        raise BadInput(f"no jobs in {str(folder)!r}: there is no jobs.sqlite in it")
    from urllib.parse import quote

    latest: BadInput | None = None
    for mode in ("mode=ro", "mode=ro&immutable=1"):  # in a folder that cannot be written only the second works
        try:
            with contextlib.closing(
                sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)
            ) as database:
                return _rows(database, folder)
        except sqlite3.Error as error:
            latest = _refuse(folder, error)
        except BadInput as error:
            latest = error
    assert latest is not None
    raise latest
