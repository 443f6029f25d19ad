"""The switches of the compiled loop: from the registered plannings and aggregations to one function for all of them.

A registered function's twin is compiled here, tried, and compared with its array form before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from multiadvisor.core import aggregations, plannings
from multiadvisor.core.aggregations import AGGREGATIONS, Aggregation
from multiadvisor.core.compiling import called, compiled, inside, inside_optimised
from multiadvisor.core.plannings import COUNTS, PLANNINGS, TARGET, Ahead, Planning, bootstrap
from multiadvisor.errors import BadInput, in_one_line, short

# by where they are written: a user's own may have been registered before this module is loaded
SHIPPED_PLANNINGS = tuple(one for one in PLANNINGS.values() if one.policy.__module__ == plannings.__name__)
SHIPPED_AGGREGATIONS = tuple(one for one in AGGREGATIONS.values() if one.prefer.__module__ == aggregations.__name__)
PAPER_PLANNINGS = tuple(PLANNINGS[name] for name in ("egocentric", "agnostic", "empathic"))
PAPER_AGGREGATIONS = (AGGREGATIONS["sum"],)
WISHES = (AGGREGATIONS["sum"], AGGREGATIONS["max"])  # and the strongest wish


def known_to(
    plannings: tuple[Planning, ...], aggregations: tuple[Aggregation, ...]
) -> tuple[tuple[Planning, ...], tuple[Aggregation, ...]]:
    """What the loop of such an agent knows; the place of each is its code.

    Compiling takes time, so that there are three loops: one for what the paper has, one for that and the strongest
    wish, one for all that is shipped. An agent with functions of its own gets a loop of its own, which knows no more
    than these and the paper's: with all that is shipped it would take three times as long to compile.
    """
    if not (set(plannings) <= set(SHIPPED_PLANNINGS) and set(aggregations) <= set(SHIPPED_AGGREGATIONS)):
        return (
            tuple(dict.fromkeys((*PAPER_PLANNINGS, *plannings))),
            tuple(dict.fromkeys((*PAPER_AGGREGATIONS, *aggregations))),
        )
    if not set(plannings) <= set(PAPER_PLANNINGS) or not set(aggregations) <= set(WISHES):
        return SHIPPED_PLANNINGS, SHIPPED_AGGREGATIONS
    return PAPER_PLANNINGS, PAPER_AGGREGATIONS if set(aggregations) <= set(PAPER_AGGREGATIONS) else WISHES


# ---- one function for all codes --------------------------------------------------------------------------------------
def _by_code(functions: Iterable[Any]) -> Any:
    """One function (code, ...) of several: the place of each is its code, and the last is for all that are left."""
    *others, last = enumerate(functions)
    found = _any_code(last[1])
    for code, function in reversed(others):
        found = _one_code(code, function, found)
    return found


def _any_code(function: Any) -> Any:
    @inside
    def switch(code, *arguments):
        return function(*arguments)

    return switch


def _one_code(own: int, function: Any, others: Any) -> Any:
    @inside
    def switch(code, *arguments):
        if code == own:
            return function(*arguments)
        return others(code, *arguments)

    return switch


# ---- plannings -------------------------------------------------------------------------------------------------------
def _values(value: Any, needs: tuple[str, ...]) -> Any:
    """What each of m advisors expects, all of which plan alike."""
    if COUNTS in needs:

        @inside_optimised
        def loop(values, rows, m, ahead, out):
            for i in range(m):
                row = np.uintp(rows[i])
                known = Ahead(ahead.greedy, ahead.taken, ahead.behaviour, values.counts[row])
                out[i] = value(values.table[row], known)

    elif TARGET in needs:

        @inside_optimised
        def loop(values, rows, m, ahead, out):
            for i in range(m):
                row = np.uintp(rows[i])
                known = Ahead(ahead.greedy, ahead.taken, ahead.behaviour, ahead.behaviour, values.policies[row])
                out[i] = value(values.table[row], known)

    else:

        @inside_optimised
        def loop(values, rows, m, ahead, out):
            for i in range(m):
                out[i] = value(values.table[np.uintp(rows[i])], ahead)

    return loop


@lru_cache(maxsize=64)
def expect_switch(known: tuple[Planning, ...]) -> Any:
    """What m advisors expect of the rows they have arrived at: all by one planning, or each by its own."""
    alike = _by_code(_values(_value(planning), planning.needs) for planning in known)
    alike = called(alike.py_func)

    @inside
    def expect(kind, values, slots, m, ahead, kinds):
        rows, out = slots.next_rows, slots.value
        if kind >= 0:
            alike(kind, values, rows, m, ahead, out)
        else:
            for i in range(m):
                alike(kinds[np.uintp(slots.advisors[i])], values, rows[i : i + 1], 1, ahead, out[i : i + 1])

    return expect


@lru_cache(maxsize=64)
def value_switch(known: tuple[Planning, ...]) -> Any:
    """What one advisor with values q [A] expects, by the planning of a code."""
    return _by_code(map(_value, known))


@lru_cache(maxsize=256)
def _value(planning: Planning) -> Any:
    """The compiled twin of a planning, tried."""
    try_it = None if planning in SHIPPED_PLANNINGS else partial(_try_planning, planning)
    return _twin("planning", planning.name, planning.value, try_it)


def _try_planning(planning: Planning, value: Any) -> None:
    generator = np.random.default_rng(0)
    for actions in (1, 2, 3, 5):
        advice = generator.normal(size=(4, actions))
        counts = generator.integers(1, 9, size=advice.shape).astype(float)
        behaviour = generator.dirichlet(np.ones(actions))
        chosen = int(generator.integers(actions))
        targets = generator.dirichlet(np.ones(actions), size=4)
        ahead = Ahead(chosen, chosen, behaviour, counts, targets)
        wanted = _tried(f"planning {planning.name!r}", bootstrap, planning, advice, ahead)
        aheads = [Ahead(chosen, chosen, behaviour, *rows) for rows in zip(counts, targets, strict=True)]
        twin = f"the compiled twin of planning {planning.name!r}"
        got = [_tried(twin, value, *each) for each in zip(advice, aheads, strict=True)]
        _compare(twin, got, wanted)


# ---- aggregations ----------------------------------------------------------------------------------------------------
@lru_cache(maxsize=64)
def combine_switch(known: tuple[Aggregation, ...]) -> Any:
    """The preferences of m rows of a table, by the aggregation of a code."""
    combine = _by_code(map(_fill, known))
    return combine if len(known) <= len(WISHES) else called(combine.py_func)


@lru_cache(maxsize=256)
def _fill(aggregation: Aggregation) -> Any:
    """The compiled twin of an aggregation, tried."""
    try_it = None if aggregation in SHIPPED_AGGREGATIONS else partial(_try_aggregation, aggregation)
    return _twin("aggregation", aggregation.name, aggregation.fill, try_it)


def _try_aggregation(aggregation: Aggregation, fill: Any) -> None:
    generator = np.random.default_rng(0)
    for actions in (1, 2, 3, 5):
        table, rows = generator.normal(size=(7, actions)), np.array([4, 0, 6])
        array, twin = f"aggregation {aggregation.name!r}", f"the compiled twin of aggregation {aggregation.name!r}"
        for weights in (np.array([1.5, 0.0, 0.25]), np.zeros(3)):
            got, counts = np.full(actions, np.nan), weights != 0
            wanted = _tried(array, aggregation, table[rows], weights)
            if not _same(wanted, _tried(array, aggregation, table[rows[counts]], weights[counts])):
                raise BadInput(f"{array} listens to an advisor of weight 0: it must be ignored")
            _tried(twin, fill, table, rows, weights, 3, aggregation.parameter, got)
            _compare(twin, got, wanted)
        got[:] = np.nan
        _tried(twin, fill, table, rows, weights, 0, aggregation.parameter, got)
        if got.any():
            raise BadInput(f"{twin} prefers something where there are no advisors: let all preferences be 0")


# ---- twins -----------------------------------------------------------------------------------------------------------
def _twin(what: str, name: str, function: Callable[..., Any] | None, try_it: Callable[[Any], None] | None) -> Any:
    """A registered function as the loop calls it; a user's own is tried before."""
    if function is None:
        raise BadInput(
            f'{what} {name!r} has no compiled twin, which the loop needs: give @register_{what}("{name}", compiled=...)'
        )
    plain = getattr(function, "py_func", function)
    twin = inside(plain)
    if try_it is not None:

        @compiled
        def call(*arguments):
            return twin(*arguments)

        try_it(plain)  # as Python first: it notices a place outside an array
        try_it(call)  # and as the loop calls it: what cannot be written into the loop is noticed here
    return twin


def _tried(what: str, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except BadInput:
        raise
    except NumbaError as error:
        raise BadInput(
            f"{what} cannot be compiled: write it with loops over single numbers, as no array can be made there "
            f"({short(str(error), 160)})"
        ) from None
    except Exception as error:
        raise BadInput(f"{what} cannot be used, as it raises {in_one_line(error)}") from None


def _same(one: Any, other: Any) -> bool:
    try:
        found = np.asarray(one, float)
    except (TypeError, ValueError):
        return False
    return found.shape == np.shape(other) and np.allclose(found, other, rtol=1e-9, atol=1e-12, equal_nan=True)


def _compare(twin: str, got: Any, wanted: Any) -> None:
    if not _same(got, wanted):
        raise BadInput(f"{twin} differs from its array form: make both say the same")
