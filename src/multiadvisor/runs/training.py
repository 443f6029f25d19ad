"""Training with evaluations by greedy episodes on the way; saved on the way, taken up where it stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from multiadvisor.agent import Evaluation, MultiAdvisor, load_with_record
from multiadvisor.core.identity import same
from multiadvisor.core.interrupt import AtOnce, deferred_interrupt
from multiadvisor.envs.builtin import checked_options, make
from multiadvisor.envs.registry import DEFAULTS
from multiadvisor.errors import BadInput, Diverged, short, unknown
from multiadvisor.learners.registry import kind_of, resolved
from multiadvisor.runs.logs import MEASURES, room_for_advisors
from multiadvisor.runs.stuck_monitor import allowance, is_look, look
from multiadvisor.settings import Schedule, Settings, finite_number
from multiadvisor.storage.checkpoint import read_header
from multiadvisor.storage.files import check_writable
from multiadvisor.task import BY_ADVISOR, Task

LOCK = "run.lock"  # held by `train` in the folder of a run
LIVE = "live.jsonl"  # what it says of itself meanwhile, for whoever watches
BEST = "best"  # the folder within it where the agent with the best score is kept
# what a process leaves that was killed before it had saved anything
_OURS = (LOCK, LIVE, BEST, "values-*.safetensors", ".*.part")


def _save_seconds() -> float:
    """A checkpoint takes some milliseconds: often enough to lose little, seldom enough to cost nothing."""
    text = os.environ.get("MULTIADVISOR_SAVE_SECONDS", "10")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise BadInput(f"MULTIADVISOR_SAVE_SECONDS is {short(text)!r}: give a number of seconds, or leave it out")
    return seconds


class _Clock:
    """When to save next: every so many seconds, and for a twentieth of the time at most."""

    def __init__(self) -> None:
        self.every, self.cost, self.saved = _save_seconds(), 0.0, time.monotonic()

    def due(self) -> bool:
        """Whether it is time; always where the seconds are 0."""
        return self.every == 0 or time.monotonic() - self.saved > max(self.every, 20 * self.cost)

    def time(self, save: Callable[[], None]) -> None:
        """Save, and see how long it takes."""
        start = time.monotonic()
        save()
        self.saved = time.monotonic()
        self.cost = self.saved - start


@dataclass
class Training:
    """A run in progress: the agent, its schedule and the evaluations so far."""

    agent: MultiAdvisor
    schedule: Schedule
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    out: Path | None = None
    by_advisor: bool = False
    """Whether every evaluation keeps the advisors' returns, by name."""
    keep_last: bool = True
    """Whether the end is saved too: of no use to a job, whose result is the end."""
    reweighted: list[dict[str, Any]] = field(default_factory=list)
    """When the weights were changed on the way, and to what: `steps`, and `weights` by advisor."""
    keep_best: bool = False
    """Whether the agent with the best score is kept too, in its own folder within the run's."""
    best: dict[str, Any] | None = None
    """Its `steps` and `score`."""
    notices: bool = False
    """Whether it is looked for episodes that get stuck, now and then and at the end."""
    _seen: Evaluation | None = None  # the last one

    def run(self, tell: Callable[[int, dict[str, Any] | None], None] = lambda steps, evaluation: None) -> Training:
        """Go on to the end of the schedule; `tell` hears of every piece of work. Ctrl-C saves and is raised again."""
        clock, good = _Clock(), True
        # a network may diverge at any time: its first evaluation is saved as soon as it is there
        fragile = self.keep_last and self.agent.settings.learner_settings.network
        try:
            self.agent._prepare()  # outside the clock
            while len(self.evaluations) < self.schedule.evaluations:
                number = len(self.evaluations) + 1
                # episodes that are played side by side go on together, past one evaluation or several
                while (due := self.schedule.due(number) - self.agent.steps) > 0:
                    start, steps = time.perf_counter(), self.agent.steps
                    try:
                        self.agent.learn(min(due, self.agent._piece), progress=False)
                    finally:
                        self.seconds += time.perf_counter() - start
                        tell(self.agent.steps - steps, None)
                    if self.out is not None and clock.due():
                        clock.time(self.save)  # on the way: the bytes are the same however learning is cut
                self.evaluations.append(self._evaluate(number))
                better = self._keep_best()
                tell(0, self.evaluations[-1])
                if self.out is not None and (better or fragile or clock.due()):
                    clock.time(self.save)
                    fragile = False
        except (Diverged, AtOnce):
            good = False  # what was saved before is better
            raise
        finally:
            if self.out is not None and good and self.keep_last:
                with deferred_interrupt():
                    self.save()
        return self

    def _evaluate(self, number: int) -> dict[str, Any]:
        head = {"steps": self.agent.steps}
        if self.schedule.eval_episodes == 0:
            return {**head, **dict.fromkeys(MEASURES), "metrics": {}}
        seen = self._seen = self.agent.evaluate(self.schedule.eval_episodes, seeds=(number,))
        returns: dict[str, Any] = {"advisors": seen.advisors} if self.by_advisor else {}
        if self.agent.task.other_weights():
            returns["reward"] = seen.reward
        found = look(self.agent, number, seen.played, allowance(self.agent, self.evaluations)) if self.notices else None
        return {**head, **_figures(seen), **returns, **({} if found is None else found.as_dict())}

    def stuck_at_the_end(self) -> dict[str, Any] | None:
        """The first episode of the last evaluation that did not end by itself, where it is stuck."""
        if not self.notices or not self.evaluations or "steps_checked" in self.evaluations[-1] or self._seen is None:
            return self.evaluations[-1].get("stuck") if self.evaluations else None
        found = look(self.agent, len(self.evaluations), self._seen.played)
        return None if found is None else found.as_dict().get("stuck")

    def _keep_best(self) -> bool:
        """Keep the agent, where its score is the best so far; of equal ones the first stays."""
        last = self.evaluations[-1]
        if not self.keep_best or (self.best is not None and last["score"] <= self.best["score"]):
            return False
        assert self.out is not None
        self.best = {"steps": last["steps"], "score": last["score"]}
        with deferred_interrupt():
            self.save(self.out / BEST)  # before the run itself: killed in between, it comes here again
        return True

    def save(self, folder: Path | None = None) -> None:
        """Write the agent with the evaluations so far to the run's folder, or to another."""
        assert self.out is not None
        schedule = dataclasses.asdict(self.schedule)
        record = {"schedule": schedule, "evaluations": self.evaluations, "seconds": self.seconds, **self._changes()}
        self.agent.save(folder or self.out, record)

    def _changes(self) -> dict[str, Any]:
        best = {"best": self.best} if self.best is not None else {}
        return {**({"reweighted": self.reweighted} if self.reweighted else {}), **best}

    def result(self) -> dict[str, Any]:
        """The run as one JSON object."""
        settings = self.agent.settings
        return {
            "task": self.agent.task.name,
            **dataclasses.asdict(settings),
            "steps": self.agent.steps,
            "steps_per_second": self.agent.steps / self.seconds if self.seconds else 0.0,
            "evaluations": self.evaluations,
            **self._changes(),
        }


def _figures(seen: Evaluation) -> dict[str, Any]:
    return {name: getattr(seen, name) for name in (*MEASURES, "metrics")}


def _changed(before: Any, now: Any) -> str:
    """The first setting in which two differ; of networks, the one of the network."""
    name = next(f.name for f in dataclasses.fields(now) if getattr(before, f.name) != getattr(now, f.name))
    pair = getattr(before, name), getattr(now, name)
    return _changed(*pair) if all(map(dataclasses.is_dataclass, pair)) else name


def _ours(path: Path) -> bool:
    return any(path.match(pattern) for pattern in _OURS)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_evaluation(given: Any) -> bool:
    """Whether an evaluation of a record is one: the steps so far, measures, metrics, perhaps the advisors' returns."""
    if not isinstance(given, dict) or type(given.get("steps")) is not int:
        return False
    tables = given.get("advisors", {}), given.get("metrics")
    return (
        {*given} - {"advisors", "steps_checked", "stuck", "reward"} == {"steps", *MEASURES, "metrics"}
        and is_look(given)
        and _is_number(given.get("reward", 0.0))
        and all(given[name] is None or _is_number(given[name]) for name in MEASURES)
        and all(isinstance(table, dict) and all(map(_is_number, table.values())) for table in tables)
    )


def _is_change(given: Any, task: Task) -> bool:
    """Whether an entry of a record tells when the weights were changed, and to what."""
    return (
        isinstance(given, dict)
        and {*given} == {"steps", "weights"}
        and type(given["steps"]) is int
        and isinstance(given["weights"], dict)
        and {*given["weights"]} == {*task.names}
        and all(map(_is_number, given["weights"].values()))
    )


def _best_of(out: Path) -> dict[str, Any] | None:
    """The best agent that a run has kept, as its own record tells, which may be ahead of a run that was killed."""
    if not (out / BEST / "agent.json").exists():
        return None
    record = read_header(out / BEST).get("record")
    found = record.get("evaluations") if isinstance(record, dict) else None
    if not isinstance(found, list) or not found or not _is_evaluation(last := found[-1]):
        raise BadInput(f"the record in {str(out / BEST)!r} has no evaluations: restore it from a copy, or remove it")
    return {"steps": last["steps"], "score": last["score"]}


def _schedule_of(saved: Any) -> Schedule | None:
    """The schedule in a record; None where it is none."""
    if not isinstance(saved, dict) or {*saved} != {item.name for item in dataclasses.fields(Schedule)}:
        return None
    try:
        return Schedule(**saved)
    except BadInput:
        return None


def _fits(evaluations: list[Any], schedule: Schedule, steps: int, ahead: int) -> bool:
    """Whether a record's evaluations are those of an agent that has learned this many steps by this schedule.

    Episodes that are played side by side may be `ahead` of it.
    """
    done = len(evaluations)
    if done > schedule.evaluations or not all(map(_is_evaluation, evaluations)):
        return False
    learned = [evaluation["steps"] for evaluation in evaluations]
    return (
        all(schedule.due(number) <= at <= steps for number, at in enumerate(learned, 1))
        and all(before <= after for before, after in pairwise(learned))
        and schedule.due(done) <= steps <= schedule.due(done + 1) + ahead
    )


def begin(
    task: Task, settings: Settings, schedule: Schedule, out: Path | None, resume: bool, reweight: bool = False,
    keep_best: bool = False,
) -> Training:  # fmt: skip
    """A new run, or with `resume` the one in the folder, which must be the same run.

    With `reweight` it may have other weights, where it can go on with them: what was learned does not depend on them,
    or actions are continuous. With `keep_best` the best agent is kept too; a run that has kept one goes on doing so.
    """
    if keep_best and (out is None or schedule.eval_episodes == 0):
        raise BadInput(
            "the best agent is kept in the run's folder, by its score: give --out, and --eval-episodes above 0"
        )
    by_advisor = room_for_advisors(task, schedule.evaluations)
    if out is not None:
        check_writable(out)
    if out is None or not (out / "agent.json").exists():
        if out is not None and out.exists() and not all(_ours(path) for path in out.iterdir()):
            raise BadInput(f"{str(out)!r} exists and holds no run: name a new or empty folder")
        return Training(MultiAdvisor(task, settings), schedule, out=out, by_advisor=by_advisor, keep_best=keep_best)
    if not resume:
        raise BadInput(f"{str(out)!r} holds a run already: add --resume to continue it, or name another folder")
    changed = reweight and not same(read_header(out).get("task", {}).get("identity"), task.identity)
    goes_on = kind_of(resolved(task, settings).learner_settings).reweights
    agent, record = load_with_record(out, task, reweight=(goes_on or None) if changed else False)
    if changed:
        agent._begin_reweighted()
    settings = resolved(task, settings)
    if agent.settings != settings:
        raise BadInput(
            f"the run in {str(out)!r} has another {_changed(agent.settings, settings)}: continue with its own flags"
        )
    evaluations, seconds = record.get("evaluations"), record.get("seconds")
    saved = _schedule_of(record.get("schedule"))
    if not isinstance(evaluations, list) or not _is_number(seconds) or seconds < 0 or saved is None:
        raise BadInput(f"the run in {str(out)!r} has no record of its evaluations: it cannot be resumed")
    for name in ("eval_every", "eval_episodes"):
        if getattr(saved, name) != getattr(schedule, name):
            raise BadInput(f"the run in {str(out)!r} has another {name}: resume it with the flags it started with")
    ahead = settings.learner_settings.ahead
    if not _fits(evaluations, saved, agent.steps, ahead):
        raise BadInput(
            f"the record of the run in {str(out)!r} does not fit what it has learned: restore it from a copy"
        )
    if agent.steps > schedule.steps + ahead:
        raise BadInput(f"the run in {str(out)!r} has learned {agent.steps} steps already: give --steps at least that")
    if evaluations and saved.due(len(evaluations)) < schedule.due(len(evaluations)):
        evaluations = evaluations[:-1]  # it was at an earlier end: a longer run would not have had it
    changes = record.get("reweighted", [])
    if not isinstance(changes, list) or not all(_is_change(change, task) for change in changes):
        raise BadInput(f"the record of the run in {str(out)!r} names no weights: restore it from a copy")
    if changed:
        changes = [
            *changes,
            {"steps": agent.steps, "weights": dict(zip(task.names, task.weights.tolist(), strict=True))},
        ]
    best = _best_of(out)
    named = record.get("best", {"steps": 1, "score": 0.0})  # killed in between, the folder is ahead of it
    if not isinstance(named, dict) or {*named} != {"steps", "score"} or not all(map(_is_number, named.values())):
        raise BadInput(f"the record of the run in {str(out)!r} names no best agent: restore it from a copy")
    return Training(
        agent, schedule, list(evaluations), float(seconds), out, by_advisor, reweighted=changes,
        keep_best=keep_best or best is not None, best=None if changed else best,  # other weights, other scores
    )  # fmt: skip


# ---- a run as a job --------------------------------------------------------------------------------------------------
RECORDS = ("last", "every")
_KEYS = {
    "task": str, "options": dict, "settings": dict, "schedule": dict, "record": str, **dict.fromkeys(BY_ADVISOR, dict),
}  # fmt: skip


@dataclass(frozen=True)
class RunConfig:
    """A run as data: what `train` takes as flags, by name."""

    task: str
    options: dict[str, Any]
    settings: Settings
    schedule: Schedule
    own: dict[str, dict[str, float]]
    """Weights, gammas and alphas other than the task's own, by advisor or group."""
    record: str = "last"
    """Of which evaluations the advisors' returns are kept by name: the last, or every one."""

    @classmethod
    def parse(cls, config: dict[str, Any]) -> RunConfig:
        """From plain data; what is unknown or out of range is refused by name.

        >>> RunConfig.parse({"task": "two-goal", "settings": {"gamma": 0.5, "seed": 3}}).settings.planning
        'empathic'
        """
        for key, value in config.items():
            if key not in _KEYS:
                raise unknown("key of a run", key, _KEYS)
            if not isinstance(value, _KEYS[key]):
                raise BadInput(
                    f"{key} of a run is {short(repr(value))}: give a {'name' if _KEYS[key] is str else 'table'}"
                )
        if "task" not in config:
            raise BadInput("a run has no task: name one, see `multiadvisor tasks`")
        defaults = DEFAULTS.get(config["task"], {})
        settings, schedule = (_from_names(kind, config.get(name, {}), defaults) for name, kind in _PARTS.items())
        own = {
            what: {name: finite_number(f"the {one} of {name!r}", value) for name, value in config[what].items()}
            for what, one in BY_ADVISOR.items()
            if config.get(what)
        }
        if (record := config.get("record", "last")) not in RECORDS:
            raise unknown("record", record, RECORDS)
        options = checked_options(config["task"], config.get("options", {}))
        return cls(config["task"], options, settings, schedule, own, record)

    def as_config(self) -> dict[str, Any]:
        """The plain data again, complete: every default is written out, so that equal runs have equal configs."""
        return {
            "task": self.task, "options": self.options, "settings": dataclasses.asdict(self.settings),
            "schedule": dataclasses.asdict(self.schedule), "record": self.record, **self.own,
        }  # fmt: skip

    def make_task(self) -> Task:
        """The task, with the numbers of its own."""
        return make(self.task, **self.options, **self.own)


_PARTS: dict[str, Any] = {"settings": Settings, "schedule": Schedule}


def _from_names(kind: Any, given: dict[str, Any], defaults: dict[str, Any]) -> Any:
    """Settings or a schedule; what is not given is as the task's own `defaults` say, or as everybody's."""
    known = [item.name for item in dataclasses.fields(kind)]
    for name in given:
        if name not in known:
            raise unknown(kind.__name__.lower().removesuffix("s"), name, known)
    if not isinstance(given.get("planning", ""), str):
        raise BadInput(f"planning is a name, not {short(repr(given['planning']))}")
    return kind(**{**{name: value for name, value in defaults.items() if name in known}, **given})


def train_config(config: dict[str, Any], folder: Path | None, tell: Callable[[float], None]) -> dict[str, Any]:
    """The work of a `train` job: train as the config says, and give the run as data, the same bytes every time.

    The run is saved to `folder` on the way; one that was killed goes on from there, bit for bit.
    """
    run = RunConfig.parse(config)
    task, schedule = run.make_task(), run.schedule
    if run.record == "every" and not room_for_advisors(task, schedule.evaluations):
        raise BadInput(
            f"{schedule.evaluations} evaluations with the returns of {task.n} advisors each are more than a record "
            "holds: evaluate less often, or choose record = 'last'"
        )
    try:
        training = begin(task, run.settings, run.schedule, folder, resume=True)
    except BadInput:
        if folder is None or not folder.exists():
            raise
        shutil.rmtree(folder)  # what is left of a crash and cannot be used: the run begins again
        training = begin(task, run.settings, run.schedule, folder, resume=True)
    training.by_advisor, training.keep_last = run.record == "every", False
    training.run(lambda steps, evaluation: tell(training.agent.steps / schedule.steps))
    agent, episodes = training.agent, schedule.eval_episodes
    seen = agent.evaluate(episodes, seeds=(schedule.evaluations,)) if episodes else None
    return {
        **dataclasses.replace(run, settings=agent.settings).as_config(),
        "steps": agent.steps,
        "evaluations": training.evaluations,
        "advisors": seen.advisors if seen else {},
        "sha256": table_digest(agent),
    }


def table_digest(agent: MultiAdvisor) -> str:
    """SHA-256 of everything the agent has learned."""
    digest = hashlib.sha256()
    for name, array in sorted(agent.tensors().items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
