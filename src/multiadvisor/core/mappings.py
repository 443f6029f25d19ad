"""Value mappings (Fatemi and Tavakoli 2022): a scale of its own on which an advisor's values are moved.

Values are stored plain, so that everybody reads them as ever. A target is averaged in plain space with the advisor's
step size `alpha`, and the result is approached on the mapped scale f with `mapped_alpha`:

    f(q) += mapped_alpha * (f(q + alpha * (target - q)) - f(q))

which is the same as storing f(q). The logarithm (van Seijen, Fatemi and Tavakoli 2019) is c ln(q + gamma^k) + d with c
and d such that f(0) = 0; c has no bearing on tables, and is 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.compiling import inside
from multiadvisor.errors import BadInput, short, unknown

IDENTITY, LOG = range(2)
NAMES = {"log": LOG}


class Mapping(NamedTuple):
    """A mapping in the compiled loop's terms."""

    code: float = IDENTITY
    least: float = 1.0
    """For the logarithm gamma^k: values far below it are not told apart from 0."""
    alpha: float = 1.0
    """The step size on the mapped scale."""


MAPPING = np.dtype([(field, np.float64) for field in Mapping._fields])
"""The same as an array's entry."""


@inside
def forward(mapping, value):
    """f(value); the logarithm is for values of at least 0."""
    if mapping.code == LOG:
        return math.log1p(value / mapping.least) if value > 0.0 else 0.0
    return value


@inside
def inverse(mapping, mapped):
    """f^-1(mapped)."""
    if mapping.code == LOG:
        return mapping.least * math.expm1(mapped) if mapped > 0.0 else 0.0
    return mapped


@inside
def moved(mapping, mapped, alpha, target):
    """Where a stored value f(q) goes that learns a plain target."""
    plain = inverse(mapping, mapped)
    return mapped + mapping.alpha * (forward(mapping, plain + alpha * (target - plain)) - mapped)


def mapping_named(text: str, gamma: float, alpha: float) -> Mapping:
    """`log:k` for an advisor with this discount, or an error that says what it should be.

    >>> mapping_named("log:2", 0.5, 0.1)
    Mapping(code=1, least=0.25, alpha=0.1)
    """
    name, _, given = str(text).partition(":")
    if name not in NAMES:
        raise unknown("mapping", name, NAMES)
    try:
        power = float(given or 100.0)
    except ValueError:
        power = math.nan
    if not (power > 0 and gamma > 0.0 and gamma**power > 1e-290):
        raise BadInput(
            f"the mapping {short(text)!r} at gamma {gamma:g}: give a gamma above 0 and a power k, as in log:50, with "
            "gamma^k above 1e-290"
        )
    return Mapping(NAMES[name], gamma**power, alpha)


def mapped(mapping: Mapping, value: Any) -> float:
    """f of one value, for Python."""
    return float(forward.py_func(mapping, value))


def plain(mapping: Mapping, value: Any) -> float:
    """f^-1 of one value, for Python."""
    return float(inverse.py_func(mapping, value))
