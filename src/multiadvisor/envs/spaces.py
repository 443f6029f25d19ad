"""What observations and actions are to a learner: several observations at once, bins, several choices, and boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from multiadvisor.errors import BadInput, short
from multiadvisor.task import Task


# ---- several observations at once, as a vector environment gives them ------------------------------------------------
def separate(task: Task, observation: Any) -> list[Any] | None:
    """The observations of a task, or states of its compiled world, where there are several; None if it is one."""
    if task.adapter is None:
        assert task.world is not None
        return _rows(observation, (task.world.size,))
    return _separate(task.adapter.space, observation)


def _separate(space: Any, observation: Any) -> list[Any] | None:
    """
    >>> from gymnasium import spaces
    >>> box, number = spaces.Box(0, 1, (2,)), spaces.Discrete(3)
    >>> _separate(box, np.zeros(2)), len(_separate(box, np.zeros((5, 2)))), _separate(number, 2)
    (None, 5, None)
    >>> _separate(spaces.Dict(a=number), {"a": np.array([0, 2])})
    [{'a': 0}, {'a': 2}]
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Dict | spaces.Tuple):
        inner: Any = space.spaces
        names = list(inner) if isinstance(space, spaces.Dict) else range(len(inner))
        try:
            parts = [_separate(inner[name], observation[name]) for name in names]
        except (KeyError, IndexError, TypeError):
            raise BadInput(f"an observation of {space} has all of its parts: this one lacks some") from None
        if any(part is None for part in parts):
            return None
        kind = tuple if isinstance(space, spaces.Tuple) else lambda values: dict(zip(names, values, strict=True))
        return [kind(each) for each in zip(*(part for part in parts if part is not None), strict=True)]
    return None if space.shape is None else _rows(observation, space.shape)


def _rows(observation: Any, shape: tuple[int, ...]) -> list[Any] | None:
    """The rows of an array with one axis more than one observation has; numbers stay Python's."""
    if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
        raise BadInput("this is what reset gives, an observation and info: give the observation alone")
    seen = np.asarray(observation)
    if seen.ndim != len(shape) + 1:
        return None
    return list(seen) if shape else list(seen.tolist())


# ---- real-valued observations ----------------------------------------------------------------------------------------
LEAST_PIXELS = 16  # on each side of an image: the few cells of a small grid are better counted as states


def is_image(space: Any) -> bool:
    """Whether observations are images: bytes in height, width and channels, in whatever order.

    >>> from gymnasium.spaces import Box
    >>> is_image(Box(0, 255, (96, 96, 3), np.uint8)), is_image(Box(0, 255, (7, 7, 3), np.uint8))
    (True, False)
    """
    shape = getattr(space, "shape", None) or ()
    return len(shape) == 3 and getattr(space, "dtype", None) == np.uint8 and sorted(shape)[1] >= LEAST_PIXELS


class Bins:
    """A discretiser for real-valued observations: equal bins between low and high in each component.

    >>> bins = Bins([-1.2, -0.07], [0.6, 0.07], [18, 14])
    >>> bins.states, bins(np.array([-1.2, 0.0])), bins(np.array([9.0, 9.0]))
    (252, 7, 251)
    """

    def __init__(self, low: Sequence[float], high: Sequence[float], counts: Sequence[int]) -> None:
        self.low, self.high, self.counts = (np.ravel(each).tolist() for each in (low, high, counts))
        if not len(self.low) == len(self.high) == len(self.counts) > 0:
            raise BadInput("low, high and counts of Bins must have one entry for each component")
        for k, (a, b, count) in enumerate(zip(self.low, self.high, self.counts, strict=True)):
            if not (math.isfinite(b - a) and a < b and count >= 1):
                raise BadInput(
                    f"component {k} of Bins goes from {short(repr(a))} to {short(repr(b))} in {short(repr(count))} "
                    "bins: give a finite range"
                )
        self._scale = [count / (b - a) for a, b, count in zip(self.low, self.high, self.counts, strict=True)]
        self.states = math.prod(self.counts)

    @classmethod
    def parse(cls, text: str, space: Any) -> Bins:
        """From text: for each component of the observation LOW:HIGH:COUNT, or COUNT if the space has a range.

        >>> from gymnasium.spaces import Box
        >>> str(Bins.parse("3,-1:1:2", Box(np.array([0.0, -np.inf]), np.array([6.0, np.inf]), dtype=np.float64)))
        '0.0:6.0:3,-1.0:1.0:2'
        """
        parts = text.split(",")
        low, high = (np.ravel(getattr(space, name, ())).tolist() for name in ("low", "high"))
        if not low:
            raise BadInput(f"bins are for real numbers, and the observation is {short(str(space))}: leave bins out")
        if len(low) != len(parts):
            raise BadInput(
                f"bins {short(text)!r} are for {len(parts)} numbers, but the observation is {short(str(space))}: give "
                "one for each of its numbers, separated by commas"
            )
        ranges = []
        for k, part in enumerate(parts):
            words = part.split(":")
            try:
                first, last = (float(word) for word in words[:-1]) if len(words) > 1 else (low[k], high[k])
                ranges.append((first, last, int(words[-1])))
            except ValueError:
                raise BadInput(f"bins have {short(part)!r}: give COUNT or LOW:HIGH:COUNT for each number") from None
            if not math.isfinite(first) or not math.isfinite(last):
                raise BadInput(f"number {k} of the observation has no range of its own: give LOW:HIGH:COUNT in bins")
        return cls(*zip(*ranges, strict=True))

    def as_bins(self) -> str:
        """What `parse` makes it again from.

        >>> Bins([-1.0], [1.0], [8]).as_bins()
        '-1.0:1.0:8'
        """
        parts = zip(self.low, self.high, self.counts, strict=True)
        return ",".join(f"{float(low)!r}:{float(high)!r}:{int(count)}" for low, high, count in parts)

    __str__ = as_bins

    def __call__(self, observation: Any) -> int:
        """The number of the bin."""
        state = 0
        try:
            for value, low, scale, count in zip(observation, self.low, self._scale, self.counts, strict=True):
                state = state * count + min(max(int((value - low) * scale), 0), count - 1)
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(observation, int | float) or getattr(observation, "shape", None) == ():
                return self((observation,))
            raise BadInput(
                f"{short(repr(observation))} does not fit into bins of {len(self.counts)} components: {error}"
            ) from None
        return state


# ---- several choices at once -----------------------------------------------------------------------------------------
LARGEST_CHOICE = 1_000  # combinations: each has a value of every advisor


class MultiDiscreteActions:
    """The combinations of a MultiDiscrete or MultiBinary space, counted from 0; the last choice changes fastest.

    >>> from gymnasium.spaces import MultiDiscrete
    >>> actions = MultiDiscreteActions(MultiDiscrete([2, 3]))
    >>> actions.names[:4], actions.to_environment(4), actions.number([1, 1])
    (('0/0', '0/1', '0/2', '1/0'), array([1, 1]), 4)
    """

    def __init__(self, space: Any) -> None:
        sizes = np.asarray(getattr(space, "nvec", np.full(space.shape, 2)))  # MultiBinary has no nvec
        self.space, self._sizes = space, tuple(int(size) for size in sizes.ravel())
        self._start = np.asarray(getattr(space, "start", np.zeros(space.shape, int)), np.int64).ravel()
        self.count = math.prod(self._sizes)
        if self.count > LARGEST_CHOICE:
            raise BadInput(
                f"the environment's actions are {short(str(space), 60)}, {self.count} combinations, and at most "
                f"{LARGEST_CHOICE} are learned: wrap the environment so that it offers fewer"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers of each combination [A], such as 0/2."""
        return tuple("/".join(map(str, row)) for row in self._rows(np.arange(self.count)).tolist())

    def _rows(self, numbers: Any) -> np.ndarray:
        """[..., choices]."""
        return np.stack(np.unravel_index(numbers, self._sizes), axis=-1) + self._start

    def to_environment(self, numbers: Any) -> np.ndarray:
        """The environment's actions [..., *shape] of combinations [...]."""
        rows = self._rows(numbers)
        return rows.astype(self.space.dtype).reshape(rows.shape[:-1] + self.space.shape)

    def number(self, action: Any) -> int:
        """The number of one of the environment's actions, or -1."""
        try:
            given = np.asarray(action)
        except (TypeError, ValueError):
            return -1
        if given.shape != self.space.shape or given.dtype.kind not in "iub":
            return -1
        row = given.ravel().astype(np.int64) - self._start
        if (row < 0).any() or (row >= self._sizes).any():
            return -1
        return int(np.ravel_multi_index(tuple(row), self._sizes))


# ---- continuous actions ----------------------------------------------------------------------------------------------
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
        given = np.minimum(np.maximum(self._middle + self._half * action, self._low), self._high)  # faster than clip
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
