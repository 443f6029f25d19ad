"""Checks of what comes back from a checkpoint: a checksum is no signature, and compiled code checks no index."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.errors import BadInput

MOST_STEPS = 1 << 62  # no counter of steps comes near, and sums of two of them do not overflow

Arrays = dict[str, np.ndarray]
Shapes = dict[str, tuple[int, ...]]


def require(good: Any, name: str) -> None:
    """Refuse an array whose values cannot be those of a run of this task."""
    if not good:
        raise BadInput(f"the checkpoint's {name!r} is out of range for this task: restore it from a copy")


def array(given: Arrays, name: str, shape: tuple[int | None, ...], dtype: Any) -> np.ndarray:
    """An array of this shape (None: any length) and type, with finite numbers only."""
    found = given.get(name)
    fits = found is not None and found.dtype == dtype and found.ndim == len(shape)
    if found is None or not fits or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
        raise BadInput(f"the checkpoint's {name!r} does not fit this task: it was made for another one")
    require(found.dtype.kind != "f" or np.isfinite(found).all(), name)
    return found


def whole(
    given: Arrays, name: str, shape: tuple[int | None, ...], low: int = 0, high: int = MOST_STEPS, dtype: Any = np.int64
) -> np.ndarray:
    """An array of whole numbers from `low` to below `high`."""
    found = array(given, name, shape, dtype)
    require(((found >= low) & (found < high)).all(), name)
    return found
