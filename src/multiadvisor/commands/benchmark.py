"""`multiadvisor benchmark`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from multiadvisor.commands.parsing import Parser, parse, show
from multiadvisor.core.checkout import beside
from multiadvisor.errors import BadInput
from multiadvisor.settings import whole_number

# what can be measured: the module that does it (each has BENCHMARKS and describe), and a line of help
KINDS = {
    "kernel": ("tables", "the general learner against a C loop written for Pac-Boy alone (needs a C compiler)"),
    "aggregations": ("aggregation_cost", "what an aggregation costs beside the sum"),
    "gymnasium": ("tables", "what learning adds to a step of an environment, beside MORL-Baselines if installed"),
    "advisors": ("tables", "the cost of a step against the number of advisors, active and not"),
    "theory": ("tables", "how long the exact solver takes on large tasks"),
    "deep": ("deep", "training speed of a network with one advisor beside Stable-Baselines3's DQN"),
    "deep-returns": ("deep", "and what both have learned at the end (--rounds seeds, 15 minutes each)"),
    "continuous": ("continuous", "the learner of continuous actions beside SBX's and Stable-Baselines3's SAC"),
    "act": ("act", "how long act, advice and explain take, with up to 7,700 active advisors"),
    "explain": ("explain", "how long explanations take, with up to 10,000 advisors"),
    "watch": ("watch", "overhead of live monitoring"),
    "stuck": ("stuck", "how often stuck episodes are detected rightly, by agents of known worlds (--rounds of each)"),
    "faithfulness": ("faithfulness", "whether explanations are true, against branches (--rounds seeds, at most 3)"),
    "push": ("push", "whether push is true, for policies of PPO (--rounds seeds, at most 3)"),
    "answers": ("push", "whether answers on one state are true, for the same policies"),
    "taught": ("push", "how true they are without the environment, taught by branches"),
    "faults": ("faults", "which planted faults of a reward a diagnosis finds, and what it says of clean ones"),
    "sweep": ("sweep", "what a sweep costs beside its runs, on each engine that is installed"),
}


def measure_named(name: str) -> ModuleType:
    """A module of the repository's benchmarks/measures, which is not part of the package."""
    if beside("measures") is None:
        raise BadInput("the benchmarks are in the repository, not in the installed package: run it from a checkout")
    return import_module(f"measures.{name}")


def parser() -> Parser:
    """The flags."""
    listed = "\n".join(f"  {name:13} {text}" for name, (_, text) in KINDS.items())
    flags = Parser(
        "benchmark",
        f"Measure speed, as ratios taken in one run on one core.\n{listed}",
        "multiadvisor benchmark kernel --json",
    )
    flags.add_argument("what", choices=tuple(KINDS), metavar="WHAT", help=", ".join(KINDS))
    flags.flag("--rounds", int, "alternating rounds", 9)
    return flags


def run(arguments: Sequence[str]) -> int:
    """Measure speed."""
    given = parse(parser(), arguments)
    measure = measure_named(KINDS[given.what][0])
    result = measure.BENCHMARKS[given.what](whole_number("rounds", given.rounds, 1))
    show(result, given.json, measure.describe(given.what, result))
    return 0
