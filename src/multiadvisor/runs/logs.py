"""What a training says of itself while it goes on: each evaluation as a row of a CSV file, written at once.

A log is begun with the evaluations that a resumed run has already, so that it never has one twice: what a process
that was killed had written beyond its last checkpoint is written again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from multiadvisor.errors import BadInput
from multiadvisor.storage.checkpoint import MOST_ENTRIES
from multiadvisor.storage.files import check_writable, write_atomically
from multiadvisor.task import Task

MEASURES = ("score", "length", "terminated")  # of every evaluation


class Log(Protocol):
    """Hears of every evaluation."""

    def add(self, evaluation: dict[str, Any]) -> None:
        """Write one evaluation down, at once."""

    def close(self) -> None:
        """There are no more."""


def figures(evaluation: dict[str, Any]) -> dict[str, float]:
    """What there is to say of an evaluation, by name: its measures, the task's metrics and each advisor's mean return.

    >>> measured = {"score": 2.0, "length": 3.0, "terminated": 1.0}
    >>> figures({"steps": 1, **measured, "metrics": {"falls": 4.0}, "advisors": {"goal": 2.0}})
    {'score': 2.0, 'length': 3.0, 'terminated': 1.0, 'metrics/falls': 4.0, 'advisors/goal': 2.0}
    """
    found = {name: evaluation[name] for name in MEASURES if evaluation[name] is not None}
    for kind in ("metrics", "advisors"):
        found |= {f"{kind}/{name}": value for name, value in evaluation.get(kind, {}).items()}
    return found


def room_for_advisors(task: Task, evaluations: int) -> bool:
    """Whether the record of a run has room for every advisor's return in every evaluation."""
    others = len(MEASURES) + len(task.metric_names) + 10  # with some for what is seen of being stuck
    return evaluations * (others + task.n) <= MOST_ENTRIES


class CsvLog:
    """A row for each evaluation: the steps so far, its measures, metrics and each advisor's mean return."""

    def __init__(self, path: Path, task: Task, evaluations: Sequence[dict[str, Any]] = ()) -> None:
        metrics = [f"metrics/{name}" for name in task.metric_names]
        self._columns = ["steps", *MEASURES, *metrics, *(f"advisors/{name}" for name in task.names)]
        check_writable(path.parent)
        head = self._line(self._columns)
        if path.exists() and not _begins_with(path, head):
            raise BadInput(f"{str(path)!r} already exists and is not the log of such a run: name another file")
        try:
            write_atomically(path, "".join([head, *map(self._row, evaluations)]).encode())
            self._file = path.open("a", encoding="utf-8", newline="")
        except OSError as error:
            raise BadInput(f"cannot write {str(path)!r}: {error.strerror}") from None

    @staticmethod
    def _line(cells: Sequence[Any]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue()

    def _row(self, evaluation: dict[str, Any]) -> str:
        found = {"steps": evaluation["steps"], **figures(evaluation)}
        return self._line([found.get(name, "") for name in self._columns])

    def add(self, evaluation: dict[str, Any]) -> None:
        """A row more, at once."""
        self._file.write(self._row(evaluation))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _begins_with(path: Path, head: str) -> bool:
    """Whether a file is empty or begins with this line."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(head.encode())) in (head.encode(), b"")
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}, which would be replaced: {error.strerror}") from None
