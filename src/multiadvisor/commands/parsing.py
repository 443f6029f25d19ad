"""What the commands share: flags from dataclasses, errors of one line, tables."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import difflib
import functools
import json
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, NoReturn

from gymnasium.wrappers import TimeLimit

from multiadvisor.core.aggregator import COMMAS
from multiadvisor.core.plugins import own_object
from multiadvisor.envs.gymnasium_tasks import DEFAULT_LIMIT, limit_note
from multiadvisor.envs.presets import GYMNASIUM
from multiadvisor.envs.registry import TASKS, environment_id, make, options_of, own_options, unknown_task
from multiadvisor.errors import BadInput, neighbour, unknown
from multiadvisor.learners.kinds import AUTO, LEARNERS, LearnerSettings, learners_with, with_own
from multiadvisor.settings import described, whole_number
from multiadvisor.storage.checkpoint import read_header
from multiadvisor.task import Task

TASK = "the id of an environment (CartPole-v1), FILE.py:NAME, or a built-in task"


def integer(text: str) -> int:
    """20000, 20_000 or 2e4 as a number.

    >>> integer("2e4")
    20000
    """
    try:
        return int(float(text)) if re.fullmatch(r"\d+(\.\d*)?[eE]\+?\d+", text) and float(text) % 1 == 0 else int(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer, such as 20000") from None


def place(text: str) -> Path:
    """A file or a folder; an empty text would be the one that we are in."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: name a file or a folder")
    return Path(text)


class _Help(argparse.Action):
    """Print the help, with the rare flags or without, and exit."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> NoReturn:
        print(parser.format_help() if option_string == "--help-all" else parser.short_help(), end="")
        raise SystemExit(0)


class _Lines(argparse.RawDescriptionHelpFormatter):
    """A line for most flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=27, width=max(get_terminal_size().columns - 2, 98))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs fill the width; what is indented stays a line, or goes on in a column of its own."""
        parts = re.sub(r"(?<=\S)\n(?=\S)", " ", text).split("\n")
        column = {part: " " * (18 if part.startswith(" ") else 0) for part in parts}
        fill = functools.partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
        return "\n".join(fill(part, subsequent_indent=column[part]) for part in parts)


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line; what begins with a minus and a digit is a value, as in -1:1:8."""

    def __init__(self, command: str, text: str, example: str) -> None:
        prog = f"multiadvisor {command}"
        super().__init__(
            prog=prog, description=text, epilog=f"example:\n  {example}", formatter_class=_Lines, allow_abbrev=False,
            add_help=False,
        )  # fmt: skip
        self._negative_number_matcher = re.compile(r"-\.?\d")
        self.example = example.partition("\n")[0]
        self.rare: set[str] = set()
        """The flags that --help leaves out, by their destination."""
        self.add_argument("-h", "--help", "--help-all", action=_Help, nargs=0, help=argparse.SUPPRESS,
                          default=argparse.SUPPRESS)  # fmt: skip

    def error(self, message: str) -> NoReturn:
        """One line, and exit code 2; where something is missing, with the example."""
        shown = f", as in {self.example}" if "are required" in message else ""
        raise BadInput(message + shown)

    def flag(self, name: str, kind: Any, text: str, default: Any = None, metavar: str = "", rare: bool = False) -> None:
        """A flag with a value of this kind, or a switch if that is bool; its help names the default."""
        if rare:
            self.rare.add(name.lstrip("-").replace("-", "_"))
        if kind is bool:
            self.add_argument(name, action="store_true", help=text)
        else:
            add_option(self, name.removeprefix("--"), kind, default, text, metavar=metavar)

    def flags(self) -> list[str]:
        """Every long flag, for suggestions."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def format_usage(self) -> str:
        """What has to be given, and that there are flags."""
        named = [action.metavar for action in self._actions if not action.option_strings]
        return " ".join([self.prog, *map(str, named), "[flags]"])

    def format_help(self) -> str:
        """All flags."""
        self.usage = self.format_usage()
        return super().format_help()

    def short_help(self) -> str:
        """The flags that most people need, each in a line: its help up to a semicolon, and the default."""
        if not self.rare:
            return self.format_help()
        short = copy.deepcopy(self)
        short.description = (self.description or "").partition("\n\n")[0]
        for action in short._actions:
            if action.dest in self.rare:
                action.help = argparse.SUPPRESS
            elif action.help and action.help != argparse.SUPPRESS:
                action.help = re.sub(r";.*?(?= \(default|$)", "", action.help)
        return f"{short.format_help()}\n--help-all shows {len(self.rare)} more flags\n"


def refuse_beside(given: argparse.Namespace, mode: str, why: str, others: Iterable[str]) -> None:
    """Where one flag is given, refuse others that would have no effect: they are misunderstandings."""
    asked = {name for name, value in vars(given).items() if value not in (None, False, [])}
    for name in others if mode in asked else ():
        if name in asked:
            raise BadInput(f"--{mode.replace('_', '-')} {why}: leave --{name.replace('_', '-')} out")


def add_fields(parser: Parser, kind: type, rare: Iterable[str] = ()) -> None:
    """A flag for each field of a settings dataclass; a learner is named, and has flags of its own."""
    parser.rare |= set(rare)
    hints = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        text = item.metadata["help"]
        if item.name == "learner":
            text = "what learns; auto: by the task; " + "; ".join(f"{k.name}: {k.text}" for k in LEARNERS.values())
        kind = str if item.name == "learner" else hints[item.name]
        usual = f"by the task, mostly {GYMNASIUM[item.name]}" if item.name in GYMNASIUM else item.default
        add_option(parser, item.name, kind, item.default, text, usual)


def add_learner_fields(parser: Parser) -> None:
    """A flag for each field of the learners' own settings; those that are not given are None."""
    parser.rare |= set(learners_with())
    group = parser.add_argument_group("the learner's own settings, with the default of each learner that has it")
    for name, kinds in learners_with().items():
        first = kinds[0]
        shown = "; ".join(f"{kind.name} {text}" for kind in kinds if (text := as_text(kind.options()[name].default)))
        text = first.options()[name].metadata["help"] + f" ({shown or ', '.join(kind.name for kind in kinds)})"
        add_option(group, name, typing.get_type_hints(first.settings)[name], None, text)


def as_text(value: Any) -> str:
    """A value as a flag takes it; nothing for None."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)


def learner_from_flags(namespace: argparse.Namespace, learner: LearnerSettings) -> LearnerSettings:
    """The learner that was chosen, with what the flags say of its own settings; `auto` has none yet."""
    given = {name: value for name in learners_with() if (value := getattr(namespace, name)) is not None}
    return learner if learner.name == AUTO else with_own(learner, given, "--")


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
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=number,name=number")
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
    "max_episode_steps": (integer, "INT", "episodes are truncated after this many steps; -1: never"),
    "bins": (str, "BINS,...", "bins for each number of a real-valued observation: COUNT, or LOW:HIGH:COUNT"),
    "components": (COMMAS.split, "NAME,...", "names for the components of a vector reward"),
    "advisors": (str, "info:KEY,...", "an advisor for each such term in info, as in 'info:reward_*'"),
    "remainder": (bool, "", "and an advisor for the rest of the reward"),
    "action_names": (COMMAS.split, "NAME,...", "names for the actions, in order"),
}
"""What a task from an environment of Gymnasium takes: the flag's kind, its metavar and its help."""


def add_environment_flags(parser: Parser) -> None:
    """What an environment of Gymnasium takes."""
    parser.rare |= {"env_kwarg", *ENVIRONMENT_FLAGS} - {"advisors"}
    group = parser.add_argument_group("with an environment of Gymnasium")
    group.add_argument("--env-kwarg", type=named_value, action="append", default=[], metavar="NAME=VALUE",
                       help="an option of the environment, such as is_slippery=false; may be repeated")  # fmt: skip
    for name, (kind, metavar, text) in ENVIRONMENT_FLAGS.items():
        how: dict[str, Any] = {"type": kind, "metavar": metavar}
        if kind is bool:
            how = {"action": "store_true", "default": None}
        place = parser if name == "advisors" else group  # which is for everybody
        place.add_argument(f"--{name.replace('_', '-')}", help=text, **how)


def task_from_flags(given: argparse.Namespace, **options: Any) -> Any:
    """The task that the flags describe."""
    own = {name: value for name in ENVIRONMENT_FLAGS if (value := getattr(given, name)) is not None}
    if in_a_file(given.task):
        limit = own.pop("max_episode_steps", None)
        made = own_task(given.task, dict(given.env_kwarg), limit)
        task = make(made, **own, **options)
        cut = limit is None and isinstance(made, TimeLimit) and made._max_episode_steps == DEFAULT_LIMIT
        return dataclasses.replace(task, note=limit_note(given.task)) if cut else task
    if environment_id(given.task) is None:
        for name in [*own, *(["env_kwarg"] if given.env_kwarg else [])]:
            raise BadInput(f"--{name.replace('_', '-')} is for Gymnasium environments: {given.task} has its own flags")
    names = [name for name, _ in given.env_kwarg]
    for name in names:
        if names.count(name) > 1 or name in own:
            raise BadInput(f"option {name!r} is given twice: leave one out")
    return make(given.task, **given.task_options, **dict(given.env_kwarg), **own, **options)


def in_a_file(named: str) -> bool:
    """Whether FILE.py:NAME is meant, and not the id of an environment."""
    return named.rpartition(":")[0].endswith(".py")


def own_task(named: str, arguments: Mapping[str, Any], limit: int | None = None) -> Any:
    """What FILE.py:NAME is: a task or an environment, or what makes one, with these arguments.

    Episodes of an environment without a limit are cut off, as a greedy agent may never end one; `limit` -1: never.
    """
    found = own_object(named, "TASK")
    if callable(found):
        try:
            found = found(**arguments)
        except TypeError as error:
            given = ", ".join(arguments) or "no argument"
            raise BadInput(f"{named!r} cannot be called with {given}: {error}") from None
    limited = getattr(found, "spec", None) is not None and found.spec.max_episode_steps is not None
    if not hasattr(found, "step") or limit == -1 or (limited and limit is None):
        return found
    return TimeLimit(found, DEFAULT_LIMIT if limit is None else whole_number("max_episode_steps", limit, 1))


def named_task(given: argparse.Namespace, folder: Path) -> Any:
    """What --task names for a run: a task of the user's own, or the name that gives leave to import a module.

    An environment of the user's own gets the advisors and the step limit that the run has, as far as they are data.
    """
    if given.named is None or not in_a_file(given.named):
        return given.named
    identity = read_header(folder)["task"]["identity"]
    wrappers = identity.get("known", {}).get("environment", {}).get("wrappers", [])
    limits = [arguments["max_episode_steps"] for name, arguments in wrappers if name == "TimeLimit"]
    found = own_task(given.named, {}, limits[0] if limits else -1)
    if isinstance(found, Task):
        return found
    weights = identity["weights"]
    advisors: list[Any] = [{**data, "weight": weights[data["name"]]} for data in identity["advisors"]]
    return make(found, advisors=advisors)


def say(note: str) -> None:
    """A remark on stderr; none where there is nothing to say."""
    if note:
        print(note, file=sys.stderr)


def add_named_task(parser: argparse.ArgumentParser) -> None:
    """--task, for runs whose task names a module."""
    parser.add_argument("--task", dest="named", metavar="TASK", help="the run's task, if it is your own code: "
                        "MODULE:ID, required before a checkpoint may import it, or FILE.py:NAME")  # fmt: skip


def add_option(
    parser: argparse._ActionsContainer, name: str, kind: Any, default: Any, text: str, usual: Any = None,
    metavar: str = "",
) -> None:  # fmt: skip
    """A flag of this kind, its default told as `usual` if that is given; booleans get a --no- form."""
    flag = f"--{name.replace('_', '-')}"
    usual = default if usual is None else usual
    shown = "" if usual is None else f" (default {usual})"
    if isinstance(kind, types.UnionType):
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    if kind is bool:
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=text + shown)
        return
    if typing.get_origin(kind) is tuple:
        kind, metavar = whole_numbers, "INT,..."
    metavar = metavar or ("FILE" if kind is Path else kind.__name__.upper())
    kind = {int: integer, Path: place}.get(kind, kind)
    parser.add_argument(flag, type=kind, default=default, metavar=metavar, help=text + shown)


def from_flags(namespace: argparse.Namespace, kind: type, defaults: Mapping[str, Any] | None = None) -> Any:
    """The dataclass that the flags describe; of those that were not given, some may have other `defaults`."""
    names = [item.name for item in dataclasses.fields(kind) if item.name in namespace.said]
    return described(kind, {name: getattr(namespace, name) for name in names}, defaults or {})


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse, where the command takes a task with its own options as well; every command has --json."""
    if "--json" not in parser.flags():
        parser.flag("--json", bool, "print one JSON object")
    try:
        namespace, rest = parser.parse_known_args(arguments)
    except BadInput:  # of what is missing: a flag that is called otherwise may be why
        for word in arguments:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in parser.flags() and neighbour(flag, parser.flags()):
                raise unknown("flag", flag, parser.flags()) from None
        raise
    words = {word.partition("=")[0] for word in arguments if word.startswith("--")}
    namespace.said = {word.removeprefix("--").removeprefix("no-").replace("-", "_") for word in words}
    namespace.task_options, known = {}, parser.flags()
    task, flags = getattr(namespace, "task", None), [word for word in rest if word.startswith("-")]
    try:
        inner = None if task is None else _task_parser(task)
    except BadInput:
        if not flags:
            raise
        inner, rest = None, flags  # the value of an unknown flag was taken for the task
    if inner is not None:
        given, rest = inner.parse_known_args(rest)
        namespace.task_options = vars(given)
        known = sorted({*known, *inner.flags()})
    if rest:
        raise _unexpected(rest[0], known, parser.prog, task if inner is None else None)
    return namespace


def _task_parser(task: str) -> Parser | None:
    """The options of a task as flags; None for an environment of Gymnasium, which has --env-kwarg."""
    if in_a_file(task) or environment_id(task) is not None:
        return None
    if task not in TASKS:
        raise unknown_task(task)
    parser = Parser(f"... {task}", "", "")
    for name, option in options_of(TASKS[task]).items():
        add_option(parser, name, option.kind, option.default, option.help)
    return parser


def _unexpected(word: str, known: Sequence[str], command: str, environment: str | None) -> BadInput:
    """What to say of a word that nobody takes: the flag that was meant, or that it is an option of the environment."""
    if not word.startswith("-"):
        steps = word[:1].isdigit() and "--steps" in known
        return BadInput(f"{word!r} is not expected here: {f'is --steps {word} meant?' if steps else 'see --help'}")
    flag = word.partition("=")[0]
    if not flag.startswith("--"):
        return BadInput(f"unknown flag {flag!r}: flags are words after two dashes, see {command} --help")
    if neighbour(flag, known):
        return unknown("flag", flag, known)
    name = flag.removeprefix("--").replace("-", "_")
    # compared without the dashes, which all flags have in common
    close = difflib.get_close_matches(flag.lstrip("-"), [one.lstrip("-") for one in known], n=1)
    if environment is not None and (not close or name in own_options(environment)):
        own = f"options of an environment are given as --env-kwarg {name}=VALUE"
        return BadInput(f"unknown flag {flag!r}: {own}; {command} --help-all lists the flags")
    hint = f"did you mean '--{close[0]}'?" if close else f"see {command} --help"
    return BadInput(f"unknown flag {flag!r}: {hint}")


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
