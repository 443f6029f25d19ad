"""Training in epochs, each followed by greedy games; saved on the way, taken up where it stopped."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from multiadvisor.agent import Evaluation, MultiAdvisor, load_with_record
from multiadvisor.errors import BadInput, Diverged
from multiadvisor.runs.files import check_writable
from multiadvisor.settings import Schedule, Settings, as_arguments
from multiadvisor.task import Task

_SAVE_SECONDS = 10.0  # a checkpoint takes some milliseconds: often enough to lose little, seldom enough to cost nothing


@dataclass
class Training:
    """A run in progress: the agent, its schedule and the epochs so far."""

    agent: MultiAdvisor
    schedule: Schedule
    epochs: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    out: Path | None = None

    def run(self, tell: Callable[[int, dict[str, Any] | None], None] = lambda turns, epoch: None) -> Training:
        """Go on to the end of the schedule; `tell` hears of every piece of work. Ctrl-C saves and is raised again."""
        saved, cost, good = time.monotonic(), 0.0, True
        try:
            self.agent.prepare()  # outside the clock
            while len(self.epochs) < self.schedule.epochs:
                number = len(self.epochs) + 1
                # games that are played side by side go on together, past the end of an epoch or of several
                due = max(number * self.schedule.transitions - self.agent.turns, 0)
                start, turns = time.perf_counter(), self.agent.turns
                try:
                    self.agent.learn(due, progress=False)
                finally:
                    self.seconds += time.perf_counter() - start
                    tell(self.agent.turns - turns, None)
                self.epochs.append(self._look(number))
                tell(0, self.epochs[-1])
                if self.out is not None and time.monotonic() - saved > max(_SAVE_SECONDS, 20 * cost):
                    start = time.monotonic()
                    self.save()
                    saved = time.monotonic()
                    cost = saved - start
        except Diverged:
            good = False  # what was saved before is better
            raise
        finally:
            if self.out is not None and good:
                self.save()
        return self

    def _look(self, number: int) -> dict[str, Any]:
        if self.schedule.games == 0:
            return {"epoch": number, "score": None, "turns": None, "finished": None, "touches": None}
        seen = self.agent.evaluate(self.schedule.games, seeds=(number,))
        return {"epoch": number, **_figures(seen)}

    def save(self) -> None:
        """Write the agent with the epochs so far to the run's folder."""
        assert self.out is not None
        record = {"schedule": dataclasses.asdict(self.schedule), "epochs": self.epochs, "seconds": self.seconds}
        self.agent.save(self.out, record)

    def result(self) -> dict[str, Any]:
        """The run as one JSON object."""
        settings = self.agent.settings
        return {
            "task": self.agent.task.name,
            **dataclasses.asdict(settings),
            "transitions": self.agent.turns,
            "transitions_per_second": self.agent.turns / self.seconds if self.seconds else 0.0,
            "epochs": self.epochs,
        }


def _figures(seen: Evaluation) -> dict[str, Any]:
    return {"score": seen.score, "turns": seen.turns, "finished": seen.finished, "touches": seen.touches}


def begin(task: Task, settings: Settings, schedule: Schedule, out: Path | None, resume: bool) -> Training:
    """A new run, or with `resume` the one in the folder, which must be the same run."""
    if out is not None:
        check_writable(out)
    if out is None or not (out / "agent.json").exists():
        if out is not None and out.exists() and any(out.iterdir()):
            raise BadInput(f"{str(out)!r} exists and holds no run: name a new or empty folder")
        return Training(MultiAdvisor(task, **as_arguments(settings)), schedule, out=out)
    if not resume:
        raise BadInput(f"{str(out)!r} holds a run already: add --resume to go on with it, or name another folder")
    agent, record = load_with_record(out, task)
    if agent.settings != settings:
        changed = [
            f.name for f in dataclasses.fields(settings) if getattr(agent.settings, f.name) != getattr(settings, f.name)
        ]
        raise BadInput(f"the run in {str(out)!r} has another {changed[0]}: go on with its own flags")
    saved = record.get("schedule", {})
    for name in ("transitions", "games"):
        if saved.get(name) != getattr(schedule, name):
            raise BadInput(
                f"the run in {str(out)!r} has another number of {name}: resume it with the flags it began with"
            )
    if len(record["epochs"]) > schedule.epochs:
        raise BadInput(
            f"the run in {str(out)!r} has {len(record['epochs'])} epochs already: give --epochs at least that"
        )
    return Training(agent, schedule, list(record["epochs"]), float(record["seconds"]), out)
