"""What an aggregation costs beside the sum, on the same episodes of Pac-Boy: `multiadvisor benchmark aggregations`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from measures.tables import machine, seconds_of
from multiadvisor.agent import MultiAdvisor
from multiadvisor.envs.registry import make
from multiadvisor.errors import Caution

AGGREGATIONS = ("sum", "max", "fruits=max", "fruits=p_norm", "majority", "ranks", "boltzmann_sum", "normalised")
_BLOCK = 200_000  # transitions


def aggregations(rounds: int = 9) -> dict[str, Any]:
    """Nanoseconds a step, and the ratio to the sum; actions are random, so that all of them see the same episodes."""
    task = make("pac-boy")
    taken: dict[str, list[float]] = {name: [] for name in AGGREGATIONS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)  # fears under a maximum: only its time counts here
        for _ in range(rounds + 1):
            for name, times in taken.items():
                agent = MultiAdvisor(task, planning="empathic", epsilon=1.0, aggregation=name)._prepare()
                times.append(seconds_of(agent._learner.run, _BLOCK))
    kept = {name: np.array(times[1:]) for name, times in taken.items()}  # the first round only warms up
    return {
        "machine": machine(), "rounds": rounds,
        "ns_per_step": {name: float(np.median(times)) / _BLOCK * 1e9 for name, times in kept.items()},
        "ratio_to_sum": {name: float(np.median(times / kept["sum"])) for name, times in kept.items()},
    }  # fmt: skip


BENCHMARKS: dict[str, Callable[[int], dict[str, Any]]] = {"aggregations": aggregations}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}, medians of {result['rounds']} rounds"]
    for name, ratio in result["ratio_to_sum"].items():
        lines.append(f"  {name:14} {result['ns_per_step'][name]:6.0f} ns a step, {ratio:.2f} times the sum")
    return "\n".join(lines)
