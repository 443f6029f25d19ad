"""What somebody learned beside the advisors looks at in a compiled world: the whole state, or features of it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregations import CORRECTION
from multiadvisor.core.compiling import compiled
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, Task, World

MOST_STATES = 4_000_000


class StateIndex(NamedTuple):
    """A compiled function (constants, x) -> number below `states`, whose constants hold the `world`'s and `radix`."""

    number: Any
    radix: np.ndarray  # [size] int64: what each number of x counts, where nobody names features
    states: int


def place_of(task: Task, world: World, what: str, given: Advisor | None) -> StateIndex:
    """Where the `correction` or the `arbitrator` of a task looks: as its advisor says, or at the whole state."""
    return _whole_state(task, world, what) if given is None or given.state is None else _features(task, what, given)


def _features(task: Task, what: str, given: Advisor) -> StateIndex:
    """The user's own function (constants, x) -> number below `states`."""
    if not callable(given.state) or given.states is None:
        raise BadInput(
            f"the {what} of task {task.name!r} needs a compiled function of the state and its number of values: "
            f"give {what}=Advisor({what!r}, state=function, states=number)"
        )
    if not 1 <= given.states <= MOST_STATES:
        raise BadInput(
            f"the {what} of task {task.name!r} has {given.states} states: choose features that take from 1 to "
            f"{MOST_STATES} values"
        )
    return StateIndex(_feature_place(given.state), np.zeros(0, np.int64), given.states)


def _whole_state(task: Task, world: World, what: str) -> StateIndex:
    """The number of a state x among all that its `sizes` allow."""
    way_out = f"name features of it with {what}=Advisor({what!r}, state=function, states=number)"
    if what == CORRECTION:
        way_out += ", or learn with a network (learner='dqn', on the command line --learner dqn)"
    if world.sizes is None:
        raise BadInput(
            f"the states of task {task.name!r} cannot be counted, as its world gives no sizes: give them, or {way_out}"
        )
    states = math.prod(world.sizes)
    if states > MOST_STATES:
        raise BadInput(f"the {what} on all {float(states):.2g} states of task {task.name!r} is too large: {way_out}")
    radix = [math.prod(world.sizes[k + 1 :]) for k in range(world.size)]
    return StateIndex(whole_place, np.array(radix, np.int64), states)


@compiled
def whole_place(constants, x):
    """The number of a state, digit by digit."""
    total = 0
    for k in range(constants.radix.shape[0]):
        total += constants.radix[k] * x[k]
    return total


@lru_cache(maxsize=64)
def _feature_place(features: Any) -> Any:
    look = features if hasattr(features, "py_func") else compiled(features)

    @compiled
    def place(constants, x):
        return look(constants.world, x)

    return of_module(place, features)


def of_module(wrapper: Any, *wrapped: Any) -> Any:
    """What wraps a function of a script belongs to the script, whose machine code is not kept (see `specialise`)."""
    if any(getattr(function, "__module__", "") == "__main__" for function in wrapped):
        wrapper.__module__ = "__main__"
    return wrapper
