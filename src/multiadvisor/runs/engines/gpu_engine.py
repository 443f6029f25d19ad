"""The GPU engine: training runs of one compiled world go into one launch, a lane for each, in this very process.

Every run comes out as if it had been alone. What lanes cannot take is done by the local engine beside them, and so is
everything where there is no GPU; a line says so.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from multiadvisor.agent import Evaluation, MultiAdvisor
from multiadvisor.errors import BadInput, in_one_line, short
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.learners.tabular.lane_batch import Device, LaneBatch, bytes_of_run, company, lane_learner
from multiadvisor.runs.engines.cuda_device import find_device
from multiadvisor.runs.engines.engine import Crew, Engine, Event, Order, engine_class
from multiadvisor.runs.training import RunConfig, evaluation_record
from multiadvisor.storage.sealed import canonical
from multiadvisor.task import Task

_BEAT_SECONDS = 1.0
_OF_MEMORY = 0.9  # so much of what is free is used
_AT_ONCE = 100  # results


class _Lane(NamedTuple):
    """A run on its way."""

    order: Order
    run: RunConfig
    agent: MultiAdvisor


def say(text: str) -> None:
    """A line for whoever started this."""
    print(f"gpu: {text}", file=sys.stderr, flush=True)


class GpuEngine:
    """One GPU, and the local engine for the rest."""

    def __init__(self, crew: Crew, jobs: int) -> None:
        self._crew, self._jobs = crew._replace(engine="local"), jobs
        self._device: Device | None = None
        self._others: Engine | None = None
        self._rest: deque[Order] = deque()
        self._groups: dict[Any, list[_Lane]] = {}
        self._launch: Iterator[list[Event]] | None = None
        self._tasks: dict[bytes, Task] = {}
        self._seen, self._said = set[str](), set[str]()
        try:
            self._device = find_device()
        except BadInput as error:
            say(f"{error}; the local engine does the runs")

    def take(self, waiting: int, draw: Callable[[], Order]) -> None:
        """All that wait: who shares a launch is known once all are here."""
        for _ in range(waiting):
            self._place(draw())
        if self._rest and self._others is None:
            self._others = engine_class(self._crew)(self._crew, self._jobs)
        if self._others is not None:
            self._others.take(len(self._rest), self._rest.popleft)

    def _place(self, order: Order) -> None:
        """Into the launch where it belongs, or to the rest."""
        try:
            lane = self._lane(order)
        except BadInput as error:
            lane = None
            if str(error) not in self._said:
                self._said.add(str(error))
                say(f"{error}: the local engine does that")
        if lane is None:
            self._rest.append(order)
            return
        config = lane.run.as_config()
        world = canonical({name: config[name] for name in ("task", "options", "schedule")})
        self._groups.setdefault((world, company(lane_learner(lane.agent))), []).append(lane)

    def _lane(self, order: Order) -> _Lane | None:
        """None where there is no GPU, and for what came back from a launch; an error says why a lane cannot take it."""
        if self._device is None or order.id in self._seen:
            return None
        if order.kind != "train":
            raise BadInput(f"jobs of the kind {order.kind!r} are no training runs")
        run = RunConfig.parse(order.config)
        task = self._task(run)
        agent = MultiAdvisor(task, run.settings)
        lane_learner(agent)
        return _Lane(order, run, agent)

    def _task(self, run: RunConfig) -> Task:
        """Made once for all runs of it."""
        key = canonical({"task": run.task, "options": run.options, **run.own})
        if key not in self._tasks:
            self._tasks[key] = run.make_task()
        return self._tasks[key]

    def poll(self, seconds: float) -> list[Event]:
        """One piece of a launch, and what the others have to say meanwhile."""
        found: list[Event] = []
        if self._launch is None and self._groups:
            self._launch = self._launches(self._groups.pop(next(iter(self._groups))))
        if self._launch is not None:
            piece = next(self._launch, None)
            found += piece or []
            self._launch = None if piece is None else self._launch
            seconds = 0.0
        if self._others is not None:
            found += self._others.poll(seconds)
        return found

    def kill(self, job: str) -> None:
        """Of the others; a launch is as long as its piece and cannot hang."""
        if self._others is not None:
            self._others.kill(job)

    def stop(self) -> None:
        """Forget what is on its way; whatever is finished has been handed over."""
        self._launch, self._groups = None, {}
        if self._others is not None:
            self._others.stop()

    # ---- launches ----------------------------------------------------------------------------------------------------
    def _launches(self, group: Sequence[_Lane]) -> Iterator[list[Event]]:
        """A group that shares a world, in as many launches as the memory asks for."""
        assert self._device is not None
        first = group[0]
        self._seen.update(lane.order.id for lane in group)
        size = bytes_of_run(lane_learner(first.agent), first.run.schedule.eval_episodes)
        room = int(_OF_MEMORY * self._device.free())
        each = min(room // size, len(group))
        count = -(-len(group) // max(each, 1))
        fits = f"{count} launch{'es' * (count > 1)}" if each else "too little, the local engine does them"
        say(
            f"{first.run.task}: {len(group):,} run{'s' * (len(group) > 1)} of {size / 2**10:,.0f} KiB, room for "
            f"{room / 2**20:,.0f} MiB: {fits}"
        )
        parts = [group[start : start + each] for start in range(0, len(group), each)] if each else []
        done: set[str] = set()
        try:
            for part in parts:
                for events in self._train(part, self._device):
                    done.update(event.id for event in events if event.what in ("done", "error"))
                    yield events
        except Exception as error:  # of the compiler, of the driver, of the memory
            say(f"{first.run.task}: {short(in_one_line(error), 300)}: the local engine goes on")
        left = [lane.order.id for lane in group if lane.order.id not in done]
        yield [Event("returned", name) for name in left]

    def _train(self, lanes: Sequence[_Lane], device: Device) -> Iterator[list[Event]]:
        """One launch, from the beginning of its runs to their results."""
        schedule, start, told_at = lanes[0].run.schedule, time.monotonic(), time.monotonic()
        yield [Event("begun", lane.order.id) for lane in lanes]
        batch = LaneBatch([lane_learner(lane.agent) for lane in lanes], schedule.eval_episodes, device)
        records: list[list[dict[str, Any]]] = [[] for _ in lanes]
        last: list[Evaluation | None] = [None] * len(lanes)
        failed: dict[int, str] = {}
        for number in range(1, schedule.evaluations + 1):
            steps = schedule.due(number)
            for stretch in (batch.run(steps - schedule.due(number - 1)), batch.evaluate(number)):
                for _ in stretch:
                    beat = time.monotonic() - told_at > _BEAT_SECONDS
                    told_at = time.monotonic() if beat else told_at
                    yield [Event("beat", lane.order.id, steps / schedule.steps) for lane in lanes] if beat else []
            for k in batch.infinite():
                failed.setdefault(k, _why(batch, k))
            for k, episodes in enumerate(batch.played()):
                try:
                    last[k] = _seen(lanes[k], episodes)
                    records[k].append(evaluation_record(lanes[k].agent.task, steps, last[k]))
                except BadInput as error:
                    failed.setdefault(k, str(error))
        seconds = (time.monotonic() - start) / len(lanes)
        for begin in range(0, len(lanes), _AT_ONCE):
            events = []
            for k in range(begin, min(begin + _AT_ONCE, len(lanes))):
                name, run = lanes[k].order.id, lanes[k].run
                if k in failed:
                    events.append(Event("error", name, error=failed[k]))
                    continue
                batch.take_back(k)
                events.append(Event("done", name, 1.0, run.result(lanes[k].agent, records[k], last[k]), seconds))
            yield events


def _seen(lane: _Lane, episodes: EpisodeReturns | BadInput) -> Evaluation | None:
    """What an evaluation has shown; nothing where no episode was asked for."""
    if isinstance(episodes, BadInput):
        raise episodes
    return Evaluation.of(lane.agent.task, episodes) if len(episodes.score) else None


def _why(batch: LaneBatch, lane: int) -> str:
    """What is no longer finite."""
    try:
        batch.take_back(lane)
    except BadInput as error:
        return str(error)
    return "a value is no longer finite"
