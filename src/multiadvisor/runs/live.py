"""What a training says of itself for whoever watches: a line of JSON now and then, in a file in the run's folder.

Training only ever appends to the file. A page, in a process of its own, reads it. A line comes with every evaluation,
and between them once a second at first and then ever more seldom, so that a training of days has a thousand lines.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.runs.logs import MEASURES, Progress
from multiadvisor.runs.stuck_monitor import in_words
from multiadvisor.storage.files import open_regular, plainly
from multiadvisor.storage.sealed import NUMBER, fits
from multiadvisor.task import Task

if TYPE_CHECKING:
    from multiadvisor.runs.training import Training

LIVE = "live.jsonl"  # the file
_EVERY = 1.0  # seconds between lines, or ...
_SHARE = 0.005  # ... this share of the time so far
_TERMS = 12  # so many advisors have figures of their own; of more, their groups
_LARGEST = 16 << 20  # bytes of the file that are read
_LINE = {
    **{f"{name}?": NUMBER for name in ("seconds", "steps", "steps_per_second", "epsilon", *MEASURES)},
    **{f"{name}?": {str: NUMBER} for name in ("returns", "losses", "metrics")}, "stuck?": str,
}  # fmt: skip


def terms_of(task: Task, most: int = _TERMS) -> list[str]:
    """Whose figures are told: every advisor's, or of more than `most` those of their groups."""
    if task.n <= most:
        return list(task.names)
    groups = list(dict.fromkeys(advisor.group for advisor in task.advisors))
    return groups if len(groups) <= most and "" not in groups else []


def by_term(task: Task, values: dict[str, float], most: int = _TERMS) -> dict[str, float]:
    """Figures by advisor as figures by term: sums over groups, where there are many."""
    terms = terms_of(task, most)
    if task.n <= most or not terms:
        return {name: values[name] for name in terms if name in values}
    found = dict.fromkeys(terms, 0.0)
    for advisor in task.advisors:
        found[advisor.group] += values.get(advisor.name, 0.0)
    return found


class LiveLog:
    """Appends to the file of a run."""

    def __init__(self, training: Training) -> None:
        assert training.out is not None
        self._training, self._path = training, training.out / LIVE
        self._since, self._last, self._steps = time.monotonic(), 0.0, training.agent.steps
        self._before = self._spent = training.seconds
        head = {
            "kind": "multiadvisor live", "task": training.agent.task.name, "terms": terms_of(training.agent.task),
            "total": training.schedule.steps, "steps": training.agent.steps,
        }  # fmt: skip
        with plainly(f"write {str(self._path)!r}"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a", encoding="utf-8")
        self._write(head)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()

    def __call__(self, now: Progress) -> None:
        """A line for an evaluation, and for learning if the last line was long ago."""
        since, evaluation = time.monotonic() - self._since, now.evaluation
        found: dict[str, Any] = {}
        if evaluation is None:
            if since - self._last < max(_EVERY, _SHARE * since):
                return
        else:
            found = {name: evaluation[name] for name in MEASURES if evaluation[name] is not None}
            if evaluation["metrics"]:
                found["metrics"] = evaluation["metrics"]
            if evaluation.get("advisors"):
                found["returns"] = by_term(self._training.agent.task, evaluation["advisors"])
            if "steps_checked" in evaluation:
                found["stuck"] = in_words(evaluation["stuck"]) if "stuck" in evaluation else ""
        line = {"seconds": round(self._before + since, 3), "steps": now.steps, **found}
        spent = self._training.seconds - self._spent  # in learning, and not in looking at it
        if now.steps > self._steps and spent > 0:
            line["steps_per_second"] = round((now.steps - self._steps) / spent, 1)
            self._steps, self._spent = now.steps, self._training.seconds
        line["epsilon"] = float(now.agent.exploring)
        if now.losses is not None:
            line["losses"] = {name: float(f"{value:.4g}") for name, value in now.losses.items() if np.isfinite(value)}
        self._last = since
        self._write(line)

    def close(self) -> None:
        """There is no more to come."""
        self._file.close()


def read_live(folder: Path) -> dict[str, Any] | None:
    """The head of the file and its lines; None where there is none. What was lost in a crash is left out."""
    try:
        with open_regular(folder / LIVE) as file:
            content = file.read(_LARGEST)
    except OSError:
        return None
    head: dict[str, Any] | None = None
    lines: list[dict[str, Any]] = []
    for text in content.split(b"\n")[:-1]:  # the last one may still be written
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(line, dict) or not fits(line.get("steps"), NUMBER):
            continue
        while lines and lines[-1]["steps"] > line["steps"]:  # it was resumed from an earlier checkpoint
            lines.pop()
        if line.get("kind") == "multiadvisor live":
            head = line
        elif fits(line, _LINE):
            lines.append(line)
    return None if head is None else {"head": head, "lines": lines}
