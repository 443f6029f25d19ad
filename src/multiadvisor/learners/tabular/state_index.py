"""A task with one advisor more, the last: one that looks at the whole state, or at features of it.

So an aggregator sees it that learns with an advisor of its own (`core.learned`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.compiling import compiled
from multiadvisor.envs.adapter import Adapter
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, Task, World, nothing

MOST_STATES = 4_000_000


class StateIndex(NamedTuple):
    """A compiled function (constants, x) -> number below `states`, whose constants are `ExtendedConstants`."""

    number: Any
    radix: np.ndarray  # [size] int64: what each number of x counts, where nobody names features
    states: int


class ExtendedConstants(NamedTuple):
    """The constants of a world with one advisor more."""

    world: Any
    """The world's own."""
    radix: Any  # [size] int64: as in `StateIndex`
    states: int
    n: int
    """The number of the one that is added."""


def extend_task(
    task: Task, name: str, weight: float, reward: Any = nothing, gamma: float | None = None, or_else: str = ""
) -> Task:
    """The task with an advisor of this name as its last, always active; it looks at everything, or at what the task's
    `extra_advisor` names. `or_else`: a further way out where that is too much."""
    given = task.extra_advisor or Advisor(name)
    advisor = Advisor(
        name, reward=reward, weight=weight, gamma=gamma, alpha=given.alpha, planning="egocentric", group=name
    )
    if task.adapter is not None:
        advisors = (*task.advisors, replace(advisor, state=given.state, states=given.states))
        return replace(task, advisors=advisors, adapter=Adapter(task.adapter.env, advisors, task.adapter.discretise))
    assert task.world is not None
    index = state_index(task, task.world, name, or_else)
    constants = ExtendedConstants(task.world.constants, index.radix, index.states, task.n)
    advisor = replace(advisor, state=name, states=index.states)
    world = _extend_world(task.world, constants, index.number)
    return replace(task, advisors=(*task.advisors, advisor), world=world, board=None)


# ---- where it looks --------------------------------------------------------------------------------------------------
def state_index(task: Task, world: World, name: str, or_else: str) -> StateIndex:
    """Where the task's extra advisor looks, which has this name."""
    given = task.extra_advisor
    if given is None or given.state is None:
        return _whole_state(task, world, name, or_else)
    return _features(task, name, given.state, given.states)


def _features(task: Task, name: str, state: Any, states: int | None) -> StateIndex:
    """The user's own function (constants, x) -> number below `states`."""
    if not callable(state) or states is None:
        raise BadInput(
            f"the {name} of task {task.name!r} needs a compiled function of the state and its number of values: "
            f"give extra_advisor=Advisor({name!r}, state=function, states=number)"
        )
    if not 1 <= states <= MOST_STATES:
        raise BadInput(f"the {name} of task {task.name!r} has {states} states: let them be from 1 to {MOST_STATES}")
    return StateIndex(_feature_number(state), np.zeros(0, np.int64), states)


def _whole_state(task: Task, world: World, name: str, or_else: str) -> StateIndex:
    """The number of a state x among all that its `sizes` allow."""
    way_out = f"name features of it with extra_advisor=Advisor({name!r}, state=function, states=number){or_else}"
    if world.sizes is None:
        raise BadInput(
            f"the states of task {task.name!r} cannot be counted, as its world gives no sizes: give them, or {way_out}"
        )
    states = math.prod(world.sizes)
    if states > MOST_STATES:
        raise BadInput(f"the {name} on all {float(states):.2g} states of task {task.name!r} is too large: {way_out}")
    radix = [math.prod(world.sizes[k + 1 :]) for k in range(world.size)]
    return StateIndex(_whole_number, np.array(radix, np.int64), states)


@compiled
def _whole_number(constants, x):
    """The number of a state, digit by digit."""
    total = 0
    for k in range(constants.radix.shape[0]):
        total += constants.radix[k] * x[k]
    return total


@lru_cache(maxsize=64)
def _feature_number(features: Any) -> Any:
    look = features if hasattr(features, "py_func") else compiled(features)

    @compiled
    def number(constants, x):
        return look(constants.world, x)

    return _of_module(number, features)


def _of_module(wrapper: Any, *wrapped: Any) -> Any:
    """What wraps a function of a script belongs to the script, whose machine code is not kept (see `specialise`)."""
    if any(getattr(function, "__module__", "") == "__main__" for function in wrapped):
        wrapper.__module__ = "__main__"
    return wrapper


# ---- the world -------------------------------------------------------------------------------------------------------
def _extend_world(world: World, constants: ExtendedConstants, number: Any) -> World:
    going = None if world.going is None else lambda constants, x: world.going(constants.world, x)  # type: ignore[misc]
    # what it answers besides is about the task itself, which is asked
    besides: dict[str, Any] = {"outcomes": None, "listing": None, "bounds": None, "local_state": None}
    own = (world.reset, world.begin, world.local_states, world.step, world.advises, world.pseudo)
    functions = _extended(number, *own)
    return replace(world, constants=constants, going=going, **besides, **functions)


@lru_cache(maxsize=64)
def _extended(
    number: Any, reset: Any, begin: Any, local_states: Any, step: Any, advises: Any, pseudo: Any
) -> dict[str, Any]:
    @compiled
    def reset_all(constants, x, key):
        reset(constants.world, x, key)

    @compiled
    def begin_all(constants, x, advisors):
        m = begin(constants.world, x, advisors)
        advisors[m] = constants.n
        return m + 1

    @compiled
    def local_states_all(constants, x, advisors, m, local):
        others = m - 1 if m > 0 else 0
        local_states(constants.world, x, advisors, others, local)
        if m > 0:
            at = number(constants, x)
            if at < 0 or at >= constants.states:
                raise BadInput("a state that is looked at is out of range: correct `sizes`, or its function")
            local[others] = at

    @compiled
    def step_all(constants, x, action, key, advisors, m, reward, ended):
        reward[m - 1] = 0.0  # which an update rule may have used
        return step(constants.world, x, action, key, advisors, m - 1, reward, ended)

    @compiled
    def advises_all(constants, x, advisors, m, weight):
        advises(constants.world, x, advisors, m - 1 if m > 0 else 0, weight)

    @compiled
    def pseudo_all(constants, x, action, advisors, m, ended, reward):
        pseudo(constants.world, x, action, advisors, m - 1, ended, reward)

    return {
        "reset": _of_module(reset_all, reset),
        "begin": _of_module(begin_all, begin),
        "local_states": _of_module(local_states_all, local_states, number),
        "step": _of_module(step_all, step),
        "advises": None if advises is None else _of_module(advises_all, advises),
        "pseudo": None if pseudo is None else _of_module(pseudo_all, pseudo),
    }
