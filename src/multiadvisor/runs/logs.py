"""What a training says of itself while it goes on: each evaluation as a row of a CSV file, written at once.

A log is begun with the evaluations that a resumed run has already, so that it never has one twice: what a process
that was killed had written beyond its last checkpoint is written again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from multiadvisor.agent import MultiAdvisor
from multiadvisor.errors import no_attribute
from multiadvisor.runs.stuck_monitor import STUCK
from multiadvisor.storage.checkpoint import MOST_ENTRIES
from multiadvisor.storage.files import check_replaceable, plainly, write_atomically
from multiadvisor.storage.sealed import NUMBER, fits
from multiadvisor.task import Task

Keep = Callable[[dict[str, Any]], None]
"""What a log does with an evaluation, at once."""
MEASURES = ("score", "length", "terminated")  # of every evaluation
_EVALUATION = {
    "steps": int, **dict.fromkeys(MEASURES, (NUMBER, None)), "metrics": {str: NUMBER}, "advisors?": {str: NUMBER},
    "reward?": NUMBER, "steps_checked?": int, "stuck?": STUCK,
}  # fmt: skip


def are_evaluations(given: Any) -> bool:
    """Whether data from a file are evaluations as a run records them."""
    return fits(given, [_EVALUATION]) and all(one.get("steps_checked", 0) >= 0 for one in given)


class Progress(NamedTuple):
    """What a callback is told of a training: after every piece of learning, and after every evaluation."""

    agent: MultiAdvisor
    steps: int
    """Learned from so far, over the agent's whole life."""
    episodes: int
    score: float | None
    """The mean of the episodes that ended in a piece of learning (None if none did), or of those of an evaluation."""
    returns: dict[str, float]
    """Each advisor's mean return in the last evaluation; empty before the first."""
    losses: dict[str, float] | None
    """Of the networks' last updates, as `agent.losses`; None without a network."""
    evaluation: dict[str, Any] | None
    """The evaluation that was just made, as the run records it; None after a piece of learning."""


def _no_part(now: Progress, name: str) -> NoReturn:
    raise no_attribute(Progress, name)


Progress.__getattr__ = _no_part  # type: ignore[attr-defined]


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


def _rows_until(path: Path, begun: int) -> list[str]:
    """The rows of a log that there is already, up to so many steps."""
    if not begun or not path.exists():
        return []
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]
    return [row for row in rows if (at := row.partition(",")[0]).isdigit() and int(at) <= begun and row.endswith("\n")]


@contextmanager
def csv_log(path: Path, task: Task, evaluations: Sequence[dict[str, Any]] = (), begun: int = 0) -> Iterator[Keep]:
    """A row for each evaluation: the steps so far, its measures, metrics and each advisor's mean return.

    `begun`: what an agent that goes on had learned from; its rows up to there stay.
    """
    metrics = [f"metrics/{name}" for name in task.metric_names]
    columns = ["steps", *MEASURES, *metrics, *(f"advisors/{name}" for name in task.names)]

    def line(cells: Sequence[Any]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue()

    def row(evaluation: dict[str, Any]) -> str:
        found = {"steps": evaluation["steps"], **figures(evaluation)}
        return line([found.get(name, "") for name in columns])

    head = line(columns)
    own = head.encode()
    check_replaceable(path, "write the log to", "the log of such a run", lambda first: first == own, len(own))
    with plainly(f"write {str(path)!r}"):
        write_atomically(path, "".join([head, *_rows_until(path, begun), *map(row, evaluations)]).encode())
        file = path.open("a", encoding="utf-8", newline="", buffering=1)
    with file:
        yield lambda evaluation: print(row(evaluation), end="", file=file)
