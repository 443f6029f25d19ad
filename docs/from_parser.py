"""Writes docs/flags.md from the commands' own parsers: the flags of each, their defaults, and what they do.

python docs/from_parser.py
"""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from pathlib import Path

from multiadvisor.cli import COMMANDS
from multiadvisor.commands.parsing import Parser

PAGE = Path(__file__).parent / "flags.md"
HEAD = """\
# Flags

What each [command](command-line.md) takes, written by `python docs/from_parser.py` from the commands themselves.
Options of a built-in task, such as `--rules` of `pac-boy`, are flags too; `multiadvisor tasks` lists them. Every
command also takes `--json`, `--traceback` and `--import FILE.py`.
"""


def row(action: argparse.Action) -> str:
    """A flag or an argument in a line of a table."""
    name = action.option_strings[0] if action.option_strings else str(action.metavar)
    value = f" {action.metavar}" if action.option_strings and action.nargs != 0 and action.metavar else ""
    text, default = re.subn(r" \(default (.*)\)$", "", action.help or "")
    shown = (action.help or "")[len(text) + 10 : -1] if default else ""
    return f"| `{name}{value}` | {shown} | {text} |".replace("|  |", "| |").replace("\n", " ")


def table(parser: Parser) -> str:
    """All flags of a command."""
    hidden = (argparse.SUPPRESS, "print one JSON object")
    rows = [row(action) for action in parser._actions if action.help not in hidden]
    return "\n".join(["| flag | default | meaning |", "|---|---|---|", *rows])


def page() -> str:
    """The whole page."""
    parsers = {name: import_module(f"multiadvisor.commands.{name}").parser() for name in COMMANDS}
    parts = [f"## {name}\n\n{table(parser)}" for name, parser in parsers.items() if name != "tasks"]
    return "\n\n".join([HEAD.rstrip(), *parts]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
