"""The engine without workers: jobs run in this very process, one after the other, for tests and for debugging."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from multiadvisor.runs.engine import Event, Order
from multiadvisor.runs.jobs import perform
from multiadvisor.runs.worker import describe


class InlineEngine:
    """No isolation: a job that crashes takes everything with it, and one that hangs is not noticed."""

    def __init__(self) -> None:
        self._order: Order | None = None

    def take(self, waiting: int, draw: Callable[[], Order]) -> None:
        """One at a time."""
        if waiting:
            self._order = draw()

    def poll(self, seconds: float) -> list[Event]:
        """Do it now."""
        order, self._order = self._order, None
        if order is None:
            return []
        begun, start = Event("begun", order.id), time.perf_counter()
        try:
            result = perform(order.kind, order.config, Path(order.folder), lambda fraction: None)
        except Exception as error:
            return [begun, Event("error", order.id, error=describe(error))]
        return [begun, Event("done", order.id, result=result, seconds=time.perf_counter() - start)]

    def kill(self, job: str) -> None:
        """Nothing can be killed here."""

    def stop(self) -> None:
        """Nothing runs."""
