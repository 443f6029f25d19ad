"""What a system of the literature is here: jobs, the statistics of its known behaviour, a figure, a row of the map.

Each module of this folder that has a `SYSTEM` is one; `multiadvisor reproduce NAME` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from multiadvisor.core.intervals import Estimate
from multiadvisor.runs.jobs import Job, experiments
from multiadvisor.settings import Schedule
from multiadvisor.studies.claims import NOT, PARTLY, REPRODUCED

SEEDS = 10  # runs of each setting, where nobody asks for another number
FIRST = 1_000


def fresh(seeds: int) -> range:
    """The seeds of the runs that are reported: what was chosen was chosen on those below.

    >>> fresh(2)
    range(1000, 1002)
    """
    return range(FIRST, FIRST + seeds)


def evaluated_at(schedule: dict[str, int]) -> np.ndarray:
    """After how many steps a run of this schedule is evaluated [evaluations].

    >>> evaluated_at({"steps": 30, "eval_every": 10}).tolist()
    [10, 20, 30]
    """
    plan = Schedule(**schedule)
    return np.array([plan.due(number) for number in range(1, plan.evaluations + 1)])


@dataclass(frozen=True)
class Statistic:
    """A part of the known behaviour, as the runs show it."""

    name: str
    """Of the statistic, for JSON: lower-case words with hyphens."""
    claim: str
    """What should be seen, in a sentence."""
    value: float
    interval: tuple[float, float] | None
    """95%, over seeds; None where nothing is random."""
    holds: bool
    """Whether it is seen: computed from value and interval, never written down."""

    @classmethod
    def above(cls, name: str, claim: str, seen: Estimate, bar: float = 0.0) -> Statistic:
        """It holds where the whole interval lies above the bar."""
        return cls(name, claim, seen.value, seen.interval, seen.low > bar)

    @classmethod
    def below(cls, name: str, claim: str, seen: Estimate, bar: float = 0.0) -> Statistic:
        """It holds where the whole interval lies below the bar."""
        return cls(name, claim, seen.value, seen.interval, seen.high < bar)

    @classmethod
    def not_below(cls, name: str, claim: str, seen: Estimate, bar: float = 0.0) -> Statistic:
        """It holds where the interval reaches the bar: at least as good, as far as the runs can tell."""
        return cls(name, claim, seen.value, seen.interval, seen.high >= bar)


Results = Mapping[str, dict[str, Any]]
"""What the jobs gave, by their id."""


@dataclass(frozen=True)
class System:
    """One system of the literature."""

    name: str
    title: str
    source: str
    """Authors and year."""
    order: int
    behaviour: str
    """The behaviour it is known for, in a sentence."""
    advisor: str
    """What its advisors are after; with the next four, its row in the map of the literature."""
    view: str
    planning: str
    aggregator: str
    guarantee: str
    jobs: Callable[[int], list[Job]]
    """The runs, for a number of seeds."""
    statistics: Callable[[Results, int], list[Statistic]]
    """What they show, from the results and the number of seeds."""
    draw: Callable[[Results, int], Any]
    """Its figure, a matplotlib Figure."""
    choices: tuple[str, ...] = ()
    """What the paper leaves open, or does otherwise, and what was chosen here."""


def verdict(found: Sequence[Statistic]) -> str:
    """Of all statistics together.

    >>> verdict([Statistic("a", "", 1.0, None, True), Statistic("b", "", 1.0, None, False)])
    'partly'
    """
    held = [one.holds for one in found]
    return REPRODUCED if all(held) else PARTLY if any(held) else NOT


def systems() -> dict[str, System]:
    """All of them by name, in the order of the map."""
    found = [module.SYSTEM for module in experiments() if hasattr(module, "SYSTEM")]
    return {system.name: system for system in sorted(found, key=lambda system: system.order)}


def judged(system: System, results: Results, seeds: int) -> dict[str, Any]:
    """The system's verdict as data."""
    found = system.statistics(results, seeds)
    return {"name": system.name, "verdict": verdict(found), "statistics": [asdict(one) for one in found]}
