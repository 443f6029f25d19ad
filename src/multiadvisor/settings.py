"""One frozen dataclass is the library's configuration, the command's flags and the record of the run."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from multiadvisor.errors import BadInput
from multiadvisor.planning import planning_named


def option(default: Any, text: str) -> Any:
    """A field whose text is also the flag's help."""
    return dataclasses.field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Settings:
    """How a multi-advisor agent learns."""

    planning: str = option("empathic", "how advisors plan: egocentric, agnostic or empathic")
    gamma: float = option(0.9, "discount factor, 0 to 1, of every advisor without one of its own")
    alpha: float = option(0.1, "step size of the updates, above 0 and at most 1")
    epsilon: float = option(0.05, "probability of a random action while learning")
    noise: float = option(0.0, "standard deviation of the Gaussian noise on every advisor's reward while learning")
    seed: int = option(0, "everything random in a run follows from it")

    def __post_init__(self) -> None:
        planning_named(self.planning)
        _check_number("gamma", self.gamma, 0.0, 1.0)
        _check_number("alpha", self.alpha, 0.0, 1.0)
        if self.alpha == 0:
            raise BadInput("alpha is 0: nothing would be learned, choose it above 0")
        _check_number("epsilon", self.epsilon, 0.0, 1.0)
        _check_number("noise", self.noise, 0.0, math.inf)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 63:
            raise BadInput(f"seed is {self.seed!r}: give a whole number from 0 on")


@dataclass(frozen=True)
class Schedule:
    """How long to train and how to look at it."""

    epochs: int = option(50, "number of epochs")
    transitions: int = option(20_000, "transitions learned from in an epoch")
    games: int = option(80, "greedy games played after each epoch")

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("transitions", 1), ("games", 0)):
            if getattr(self, name) < least:
                raise BadInput(f"{name} is {getattr(self, name)}: give a whole number of at least {least}")


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not low <= value <= high:
        reach = f"between {low:g} and {high:g}" if math.isfinite(high) else f"of at least {low:g}"
        raise BadInput(f"{name} is {value!r}: give a number {reach}")
