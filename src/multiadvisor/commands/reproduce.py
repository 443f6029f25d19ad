"""`multiadvisor reproduce`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multiadvisor.commands.parsing import Parser, number, parse, show, table
from multiadvisor.errors import BadInput, unknown

MOST_WORKERS = 1024
ATARI = "ms-pacman"


def run(arguments: Sequence[str]) -> int:
    """Run the paper's experiments."""
    from multiadvisor.studies.continuous_report import NAME as CONTINUOUS
    from multiadvisor.studies.parts import OWN, shipped
    from multiadvisor.studies.systems.system import systems
    from multiadvisor.studies.systems.systems_reproduction import ALL

    listed = {"all": "the paper, down to videos; some ten minutes on two cores"}
    listed |= {part.name: part.about or part.title for part in sorted(shipped(), key=lambda part: part.alone)}
    literature = {ALL: "all systems of the literature, each of which can be named alone:"}
    literature |= {system.name: f"{system.title} ({system.source})" for system in systems().values()}
    listed |= {CONTINUOUS: "soft actor-critic with a critic for each advisor, beside SBX: hours; --from judges a study"}
    listed |= literature
    listed |= {ATARI: "Atari's Ms. Pac-Man, 3 seeds of 300 episodes; with --full every setting, hours on two cores"}
    parser = Parser(
        "reproduce",
        "Run the paper's experiments and write a report: figures, videos, and a verdict on each of its claims;\n"
        "or run a system of the literature, and see whether it does what it is known for.\n"
        "Stopped at any moment, the same command goes on where it was; the report is the same bytes.\n"
        + "\n".join(f"  {name:16}{about}" for name, about in listed.items()),
        "multiadvisor reproduce --out report\n"
        "  multiadvisor reproduce --full --out report-full\n"
        "  multiadvisor reproduce beyond --out report-beyond\n"
        "  multiadvisor reproduce q-decomposition --seeds 20\n"
        "  multiadvisor reproduce value-function --seeds 20 --first-seed 1000 --reading literal",
    )
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        metavar="WHAT",
        help="one of these (default all), or one that --import registers",
    )
    parser.add_argument("--full", action="store_true", help="everything at full length: hours if DQN is included")
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="INT",
        help="runs of each setting (default 10, with --full 20; value-function 5; beyond 3, with --full 10)",
    )
    parser.add_argument("--epochs", type=int, metavar="INT", help="epochs of 20,000 transitions (default 50)")
    parser.add_argument("--rules", metavar="STR", help='Pac-Boy\'s: "paper" (default) or "hra"')
    parser.add_argument("--first-seed", type=int, metavar="INT", help="value-function: the first seed (default 0)")
    parser.add_argument(
        "--reading", metavar="STR", help='value-function: "default" or "literal", the letter of the paper'
    )
    parser.add_argument(
        "--from",
        type=Path,
        dest="given",
        metavar="FILE",
        help="beyond, continuous, ms-pacman: use these results of their scripts in benchmarks/",
    )
    parser.add_argument(
        "--workers", type=int, metavar="INT", help="processes (default: one per core; 0: run in this one)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="output folder (default report; systems: report-systems)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parse(parser, arguments)
    if given.what not in (*listed, *OWN):  # only now: --import may have registered it
        raise unknown("experiment", given.what, (*listed, *OWN))
    if given.what in literature:
        return _systems(given)
    if given.what == ATARI:
        return _atari(given)
    if given.what == CONTINUOUS:
        return _continuous(given)
    alone = given.what == "value-function"
    given.out = given.out or Path("report")
    _check_amounts(given, alone)
    for flag in ("epochs", "rules", "full") if alone else ("first_seed", "reading"):
        if getattr(given, flag) not in (None, False):
            theirs = "the other experiments" if alone else "value-function"
            raise BadInput(f"--{flag.replace('_', '-')} is for {theirs}: leave it out")
    if given.given is not None and given.what != "beyond":
        raise BadInput("--from is for beyond, continuous and ms-pacman: leave it out")
    return _value_function(given) if alone else _report(given)


def _check_amounts(given: argparse.Namespace, alone: bool) -> None:
    """Refuse numbers that nobody can want, before anything is written."""
    from multiadvisor.studies.parts import MOST

    limits = {
        "seeds": (1, "") if alone else (2, ", as an interval over seeds needs them"), "epochs": (1, ""),
        "workers": (0, ", which runs everything in this process"),
    }  # fmt: skip
    for flag, (least, why) in limits.items():
        value, most = getattr(given, flag), MOST.get(flag, MOST_WORKERS)
        if value is not None and value < least:
            raise BadInput(f"cannot run {value} {flag}: give at least {least}{why}")
        if value is not None and value > most:
            raise BadInput(f"cannot run {value} {flag}: give at most {most:,}")


def _systems(given: argparse.Namespace) -> int:
    from multiadvisor.studies.systems.systems_reproduction import ALL, reproduce, told

    _refuse(given, ("epochs", "rules", "full", "first_seed", "reading", "given"))
    _check_amounts(given, alone=False)
    out = given.out or Path("report-systems")
    verdicts = reproduce(given.what, out, given.seeds, given.workers)
    show({"systems": verdicts} if given.what == ALL else verdicts[0], given.json, told(verdicts, out))
    return 0


def _atari(given: argparse.Namespace) -> int:
    from multiadvisor.studies.ms_pacman_report import reproduce, told

    _refuse(given, ("epochs", "rules", "first_seed", "reading"))
    _check_amounts(given, alone=True)
    out = given.out or Path("report-ms-pacman")
    found = reproduce(out, given.seeds, given.full, given.workers, given.given)
    show(found, given.json, told(found, out))
    return 0


def _continuous(given: argparse.Namespace) -> int:
    from multiadvisor.studies.continuous_report import reproduce
    from multiadvisor.studies.systems.systems_reproduction import told

    _refuse(given, ("epochs", "rules", "first_seed", "reading"))
    if given.given is not None and (given.seeds or given.full):
        raise BadInput("--seeds and --full are for new runs, and --from takes old ones: leave them out")
    _check_amounts(given, alone=False)
    out = given.out or Path("report-continuous")
    found = reproduce(out, given.seeds, given.full, given.workers, given.given)
    show(found, given.json, told([found], out))
    return 0


def _refuse(given: argparse.Namespace, flags: Sequence[str]) -> None:
    """Flags that have no meaning for what was asked for."""
    for flag in flags:
        if getattr(given, flag) not in (None, False):
            flag = "from" if flag == "given" else flag.replace("_", "-")
            raise BadInput(f"--{flag} is for the paper's experiments: leave it out")


def _value_function(given: argparse.Namespace) -> int:
    from multiadvisor.studies import value_function

    seeds, reading = 5 if given.seeds is None else given.seeds, given.reading or "default"
    result = value_function.reproduce(seeds, reading, given.out, given.first_seed or 0, given.workers)
    show(result, given.json, f"{result['text']}\nfigure and results in {given.out}")
    return 0


def _report(given: argparse.Namespace) -> int:
    from multiadvisor.envs.builtin import make
    from multiadvisor.studies.parts import Plan
    from multiadvisor.studies.reproduction import reproduce, said

    rules = given.rules or "paper"
    make("pac-boy", rules=rules)  # or an error that names the rules there are
    plan = Plan.of(given.what, given.full, given.seeds, given.epochs, rules)
    result = reproduce(plan, given.out, given.workers, given.given)
    show(result, given.json, "\n".join([*_tables(result), said(result)]))
    return 0


def _tables(result: dict[str, Any]) -> list[str]:
    """The table of settings and the table of claims, for a terminal."""
    texts = []
    if "table" in result:
        head = ["setting", "score", "95% interval", "length", "terminated", "touches"]
        rows = [
            [row["setting"], number(row["score"]), "[{:.2f}, {:.2f}]".format(*row["score_interval"]),
             number(row["length"], 1), number(row["terminated"]), number(row["touches"])]
            for row in result["table"]
        ]  # fmt: skip
        texts += [table(head, rows), ""]
    if result["judged"]:
        rows = [[one["id"], one["where"], one["verdict"]] for one in result["judged"]]
        texts += [table(["claim", "where", "verdict"], rows), ""]
    return texts
