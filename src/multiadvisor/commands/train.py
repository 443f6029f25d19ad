"""`multiadvisor train`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from multiadvisor.commands.parsing import Parser, add_fields, from_flags, number, parse, show, table


def run(arguments: Sequence[str]) -> int:
    """Train an agent."""
    from multiadvisor.progress import LearningBar
    from multiadvisor.settings import Schedule, Settings

    parser = Parser(
        "train",
        "Train a multi-advisor agent: epochs of learning, each followed by greedy games without learning.\n"
        "Ctrl-C stops safely; the same command with --resume goes on, bit for bit as if it had not stopped.\n"
        "Options of the task itself, for example --rules hra for pac-boy, follow its name (see `multiadvisor tasks`).",
        "multiadvisor train pac-boy --planning empathic --gamma 0.9 --epochs 50 --seed 0 --out runs/a --json",
    )
    parser.add_argument("task", metavar="TASK", help="a name from `multiadvisor tasks`, or gymnasium:ID")
    add_fields(parser, Settings)
    add_fields(parser, Schedule)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="save the run here")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parse(parser, arguments)

    from multiadvisor.runs.training import begin
    from multiadvisor.worlds.builtin import make

    settings, schedule = from_flags(given, Settings), from_flags(given, Schedule)
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
        [str(e["epoch"]), number(e["score"]), number(e["turns"], 1), number(e["finished"]), number(e["touches"])]
        for e in (training.epochs[k] for k in shown)
    ]
    text = table(["epoch", "score", "turns", "finished", "touches"], rows)
    text += f"\n{result['transitions']:,} transitions, {result['transitions_per_second']:,.0f} a second"
    show(result, given.json, text + (f"\nsaved in {given.out}" if given.out else ""))
    return 0
