"""Training with evaluations by greedy episodes on the way; saved on the way, taken up where it stopped.

There is one loop, `Training.run`: `agent.learn`, the command `train` and the jobs of sweeps are this one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import Evaluation, MultiAdvisor, load_with_record
from multiadvisor.core.identity import same
from multiadvisor.core.interrupt import AtOnce, deferred_interrupt
from multiadvisor.core.progress import LearningBar
from multiadvisor.envs.registry import checked_options, defaults_of, make
from multiadvisor.errors import BadInput, Diverged, short, takes_one, unknown
from multiadvisor.learners.kinds import kind_of, resolved
from multiadvisor.runs.live import LIVE, LiveLog
from multiadvisor.runs.logs import MEASURES, Keep, Progress, are_evaluations, csv_log, room_for_advisors
from multiadvisor.runs.stuck_monitor import allowance, look
from multiadvisor.runs.tensorboard import tensorboard_log
from multiadvisor.settings import Schedule, Settings, as_integer, described, finite_number
from multiadvisor.storage.checkpoint import read_header
from multiadvisor.storage.files import check_writable, named
from multiadvisor.storage.sealed import NUMBER, fits
from multiadvisor.task import BY_ADVISOR, Task

Callback = Callable[[Progress], Any]

LOCK = "run.lock"  # held by `train` in the folder of a run
BEST = "best"  # the folder within it where the agent with the best score is kept
# what a process leaves that was killed before it had saved anything
_OURS = (LOCK, LIVE, BEST, "values-*.safetensors", ".*.part")


def _save_seconds() -> float:
    """A checkpoint takes some milliseconds: often enough to lose little, seldom enough to cost nothing."""
    text = os.environ.get("MULTIADVISOR_SAVE_SECONDS", "10")
    with suppress(ValueError):
        if float(text) >= 0:
            return float(text)
    raise BadInput(f"MULTIADVISOR_SAVE_SECONDS is {short(text)!r}: give a number of seconds, or leave it out")


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
    best_in: Path | None = None
    """Where the agent with the best score is kept too, if it is."""
    best: dict[str, Any] | None = None
    """Its `steps` and `score`."""
    notices: bool = False
    """Whether it is looked for episodes that get stuck, now and then and at the end."""
    begun: int = 0
    """What the agent had learned from when the schedule began."""
    evaluates: bool = True
    """Whether there are evaluations; if not, the schedule says when to end and no more."""
    _seen: Evaluation | None = None  # the last one
    _going: bool = True

    def run(self, callback: Callback | None = None, *, progress: bool | None = False) -> Training:
        """Go on to the end of the schedule, or until the callback returns False. Ctrl-C saves and is raised again."""
        clock, good = _Clock(), True
        # a network may diverge at any time: its first evaluation is saved as soon as it is there
        fragile = self.keep_last and self.agent.settings.learner_settings.network
        self._going = True
        try:
            self.agent._prepare()  # outside the clock
            with LearningBar(self._due(self.schedule.evaluations) - self.agent.steps, progress) as bar:
                while self._going and len(self.evaluations) < self.schedule.evaluations:
                    number = len(self.evaluations) + 1
                    self._learn_until(self._due(number), callback, bar, clock)
                    if not (self._going and self.evaluates):
                        break
                    self.evaluations.append(self._evaluate(number))
                    better = self._keep_best()
                    self._tell(callback, bar, 0, self.evaluations[-1]["score"], self.evaluations[-1])
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

    def _due(self, number: int) -> int:
        return self.begun + (self.schedule.due(number) if self.evaluates else self.schedule.steps)

    def _learn_until(self, due: int, callback: Callback | None, bar: LearningBar, clock: _Clock) -> None:
        """Learn in pieces; episodes that are played side by side go on together, past one evaluation or several."""
        while self._going and (left := due - self.agent.steps) > 0:
            start, before, score = time.perf_counter(), self.agent.steps, None
            try:
                score = self.agent._learn_piece(left)
            finally:
                self.seconds += time.perf_counter() - start
                self._tell(callback, bar, self.agent.steps - before, score)
            if self.out is not None and clock.due():
                clock.time(self.save)  # on the way: the bytes are the same however learning is cut

    def _tell(
        self, callback: Callback | None, bar: LearningBar, steps: int, score: float | None,
        evaluation: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Say how far it is, and hear whether to go on."""
        bar.advance(steps, score)
        if callback is None:
            return
        agent, returns = self.agent, {} if self._seen is None else self._seen.advisors
        now = Progress(agent, agent.steps, agent.episodes, score, returns, agent.losses, evaluation)
        going = callback(now)
        self._going = self._going and not (isinstance(going, bool | np.bool_) and not going)

    def _evaluate(self, number: int) -> dict[str, Any]:
        agent = self.agent
        if self.schedule.eval_episodes == 0:
            return evaluation_record(agent.task, agent.steps, None)
        seen = self._seen = agent.evaluate(self.schedule.eval_episodes, seeds=(number,))
        found = look(agent, number, seen.played, allowance(agent, self.evaluations)) if self.notices else {}
        return evaluation_record(agent.task, agent.steps, seen, self.by_advisor) | found

    def stuck_at_the_end(self) -> dict[str, Any] | None:
        """The first episode of the last evaluation that did not end by itself, where it is stuck."""
        if not self.notices or not self.evaluations or "steps_checked" in self.evaluations[-1] or self._seen is None:
            return self.evaluations[-1].get("stuck") if self.evaluations else None
        return look(self.agent, len(self.evaluations), self._seen.played).get("stuck")

    def _keep_best(self) -> bool:
        """Keep the agent, where its score is the best so far; of equal ones the first stays."""
        last = self.evaluations[-1]
        if self.best_in is None or (self.best is not None and last["score"] <= self.best["score"]):
            return False
        self.best = {"steps": last["steps"], "score": last["score"]}
        with deferred_interrupt():
            self.save(self.best_in)  # before the run itself: killed in between, it comes here again
        return True

    def save(self, folder: Path | None = None) -> None:
        """Write the agent with the evaluations so far to the run's folder, or to another."""
        folder = folder or self.out
        assert folder is not None
        schedule = dataclasses.asdict(self.schedule)
        record = {"schedule": schedule, "evaluations": self.evaluations, "seconds": self.seconds, **self._changes()}
        self.agent.save(folder, record)

    def _changes(self) -> dict[str, Any]:
        """What not every run has."""
        return {name: value for name in ("reweighted", "best") if (value := getattr(self, name))}

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


def evaluation_record(task: Task, steps: int, seen: Evaluation | None, by_advisor: bool = False) -> dict[str, Any]:
    """What is kept of an evaluation after so many steps; None: no episode was played."""
    if seen is None:
        return {"steps": steps, **dict.fromkeys(MEASURES), "metrics": {}}
    figures = {name: getattr(seen, name) for name in (*MEASURES, "metrics")}
    returns: dict[str, Any] = {"advisors": seen.advisors} if by_advisor else {}
    if task.other_weights():
        returns["reward"] = seen.reward
    return {"steps": steps, **figures, **returns}


# ---- who else is told ------------------------------------------------------------------------------------------------
def logged(
    training: Training, callback: Callback | None = None, *, live: bool = False, tensorboard: Path | None = None,
    csv: Path | None = None, resume: bool = False, progress: bool | None = None,
) -> Training:  # fmt: skip
    """`training.run`, with its logs; those of a resumed run are given at once what it has already."""
    logs: list[Keep] = []
    known, begun = training.evaluations, training.begun
    with ExitStack() as stack:
        if tensorboard is not None:
            logs.append(stack.enter_context(tensorboard_log(tensorboard, known, resume, begun)))
        if csv is not None:
            logs.append(stack.enter_context(csv_log(csv, training.agent.task, known, begun)))
        watched = stack.enter_context(closing(LiveLog(training))) if live else None

        def tell(now: Progress) -> Any:
            if now.evaluation is not None:
                for keep in logs:
                    keep(now.evaluation)
            if watched is not None:
                watched(now)
            return None if callback is None else callback(now)

        return training.run(tell if logs or live or callback else None, progress=progress)


_EVALUATIONS = 10  # where nothing else is said, of a training that is asked to keep its best agent or a log


def learn(
    agent: MultiAdvisor, steps: int, *, eval_every: float | None = None, eval_episodes: int | None = None,
    save_best: str | Path | None = None, tensorboard: str | Path | None = None, csv: str | Path | None = None,
    callback: Callback | None = None, progress: bool | None = None,
) -> Training:  # fmt: skip
    """`agent.learn`: so many steps more, evaluated on the way if that is asked for."""
    if callback is not None and not (callable(callback) and takes_one(callback)):
        raise BadInput(f"callback is {short(repr(callback))}: give a function of one argument, as now in now.steps")
    best, board, table = (
        None if place is None else named(name, place, "file" if name == "csv" else "folder")
        for name, place in (("save_best", save_best), ("tensorboard", tensorboard), ("csv", csv))
    )
    asked = any(each is not None for each in (eval_every, eval_episodes, save_best, tensorboard, csv))
    every = -(-steps // _EVALUATIONS) if eval_every is None else as_integer(eval_every)
    schedule = Schedule(steps, every, 10 if eval_episodes is None else eval_episodes)
    if best is not None:
        if schedule.eval_episodes == 0:
            raise BadInput("save_best keeps the agent with the best score: let eval_episodes be above 0")
        check_writable(best)
    training = Training(
        agent, schedule, by_advisor=room_for_advisors(agent.task, schedule.evaluations), notices=True,
        best_in=best, best=_own_best(best, agent), begun=agent.steps, evaluates=asked,
    )  # fmt: skip
    return logged(training, callback, tensorboard=board, csv=table, progress=progress)


# ---- resuming --------------------------------------------------------------------------------------------------------
_NO_BEST = {"steps": 1, "score": 0.0}
_SCHEDULE = {item.name: int for item in dataclasses.fields(Schedule)}


def _record_of(
    out: Path, record: dict[str, Any], task: Task, steps: int, ahead: int
) -> tuple[Schedule, list[dict[str, Any]], list[dict[str, Any]]]:
    """Schedule, evaluations and changes of weights of an agent that has learned so many steps; checked, as a checksum
    is no signature. Episodes played side by side may be `ahead` of the evaluations."""
    if not fits(record.get("schedule"), _SCHEDULE) or not fits(record.get("seconds"), NUMBER):
        raise BadInput(f"the run in {str(out)!r} has no record of its evaluations: it cannot be resumed")
    schedule, changes = Schedule(**record["schedule"]), record.get("reweighted", [])
    evaluations: Any = record.get("evaluations")
    sound = (
        fits(changes, [{"steps": int, "weights": dict.fromkeys(task.names, NUMBER)}])
        and fits(record.get("best", _NO_BEST), dict.fromkeys(_NO_BEST, NUMBER))
        and are_evaluations(evaluations)
        and len(evaluations) <= schedule.evaluations
        and record["seconds"] >= 0
    )
    learned = [evaluation["steps"] for evaluation in evaluations] if sound else []
    if not (
        sound
        and all(schedule.due(number) <= at <= steps for number, at in enumerate(learned, 1))
        and all(before <= after for before, after in pairwise(learned))
        and schedule.due(len(learned)) <= steps <= schedule.due(len(learned) + 1) + ahead
    ):
        raise BadInput(
            f"the record of the run in {str(out)!r} does not fit what it has learned: restore it from a copy"
        )
    return schedule, list(evaluations), list(changes)


def _best_of(out: Path) -> dict[str, Any] | None:
    """The best agent that a run has kept, as its own record tells, which may be ahead of a run that was killed."""
    if not (out / BEST / "agent.json").exists():
        return None
    record = read_header(out / BEST).get("record")
    found = record.get("evaluations") if isinstance(record, dict) else None
    if not found or not are_evaluations(found):
        raise BadInput(f"the record in {str(out / BEST)!r} has no evaluations: restore it from a copy, or remove it")
    return {"steps": found[-1]["steps"], "score": found[-1]["score"]}


def _own_best(folder: Path | None, agent: MultiAdvisor) -> dict[str, Any] | None:
    """The best of an agent that goes on, where it kept one in this folder before: no worse one replaces it."""
    if folder is None or not agent.steps or not (folder / "agent.json").exists():
        return None
    saved = read_header(folder)
    own = {"task": agent.task.as_data(), "settings": dataclasses.asdict(agent.settings)}
    found = saved.get("record", {}).get("evaluations")
    if not found or not are_evaluations(found) or not all(same(saved.get(name), data) for name, data in own.items()):
        return None
    return {"steps": found[-1]["steps"], "score": found[-1]["score"]} if saved["steps"] <= agent.steps else None


def _changed(before: Any, now: Any) -> str:
    """The first setting in which two differ; of networks, the one of the network."""
    name = next(f.name for f in dataclasses.fields(now) if getattr(before, f.name) != getattr(now, f.name))
    pair = getattr(before, name), getattr(now, name)
    return _changed(*pair) if all(map(dataclasses.is_dataclass, pair)) else name


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
        if out is not None and out.exists() and not all(any(map(path.match, _OURS)) for path in out.iterdir()):
            raise BadInput(f"{str(out)!r} exists and holds no run: name a new or empty folder")
        best_in = out / BEST if out is not None and keep_best else None
        return Training(MultiAdvisor(task, settings), schedule, out=out, by_advisor=by_advisor, best_in=best_in)
    if not resume:
        raise BadInput(f"{str(out)!r} holds a run already: add --resume to continue it, or name another folder")
    changed = reweight and not same(read_header(out).get("task", {}).get("identity"), task.identity)
    settings = resolved(task, settings)
    goes_on = kind_of(settings.learner_settings).reweights
    agent, kept = load_with_record(out, task, reweight=(goes_on or None) if changed else False)
    if changed:
        agent._begin_reweighted()
    if agent.settings != settings:
        raise BadInput(
            f"the run in {str(out)!r} has another {_changed(agent.settings, settings)}: continue with its own flags"
        )
    ahead = settings.learner_settings.ahead
    begun, evaluations, changes = _record_of(out, kept, task, agent.steps, ahead)
    for name in ("eval_every", "eval_episodes"):
        if getattr(begun, name) != getattr(schedule, name):
            raise BadInput(f"the run in {str(out)!r} has another {name}: resume it with the flags it started with")
    if agent.steps > schedule.steps + ahead:
        raise BadInput(f"the run in {str(out)!r} has learned {agent.steps} steps already: give --steps at least that")
    if evaluations and begun.due(len(evaluations)) < schedule.due(len(evaluations)):
        evaluations.pop()  # it was at an earlier end: a longer run would not have had it
    if changed:
        weights = dict(zip(task.names, task.weights.tolist(), strict=True))
        changes.append({"steps": agent.steps, "weights": weights})
    best = _best_of(out)
    return Training(
        agent, schedule, evaluations, float(kept["seconds"]), out, by_advisor, reweighted=changes,
        best_in=out / BEST if keep_best or best is not None else None,
        best=None if changed else best,  # other weights, other scores
    )  # fmt: skip


def begin_job(task: Task, settings: Settings, schedule: Schedule, folder: Path | None) -> Training:
    """A job's run, resumed from its folder; what is left of a crash there and cannot be used is begun again."""
    try:
        return begin(task, settings, schedule, folder, resume=True)
    except BadInput:
        if folder is None or not folder.exists():
            raise
        shutil.rmtree(folder)
        return begin(task, settings, schedule, folder, resume=True)


# ---- a run as a job --------------------------------------------------------------------------------------------------
_KEYS = {
    "task": str, "options": dict, "settings": dict, "schedule": dict, **dict.fromkeys(BY_ADVISOR, dict),
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
        defaults = defaults_of(config["task"])
        settings = described(Settings, config.get("settings", {}), defaults)
        schedule = described(Schedule, config.get("schedule", {}), defaults)
        own = {
            what: {name: finite_number(f"the {one} of {name!r}", value) for name, value in config[what].items()}
            for what, one in BY_ADVISOR.items()
            if config.get(what)
        }
        options = checked_options(config["task"], config.get("options", {}))
        return cls(config["task"], options, settings, schedule, own)

    def as_config(self) -> dict[str, Any]:
        """The plain data again, complete: every default is written out, so that equal runs have equal configs."""
        return {
            "task": self.task, "options": self.options, "settings": dataclasses.asdict(self.settings),
            "schedule": dataclasses.asdict(self.schedule), **self.own,
        }  # fmt: skip

    def make_task(self) -> Task:
        """The task, with the numbers of its own."""
        return make(self.task, **{**self.options, **self.own})

    def result(self, agent: MultiAdvisor, evaluations: list[dict[str, Any]], last: Evaluation | None) -> dict[str, Any]:
        """The result of the job, as data: the same for the same configuration, on whatever engine."""
        return {
            **dataclasses.replace(self, settings=agent.settings).as_config(),
            "steps": agent.steps,
            "evaluations": evaluations,
            "advisors": last.advisors if last else {},
            "sha256": table_digest(agent),
        }


def train_config(config: dict[str, Any], folder: Path | None, tell: Callable[[float], None]) -> dict[str, Any]:
    """The work of a `train` job: train as the config says, and give the run as data, the same bytes every time.

    The run is saved to `folder` on the way; one that was killed goes on from there, bit for bit.
    """
    run = RunConfig.parse(config)
    schedule = run.schedule
    training = begin_job(run.make_task(), run.settings, schedule, folder)
    training.by_advisor = training.keep_last = False
    training.run(lambda now: tell(now.steps / schedule.steps))
    agent, episodes = training.agent, schedule.eval_episodes
    seen = agent.evaluate(episodes, seeds=(schedule.evaluations,)) if episodes else None
    return run.result(agent, training.evaluations, seen)


def table_digest(agent: MultiAdvisor) -> str:
    """SHA-256 of everything the agent has learned."""
    digest = hashlib.sha256()
    for name, array in sorted(agent.tensors().items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
