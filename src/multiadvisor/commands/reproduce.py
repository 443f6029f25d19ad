"""`multiadvisor reproduce`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from multiadvisor.commands.parsing import Parser, number, parse, show, table
from multiadvisor.errors import BadInput


def run(arguments: Sequence[str]) -> int:
    """Run the paper's experiments."""
    parser = Parser(
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
    given = parse(parser, arguments)
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
    show(result, given.json, f"{result['text']}\nfigure and results in {given.out}")
    return 0


def _reproduce_pac_boy(given: argparse.Namespace) -> int:
    from multiadvisor.experiments import pac_boy

    epochs = given.epochs or 50
    result = pac_boy.reproduce(given.seeds, epochs, given.rules or "paper", given.out)
    head = ["setting", "score", "95% interval", "turns", "finished", "touches"]
    rows = [
        [row["setting"], number(row["score"]), "[{:.2f}, {:.2f}]".format(*row["score_interval"]),
         number(row["turns"], 1), number(row["finished"]), number(row["touches"])]
        for row in result["table"]
    ]  # fmt: skip
    text = table(head, rows) + f"\nmeans of the last {min(10, epochs)} of {epochs} epochs over {given.seeds} seeds; "
    text += f"{result['transitions_per_second']:,.0f} transitions a second; figure and results in {given.out}"
    show(result, given.json, text)
    return 0
