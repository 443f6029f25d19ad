"""`multiadvisor tasks`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from multiadvisor.commands.parsing import Parser, option_help, parse, show


def run(arguments: Sequence[str]) -> int:
    """List the built-in tasks."""
    parser = Parser("tasks", "List the built-in tasks and their options.", "multiadvisor tasks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parse(parser, arguments)
    from multiadvisor.envs.registry import TASKS

    listing: dict[str, Any] = {}
    lines: list[str] = []
    for name, build in TASKS.items():
        title = (inspect.getdoc(build) or "").splitlines()[0]
        texts = option_help(build)
        options = {
            option: {"default": parameter.default, "help": texts.get(option, "")}
            for option, parameter in inspect.signature(build).parameters.items()
        }
        listing[name] = {"about": title, "options": options}
        lines.append(f"{name}\n    {title}")
        for key, entry in options.items():
            lines.append(f"      --{key.replace('_', '-')}  {entry['help']} (default {entry['default']})")
    lines.append(
        "CartPole-v1, ...\n    Any registered Gymnasium or MO-Gymnasium environment with Discrete or Box actions,"
    )
    lines.append("    one advisor for each component of its reward.")
    lines.append("      --env-kwarg NAME=VALUE  an option of the environment; may be given again")
    lines.append("      --max-episode-steps  episodes are cut off after this many steps")
    lines.append("      --bins  bins for each number of a real-valued observation: COUNT, or LOW:HIGH:COUNT")
    lines.append("      --components  names for the components of a vector reward")
    lines.append("      --action-names  names for the actions, in order")
    show(listing, given.json, "\n".join(lines))
    return 0
