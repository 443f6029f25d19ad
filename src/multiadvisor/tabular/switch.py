"""The switches of the compiled loop: from the registered plannings and aggregations to one function for all of them.

A registered function's twin is compiled here, tried, and compared with its array form before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from multiadvisor.aggregations import AGGREGATIONS, Aggregation
from multiadvisor.compiling import called, compiled, inside
from multiadvisor.errors import BadInput, short
from multiadvisor.plannings import PLANNINGS, Ahead, Planning

SHIPPED_PLANNINGS, SHIPPED_AGGREGATIONS = tuple(PLANNINGS.values()), tuple(AGGREGATIONS.values())
PAPER_PLANNINGS, PAPER_AGGREGATIONS = SHIPPED_PLANNINGS[:3], SHIPPED_AGGREGATIONS[:1]


def known_to(
    plannings: tuple[Planning, ...], aggregations: tuple[Aggregation, ...]
) -> tuple[tuple[Planning, ...], tuple[Aggregation, ...]]:
    """What the loop of such an agent knows; the place of each is its code.

    Compiling takes time, so that there are two loops: one for what the paper has, one for all that is shipped. An
    agent with functions of its own gets a loop of its own.
    """
    if set(plannings) <= set(PAPER_PLANNINGS) and set(aggregations) <= set(PAPER_AGGREGATIONS):
        return PAPER_PLANNINGS, PAPER_AGGREGATIONS
    return (
        tuple(dict.fromkeys((*SHIPPED_PLANNINGS, *plannings))),
        tuple(dict.fromkeys((*SHIPPED_AGGREGATIONS, *aggregations))),
    )


# ---- plannings -------------------------------------------------------------------------------------------------------
def _values(value: Any, counting: bool) -> Any:
    """What each of m advisors expects, all of which plan alike."""
    if counting:

        @inside
        def loop(table, counts, nexts, m, ahead, out):
            for i in range(m):
                row = np.uintp(nexts[i])
                out[i] = value(table[row], Ahead(ahead.greedy, ahead.taken, ahead.behaviour, counts[row]))

    else:

        @inside
        def loop(table, counts, nexts, m, ahead, out):
            for i in range(m):
                out[i] = value(table[np.uintp(nexts[i])], ahead)

    return loop


def _either(code: int, loop: Any, rest: Any) -> Any:
    """`loop` for one code, and whatever comes for the others."""

    @called
    def switch(kind, table, counts, nexts, m, ahead, out):
        if kind == code:
            loop(table, counts, nexts, m, ahead, out)
        else:
            rest(kind, table, counts, nexts, m, ahead, out)

    return switch


@inside
def _nothing(kind, table, counts, nexts, m, ahead, out):
    """The end of a switch, which is never reached."""


@lru_cache(maxsize=64)
def expect_switch(known: tuple[Planning, ...]) -> Any:
    """What m advisors expect of the rows they have arrived at: all by one planning, or each by its own."""
    alike = _nothing
    for code, planning in reversed(list(enumerate(known))):
        alike = _either(code, _values(_value(planning), "counts" in planning.needs), alike)

    @inside
    def expect(kind, table, counts, nexts, m, ahead, out, advisors, kinds):
        if kind >= 0:
            alike(kind, table, counts, nexts, m, ahead, out)
        else:
            for i in range(m):
                alike(kinds[np.uintp(advisors[i])], table, counts, nexts[i : i + 1], 1, ahead, out[i : i + 1])

    return expect


@lru_cache(maxsize=256)
def _value(planning: Planning) -> Any:
    """The compiled twin of a planning, tried."""
    if planning.value is None:
        raise BadInput(
            f"planning {planning.name!r} has no compiled twin, and tables need one: give "
            f'@planning("{planning.name}", compiled=...)'
        )
    if planning not in SHIPPED_PLANNINGS:
        _try_planning(planning, compiled(planning.value))
    return inside(planning.value)


def _try_planning(planning: Planning, value: Any) -> None:
    generator = np.random.default_rng(0)
    for actions in (1, 2, 3, 5):
        advice = generator.normal(size=(4, actions))
        counts = generator.integers(1, 9, size=advice.shape).astype(float)
        behaviour = generator.dirichlet(np.ones(actions))
        chosen = int(generator.integers(actions))
        ahead = Ahead(chosen, chosen, behaviour, counts)
        wanted = (planning(advice, ahead) * advice).sum(axis=1)
        aheads = [Ahead(chosen, chosen, behaviour, row) for row in counts]
        got = [_tried("planning", planning.name, value, *each) for each in zip(advice, aheads, strict=True)]
        _compare("planning", planning.name, got, wanted)


# ---- aggregations ----------------------------------------------------------------------------------------------------
def _or(code: int, fill: Any, rest: Any) -> Any:
    """`fill` for one code, and whatever comes for the others."""

    @called
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
    return combine


@lru_cache(maxsize=256)
def _fill(aggregation: Aggregation) -> Any:
    """The compiled twin of an aggregation, tried."""
    if aggregation.fill is None:
        raise BadInput(
            f"aggregation {aggregation.name!r} has no compiled twin, and acting needs one: give "
            f'@aggregation("{aggregation.name}", compiled=...)'
        )
    if aggregation not in SHIPPED_AGGREGATIONS:
        _try_aggregation(aggregation, compiled(aggregation.fill))
    return inside(aggregation.fill)


def _try_aggregation(aggregation: Aggregation, fill: Any) -> None:
    generator = np.random.default_rng(0)
    for actions in (1, 2, 3, 5):
        table, rows = generator.normal(size=(7, actions)), np.array([4, 0, 6])
        weights = np.array([1.5, 0.0, 0.25])
        got = np.full(actions, np.nan)
        _tried("aggregation", aggregation.name, fill, table, rows, weights, 3, aggregation.parameter, got)
        wanted = aggregation(table[rows], weights)
        _compare("aggregation", aggregation.name, got, wanted)
        heard = aggregation(table[rows[[0, 2]]], weights[[0, 2]])
        if not np.allclose(wanted, heard, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise BadInput(f"aggregation {aggregation.name!r} hears an advisor of weight 0: such a one is silent")


def _tried(kind: str, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except (NumbaError, TypeError, IndexError) as error:
        raise BadInput(f"the compiled twin of {kind} {name!r} cannot be compiled: {short(str(error), 160)}") from None


def _compare(kind: str, name: str, got: Any, wanted: Any) -> None:
    if not np.allclose(np.asarray(got, float), wanted, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise BadInput(f"the compiled twin of {kind} {name!r} differs from its array form: make both say the same")
