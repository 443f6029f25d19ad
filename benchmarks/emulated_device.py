"""A GPU as the processor emulates it, by the functions that a GPU compiles: for tests, and where there is none."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.core.compiling import inside, specialise
from multiadvisor.learners.tabular.lane_batch import Launch
from multiadvisor.learners.tabular.lanes import play_lanes
from multiadvisor.learners.tabular.thread_groups import GroupMemory, play_groups


@lru_cache(maxsize=256)
def _emulated(function: Callable[..., None], play: Any) -> Any:
    """A function of `lanes` with a learner's loop written into it, under a name that no other world's has: what is kept
    on disk finds what it calls by name."""
    own = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    own.__qualname__ = (
        f"{function.__qualname__}_{Path(getattr(play._cache, 'cache_path', None) or '').parent.name[-8:]}"
    )
    # a lane calls the loop that plays a run alone, which has the same types; that of a group is compiled here only
    return specialise(own, PLAY=play if function is play_lanes else inside(play.py_func))


class Emulated:
    """The processor of this machine: lanes one after the other, for tests and to see what a GPU would do."""

    def __init__(self, memory: int = 1 << 30, backwards: bool = False) -> None:
        self.memory, self.backwards = memory, backwards  # in which order the threads of a group come

    def free(self) -> int:
        """As much as it was told to have."""
        return self.memory

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        """Values that nobody should rely on."""
        return np.full(shape, 77, dtype)

    def put(self, array: np.ndarray) -> np.ndarray:
        """A copy."""
        return array.copy()

    get = put

    def compile(self, function: Callable[..., None], loop: Any) -> Launch:
        """By the compiler of all other loops; what plays no world is compiled once for all of them."""
        if "PLAY" not in function.__code__.co_names:
            alike = specialise(function)
            return lambda constants, *arguments: alike((), *arguments[:-1], 0, arguments[-1])
        work = _emulated(function, loop)
        return lambda *arguments: work(*arguments[:-1], 0, arguments[-1])

    def compile_group(self, loop: Any, memory: GroupMemory, threads: int) -> Launch:
        """One thread goes through each phase for all of a group."""
        work, order = _emulated(play_groups, loop), (threads - 1, -1, -1) if self.backwards else (0, threads, 1)
        for array in memory:
            array.view(np.uint8)[...] = 77  # which nobody should rely on
        return lambda *arguments: work(*arguments[:-1], 0, arguments[-1], memory, *order)
