"""The engine without workers: jobs run in this very process, one after the other, for tests and for debugging."""

from __future__ import annotations

from collections.abc import Callable

from multiadvisor.runs.engines.engine import Crew, Event, Order
from multiadvisor.runs.engines.worker import carry_out


class InlineEngine:
    """No isolation: a job that crashes takes everything with it, and one that hangs is not noticed."""

    def __init__(self, crew: Crew, jobs: int) -> None:
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
        return [Event("begun", order.id), carry_out(order, lambda event: None)]

    def kill(self, job: str) -> None:
        """Nothing can be killed here."""

    def stop(self) -> None:
        """Nothing runs."""
