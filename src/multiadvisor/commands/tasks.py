"""`multiadvisor tasks`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from multiadvisor.commands.parsing import ENVIRONMENT_FLAGS, Parser, parse, show
from multiadvisor.envs.registry import TASKS, options_of


def parser() -> Parser:
    """The flags."""
    return Parser("tasks", "List the built-in tasks and their options.", "multiadvisor tasks")


def run(arguments: Sequence[str]) -> int:
    """List the built-in tasks."""
    given = parse(parser(), arguments)

    listing: dict[str, Any] = {}
    lines: list[str] = []
    for name, build in TASKS.items():
        title = (inspect.getdoc(build) or "").splitlines()[0]
        options = {
            option.name: {"default": option.default, "help": option.help} for option in options_of(build).values()
        }
        listing[name] = {"about": title, "options": options}
        lines.append(f"{name}\n    {title}")
        for key, entry in options.items():
            lines.append(f"      --{key.replace('_', '-')}  {entry['help']} (default {entry['default']})")
    lines.append("CartPole-v1, ...\n    Any environment of Gymnasium or MO-Gymnasium with Discrete or Box actions,")
    lines.append("    one advisor for each component of its reward.")
    lines.append("      --env-kwarg NAME=VALUE  an option of the environment; may be repeated")
    lines += [f"      --{name.replace('_', '-')}  {text}" for name, (_, _, text) in ENVIRONMENT_FLAGS.items()]
    show(listing, given.json, "\n".join(lines))
    return 0
