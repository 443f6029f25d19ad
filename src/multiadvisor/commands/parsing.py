"""What the commands share: flags from dataclasses, errors of one line, tables."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from multiadvisor.core.aggregator import COMMAS
from multiadvisor.errors import BadInput, renamed, unknown
from multiadvisor.learners.registry import AUTO, LEARNERS, LearnerKind, LearnerSettings

TASK = "a name from `multiadvisor tasks`, or of an environment of Gymnasium, such as CartPole-v1"
METAVARS = {int: "INT", float: "FLOAT", str: "STR", Path: "FILE"}


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line; what begins with a minus and a digit is a value, as in -1:1:8."""

    def __init__(self, command: str, text: str, example: str) -> None:
        super().__init__(
            prog=f"multiadvisor {command}",
            description=text,
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        """One line, and exit code 2."""
        raise BadInput(message)

    def flag(self, name: str, kind: Any, text: str, default: Any = None, metavar: str = "") -> None:
        """A flag with a value of this kind, or a switch if that is bool; its help names the default."""
        if kind is bool:
            self.add_argument(name, action="store_true", help=text)
            return
        shown = "" if default is None else f" (default {default})"
        self.add_argument(name, type=kind, default=default, metavar=metavar or METAVARS[kind], help=text + shown)

    def flags(self) -> list[str]:
        """Every long flag, for suggestions."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]


def add_fields(parser: argparse.ArgumentParser, kind: type) -> None:
    """A flag for each field of a settings dataclass; a learner is named, and has flags of its own."""
    hints = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        text = item.metadata["help"]
        if item.name == "learner":
            text = "what learns; auto: by the task; " + "; ".join(f"{k.name}: {k.text}" for k in LEARNERS.values())
        add_option(parser, item.name, str if item.name == "learner" else hints[item.name], item.default, text)


def add_learner_fields(parser: argparse.ArgumentParser) -> None:
    """A flag for each field of the learners' own settings; those that are not given are None."""
    group = parser.add_argument_group("the learner's own settings, with the default of each learner that has it")
    for name, kinds in _learners_with().items():
        first = kinds[0]
        shown = "; ".join(f"{kind.name} {text}" for kind in kinds if (text := _default(kind.options()[name])))
        text = first.options()[name].metadata["help"] + f" ({shown or ', '.join(kind.name for kind in kinds)})"
        add_option(group, name, typing.get_type_hints(first.settings)[name], None, text)


def _learners_with() -> dict[str, list[LearnerKind]]:
    """Every field of the learners' own settings, and the learners that have it."""
    found: dict[str, list[LearnerKind]] = {}
    for kind in LEARNERS.values():
        for name in kind.options():
            found.setdefault(name, []).append(kind)
    return found


def _default(item: dataclasses.Field[Any]) -> str:
    if item.default is None:
        return ""
    return ",".join(map(str, item.default)) if isinstance(item.default, tuple) else str(item.default)


def learner_from_flags(namespace: argparse.Namespace, learner: LearnerSettings) -> LearnerSettings:
    """The learner that was chosen, with what the flags say of its own settings; `auto` has none yet."""
    given = {name: value for name in _learners_with() if (value := getattr(namespace, name)) is not None}
    if learner.name == AUTO:
        return learner
    for name in given:
        kinds = _learners_with()[name]
        if learner.name not in [kind.name for kind in kinds]:
            whose = " and ".join(kind.name for kind in kinds)
            raise BadInput(
                f"--{name.replace('_', '-')} is for {whose}, and this is learned by {learner.name}: leave it out, or "
                f"choose --learner {kinds[0].name}"
            )
    return dataclasses.replace(learner, **given)


def whole_numbers(text: str) -> tuple[int, ...]:
    """64,64 as numbers."""
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of integers separated by commas, such as 64,64"
        ) from None


def named_numbers(text: str) -> dict[str, float]:
    """fruits=1,ghosts=0.5 as a dictionary."""
    try:
        pairs = [part.rpartition("=") for part in COMMAS.split(text)]
        numbers = [(name.strip(), float(number)) for name, _, number in pairs]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=number,name=number") from None
    found = dict(numbers)
    if "" in found or len(found) < len(numbers):
        raise argparse.ArgumentTypeError(f"{text!r} has a name twice or none at all: give each name once")
    return found


def named_value(text: str) -> tuple[str, Any]:
    """is_slippery=false as a name and a value: one of JSON, or else a text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    if value in ("True", "False", "None"):  # as Python writes them
        return name, {"True": True, "False": False, "None": None}[value]
    try:
        return name, json.loads(value, parse_constant=lambda word: word)
    except (ValueError, RecursionError):
        return name, value


ENVIRONMENT_FLAGS: dict[str, tuple[Any, str, str]] = {
    "max_episode_steps": (int, "INT", "episodes are truncated after this many steps; -1: never"),
    "bins": (str, "BINS,...", "bins for each number of a real-valued observation: COUNT, or LOW:HIGH:COUNT"),
    "components": (COMMAS.split, "NAME,...", "names for the components of a vector reward"),
    "advisors": (str, "info:KEY,...", "an advisor for each such reward term in info, as in 'info:reward_*'"),
    "remainder": (bool, "", "and an advisor for the rest of the reward"),
    "action_names": (COMMAS.split, "NAME,...", "names for the actions, in order"),
}
"""What a task from an environment of Gymnasium takes: the flag's kind, its metavar and its help."""


def add_environment_flags(parser: argparse.ArgumentParser) -> None:
    """What an environment of Gymnasium takes."""
    group = parser.add_argument_group("with an environment of Gymnasium")
    group.add_argument("--env-kwarg", type=named_value, action="append", default=[], metavar="NAME=VALUE",
                       help="an option of the environment, such as is_slippery=false; may be repeated")  # fmt: skip
    for name, (kind, metavar, text) in ENVIRONMENT_FLAGS.items():
        how: dict[str, Any] = {"type": kind, "metavar": metavar}
        if kind is bool:
            how = {"action": "store_true", "default": None}
        group.add_argument(f"--{name.replace('_', '-')}", help=text, **how)


def task_from_flags(given: argparse.Namespace, **options: Any) -> Any:
    """The task that the flags describe."""
    from multiadvisor.envs.builtin import make
    from multiadvisor.envs.registry import environment_id

    own = {name: value for name in ENVIRONMENT_FLAGS if (value := getattr(given, name)) is not None}
    if environment_id(given.task) is None:
        for name in [*own, *(["env_kwarg"] if given.env_kwarg else [])]:
            raise BadInput(f"--{name.replace('_', '-')} is for Gymnasium environments: {given.task} has its own flags")
    names = [name for name, _ in given.env_kwarg]
    for name in names:
        if names.count(name) > 1 or name in own:
            raise BadInput(f"option {name!r} is given twice: leave one out")
    return make(given.task, **given.task_options, **dict(given.env_kwarg), **own, **options)


def say(note: str) -> None:
    """A remark on stderr; none where there is nothing to say."""
    if note:
        print(note, file=sys.stderr)


def add_named_task(parser: argparse.ArgumentParser) -> None:
    """--task, for runs whose task names a module."""
    parser.add_argument("--task", dest="named", metavar="TASK", help="the name of the run's task, if it names a "
                        "module, MODULE:ID: required before a checkpoint may import it")  # fmt: skip


def add_option(parser: argparse._ActionsContainer, name: str, kind: Any, default: Any, text: str) -> None:
    """A flag of this kind; booleans get a --no- form."""
    flag = f"--{name.replace('_', '-')}"
    shown = "" if default is None else f" (default {default})"
    if isinstance(kind, types.UnionType):
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    if typing.get_origin(kind) is tuple:
        parser.add_argument(flag, dest=name, type=whole_numbers, default=default, metavar="INT,...", help=text + shown)
    elif kind is bool:
        parser.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction, default=default, help=text + shown)
    else:
        parser.add_argument(
            flag, dest=name, type=kind, default=default, metavar=kind.__name__.upper(), help=text + shown
        )


def from_flags(namespace: argparse.Namespace, kind: type, defaults: Mapping[str, Any] | None = None) -> Any:
    """The dataclass that the flags describe; of those that were not given, some may have other `defaults`."""
    given = {item.name: getattr(namespace, item.name) for item in dataclasses.fields(kind)}
    for name, value in (defaults or {}).items():
        if name in given and name not in namespace.said:
            given[name] = value
    return kind(**given)


def option_help(build: Callable[..., Any]) -> dict[str, str]:
    """The options explained in a task's docstring: lines `name: text` or `name, name: text`; indented lines go on."""
    texts: dict[str, str] = {}
    for line in re.sub(r"\n +", " ", inspect.getdoc(build) or "").splitlines()[2:]:
        names, colon, text = line.partition(": ")
        if colon:
            texts.update({name.strip(): text for name in names.split(",")})
    return texts


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse, where the command takes a task with its own options as well; every command has --json."""
    if "--json" not in parser.flags():
        parser.flag("--json", bool, "print one JSON object")
    namespace, rest = parser.parse_known_args(arguments)
    words = {word.partition("=")[0] for word in arguments if word.startswith("--")}
    namespace.said = {word.removeprefix("--").removeprefix("no-").replace("-", "_") for word in words}
    namespace.task_options, known = {}, parser.flags()
    task = getattr(namespace, "task", None)
    inner = None if task is None else _task_parser(task)
    if inner is not None:
        given, rest = inner.parse_known_args(rest)
        namespace.task_options = vars(given)
        known = sorted({*known, *inner.flags()})
    if not rest:
        return namespace
    if not rest[0].startswith("-"):
        raise BadInput(f"{rest[0]!r} is not expected here: see --help")
    flag = rest[0].partition("=")[0]
    if task is not None and inner is None and not difflib.get_close_matches(flag, known) and not renamed(flag, known):
        name = flag.lstrip("-").replace("-", "_")
        raise BadInput(f"unknown flag {flag!r}: options of an environment are given as --env-kwarg {name}=VALUE")
    raise _unknown_flag(flag, known, parser.prog)


def _task_parser(task: str) -> Parser | None:
    """The options of a task as flags; None for an environment of Gymnasium, which has --env-kwarg."""
    from multiadvisor.envs.registry import TASKS, environment_id

    if environment_id(task) is not None:
        return None
    if task not in TASKS:
        raise unknown("task", task, TASKS, ", or name an environment of Gymnasium")
    parser = Parser(f"... {task}", "", "")
    hints, texts = typing.get_type_hints(TASKS[task]), option_help(TASKS[task])
    for name, parameter in inspect.signature(TASKS[task]).parameters.items():
        add_option(parser, name, hints[name], parameter.default, texts.get(name, ""))
    return parser


def _unknown_flag(given: str, known: Sequence[str], command: str) -> BadInput:
    """With the closest known one; compared without the dashes, which all flags have in common."""
    if renamed(given, known):
        return unknown("flag", given, known)
    close = difflib.get_close_matches(given.lstrip("-"), [name.lstrip("-") for name in known], n=1)
    hint = f"did you mean '--{close[0]}'?" if close else f"see {command} --help"
    return BadInput(f"unknown flag {given!r}: {hint}")


def show(result: dict[str, Any], as_json: bool, text: str) -> None:
    """The result on stdout, in one of its two forms."""
    print(json.dumps(result, allow_nan=False) if as_json else text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned for a terminal."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = [[cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))]
             for row in [head, *rows]]  # fmt: skip
    lines.insert(1, ["-" * w for w in widths])
    return "\n".join("  ".join(line).rstrip() for line in lines)


def number(value: float | None, digits: int = 2) -> str:
    """A number for a table; nothing where there is none."""
    return "" if value is None else f"{value:.{digits}f}"
