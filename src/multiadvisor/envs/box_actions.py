"""Continuous actions: an environment's own, and the same ones on [-1, 1], as a learner has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.errors import BadInput, short


class BoxActions:
    """A bounded box of actions; `size` numbers, each from -1 to 1 for the learner.

    >>> from gymnasium.spaces import Box
    >>> actions = BoxActions(Box(0.0, 10.0, (2,)))
    >>> actions.to_environment(np.array([-1.0, 0.5]))
    array([0. , 7.5], dtype=float32)
    >>> actions.from_environment([0.0, 7.5], "action")
    array([-1. ,  0.5], dtype=float32)
    """

    def __init__(self, space: Any) -> None:
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        if not np.issubdtype(space.dtype, np.floating) or space.low.size < 1:
            raise BadInput(f"the actions are {short(str(space), 120)}, which are no real numbers: wrap the environment")
        with np.errstate(over="ignore"):
            width = high - low
        if not np.isfinite(width).all():
            raise BadInput(
                f"the actions are {short(str(space), 120)}, which has no bounds: wrap the environment so that it has, "
                "for example in gymnasium.wrappers.TransformAction"
            )
        if not (low < high).all():
            raise BadInput(f"the actions are {short(str(space), 120)}, with nothing to choose in it: give it a range")
        self.space, self.shape, self.dtype, self.size = space, space.shape, space.dtype, int(space.low.size)
        self._low, self._high = low.ravel(), high.ravel()
        self._middle, self._half = (self._low + self._high) / 2, (self._high - self._low) / 2

    def bounds(self) -> dict[str, Any]:
        """What `of_bounds` makes it again from, as plain data."""
        return {"low": self._low.tolist(), "high": self._high.tolist(), "type": np.dtype(self.dtype).name}

    @classmethod
    def of_bounds(cls, bounds: dict[str, Any]) -> BoxActions:
        """One with these bounds, in one row; whatever is wrong with them raises."""
        from gymnasium.spaces import Box

        kind: Any = {"float32": np.float32, "float64": np.float64, "float16": np.float16}[bounds["type"]]
        return cls(Box(np.array(bounds["low"], kind), np.array(bounds["high"], kind), dtype=kind))

    def to_environment(self, action: np.ndarray) -> np.ndarray:
        """The environment's actions [..., *shape] of the learner's [..., size]."""
        given = np.clip(self._middle + self._half * action, self._low, self._high)
        return np.asarray(given, self.dtype).reshape(given.shape[:-1] + self.shape)

    def from_environment(self, action: Any, name: str) -> np.ndarray:
        """The learner's action [size] of one of the environment's, or an error."""
        try:
            given = np.asarray(action, np.float64)
        except (TypeError, ValueError):
            given = np.zeros(0)
        if given.shape != self.shape and given.shape != (self.size,):
            raise BadInput(f"{name} is {short(repr(action))}: give {self.size} numbers, as {self.space} has them")
        flat = given.ravel()
        if not np.isfinite(flat).all():
            raise BadInput(f"{name} is {short(repr(action))}, which is not finite: give {self.size} numbers")
        slack = 1e-6 * self._half
        if (flat < self._low - slack).any() or (flat > self._high + slack).any():
            raise BadInput(f"{name} is {short(repr(action))}, outside of {short(str(self.space), 120)}: stay inside")
        return np.asarray(np.clip((flat - self._middle) / self._half, -1.0, 1.0), np.float32)
