"""The command `multiadvisor`: tasks, train, evaluate, solve, check, reproduce, benchmark.

Results go to stdout, as text or with --json as one JSON object; progress and messages go to stderr. Whatever cannot be
used ends in one line on stderr and exit code 2.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from multiadvisor.errors import BadInput, unknown
from multiadvisor.version import VERSION

# Heavy modules are imported inside the commands, so that --help answers at once.

HELP = f"""\
multiadvisor {VERSION}: reinforcement learning with one task split among advisors.

usage: multiadvisor COMMAND [...]

commands:
  tasks       list the built-in tasks and their options
  train       train an agent on a task, epoch by epoch
  evaluate    let a trained agent play without learning
  solve       exact values, attractors, a verdict: will it get stuck, and from which gamma on?
  check       look for defects in a task
  reproduce   run an experiment of the paper, print a table, save a figure
  benchmark   measure speed against a native C loop or other libraries

`multiadvisor COMMAND --help` explains each. A first example (the very first run compiles for some seconds):
  multiadvisor train pac-boy --planning empathic --gamma 0.9 --epochs 50 --out runs/first
  multiadvisor evaluate runs/first
"""


class _Parser(argparse.ArgumentParser):
    """argparse whose errors are one line."""

    def __init__(self, command: str, text: str, example: str) -> None:
        super().__init__(
            prog=f"multiadvisor {command}",
            description=text,
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise BadInput(message)

    def flags(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]


def _add_fields(parser: argparse.ArgumentParser, kind: type) -> None:
    """A flag for each field of a settings dataclass."""
    hints = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        _add_option(parser, item.name, hints[item.name], item.default, item.metadata["help"])


def _add_option(parser: argparse.ArgumentParser, name: str, kind: Any, default: Any, text: str) -> None:
    flag = f"--{name.replace('_', '-')}"
    shown = "" if default is None else f" (default {default})"
    if isinstance(kind, types.UnionType):
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    if kind is bool:
        parser.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction, default=default, help=text + shown)
    else:
        parser.add_argument(
            flag, dest=name, type=kind, default=default, metavar=kind.__name__.upper(), help=text + shown
        )


def _from(namespace: argparse.Namespace, kind: type) -> Any:
    return kind(**{item.name: getattr(namespace, item.name) for item in dataclasses.fields(kind)})


def _option_help(build: Callable[..., Any]) -> dict[str, str]:
    """The options explained in a task's docstring: lines `name: text` or `name, name: text`."""
    texts: dict[str, str] = {}
    for line in (inspect.getdoc(build) or "").splitlines()[2:]:
        names, colon, text = line.partition(": ")
        if colon:
            texts.update({name.strip(): text for name in names.split(",")})
    return texts


def _parse(parser: _Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse, where the command takes a task with its own options as well."""
    namespace, rest = parser.parse_known_args(arguments)
    namespace.task_options = {}
    task = getattr(namespace, "task", None)
    known = parser.flags()
    if task is not None and not task.startswith("gymnasium:"):
        from multiadvisor.worlds.builtin import TASKS

        if task not in TASKS:
            raise unknown("task", task, TASKS)
        inner = _Parser(f"... {task}", "", "")
        hints, texts = typing.get_type_hints(TASKS[task]), _option_help(TASKS[task])
        for name, parameter in inspect.signature(TASKS[task]).parameters.items():
            _add_option(inner, name, hints[name], parameter.default, texts.get(name, ""))
        given, rest = inner.parse_known_args(rest)
        namespace.task_options = vars(given)
        known = known + inner.flags()
    if rest:
        if rest[0].startswith("-"):
            raise unknown("flag", rest[0].partition("=")[0], known)
        raise BadInput(f"{rest[0]!r} is one word too many: see --help")
    return namespace


def _print(result: dict[str, Any], as_json: bool, text: str) -> None:
    print(json.dumps(result, allow_nan=False) if as_json else text)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = [[cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))]
             for row in [head, *rows]]  # fmt: skip
    lines.insert(1, ["-" * w for w in widths])
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


# ---- the commands ----------------------------------------------------------------------------------------------------
def tasks(arguments: Sequence[str]) -> int:
    """List the built-in tasks."""
    parser = _Parser("tasks", "List the built-in tasks and their options.", "multiadvisor tasks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = _parse(parser, arguments)
    from multiadvisor.worlds.builtin import TASKS

    listing: dict[str, Any] = {}
    lines: list[str] = []
    for name, build in TASKS.items():
        title = (inspect.getdoc(build) or "").splitlines()[0]
        texts = _option_help(build)
        options = {
            option: {"default": parameter.default, "help": texts.get(option, "")}
            for option, parameter in inspect.signature(build).parameters.items()
        }
        listing[name] = {"about": title, "options": options}
        lines.append(f"{name}\n    {title}")
        lines += [f"      --{key}  {entry['help']} (default {entry['default']})" for key, entry in options.items()]
    lines.append("gymnasium:ID\n    Any registered Gymnasium or MO-Gymnasium environment with discrete actions,")
    lines.append("    one advisor for each component of its reward.")
    _print(listing, given.json, "\n".join(lines))
    return 0


def train(arguments: Sequence[str]) -> int:
    """Train an agent."""
    from multiadvisor.progress import LearningBar
    from multiadvisor.settings import Schedule, Settings

    parser = _Parser(
        "train",
        "Train a multi-advisor agent: epochs of learning, each followed by greedy games without learning.\n"
        "Ctrl-C stops safely; the same command with --resume goes on, bit for bit as if it had not stopped.\n"
        "Options of the task itself, for example --rules hra for pac-boy, follow its name (see `multiadvisor tasks`).",
        "multiadvisor train pac-boy --planning empathic --gamma 0.9 --epochs 50 --seed 0 --out runs/a --json",
    )
    parser.add_argument("task", metavar="TASK", help="a name from `multiadvisor tasks`, or gymnasium:ID")
    _add_fields(parser, Settings)
    _add_fields(parser, Schedule)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="save the run here")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = _parse(parser, arguments)

    from multiadvisor.runs.training import begin
    from multiadvisor.worlds.builtin import make

    settings, schedule = _from(given, Settings), _from(given, Schedule)
    task = make(given.task, **given.task_options)
    training = begin(task, settings, schedule, given.out, given.resume)
    total = schedule.epochs * schedule.transitions - training.agent.turns
    try:
        with LearningBar(total) as bar:
            training.run(lambda turns, epoch: bar.advance(turns, epoch["score"] if epoch else None))
    except KeyboardInterrupt:
        kept = f"saved in {given.out}, go on with --resume" if given.out else "nothing was saved, as no --out was given"
        print(f"multiadvisor train: interrupted in epoch {len(training.epochs) + 1}; {kept}", file=sys.stderr)
        return 130
    result = training.result()
    shown = sorted({0, *range(9, len(training.epochs), 10), len(training.epochs) - 1})
    rows = [
        [str(e["epoch"]), _number(e["score"]), _number(e["turns"], 1), _number(e["finished"]), _number(e["touches"])]
        for e in (training.epochs[k] for k in shown)
    ]
    text = _table(["epoch", "score", "turns", "finished", "touches"], rows)
    text += f"\n{result['transitions']:,} transitions, {result['transitions_per_second']:,.0f} a second"
    _print(result, given.json, text + (f"\nsaved in {given.out}" if given.out else ""))
    return 0


def evaluate(arguments: Sequence[str]) -> int:
    """Evaluate a saved agent."""
    parser = _Parser(
        "evaluate",
        "Let a trained agent play greedily, without learning; means with 95% bootstrap intervals over the games.",
        "multiadvisor evaluate runs/a --games 80 --json",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a saved run")
    parser.add_argument("--games", type=int, default=80, metavar="INT", help="games to play (default 80)")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="seed of the games (default 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = _parse(parser, arguments)
    from multiadvisor.agent import load

    agent = load(given.run)
    seen = agent.evaluate(given.games, seeds=(given.seed,))
    result = {"run": str(given.run), "task": agent.task.name, "planning": agent.settings.planning, **seen.as_dict()}
    best = sorted(seen.advisors.items(), key=lambda item: -abs(item[1]))
    shown = "\n".join(f"  {name:24} {value:8.2f}" for name, value in best[:8])
    more = f"\n  and {len(best) - 8} more (--json has all)" if len(best) > 8 else ""
    _print(result, given.json, f"{seen}\nmean return of the advisors, largest first:\n{shown}{more}")
    return 0


def solve(arguments: Sequence[str]) -> int:
    """Exact values, attractors and a verdict."""
    parser = _Parser(
        "solve",
        "Solve a task exactly: values, greedy policy, attractors (states where the aggregator would rather stay), and\n"
        "a verdict in plain words. Mazes with random fruit are solved board by board (--board), or by how often a\n"
        "random board is a trap (--boards). With --out, a figure is saved as PNG and SVG.",
        "multiadvisor solve three-fruits --gamma 0.6\n"
        "  multiadvisor solve three-fruits --sweep-gamma --out sweep.png\n"
        "  multiadvisor solve pac-boy --no-ghosts --board 3 --gamma 0.7\n"
        "  multiadvisor solve pac-boy --no-ghosts --boards 2000 --out traps.png",
    )
    parser.add_argument("task", metavar="TASK", help="a name from `multiadvisor tasks`")
    parser.add_argument("--planning", metavar="STR", help="whose fixed point (default egocentric)")
    parser.add_argument("--gamma", type=float, metavar="FLOAT", help="discount factor (default 0.9)")
    parser.add_argument("--full-states", action="store_true", help="let every advisor see the whole state")
    parser.add_argument("--sweep-gamma", action="store_true", help="which action wins in the first state, by gamma")
    parser.add_argument("--board", type=int, metavar="SEED", help="solve the board of the game with this seed")
    parser.add_argument("--boards", type=int, metavar="INT", help="so many random boards: how often are they traps?")
    parser.add_argument("--run", type=Path, metavar="RUN", help="with --board: the learned values of this saved run")
    parser.add_argument("--out", type=Path, metavar="FILE", help="save the figure here, as .png and .svg")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = _parse(parser, arguments)
    if given.out is not None:
        from multiadvisor import plots  # first of all: without matplotlib, or where it cannot go, nothing should start
        from multiadvisor.runs.files import check_writable

        check_writable(given.out.parent)
    from multiadvisor.task import check_gamma
    from multiadvisor.theory import report
    from multiadvisor.worlds.builtin import make

    _refuse_idle_flags(given)
    gamma = 0.9 if given.gamma is None else given.gamma
    check_gamma(gamma)
    task = make(given.task, **given.task_options)
    if given.boards is not None:
        result = report.traps(task, given.boards)
        head = ["gamma", "attractor", "stable", "stuck"]
        rows = [[f"{row['gamma']:.3g}", *(f"{row[key]:.3f}" for key in head[1:])] for row in result["shares"]]
        text, draw = _table(head, rows), lambda: plots.one_axis(plots.trap_curves, result["shares"])
    elif given.sweep_gamma:
        result = report.sweep(task)
        text, draw = report.describe_sweep(result), lambda: plots.one_axis(plots.gamma_sweep, result)
    else:
        if given.run is not None:
            found = report.answer_run(task, given.board, given.run)
        elif given.board is not None:
            found = report.answer_board(task, gamma, given.board)
        else:
            found = report.answer(task, given.planning or "egocentric", gamma, full=given.full_states)
        result, text, draw = found.result, report.describe(found.result), lambda: plots.solution(found)
    if given.out is not None:
        text += f"\nfigure in {plots.save(draw(), given.out)}"
    _print(result, given.json, text)
    return 0


def _refuse_idle_flags(given: argparse.Namespace) -> None:
    """A flag that would have no effect is a misunderstanding: say so."""
    set_flags = {
        "--planning": given.planning is not None, "--gamma": given.gamma is not None,
        "--full-states": given.full_states, "--board": given.board is not None, "--run": given.run is not None,
        "--sweep-gamma": given.sweep_gamma,
    }  # fmt: skip
    modes = {
        "--boards": (given.boards is not None, "looks at egocentric planning at many gammas", set_flags),
        "--sweep-gamma": (given.sweep_gamma, "looks at egocentric planning at every gamma", set_flags),
        "--run": (given.run is not None, "has its own planning and gamma", ("--planning", "--gamma", "--full-states")),
        "--board": (given.board is not None, "has exact egocentric values only", ("--planning", "--full-states")),
    }
    if given.run is not None and given.board is None:
        raise BadInput("--run shows the learned values of a board: add --board SEED")
    for mode, (chosen, why, idle) in modes.items():
        for flag in idle if chosen else ():
            if flag != mode and set_flags[flag]:
                raise BadInput(f"{mode} {why}: leave {flag} out")


def check(arguments: Sequence[str]) -> int:
    """Look for defects in a task."""
    parser = _Parser(
        "check",
        "Play a task from several seeds and look for defects: unseeded randomness, rewards that are not finite or do\n"
        "not sum up, local states out of range, and more. Exit code 1 where one is found.",
        "multiadvisor check pac-boy",
    )
    parser.add_argument("task", metavar="TASK", help="a name from `multiadvisor tasks`, or gymnasium:ID")
    parser.add_argument("--turns", type=int, default=2000, metavar="INT", help="turns to play (default 2000)")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="first seed (default 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = _parse(parser, arguments)
    from multiadvisor.check import check_task
    from multiadvisor.worlds.builtin import make

    if given.turns < 1 or given.seed < 0:
        raise BadInput(
            f"cannot check {given.turns} turns from seed {given.seed}: give at least 1 turn and a seed from 0"
        )
    report = check_task(make(given.task, **given.task_options), turns=given.turns, seed=given.seed)
    _print(report.as_dict(), given.json, str(report))
    return 0 if report.ok else 1


def reproduce(arguments: Sequence[str]) -> int:
    """Run the paper's experiments."""
    parser = _Parser(
        "reproduce",
        "Run an experiment of the paper, print what came out, save the figure and the raw results.\n"
        "  pac-boy         linear Q-learning and the multi-advisor settings, without and with noise on the rewards\n"
        "  value-function  networks fitted to four kinds of values on a 5 x 5 grid (needs JAX; some 25 s a seed)",
        "multiadvisor reproduce --seeds 5 --out report\n"
        "  multiadvisor reproduce value-function --seeds 20 --first-seed 1000 --reading literal",
    )
    parser.add_argument(
        "what", nargs="?", default="pac-boy", choices=("pac-boy", "value-function"), metavar="WHAT",
        help="pac-boy (default) or value-function",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=5, metavar="INT", help="runs of each setting (default 5)")
    parser.add_argument("--epochs", type=int, metavar="INT", help="pac-boy: epochs of 20,000 transitions (default 50)")
    parser.add_argument("--rules", metavar="STR", help='pac-boy: "paper" (default) or "hra"')
    parser.add_argument("--first-seed", type=int, metavar="INT", help="value-function: where seeds begin (default 0)")
    parser.add_argument(
        "--reading", metavar="STR", help='value-function: "default" or "literal", the letter of the paper'
    )
    parser.add_argument("--out", type=Path, default=Path("report"), metavar="FOLDER", help="where to (default report)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = _parse(parser, arguments)
    if given.seeds < 1 or (given.epochs is not None and given.epochs < 1):
        raise BadInput(f"cannot run {given.seeds} seeds of {given.epochs} epochs: give at least one of each")
    if given.what == "pac-boy":
        for flag in ("first_seed", "reading"):
            if getattr(given, flag) is not None:
                raise BadInput(f"--{flag.replace('_', '-')} is for value-function: leave it out")
        return _reproduce_pac_boy(given)
    for flag in ("epochs", "rules"):
        if getattr(given, flag) is not None:
            raise BadInput(f"--{flag} is for pac-boy: leave it out")
    from multiadvisor.experiments import value_function

    result = value_function.reproduce(given.seeds, given.reading or "default", given.out, given.first_seed or 0)
    _print(result, given.json, f"{result['text']}\nfigure and results in {given.out}")
    return 0


def _reproduce_pac_boy(given: argparse.Namespace) -> int:
    from multiadvisor.experiments import pac_boy

    epochs = given.epochs or 50
    result = pac_boy.reproduce(given.seeds, epochs, given.rules or "paper", given.out)
    head = ["setting", "score", "95% interval", "turns", "finished", "touches"]
    rows = [
        [row["setting"], _number(row["score"]), "[{:.2f}, {:.2f}]".format(*row["score_interval"]),
         _number(row["turns"], 1), _number(row["finished"]), _number(row["touches"])]
        for row in result["table"]
    ]  # fmt: skip
    text = _table(head, rows) + f"\nmeans of the last {min(10, epochs)} of {epochs} epochs over {given.seeds} seeds; "
    text += f"{result['transitions_per_second']:,.0f} transitions a second; figure and results in {given.out}"
    _print(result, given.json, text)
    return 0


def benchmark(arguments: Sequence[str]) -> int:
    """Measure speed."""
    parser = _Parser(
        "benchmark",
        "Measure speed, as ratios taken in one run on one core.\n"
        "  kernel     the general learner against a C loop written for Pac-Boy alone (needs a C compiler)\n"
        "  gymnasium  what learning adds to a step of MO-Gymnasium environments, beside MORL-Baselines if installed\n"
        "  advisors   the cost of a turn against the number of advisors, active and not\n"
        "  theory     how long the exact solver takes on large tasks",
        "multiadvisor benchmark kernel --json",
    )
    parser.add_argument(
        "what",
        choices=("kernel", "gymnasium", "advisors", "theory"),
        metavar="WHAT",
        help="kernel, gymnasium, advisors or theory",
    )
    parser.add_argument("--rounds", type=int, default=9, metavar="INT", help="alternating rounds (default 9)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = _parse(parser, arguments)
    if given.rounds < 1:
        raise BadInput(f"rounds is {given.rounds}: give at least 1")
    from multiadvisor import benchmark as measure

    result = measure.BENCHMARKS[given.what](given.rounds)
    _print(result, given.json, measure.describe(given.what, result))
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "tasks": tasks, "train": train, "evaluate": evaluate, "solve": solve, "check": check, "reproduce": reproduce,
    "benchmark": benchmark,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if given[0] == "--version":
        print(VERSION)
        return 0
    name = "multiadvisor"
    try:
        if given[0] not in COMMANDS:
            raise unknown("command", given[0], COMMANDS)
        name = f"multiadvisor {given[0]}"
        return COMMANDS[given[0]](given[1:])
    except BadInput as error:
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # somebody's `| head` has seen enough
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
