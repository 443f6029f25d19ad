"""`multiadvisor train`."""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multiadvisor.commands.parsing import (
    TASK,
    Parser,
    add_environment_flags,
    add_fields,
    add_learner_fields,
    from_flags,
    learner_from_flags,
    named_numbers,
    number,
    parse,
    say,
    show,
    table,
    task_from_flags,
)
from multiadvisor.core.interrupt import AtOnce, Terminated
from multiadvisor.core.optional_dependencies import require
from multiadvisor.core.plugins import IMPORTED
from multiadvisor.errors import BadInput

if TYPE_CHECKING:
    from multiadvisor.runs.logs import Log
    from multiadvisor.runs.training import Training
    from multiadvisor.settings import Schedule, Settings
    from multiadvisor.task import Task

_WIDE = 6  # so many advisors, or groups of them, have a column of their own


def run(arguments: Sequence[str]) -> int:
    """Train an agent."""
    given = _parse(arguments)
    _check(given)
    task, settings, schedule = _described(given)
    from multiadvisor.runs.training import LOCK, begin
    from multiadvisor.storage.folder_lock import locked

    with closing(_Page()) as page:
        with nullcontext() if given.out is None else locked(given.out, LOCK):
            reweight = given.weights is not None
            training = begin(task, settings, schedule, given.out, given.resume, reweight, given.keep_best)
            training.notices = True
            say("" if training.evaluations else task.note)  # once in the life of a run
            interrupted = _train(given, training, page)
        if interrupted is None:
            _tell_result(given, training)
        if not isinstance(interrupted, Terminated | AtOnce):
            page.stay()
    return 0 if interrupted is None else 130


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The flags: of the settings, the schedule, the environment and the learner, each derived from its class."""
    from multiadvisor.settings import Schedule, Settings
    from multiadvisor.task import BY_ADVISOR

    parser = Parser(
        "train",
        "Train a multi-advisor agent; every --eval-every steps it is evaluated by greedy episodes without learning.\n"
        "Ctrl-C and SIGTERM stop it safely; the same command with --resume continues, bit for bit as if it had not\n"
        "stopped. You may change --weights on resume if the learner supports it; the run records it.\n"
        "Options of the task itself, for example --rules hra for pac-boy, follow its name (see `multiadvisor tasks`).",
        "multiadvisor train pac-boy --planning empathic --gamma 0.9 --steps 1000000 --seed 0 --out runs/a --json",
    )
    parser.add_argument("task", metavar="TASK", help=TASK)
    add_fields(parser, Settings)
    add_fields(parser, Schedule)
    for what in BY_ADVISOR:
        parser.flag(f"--{what}", named_numbers, f"{what} of advisors or groups, by name", metavar="NAME=FLOAT,...")
    parser.flag("--out", Path, "save the run here", metavar="FOLDER")
    parser.flag("--resume", bool, "continue the run in --out")
    parser.flag("--keep-best", bool, "also keep the agent with the best score, in the folder best in --out")
    parser.flag("--csv", Path, "append each evaluation to this file, with each advisor's return")
    parser.flag("--tensorboard", Path, "the same for TensorBoard (needs multiadvisor[tensorboard])", metavar="FOLDER")
    parser.flag("--watch", bool, "watch the training in the browser (needs --out and multiadvisor[explorer])")
    add_environment_flags(parser)
    add_learner_fields(parser)
    return parse(parser, arguments)


def _check(given: argparse.Namespace) -> None:
    """Refuse flags that do not go together, and extras that are not installed, before anything is made."""
    if given.watch:
        if given.out is None:
            raise BadInput("--watch shows the run in --out: name a folder")
        require("explorer")
    if given.tensorboard is not None:
        require("tensorboard")
    if given.resume and given.out is None:
        raise BadInput("--resume continues the run in --out: name its folder")


def _described(given: argparse.Namespace) -> tuple[Task, Settings, Schedule]:
    """The task, the settings and the schedule that the flags describe."""
    from multiadvisor.envs.components import refuse_numbers_for_names
    from multiadvisor.learners.registry import LEARNERS, resolved
    from multiadvisor.settings import Schedule, Settings
    from multiadvisor.task import BY_ADVISOR

    settings, schedule = from_flags(given, Settings), from_flags(given, Schedule)
    if kind := LEARNERS.get(settings.learner.name):  # what is wrong with the flags is said first
        learner_from_flags(given, settings.learner)
        if kind.extra:
            require(kind.extra)
    task = task_from_flags(given, **{what: getattr(given, what) for what in BY_ADVISOR})
    settings, schedule = (from_flags(given, kind, task.defaults) for kind in (Settings, Schedule))
    settings = resolved(task, settings)
    settings = dataclasses.replace(settings, learner=learner_from_flags(given, settings.learner_settings))
    if settings.learner_settings.network:
        require(LEARNERS[settings.learner_settings.name].extra)
        refuse_numbers_for_names(task)
    return task, settings, schedule


def _train(given: argparse.Namespace, training: Training, page: _Page) -> KeyboardInterrupt | None:
    """Train to the end of the schedule, or until somebody interrupts it; logs and page are told meanwhile."""
    from multiadvisor.core.progress import LearningBar

    logs = _logs(given, training)
    try:
        if given.watch:
            page.open(given, training)
        with LearningBar(training.schedule.steps - training.agent.steps) as bar, _live(training) as live:

            def tell(steps: int, evaluation: dict[str, Any] | None) -> None:
                bar.advance(steps, evaluation["score"] if evaluation else None)
                if live is not None:
                    live.advance() if evaluation is None else live.add(evaluation)
                for log in logs:
                    if evaluation is not None:
                        log.add(evaluation)

            training.run(tell)
    except KeyboardInterrupt as stop:
        kept = (
            f"saved in {given.out}, continue with --resume" if given.out else "nothing was saved, as there is no --out"
        )
        print(f"multiadvisor train: interrupted after {training.agent.steps:,} steps; {kept}", file=sys.stderr)
        return stop
    finally:
        for log in logs:
            log.close()
    return None


def _tell_result(given: Any, training: Training) -> None:
    """The evaluations, and what else there is to say of the run."""
    result = training.result()
    stuck = training.stuck_at_the_end()
    if stuck is not None:
        result["stuck"] = stuck
    text = _table(training.agent.task, training.evaluations)
    text += f"\n{result['steps']:,} steps, {result['steps_per_second']:,.0f} a second"
    text += f"\nsaved in {given.out}" if given.out else ""
    if training.best is not None:
        text += "\nthe best, after {steps:,} steps with a score of {score:.2f}, in {folder}/best".format(
            **training.best, folder=given.out
        )
    show(result, given.json, text + _trouble(training.evaluations, stuck))


def _trouble(evaluations: list[dict[str, Any]], stuck: dict[str, Any] | None) -> str:
    """Whether the agent is stuck at the end, or was on the way, as a line more."""
    from multiadvisor.runs.stuck_monitor import in_words

    if stuck is not None:
        return f"\nstuck in the last evaluation: {in_words(stuck)}"
    known = [evaluation for evaluation in evaluations if "stuck" in evaluation]
    return f"\nit was stuck after {known[-1]['steps']:,} steps, and is not now" if known else ""


def _live(training: Training) -> Any:
    """The file in the run's folder that a page may follow."""
    if training.out is None:
        return nullcontext()
    from multiadvisor.runs.live import LiveLog

    return closing(LiveLog(training))


class _Page:
    """With --watch, a page on the run: in a process of its own, which yields to the training."""

    process: subprocess.Popen[bytes] | None = None

    def open(self, given: Any, training: Training) -> None:
        """Show the run while it is trained."""
        training.save()  # so that there is something to look at
        named = ["--task", given.task] if ":" in given.task.removeprefix("gymnasium:") else []
        own = [word for name in IMPORTED for word in ("--import", name)]
        # Ctrl-C is for the training alone: who watches should see that it was interrupted
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "multiadvisor", "explore", str(given.out), "--view", "learning", *named, *own],
                stdout=2, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, self.process.pid, 10)

    def stay(self) -> None:
        """In a terminal, go on showing it until Ctrl-C: the training is over, or was interrupted, and its lock free."""
        if self.process is not None and sys.stdin.isatty() and self.process.poll() is None:
            print("the page stays until Ctrl-C", file=sys.stderr)
            with suppress(KeyboardInterrupt):
                self.process.wait()

    def close(self) -> None:
        """It has nothing to save."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def _logs(given: Any, training: Training) -> list[Log]:
    """Who else hears of every evaluation; those that a resumed run has already are told at once."""
    logs: list[Log] = []
    try:
        if given.tensorboard is not None:
            from multiadvisor.runs.tensorboard import TensorBoardLog

            logs.append(TensorBoardLog(given.tensorboard, training.evaluations, given.resume))
        if given.csv is not None:
            from multiadvisor.runs.logs import CsvLog

            logs.append(CsvLog(given.csv, training.agent.task, training.evaluations))
    except BadInput:
        for log in logs:
            log.close()
        raise
    return logs


def _table(task: Task, evaluations: list[dict[str, Any]]) -> str:
    """Some of the evaluations: their measures, and the mean returns of the advisors, or of their groups where few."""
    shown = [evaluations[k] for k in sorted({0, *range(9, len(evaluations), 10), len(evaluations) - 1})]
    columns = {"steps": 0, "score": 2, "length": 1, "terminated": 2}  # and their digits
    columns = {name: digits for name, digits in columns.items() if any(e[name] is not None for e in evaluations)}
    metrics = list(evaluations[-1]["metrics"])
    head = [*columns, *metrics]
    rows = [[number(one[name], digits) for name, digits in columns.items()]
            + [number(one["metrics"].get(name)) for name in metrics] for one in shown]  # fmt: skip
    names = [advisor.name if task.n <= _WIDE else advisor.group for advisor in task.advisors]
    wide = list(dict.fromkeys(names))
    if task.n < 2 or len(wide) > _WIDE or "" in wide or not any(one.get("advisors") for one in evaluations):
        return table(head, rows)
    for row, one in zip(rows, shown, strict=True):
        paid = one.get("advisors", {})
        sums = {name: sum(paid[f.name] for f, own in zip(task.advisors, names, strict=True) if own == name)
                if paid else None for name in wide}  # fmt: skip
        row += [number(sums[name]) for name in wide]
    text = table([*head, *wide], rows)
    return f"{text}\nthe columns from {wide[0]!r} on: what the advisors were paid in an episode, before their weights"
