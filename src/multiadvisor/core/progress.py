"""Progress on stderr: bars and a line that is written over on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

_EVERY = 30.0  # seconds between two lines of a log


class Status:
    """What is being done now. Where nobody looks on, most of what is said is left out: a line now and then will do."""

    def __init__(
        self, terminal: bool | None = None, every: float = _EVERY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._every, self._clock = every, clock
        self._began = self._last = clock()

    def __enter__(self) -> Status:
        return self

    def __call__(self, text: str) -> None:
        """Say it, at once on a terminal; in a log with the seconds since the beginning, unless a line was just said."""
        now = self._clock()
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif now - self._last >= self._every:
            self._last = now
            print(f"{text} ({now - self._began:.0f} s)", file=sys.stderr, flush=True)

    def __exit__(self, *error: object) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _Bar:
    """A bar of rich, which takes a while to import: only where there is somebody to look at it."""

    def __init__(self, total: int, shown: bool | None = None, title: str = "learning") -> None:
        self.total, self.title = total, title
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._progress: Any = None

    def _begin(self, *texts: str, completed: int = 0, period: float = 30.0, **fields: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), *map(TextColumn, texts), TimeRemainingColumn(),
            console=Console(stderr=True), transient=False, speed_estimate_period=period,
        )  # fmt: skip
        self._progress.start()
        self._id = self._progress.add_task(self.title, total=self.total, completed=completed, **fields)

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()


class LearningBar(_Bar):
    """Steps done, speed, mean score of the latest episodes, time left; silent where stderr is no terminal."""

    def __enter__(self) -> LearningBar:
        if self.shown:
            self._begin("{task.percentage:3.0f}%", "{task.fields[speed]}", "{task.fields[score]}", speed="", score="")
        return self

    def advance(self, steps: int, score: float | None = None) -> None:
        """So many steps more, and the mean score of the episodes that ended in them."""
        if self._progress is None:
            return
        self._progress.advance(self._id, steps)
        rate = self._progress.tasks[0].speed
        fields = {"speed": f"{_short(rate)} steps/s"} if rate else {}
        if score is not None:
            fields["score"] = f"score {score:.1f}"
        self._progress.update(self._id, **fields)


def _short(number: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return f"{number:.0f}"


class JobsBar(_Bar):
    """Jobs done, running and failed, and the time left; where stderr is no terminal, the numbers now and then."""

    def __init__(self, total: int, done: int, shown: bool | None = None, title: str = "jobs") -> None:
        super().__init__(total, shown, title)
        self._done, self._failed, self._running = done, 0, 0
        self._lines = Status(terminal=False) if shown is None and not self.shown else None

    def __enter__(self) -> JobsBar:
        if self.shown and self._done < self.total:
            counts = "{task.completed:.0f}/{task.total:.0f}"
            self._begin(counts, "{task.fields[state]}", completed=self._done, period=600.0, state="")
        return self

    def done(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        self._show(count)

    def failed(self, count: int) -> None:
        """So many more have failed for good."""
        self._failed += count
        self._show(count)

    def running(self, count: int) -> None:
        """So many are running now."""
        changed, self._running = count != self._running, count
        if changed or self._lines is not None:  # a log hears of jobs that run on and on as well
            self._show(0)

    def _show(self, advance: int) -> None:
        counts = ((self._running, "running"), (self._failed, "failed"))
        state = ", ".join(f"{count} {what}" for count, what in counts if count)
        if self._progress is not None:
            self._progress.update(self._id, advance=advance, state=state)
        elif self._lines is not None:
            self._lines(f"{self.title}: {self._done} of {self.total} done" + (f", {state}" if state else ""))
