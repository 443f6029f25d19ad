"""The command `multiadvisor`: each of `COMMANDS` is a module of `commands`.

Results go to stdout, as text or with --json as one JSON object; progress and messages go to stderr. Whatever cannot be
used, a faulty environment included, ends in one line on stderr and exit code 2; --traceback shows the whole.
"""

from __future__ import annotations

import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from multiadvisor.core.interrupt import take_sigterm_like_ctrl_c
from multiadvisor.errors import BadInput, Caution, fault_of_environment, short, unknown
from multiadvisor.version import VERSION

HELP = f"""\
multiadvisor {VERSION}: reinforcement learning with one task split among advisors.

usage: multiadvisor COMMAND [...]

commands:
  train       train an agent on an environment, and evaluate it along the way
  evaluate    let a trained agent play without learning
  explain     why did it do that? the advisors behind one action of one episode
  diagnose    what does each reward term do to any policy, and what should change?
  explore     look at trained agents in the browser
  check       look for defects in an environment and its advisors
  solve       exact values, attractors, a verdict: will it get stuck, and from which gamma on?
  tasks       list the built-in tasks and their options

for research:
  sweep       run a grid of training runs that survives crashes, on one machine or many
  reproduce   run the paper's experiments, write a report with a verdict on each of its claims
  benchmark   measure speed against a native C loop or other libraries

`multiadvisor COMMAND --help` explains each, --help-all with every flag; --traceback with any of them shows where an
error came from, and --import FILE.py imports a file of yours first, with plannings, aggregations and tasks of your own.
A first example (the very first run compiles for some seconds):
  multiadvisor train CartPole-v1 --out runs/first
  multiadvisor explain runs/first --step 10
"""
COMMANDS = (
    "train", "evaluate", "explain", "diagnose", "explore", "check", "solve", "tasks", "sweep", "reproduce", "benchmark",
)  # fmt: skip
"""Each is a module of `commands`."""
OWN: dict[str, Callable[[Sequence[str]], int]] = {}


def register_command(name: str, run: Callable[[Sequence[str]], int]) -> None:
    """A command of one's own, for `multiadvisor NAME --import FILE.py`: `run` takes its words and gives the exit code.

    >>> register_command("greet", lambda words: print("hello", *words) or 0)
    >>> main(["greet", "you"]), OWN.pop("greet") is not None
    hello you
    (0, True)
    """
    if name in (*COMMANDS, *OWN) or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise BadInput(
            f"{name!r} cannot name a command: choose another name, of lower-case letters, digits and hyphens"
        )
    OWN[name] = run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    whole = "--traceback" in given
    given = [word for word in given if word != "--traceback"]
    if not given or given[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if given[0] in ("--version", "version"):
        print(VERSION)
        return 0
    with warnings.catch_warnings():
        _say_cautions(given[0])
        return _run(given, whole)


def _say_cautions(command: str) -> None:
    """Print what we warn of ourselves as one line, each time; all other warnings as ever."""
    before = warnings.showwarning

    def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, Caution):
            print(f"multiadvisor {command}: {' '.join(str(message).split())}", file=sys.stderr)
        else:
            before(message, category, *rest, **more)

    warnings.simplefilter("always", Caution)
    warnings.showwarning = show


def _run(given: list[str], whole: bool) -> int:
    """A command; the exit code."""
    name = "multiadvisor"
    try:
        given = _import_own(given)
        if given[0] not in (*COMMANDS, *OWN):
            if re.search(r"-v\d+$|[/:]|^-", given[0]):
                raise BadInput(f"a command comes first: multiadvisor train {short(given[0])}")
            raise unknown("command", given[0], (*COMMANDS, *OWN))
        name = f"multiadvisor {given[0]}"
        run = OWN.get(given[0]) or import_module(f"multiadvisor.commands.{given[0]}").run
        found: int = run(given[1:])
        return found
    except BadInput as error:
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        if whole:
            _show_traceback(error)
        return 2
    except MemoryError as error:
        why = f" ({' '.join(str(error).split())})" if str(error) else ""
        print(f"{name}: that is more than the memory of this machine{why}: ask for less", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # somebody's `| head` has seen enough
        sys.stderr.close()
        return 0
    except Exception as error:
        fault = fault_of_environment(error)
        if fault is None:  # it is ours, and we want to hear of it
            raise
        print(f"{name}: the environment raised {fault}{'' if whole else '; --traceback shows more'}", file=sys.stderr)
        if whole:
            _show_traceback(error)
        return 2


def _import_own(given: list[str]) -> list[str]:
    """Import what --import names, as often as it is given; the words without it."""
    from multiadvisor.core.plugins import import_own

    rest, words = [], iter(given)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag != "--import":
            rest.append(word)
            continue
        name = value if equals else next(words, "")
        if not name or name.startswith("-"):
            raise BadInput("--import names nothing: give a file, such as --import mine.py")
        import_own(name)
    return rest


def _show_traceback(error: BaseException) -> None:
    """All of it, with the errors that others were made of."""
    link: BaseException | None = error
    while link is not None:
        link.__suppress_context__ = False
        link = link.__context__
    traceback.print_exception(error)


def command() -> NoReturn:
    """The command as a process of its own."""
    take_sigterm_like_ctrl_c()
    code = main()
    if code == 130:  # who presses Ctrl-C once more while everything is put away need not read about it
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    sys.exit(code)
