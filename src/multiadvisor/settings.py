"""One frozen dataclass is the library's configuration, the command's flags and the record of the run."""

from __future__ import annotations

import dataclasses
import math
import numbers
from dataclasses import dataclass
from typing import Any

from multiadvisor.errors import BadInput, unknown
from multiadvisor.planning import PLANNINGS, planning_named

LEARNERS = ("advisors", "linear")
FORESIGHTS = ("real", "estimate")  # the aggregator's action in the real next state, or f_j from the local one


def option(default: Any, text: str) -> Any:
    """A field whose text is also the flag's help."""
    return dataclasses.field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Settings:
    """How a multi-advisor agent learns."""

    planning: str = option("empathic", "how advisors plan: egocentric, agnostic or empathic")
    learner: str = option("advisors", "advisors, or linear: one Q-function, linear in the same features (a baseline)")
    gamma: float = option(0.9, "discount factor, 0 to 1, of every advisor without one of its own")
    alpha: float = option(0.1, "step size of the updates, above 0 and at most 1")
    alpha_half: int = option(0, "transitions after which the step size has halved, then a third, ...; 0: constant")
    epsilon: float = option(0.05, "probability of a random action while learning")
    noise: float = option(0.0, "standard deviation of the Gaussian noise on every advisor's reward while learning")
    seed: int = option(0, "everything random in a run follows from it")
    foresight: str = option("real", "empathic advisors learn from the aggregator's real next action, or an estimate")

    def __post_init__(self) -> None:
        known = {function: name for name, function in PLANNINGS.items()}
        self._put("planning", known.get(self.planning, self.planning) if callable(self.planning) else self.planning)
        planning_named(self.planning)
        if self.learner not in LEARNERS:
            raise unknown("learner", self.learner, LEARNERS)
        if self.foresight not in FORESIGHTS:
            raise unknown("foresight", self.foresight, FORESIGHTS)
        if self.foresight != "real" and (self.planning != "empathic" or self.learner != "advisors"):
            raise BadInput(
                f"foresight is {self.foresight!r}, which is for advisors that plan empathically: leave it out"
            )
        for name, high in (("gamma", 1.0), ("alpha", 1.0), ("epsilon", 1.0), ("noise", math.inf)):
            self._put(name, _number(name, getattr(self, name), 0.0, high))
        if self.alpha == 0:
            raise BadInput("alpha is 0: nothing would be learned, choose it above 0")
        self._put("alpha_half", whole_number("alpha_half", self.alpha_half))
        self._put("seed", whole_number("seed", self.seed))

    def _put(self, name: str, value: Any) -> None:
        """A field in its plain form: NumPy's numbers are welcome, and kept as Python's."""
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Schedule:
    """How long to train and how to look at it."""

    epochs: int = option(50, "number of epochs")
    transitions: int = option(20_000, "transitions learned from in an epoch")
    games: int = option(80, "greedy games played after each epoch")

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("transitions", 1), ("games", 0)):
            whole_number(name, getattr(self, name), least)


def _number(name: str, value: Any, low: float, high: float) -> float:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not low <= value <= high:
        reach = f"between {low:g} and {high:g}" if math.isfinite(high) else f"of at least {low:g}"
        raise BadInput(f"{name} is {value!r}: give a number {reach}")
    return float(value)


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """A whole number that is not too small, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= int(value) < 1 << 63:
        raise BadInput(f"{name} is {value!r}: give a whole number of at least {least}")
    return int(value)
