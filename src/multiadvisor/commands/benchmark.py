"""`multiadvisor benchmark`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import multiadvisor
from multiadvisor.commands.parsing import Parser, parse, show
from multiadvisor.errors import BadInput

# what can be measured: the module that does it (each has BENCHMARKS and describe), and a line of help
KINDS = {
    "kernel": ("tables", "the general learner against a C loop written for Pac-Boy alone (needs a C compiler)"),
    "aggregations": ("aggregation_cost", "what an aggregation costs beside the sum"),
    "gymnasium": ("tables", "what learning adds to a step of an environment, beside MORL-Baselines if installed"),
    "advisors": ("tables", "the cost of a step against the number of advisors, active and not"),
    "theory": ("tables", "how long the exact solver takes on large tasks"),
    "deep": ("deep", "training speed of a network with one advisor beside Stable-Baselines3's DQN"),
    "deep-returns": (
        "deep",
        "and what both have learned at the end (--rounds seeds, 15 minutes each)",
    ),
    "continuous": ("continuous", "the learner of continuous actions beside SBX's and Stable-Baselines3's SAC"),
    "act": ("act", "how long act, advice and explain take, with up to 7,700 active advisors"),
    "explain": ("explain", "how long explanations take, with up to 10,000 advisors"),
    "watch": ("watch", "overhead of live monitoring"),
    "stuck": (
        "stuck",
        "how often the detector of stuck episodes is right, by agents of known worlds (--rounds of each)",
    ),
    "sweep": ("sweep", "what a sweep costs beside its runs, on each engine that is installed"),
}


def measure_named(name: str) -> ModuleType:
    """A module of the repository's benchmarks/measures, which is not part of the package."""
    home = Path(multiadvisor.__file__).resolve().parents[2] / "benchmarks"
    if not (home / "measures").is_dir():
        raise BadInput("the benchmarks are in the repository, not in the installed package: run it from a checkout")
    if str(home) not in sys.path:
        sys.path.insert(0, str(home))
    return import_module(f"measures.{name}")


def run(arguments: Sequence[str]) -> int:
    """Measure speed."""
    listed = "\n".join(f"  {name:13} {text}" for name, (_, text) in KINDS.items())
    parser = Parser(
        "benchmark",
        f"Measure speed, as ratios taken in one run on one core.\n{listed}",
        "multiadvisor benchmark kernel --json",
    )
    parser.add_argument("what", choices=tuple(KINDS), metavar="WHAT", help=", ".join(KINDS))
    parser.flag("--rounds", int, "alternating rounds", 9)
    given = parse(parser, arguments)
    if given.rounds < 1:
        raise BadInput(f"rounds is {given.rounds}: give at least 1")
    measure = measure_named(KINDS[given.what][0])
    result = measure.BENCHMARKS[given.what](given.rounds)
    show(result, given.json, measure.describe(given.what, result))
    return 0
