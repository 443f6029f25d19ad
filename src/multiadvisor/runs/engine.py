"""What the driver asks of an engine: take orders, say what became of them, kill what hangs.

An engine knows nothing of the ledger, of retries or of results on disk; the driver knows nothing of processes or of
machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Order(NamedTuple):
    """A job for a worker."""

    id: str
    kind: str
    config: dict[str, Any]
    folder: str
    """Its scratch folder."""


class Event(NamedTuple):
    """What became of a job.

    begun: a worker works on it now. beat: it is alive, `fraction` is done. done: `result`, after `seconds`.
    error: it failed, or took its worker with it; `error` says how. returned: its worker is gone by no fault of its own,
    begun or not; it may be ordered again, and that costs no try.
    """

    what: str
    id: str
    fraction: float = 0.0
    result: dict[str, Any] | None = None
    seconds: float = 0.0
    error: str = ""


class Engine(Protocol):
    """Workers somewhere."""

    def take(self, waiting: int, draw: Callable[[], Order]) -> None:
        """Take on as many of so many waiting jobs as is good now; `draw` gives the next one."""

    def poll(self, seconds: float) -> list[Event]:
        """What happened, in order; waits so long for something to happen."""

    def kill(self, job: str) -> None:
        """Stop a job that hangs; it comes back as an error."""

    def stop(self) -> None:
        """End all workers at once."""
