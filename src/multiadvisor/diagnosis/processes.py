"""Rows that several processes work out, each its part of what is asked: copies of this one, as no policy is pickled."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import pairwise
from typing import Any

import numpy as np

from multiadvisor.errors import BadInput

Work = Callable[[Sequence[Any]], Iterator[np.ndarray]]
"""From some of what is asked, in order, to a row of numbers for each."""
_PARTS = 8  # of what is asked, for each process
_copied: list[Work] = []  # what a copy of this process does


def refusal() -> str:
    """Why this process cannot be copied; empty where it can."""
    if not hasattr(os, "fork"):
        return "this system cannot copy a process"
    return "JAX is loaded, which does not survive the copying of its process" if "jax" in sys.modules else ""


def rows_of(work: Work, asked: Sequence[Any], workers: int, stopped: Callable[[], bool]) -> Iterator[np.ndarray]:
    """A row for each that is asked, as they come, unless somebody asks to stop."""
    if workers <= 1:
        for row in work(asked):
            yield row
            if stopped():
                return
        return
    edges = np.linspace(0, len(asked), workers * _PARTS + 1).astype(int)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _begin, (work,)) as pool:
        parts = [pool.submit(_part, asked[first:last]) for first, last in pairwise(edges)]
        try:
            for part in as_completed(parts):
                if stopped():
                    return
                yield from part.result()
        except BrokenProcessPool as error:
            raise BadInput("a process that branched ended on its own: leave --workers out") from error
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(work: Work) -> None:
    _copied.append(work)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)  # its threads were not copied


def _part(asked: Sequence[Any]) -> list[np.ndarray]:
    try:
        return list(_copied[0](asked))
    except BadInput:
        raise
    except Exception as error:  # whatever a stranger's environment or policy may raise
        raise BadInput(f"{type(error).__name__} in a branch: {error}") from error
