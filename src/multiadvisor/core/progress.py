"""Progress on stderr: bars and a line that is written over on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class LearningBar:
    """Steps done, speed, mean score of the latest episodes, time left; silent where stderr is no terminal."""

    def __init__(self, total: int, shown: bool | None = None, title: str = "learning") -> None:
        self.total, self.title = total, title
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._progress: Any = None

    def __enter__(self) -> LearningBar:
        if self.shown:
            # rich takes a while to import: only where there is somebody to look at it
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f}%"),
                TextColumn("{task.fields[speed]}"), TextColumn("{task.fields[score]}"), TimeRemainingColumn(),
                console=Console(stderr=True), transient=False,
            )  # fmt: skip
            self._progress.start()
            self._id = self._progress.add_task(self.title, total=self.total, speed="", score="")
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


def _short(number: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return f"{number:.0f}"


class JobsBar:
    """Jobs done, running and failed, and the time left; where stderr is no terminal, the numbers now and then."""

    def __init__(self, total: int, done: int, shown: bool | None = None, title: str = "jobs") -> None:
        self._total, self._done, self._failed, self._running, self._title = total, done, 0, 0, title
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._lines = Status(terminal=False) if shown is None and not self._shown else None
        self._progress: Any = None

    def __enter__(self) -> JobsBar:
        if self._shown and self._done < self._total:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"),
                TimeRemainingColumn(), console=Console(stderr=True), transient=False, speed_estimate_period=600.0,
            )  # fmt: skip
            self._progress.start()
            self._id = self._progress.add_task(self._title, total=self._total, completed=self._done, state="")
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
            self._lines(f"{self._title}: {self._done} of {self._total} done" + (f", {state}" if state else ""))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
