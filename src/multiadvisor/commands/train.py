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
from typing import Any

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
from multiadvisor.envs.names import refuse_numbers_for_names
from multiadvisor.errors import BadInput
from multiadvisor.learners.kinds import AUTO, LEARNERS, refuse_of_tables, resolved
from multiadvisor.runs.live import by_term, terms_of
from multiadvisor.runs.stuck_monitor import in_words
from multiadvisor.runs.training import LOCK, Training, begin, logged
from multiadvisor.settings import Schedule, Settings
from multiadvisor.storage.folder_lock import locked
from multiadvisor.task import BY_ADVISOR, Task

_WIDE = 6  # so many advisors, or groups of them, have a column of their own


def run(arguments: Sequence[str]) -> int:
    """Train an agent."""
    given = parse(parser(), arguments)
    _check(given)
    task, settings, schedule = _described(given)

    with closing(_Page()) as page:
        with nullcontext() if given.out is None else locked(given.out, LOCK):
            reweight = given.weights is not None
            training = begin(task, settings, schedule, given.out, given.resume, reweight, given.keep_best)
            training.notices = True
            if not training.evaluations:  # once in the life of a run
                say(task.note)
                say(training.agent.chosen if given.learner == AUTO and sys.stderr.isatty() else "")
            interrupted = _train(given, training, page)
        if interrupted is None:
            _tell_result(given, training)
        if not isinstance(interrupted, Terminated | AtOnce):
            page.stay()
    return 0 if interrupted is None else 130


def parser() -> Parser:
    """The flags: of the settings, the schedule, the environment and the learner, each derived from its class."""
    flags = Parser(
        "train",
        "Train an agent on an environment, and evaluate it along the way with greedy episodes. Ctrl-C stops it\n"
        "safely; the same command with --resume continues as if it had not stopped.\n\n"
        "You may change --weights on resume if the learner supports it; the run records it.\n"
        "Options of a built-in task, for example --rules hra for pac-boy, follow its name (see `multiadvisor tasks`).",
        "multiadvisor train Hopper-v5 --advisors 'info:reward_*' --steps 100000 --out runs/hopper",
    )
    flags.add_argument("task", metavar="TASK", help=TASK)
    add_fields(flags, Schedule)
    flags.flag("--out", Path, "save the run here", metavar="FOLDER")
    flags.flag("--resume", bool, "continue the run in --out")
    add_environment_flags(flags)
    for what in BY_ADVISOR:
        flags.flag(
            f"--{what}", named_numbers, f"{what} of advisors or groups, by name", metavar="NAME=X,...",
            rare=what != "weights",
        )  # fmt: skip
    add_fields(flags, Settings, ("planning", "aggregation", "alpha", "alpha_half", "epsilon", "epsilon_half", "noise"))
    flags.flag("--keep-best", bool, "also keep the agent with the best score, in the folder best in --out")
    flags.flag("--csv", Path, "write each evaluation to this file at once, with each advisor's return")
    flags.flag("--tensorboard", Path, "the same for TensorBoard (needs multiadvisor[tensorboard])", metavar="FOLDER")
    flags.flag("--watch", bool, "watch it in the browser (needs --out and multiadvisor[explorer])")
    add_learner_fields(flags)
    return flags


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
    settings, schedule = from_flags(given, Settings), from_flags(given, Schedule)
    if kind := LEARNERS.get(settings.learner.name):  # what is wrong with the flags is said first
        learner_from_flags(given, settings.learner)
        if kind.extra:
            require(kind.extra)
    task = task_from_flags(given, **{what: getattr(given, what) for what in BY_ADVISOR})
    settings, schedule = (from_flags(given, kind, task.defaults) for kind in (Settings, Schedule))
    settings = resolved(task, settings)
    refuse_of_tables(settings.learner_settings, given.said, "--")
    settings = dataclasses.replace(settings, learner=learner_from_flags(given, settings.learner_settings))
    if settings.learner_settings.network:
        require(LEARNERS[settings.learner_settings.name].extra)
        refuse_numbers_for_names(task)
    return task, settings, schedule


def _train(given: argparse.Namespace, training: Training, page: _Page) -> KeyboardInterrupt | None:
    """Train to the end of the schedule, or until somebody interrupts it; logs and page are told meanwhile."""
    try:
        if given.watch:
            page.open(given, training)
        logged(training, live=given.out is not None, tensorboard=given.tensorboard, csv=given.csv, resume=given.resume)
    except KeyboardInterrupt as stop:
        kept = (
            f"saved in {given.out}, continue with --resume" if given.out else "nothing was saved, as there is no --out"
        )
        print(f"multiadvisor train: interrupted after {training.agent.steps:,} steps; {kept}", file=sys.stderr)
        return stop
    return None


def _tell_result(given: Any, training: Training) -> None:
    """The evaluations, and what else there is to say of the run."""
    result = training.result()
    stuck = training.stuck_at_the_end()
    if stuck is not None:
        result["stuck"] = stuck
    text = _table(training.agent.task, training.evaluations)
    text += f"\n{result['steps']:,} steps, {result['steps_per_second']:,.0f} a second; {training.agent.chosen}"
    text += f"\nsaved in {given.out}" if given.out else ""
    if training.best is not None:
        text += "\nthe best, after {steps:,} steps with a score of {score:.2f}, in {folder}/best".format(
            **training.best, folder=given.out
        )
    show(result, given.json, text + _trouble(training.evaluations, stuck))


def _trouble(evaluations: list[dict[str, Any]], stuck: dict[str, Any] | None) -> str:
    """Whether the agent is stuck at the end, or was on the way, as a line more."""
    if stuck is not None:
        return f"\nstuck in the last evaluation: {in_words(stuck)}"
    known = [evaluation for evaluation in evaluations if "stuck" in evaluation]
    return f"\nit was stuck after {known[-1]['steps']:,} steps, and is not now" if known else ""


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


def _table(task: Task, evaluations: list[dict[str, Any]]) -> str:
    """Some of the evaluations: their measures, and the mean returns of the advisors, or of their groups where few."""
    shown = [evaluations[k] for k in sorted({0, *range(9, len(evaluations), 10), len(evaluations) - 1})]
    columns = {"steps": 0, "score": 2, "length": 1, "terminated": 2}  # and their digits
    columns = {name: digits for name, digits in columns.items() if any(e[name] is not None for e in evaluations)}
    metrics = list(evaluations[-1]["metrics"])
    head = [*columns, *metrics]
    rows = [[number(one[name], digits) for name, digits in columns.items()]
            + [number(one["metrics"].get(name)) for name in metrics] for one in shown]  # fmt: skip
    wide = terms_of(task, _WIDE)
    if task.n < 2 or not wide or not any(one.get("advisors") for one in evaluations):
        return table(head, rows)
    for row, one in zip(rows, shown, strict=True):
        sums = by_term(task, one["advisors"], _WIDE) if one.get("advisors") else {}
        row += [number(sums.get(name)) for name in wide]
    text = table([*head, *wide], rows)
    return f"{text}\nthe columns from {wide[0]!r} on: what the advisors were paid in an episode, before their weights"
