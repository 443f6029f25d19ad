"""`multiadvisor check`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multiadvisor.agent import load
from multiadvisor.analysis.checks.task_check import check_task
from multiadvisor.commands.parsing import TASK, Parser, add_environment_flags, parse, say, show, task_from_flags
from multiadvisor.errors import BadInput
from multiadvisor.settings import whole_number


def parser() -> Parser:
    """The flags."""
    flags = Parser(
        "check",
        "Play a task from several seeds and look for defects: unseeded randomness, rewards that are not finite or do\n"
        "not add up, local states out of range, and more. Exit code 1 if one is found. It also has remarks on the\n"
        "terms of the reward. With --run a trained agent plays: is it stuck?",
        "multiadvisor check CartPole-v1\n  multiadvisor check --run runs/a",
    )
    flags.add_argument("task", metavar="TASK", nargs="?", help=TASK)
    flags.flag("--run", Path, "a saved run instead of TASK: is it stuck?", metavar="FOLDER")
    flags.flag("--steps", int, "steps to play", 2000)
    flags.flag("--seed", int, "first seed", 0)
    flags.flag("--aggregation", str, "the aggregation to learn with: does it suit the rewards?", "sum")
    add_environment_flags(flags)
    return flags


def run(arguments: Sequence[str]) -> int:
    """Look for defects in a task."""
    given = parse(parser(), arguments)

    whole_number("steps", given.steps, 1)
    whole_number("seed", given.seed)
    agent = None
    if given.run is not None:
        if given.task is not None or given.env_kwarg:
            raise BadInput(f"the run in {str(given.run)!r} has its own task: leave the other one out")

        agent = load(given.run)
        task, aggregation = agent.task, agent.settings.aggregation
    else:
        if given.task is None:
            raise BadInput("there is nothing to check: name a task, or a run with --run")
        task, aggregation = task_from_flags(given), given.aggregation
    say(task.note)
    report = check_task(task, steps=given.steps, seed=given.seed, aggregation=aggregation, agent=agent)
    show(report.as_dict(), given.json, str(report))
    return 0 if report.ok else 1
