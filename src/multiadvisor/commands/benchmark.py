"""`multiadvisor benchmark`."""

from __future__ import annotations

from collections.abc import Sequence

from multiadvisor.commands.parsing import Parser, parse, show
from multiadvisor.errors import BadInput


def run(arguments: Sequence[str]) -> int:
    """Measure speed."""
    parser = Parser(
        "benchmark",
        "Measure speed, as ratios taken in one run on one core.\n"
        "  kernel     the general learner against a C loop written for Pac-Boy alone (needs a C compiler)\n"
        "  gymnasium  what learning adds to a step of MO-Gymnasium environments, beside MORL-Baselines if installed\n"
        "  advisors   the cost of a turn against the number of advisors, active and not\n"
        "  theory     how long the exact solver takes on large tasks\n"
        "  explain    how long explanations take, with up to 10,000 advisors",
        "multiadvisor benchmark kernel --json",
    )
    parser.add_argument(
        "what",
        choices=("kernel", "gymnasium", "advisors", "theory", "explain"),
        metavar="WHAT",
        help="kernel, gymnasium, advisors, theory or explain",
    )
    parser.add_argument("--rounds", type=int, default=9, metavar="INT", help="alternating rounds (default 9)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parse(parser, arguments)
    if given.rounds < 1:
        raise BadInput(f"rounds is {given.rounds}: give at least 1")
    from multiadvisor import benchmark as measure

    result = measure.BENCHMARKS[given.what](given.rounds)
    show(result, given.json, measure.describe(given.what, result))
    return 0
