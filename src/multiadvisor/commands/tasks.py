"""`multiadvisor tasks`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from multiadvisor.commands.parsing import ENVIRONMENT_FLAGS, Parser, parse, show
from multiadvisor.envs.registry import TASKS, options_of
from multiadvisor.errors import unknown


def parser() -> Parser:
    """The flags."""
    flags = Parser("tasks", "List the built-in tasks and their options.", "multiadvisor tasks two-goal")
    flags.add_argument("name", metavar="NAME", nargs="?", help="only this one")
    return flags


def run(arguments: Sequence[str]) -> int:
    """List the built-in tasks."""
    given = parse(parser(), arguments)

    if given.name is not None and given.name not in TASKS:
        raise unknown("built-in task", given.name, TASKS)
    shown = TASKS if given.name is None else {given.name: TASKS[given.name]}
    listing: dict[str, Any] = {}
    lines: list[str] = []
    for name, build in shown.items():
        title = (inspect.getdoc(build) or "").splitlines()[0]
        options = {
            option.name: {"default": option.default, "help": option.help} for option in options_of(build).values()
        }
        listing[name] = {"about": title, "options": options}
        lines.append(f"{name}\n    {title}")
        for key, entry in options.items():
            lines.append(f"      --{key.replace('_', '-')}  {entry['help']} (default {entry['default']})")
    if given.name is None:
        lines += [
            "CartPole-v1, ...",
            "    Any environment of Gymnasium or MO-Gymnasium with Discrete or Box actions,",
            "    one advisor for each component of its reward.",
            "      --env-kwarg NAME=VALUE  an option of the environment; may be repeated",
        ]
        lines += [f"      --{name.replace('_', '-')}  {text}" for name, (_, _, text) in ENVIRONMENT_FLAGS.items()]
    show(listing, given.json, "\n".join(lines))
    return 0
