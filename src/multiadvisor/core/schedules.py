"""How a setting changes while networks learn: the learning rate, and the probability of a random action.

A schedule is a function of three numbers: the setting's own `value`, the `other` value that it has at the far end of
the way, and how far along this way it is, from 0 (at its own value) to 1. A learning rate begins at its own value and
walks away from it; epsilon comes from `epsilon_start` and arrives. So `constant` means the setting itself, all along.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from multiadvisor.core.plannings import check_name
from multiadvisor.errors import BadInput

Schedule = Callable[[float, float, float], float]
SCHEDULES: dict[str, Schedule] = {}


def register_schedule(name: str) -> Callable[[Schedule], Schedule]:
    """Register a schedule under a name, for the library and the command line alike.

    >>> @register_schedule("late")
    ... def late(value, other, way):
    ...     return value if way < 0.5 else other
    >>> SCHEDULES["late"](1.0, 0.0, 0.4)
    1.0
    >>> del SCHEDULES["late"]
    """
    check_name("schedule", name, SCHEDULES)

    def register(function: Schedule) -> Schedule:
        SCHEDULES[name] = function
        return function

    return register


@register_schedule("constant")
def constant(value: float, other: float, way: float) -> float:
    """The setting itself."""
    return value


@register_schedule("linear")
def linear(value: float, other: float, way: float) -> float:
    """The same amount at every step."""
    return value + (other - value) * way


@register_schedule("cosine")
def cosine(value: float, other: float, way: float) -> float:
    """Slowly at both ends: half a wave."""
    return value + (other - value) * (1.0 - math.cos(math.pi * way)) / 2.0


@register_schedule("exponential")
def exponential(value: float, other: float, way: float) -> float:
    """By the same factor at every step."""
    found: float = value * (other / value) ** way
    return found


def check_ends(what: str, name: str, **ends: float) -> None:
    """Refuse an exponential way from or to 0, which has no end."""
    for end, value in ends.items():
        if name == "exponential" and value == 0:
            raise BadInput(f"{what} is 'exponential', and {end} is 0, which it never reaches: choose it above 0")
