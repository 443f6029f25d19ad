"""Bins for real-valued observations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from multiadvisor.errors import BadInput, short


class Bins:
    """A discretiser for real-valued observations: equal bins between low and high in each component.

    >>> bins = Bins([-1.2, -0.07], [0.6, 0.07], [18, 14])
    >>> bins.states, bins(np.array([-1.2, 0.0])), bins(np.array([9.0, 9.0]))
    (252, 7, 251)
    """

    def __init__(self, low: Sequence[float], high: Sequence[float], counts: Sequence[int]) -> None:
        self.low, self.high, self.counts = list(low), list(high), list(counts)
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
                f"the observation {short(repr(observation))} does not fit into bins of {len(self.counts)} components: "
                f"{error}"
            ) from None
        return state
