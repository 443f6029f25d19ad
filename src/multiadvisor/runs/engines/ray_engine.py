"""The Ray engine: jobs as Ray tasks, on this machine or on a cluster. The only module with Ray.

Small jobs travel several to a task. Ray itself retries nothing: the ledger counts tries, so a lost task comes back to
the driver. What a node took with it when it died is nobody's fault and costs no try; a worker that died alone may have
been killed by its job. Where several jobs shared the task, each is then ordered again with a task of its own, and shows
whether it was the one.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from multiadvisor.core.optional_dependencies import needed
from multiadvisor.errors import BadInput
from multiadvisor.runs.child_process import ONE_THREAD
from multiadvisor.runs.engines.engine import Crew, Event, Order
from multiadvisor.runs.engines.worker import carry_out

ray: Any = None  # the package, once an engine is made: where it listens is settled when it is imported
_TASK_SECONDS = 1.0  # the work put into one task, where jobs are small: a task costs some milliseconds
_TASK_JOBS = 256
_PULSE_SECONDS = 1.0
_OBJECTS = 200 << 20  # bytes for results on their way, in a Ray of our own


class _Pulse:
    """Where running tasks show that they live; an actor beside the driver."""

    def __init__(self) -> None:
        self._latest: dict[str, float] = {}

    def beat(self, job: str, fraction: float) -> None:
        self._latest[job] = fraction

    def drain(self) -> dict[str, float]:
        latest, self._latest = self._latest, {}
        return latest


def _carry_out_all(orders: list[Order], pulse: Any) -> bytes:
    """The work of a task, on some machine: the events of its jobs, as JSON."""
    os.environ.update(ONE_THREAD)
    latest = 0.0

    def send(event: Event) -> None:
        nonlocal latest
        if time.monotonic() - latest >= _PULSE_SECONDS:
            latest = time.monotonic()
            pulse.beat.remote(event.id, event.fraction)

    events = []
    for order in orders:
        send(Event("beat", order.id))
        events.append(carry_out(order, send))
    return json.dumps(events, allow_nan=False).encode()


class _Task:
    """Jobs that travel together."""

    def __init__(self, ref: Any, names: list[str]) -> None:
        self.ref, self.names, self.hung = ref, names, ""


class RayEngine:
    """Tasks on a Ray cluster: the one at `address`, or RAY_ADDRESS, or one of our own that listens on loopback only."""

    def __init__(self, crew: Crew, jobs: int) -> None:
        address = crew.address or os.environ.get("RAY_ADDRESS")
        _import_ray(loopback=not address)
        self._most, self._own = crew.workers, not ray.is_initialized()
        self._tasks: dict[Any, _Task] = {}
        self._events: list[Event] = []
        self._begun: set[str] = set()
        self._alone: set[str] = set()
        self._spent, self._finished, self._looked = 0.0, 0, 0.0
        try:
            if self._own:
                _connect(crew.workers, address)
            here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=False
            )
            actor: Any = ray.remote(_Pulse)
            self._pulse = actor.options(num_cpus=0, scheduling_strategy=here).remote()
            self._pulsed: Any = None
            task: Any = ray.remote(_carry_out_all)
            self._remote = task.options(num_cpus=1, max_retries=0)
            self._capacity()
        except BaseException:
            self.stop()
            raise

    def _capacity(self) -> int:
        """How many tasks can run at once, as the cluster is now."""
        if time.monotonic() - self._looked > 2.0:
            self._looked = time.monotonic()
            cores = int(ray.cluster_resources().get("CPU", 1))
            self._cores = max(1, cores if self._most is None else min(cores, self._most))
        return self._cores

    def take(self, waiting: int, draw: Callable[[], Order]) -> None:
        """As many tasks as the cluster can run, and some more that wait where jobs are small."""
        mean = self._spent / self._finished if self._finished else _TASK_SECONDS
        cores = self._capacity()
        most = 2 * cores if mean < _TASK_SECONDS else cores
        fair = -(-waiting // most)
        size = max(1, min(int(_TASK_SECONDS / max(mean, 1e-6)), _TASK_JOBS, fair))
        batch: list[Order] = []
        while waiting and len(self._tasks) < most:
            waiting -= 1
            order = draw()
            if order.id in self._alone:
                self._submit([order])
                continue
            batch.append(order)
            if len(batch) == size or not waiting:
                self._submit(batch)
                batch = []
        if batch:
            self._submit(batch)

    def _submit(self, batch: list[Order]) -> None:
        ref = self._remote.remote(batch, self._pulse)
        self._tasks[ref] = _Task(ref, [order.id for order in batch])

    def poll(self, seconds: float) -> list[Event]:
        """Tasks that are over, and signs of life."""
        refs = list(self._tasks)
        wait = 0.0 if self._events else seconds
        if refs:
            if ray.wait(refs, num_returns=1, timeout=wait)[0]:
                for ref in ray.wait(refs, num_returns=len(refs), timeout=0.0)[0]:
                    self._close(self._tasks.pop(ref))
        else:
            time.sleep(wait)
        self._listen()
        events, self._events = self._events, []
        return events

    def _listen(self) -> None:
        if self._pulsed is None:
            self._pulsed = self._pulse.drain.remote()
        elif ray.wait([self._pulsed], timeout=0.0)[0]:
            on_the_way = {name for task in self._tasks.values() for name in task.names}
            for name, fraction in ray.get(self._pulsed).items():
                if name in on_the_way:
                    self._begin(name)
                    self._events.append(Event("beat", name, fraction=fraction))
            self._pulsed = None

    def _begin(self, name: str) -> None:
        if name not in self._begun:
            self._begun.add(name)
            self._events.append(Event("begun", name))

    def _close(self, task: _Task) -> None:
        try:
            events = [Event(*event) for event in json.loads(ray.get(task.ref))]
        except ray.exceptions.RayError as error:
            self._lost(task, error)
            return
        for event in events:
            self._begin(event.id)
            self._begun.discard(event.id)
            self._events.append(event)
            self._spent += event.seconds
            self._finished += 1

    def _lost(self, task: _Task, error: Exception) -> None:
        """What becomes of the jobs of a task that did not come back."""
        node = isinstance(error, ray.exceptions.NodeDiedError | ray.exceptions.ObjectLostError)
        for name in task.names:
            if node or len(task.names) > 1:
                self._alone |= set() if node else {name}
                self._events.append(Event("returned", name))
            else:
                self._begin(name)
                words = task.hung or f"the worker of the Ray task died: {' '.join(str(error).split())[:1000]}"
                self._events.append(Event("error", name, error=words))
            self._begun.discard(name)

    def kill(self, job: str) -> None:
        """Cancel the task that has this job, by force."""
        for task in self._tasks.values():
            if job in task.names:
                task.hung = "it gave no sign of life for the length of its lease: its task was cancelled"
                ray.cancel(task.ref, force=True)

    def stop(self) -> None:
        """Cancel what runs; a Ray of our own ends, a cluster stays."""
        for task in self._tasks.values():
            with contextlib.suppress(Exception):
                ray.cancel(task.ref, force=True)
        self._tasks = {}
        if self._own and ray.is_initialized():
            ray.shutdown()


def _import_ray(loopback: bool) -> None:
    """Import it so that it phones nobody, and where it is our own listens to nobody else."""
    global ray
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns about its own future
    if loopback and "ray" not in sys.modules:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # as on other systems: 127.0.0.1 only
    with needed("ray"):
        import ray as package
        import ray.util.scheduling_strategies
    ray = package


def _connect(workers: int | None, address: str | None) -> None:
    common: dict[str, Any] = {
        "log_to_driver": False, "logging_level": "critical", "configure_logging": True, "include_dashboard": False,
    }  # fmt: skip
    own: dict[str, Any] = {"num_cpus": workers, "_node_ip_address": "127.0.0.1", "object_store_memory": _OBJECTS}
    if address:
        own, common = {"address": address}, {k: v for k, v in common.items() if k != "include_dashboard"}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            ray.init(**common, **own)
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        where = f"the Ray cluster at {address!r}" if address else "a Ray of its own"
        raise BadInput(f"cannot reach {where}: {' '.join(str(error).split())[:300]}") from None
