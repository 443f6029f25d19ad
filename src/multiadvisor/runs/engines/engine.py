"""What the driver asks of an engine: take orders, say what became of them, kill what hangs.

An engine knows nothing of the ledger, of retries or of results on disk; the driver knows nothing of processes or of
machines. A new one is a file beside this one and a line in `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from multiadvisor.errors import unknown


class Order(NamedTuple):
    """A job for a worker."""

    id: str
    kind: str
    module: str
    """Where the driver found the work of this kind."""
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


class Crew(NamedTuple):
    """Who does the jobs."""

    workers: int | None = None
    """Processes; None: one for each core, of the whole cluster on Ray; 0: none, jobs run in this process."""
    engine: str = "local"
    address: str | None = None
    """A cluster's."""
    lease: float | None = None
    """Seconds that a job may be silent before it is taken for hung; None: what its kind says."""
    progress: bool | None = None
    """Whether a bar is shown; None: on a terminal."""


class Engine(Protocol):
    """Workers somewhere, made from a `Crew` and the number of jobs there are for it."""

    def __init__(self, crew: Crew, jobs: int) -> None: ...

    def take(self, waiting: int, draw: Callable[[], Order]) -> None:
        """Take on as many of the waiting jobs as is good now; `draw` gives the next one."""

    def poll(self, seconds: float) -> list[Event]:
        """What happened, in order; waits this long for something to happen."""

    def kill(self, job: str) -> None:
        """Stop a job that hangs; it comes back as an error."""

    def stop(self) -> None:
        """End all workers at once."""


class EngineKind(NamedTuple):
    """Where an engine is, and what has to be known of it before it is imported."""

    place: str
    """Its file beside this one, and its class."""
    extra: str = ""
    """What has to be installed."""
    cluster: bool = False
    """Whether its workers may be on other machines: these have an address, and not the user's own files."""


ENGINES = {
    "local": EngineKind("local_engine.LocalEngine"),
    "ray": EngineKind("ray_engine.RayEngine", extra="ray", cluster=True),
    "gpu": EngineKind("gpu_engine.GpuEngine"),  # without its extra, as without a GPU, the local engine does the runs
    "inline": EngineKind("inline_engine.InlineEngine"),
}


def engine_class(crew: Crew) -> type[Engine]:
    """The class of the crew's engine; nothing is imported for the others."""
    if crew.engine not in ENGINES:
        raise unknown("engine", crew.engine, ENGINES)
    alone = crew.workers == 0 and crew.engine != "gpu"  # which needs workers only for what it cannot do itself
    module, _, name = ENGINES["inline" if alone else crew.engine].place.partition(".")
    found: type[Engine] = getattr(import_module(f"multiadvisor.runs.engines.{module}"), name)
    return found
