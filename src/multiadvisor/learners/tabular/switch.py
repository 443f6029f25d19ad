"""The switches of the compiled loop: from the registered plannings and aggregations to one function for all of them.

A registered function's twin is compiled here, tried, and compared with its array form before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from multiadvisor.core import aggregations, plannings
from multiadvisor.core.aggregations import AGGREGATIONS, Aggregation
from multiadvisor.core.compiling import called, compiled, inside
from multiadvisor.core.plannings import COUNTS, PLANNINGS, TARGET, Ahead, Planning, bootstrap
from multiadvisor.errors import BadInput, short, told

# by where they are written: a user's own may have been registered before this module is loaded
SHIPPED_PLANNINGS = tuple(one for one in PLANNINGS.values() if one.policy.__module__ == plannings.__name__)
SHIPPED_AGGREGATIONS = tuple(one for one in AGGREGATIONS.values() if one.prefer.__module__ == aggregations.__name__)
PAPER_PLANNINGS, PAPER_AGGREGATIONS = SHIPPED_PLANNINGS[:3], SHIPPED_AGGREGATIONS[:1]
WISHES = SHIPPED_AGGREGATIONS[:2]  # the sum and the strongest wish


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


# ---- plannings -------------------------------------------------------------------------------------------------------
def _values(value: Any, needs: tuple[str, ...]) -> Any:
    """What each of m advisors expects, all of which plan alike."""
    if COUNTS in needs:

        @inside
        def loop(values, rows, m, ahead, out):
            for i in range(m):
                row = np.uintp(rows[i])
                known = Ahead(ahead.greedy, ahead.taken, ahead.behaviour, values.counts[row])
                out[i] = value(values.table[row], known)

    elif TARGET in needs:

        @inside
        def loop(values, rows, m, ahead, out):
            for i in range(m):
                row = np.uintp(rows[i])
                known = Ahead(ahead.greedy, ahead.taken, ahead.behaviour, ahead.behaviour, values.policies[row])
                out[i] = value(values.table[row], known)

    else:

        @inside
        def loop(values, rows, m, ahead, out):
            for i in range(m):
                out[i] = value(values.table[np.uintp(rows[i])], ahead)

    return loop


def _either(code: int, loop: Any, rest: Any) -> Any:
    """`loop` for one code, and whatever comes for the others."""

    @inside
    def switch(kind, values, rows, m, ahead, out):
        if kind == code:
            loop(values, rows, m, ahead, out)
        else:
            rest(kind, values, rows, m, ahead, out)

    return switch


@inside
def _nothing(kind, values, rows, m, ahead, out):
    """The end of a switch, which is never reached."""


@lru_cache(maxsize=64)
def expect_switch(known: tuple[Planning, ...]) -> Any:
    """What m advisors expect of the rows they have arrived at: all by one planning, or each by its own."""
    alike = _nothing
    for code, planning in reversed(list(enumerate(known))):
        alike = _either(code, _values(_value(planning), planning.needs), alike)
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


@lru_cache(maxsize=256)
def _value(planning: Planning) -> Any:
    """The compiled twin of a planning, tried."""
    if planning.value is None:
        raise BadInput(
            f"planning {planning.name!r} has no compiled twin, and tables need one: give "
            f'@register_planning("{planning.name}", compiled=...)'
        )
    plain = _plain(planning.value)
    value = inside(plain)
    if planning not in SHIPPED_PLANNINGS:
        for form in (plain, _called_as_in_the_loop(value)):  # as Python first: it notices a place outside an array
            _try_planning(planning, form)
    return value


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
def _or(code: int, fill: Any, rest: Any) -> Any:
    """`fill` for one code, and whatever comes for the others."""

    @inside
    def switch(which, table, rows, weights, m, parameter, preferences):
        if which == code:
            fill(table, rows, weights, m, parameter, preferences)
        else:
            rest(which, table, rows, weights, m, parameter, preferences)

    return switch


@inside
def _silence(which, table, rows, weights, m, parameter, preferences):
    """The end of a switch, which is never reached."""


@lru_cache(maxsize=64)
def combine_switch(known: tuple[Aggregation, ...]) -> Any:
    """The preferences of m rows of a table, by the aggregation of a code."""
    combine = _silence
    for code, aggregation in reversed(list(enumerate(known))):
        combine = _or(code, _fill(aggregation), combine)
    return combine if len(known) <= len(WISHES) else called(combine.py_func)


@lru_cache(maxsize=256)
def _fill(aggregation: Aggregation) -> Any:
    """The compiled twin of an aggregation, tried."""
    if aggregation.fill is None:
        raise BadInput(
            f"aggregation {aggregation.name!r} has no compiled twin, and acting needs one: give "
            f'@register_aggregation("{aggregation.name}", compiled=...)'
        )
    plain = _plain(aggregation.fill)
    fill = inside(plain)
    if aggregation not in SHIPPED_AGGREGATIONS:
        for form in (plain, _called_as_in_the_loop(fill)):
            _try_aggregation(aggregation, form)
    return fill


def _try_aggregation(aggregation: Aggregation, fill: Any) -> None:
    generator = np.random.default_rng(0)
    for actions in (1, 2, 3, 5):
        table, rows = generator.normal(size=(7, actions)), np.array([4, 0, 6])
        array, twin = f"aggregation {aggregation.name!r}", f"the compiled twin of aggregation {aggregation.name!r}"
        for weights in (np.array([1.5, 0.0, 0.25]), np.zeros(3)):
            got, heard = np.full(actions, np.nan), weights != 0
            wanted = _tried(array, aggregation, table[rows], weights)
            if not _same(wanted, _tried(array, aggregation, table[rows[heard]], weights[heard])):
                raise BadInput(f"{array} hears an advisor of weight 0: it must be ignored")
            _tried(twin, fill, table, rows, weights, 3, aggregation.parameter, got)
            _compare(twin, got, wanted)
        got[:] = np.nan
        _tried(twin, fill, table, rows, weights, 0, aggregation.parameter, got)
        if got.any():
            raise BadInput(f"{twin} prefers something where there are no advisors: let all preferences be 0")


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, where it was compiled already."""
    return getattr(function, "py_func", function)


def _called_as_in_the_loop(function: Any) -> Any:
    """A twin as the loop calls it, for Python to call: what cannot be written into the loop is noticed here."""

    @compiled
    def call(*arguments):
        return function(*arguments)

    return call


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
        raise BadInput(f"{what} cannot be used, as it raises {told(error)}") from None


def _same(one: Any, other: Any) -> bool:
    try:
        found = np.asarray(one, float)
    except (TypeError, ValueError):
        return False
    return found.shape == np.shape(other) and np.allclose(found, other, rtol=1e-9, atol=1e-12, equal_nan=True)


def _compare(twin: str, got: Any, wanted: Any) -> None:
    if not _same(got, wanted):
        raise BadInput(f"{twin} differs from its array form: make both say the same")
