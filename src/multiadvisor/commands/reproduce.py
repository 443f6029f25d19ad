"""`multiadvisor reproduce`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from multiadvisor.commands.parsing import Parser, parse, show, table
from multiadvisor.envs.registry import make
from multiadvisor.errors import BadInput
from multiadvisor.settings import whole_number
from multiadvisor.studies.page import measured
from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import ALL, SYSTEMS, Plan, Study, chosen, shipped
from multiadvisor.studies.study_report import StudyReport

MOST_WORKERS = 1024
ENGINES_HERE = ("local", "gpu")
FLAGS = ("full", "epochs", "rules", "first_seed", "reading", "given")


def run(arguments: Sequence[str]) -> int:
    """Run a study, or the paper's or the literature's, and write the report."""
    given = parse(parser(), arguments)
    first = chosen(given.what)[0]  # only now: --import may have registered it
    _refuse_flags(given, first, shipped())
    if given.workers is not None:
        whole_number("workers", given.workers, 0, MOST_WORKERS)
    rules = given.rules or "paper"
    make("pac-boy", rules=rules)  # or an error that names the rules there are
    plan = Plan.of(given.what, given.full, given.seeds, given.epochs, rules, given.first_seed, given.reading)
    home = {ALL: "report", SYSTEMS: "report-systems"}.get(first.report, f"report-{first.name}")
    made = reproduce(plan, given.out or Path(home), given.workers, given.given, given.engine)
    lines = [line for report in made.reports.values() for line in _lines(report)]
    show(made.as_dict(), given.json, "\n".join([*lines, *made.pace()]))
    return 0


def parser() -> Parser:
    """The flags, and every study in the help."""
    listed, known = {ALL: "the paper, down to videos; some ten minutes on two cores"}, shipped()
    for study in known:
        if study.literature and SYSTEMS not in listed:
            listed[SYSTEMS] = "all systems of the literature, each of which can be named alone:"
        listed[study.name] = study.about or study.title
    flags = Parser(
        "reproduce",
        "Run the paper's experiments and write a report: figures, videos, and a verdict on each of its claims;\n"
        "or run a system of the literature, and see whether it does what it is known for.\n"
        "Stopped at any moment, the same command continues, and the report has the same bytes.\n"
        + "\n".join(f"  {name:16}{about}" for name, about in listed.items()),
        "multiadvisor reproduce --out report\n"
        "  multiadvisor reproduce --full --out report-full\n"
        "  multiadvisor reproduce q-decomposition --seeds 20\n"
        "  multiadvisor reproduce value-function --seeds 20 --first-seed 1000 --reading literal",
    )
    add = flags.add_argument
    add("what", nargs="?", default="all", metavar="WHAT",
        help="one of these (default all), or one that --import registers")  # fmt: skip
    few = "; ".join(map(_seeds, filter(_seeds, known)))
    flags.flag("--full", bool, "everything at full length: hours if DQN is included")
    flags.flag("--seeds", int, f"runs of each setting (default 10, with --full 20; {few})")
    flags.flag("--epochs", int, "epochs of 20,000 transitions (default 50)")
    flags.flag("--rules", str, 'Pac-Boy\'s: "paper" (default) or "hra"')
    flags.flag("--first-seed", int, "value-function: the first seed (default 0)")
    flags.flag("--reading", str, 'value-function: "default", "literal" or "remaining", how literally the paper is read')
    takers = ", ".join(study.name for study in known if "given" in study.flags) or "studies of the repository"
    add("--from", type=Path, dest="given", metavar="FILE",
        help=f"{takers}: use these results of a script in benchmarks/")  # fmt: skip
    flags.flag("--workers", int, "processes (default: one per core; 0: run in this process)")
    add("--engine", choices=ENGINES_HERE, default=ENGINES_HERE[0], metavar="STR",
        help="what executes the runs: local (default), or gpu, all runs of one world in one launch")  # fmt: skip
    where = "output folder (default report; report-systems for systems, report-NAME for other studies)"
    flags.flag("--out", Path, where, metavar="FOLDER")
    return flags


def _seeds(study: Study) -> str:
    """How many runs of each setting a study has, where that is not as with the others."""
    few, many = study.seeds
    if study.seeds == type(study).seeds:
        return ""
    return f"{study.name} {few}" + (f", with --full {many}" if many > few else "")


def _refuse_flags(given: argparse.Namespace, study: Study, known: Sequence[Study]) -> None:
    """Flags that have no meaning for what was asked for."""
    for flag in FLAGS:
        if getattr(given, flag) not in (None, False) and flag not in study.flags:
            takers = [one.name for one in known if flag in one.flags]
            whose = "the paper's experiments" if flag in ("epochs", "rules") else ", ".join(takers)
            raise BadInput(f"--{'from' if flag == 'given' else flag.replace('_', '-')} is for {whose}: leave it out")
    if given.given is not None and study.only_given and (given.seeds or given.full):
        raise BadInput("--seeds and --full are for new runs, and --from takes old ones: leave them out")


def _lines(report: StudyReport) -> list[str]:
    """A report for a terminal: its first table, its claims, its first words."""
    lines = [table(report.table[0], report.table[1:]), ""] if report.table else []
    rows = [[one.claim.id, measured(one), str(one.verdict)] for one in report.findings if one.judgement is not None]
    lines += [table(["claim", "value", "verdict"], rows), ""] if rows else []
    return [*lines, *report.summary, f"the report is {report.page}"]
