"""Runs that learn in one launch: the arrays of their lanes, and where these run.

That is a `Device`, such as a GPU (`runs/engines/cuda_device.py`); the tests emulate one on the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from multiadvisor.core import rng
from multiadvisor.envs.step import LONGEST_EPISODE
from multiadvisor.errors import BadInput
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.learners.tabular import records
from multiadvisor.learners.tabular.compiled_learner import CompiledLearner
from multiadvisor.learners.tabular.lanes import Lanes, Play, check_lanes, clear_lanes, play_lanes, start_lanes
from multiadvisor.learners.tabular.thread_groups import GroupMemory, group_loop, memory_of, threads_for

_PIECE_SECONDS = 0.25  # about what a launch takes: so often can it be stopped, and tells how far it is


# ---- where they run --------------------------------------------------------------------------------------------------
Launch = Callable[[Any, Lanes, Play, int, int], None]
"""(constants, lanes, play, steps, how many lanes)."""


class Device(Protocol):
    """Where arrays lie and lanes run."""

    def free(self) -> int:
        """Bytes of memory."""

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
        """An array whose values nobody knows."""

    def put(self, array: np.ndarray) -> Any:
        """A copy there."""

    def get(self, array: Any) -> np.ndarray:
        """A copy here."""

    def compile(self, function: Callable[..., None], loop: Any) -> Launch:
        """One of the functions of `lanes` with a learner's loop, for all lanes."""

    def compile_group(self, loop: Any, memory: GroupMemory, threads: int) -> Launch:
        """A `group_loop`, for all lanes, with so many threads each."""


# ---- runs that share launches ----------------------------------------------------------------------------------------
def lane_learner(agent: Any) -> CompiledLearner:
    """The learner of an agent whose run lanes can take, or an error that says why they cannot."""
    task, settings, learner = agent.task, agent.settings, agent._learner
    if task.world is None:
        raise BadInput(f"task {task.name!r} is a Python environment, and lanes are for compiled worlds")
    if not isinstance(learner, CompiledLearner) or len(learner.extra) > 0:
        what = settings.aggregation if settings.learner_settings.name == "tabular" else settings.learner_settings.name
        raise BadInput(f"{what!r} learns something besides the advisors' tables, which lanes have no room for")
    return learner


def company(learner: CompiledLearner) -> tuple[Any, ...]:
    """What runs of one world must have in common to share a launch: the compiled loop, and the shapes."""
    arrays = (learner.table, learner.counts, learner._policies, learner.made.codes)
    return (learner._loop, *(array.shape for array in arrays))


def bytes_of_run(learner: CompiledLearner, episodes: int) -> int:
    """The memory of one lane, which plays so many episodes in an evaluation."""
    n, actions = learner.task.n, learner.table.shape[1]
    own = sum(array.nbytes for array in (learner.table, learner.counts, learner._policies, *learner.committee))
    slots = 8 * (n * (records.INTEGERS + records.REALS) + 3 * actions + learner.x.size) + 256
    return int(own + 2 * slots + 8 * (n + episodes * (n + 3)))


class LaneBatch:
    """Runs that learn side by side, from their beginning on; they keep `company`.

    Each is played by a group of `threads`, as many as suit their number where nothing is said, or by one alone, which
    takes what a group does not. `dtype` is that of the tables.
    """

    def __init__(
        self, learners: Sequence[CompiledLearner], episodes: int, device: Device, threads: int | None = None,
        dtype: Any = np.float64,
    ) -> None:  # fmt: skip
        first = learners[0]
        assert first.task.world is not None
        self.learners, self.device, self.lanes = learners, device, len(learners)
        self._constants = self._put(first.task.world.constants)
        table, counts = ((self.lanes, *array.shape) for array in (first.table, first.counts))
        own = [(one._policies, *one.committee, one.made.codes, one.made.ends, one.made.parameters) for one in learners]
        stacked = [device.put(np.stack(arrays)) for arrays in zip(*own, strict=True)]
        finite = device.empty((self.lanes,), np.int64)
        self._runs = Lanes._make([device.empty(table, dtype), device.empty(counts), *stacked, finite])
        self._learning = self._play([one.key for one in learners], 0, learning=True)
        self._evaluation = self._play([one.key for one in learners], episodes, learning=False)
        # bound for all of them, so that the machine code of each is kept by world: processes may compile side by side
        self._start, self._check, self._clear = (
            device.compile(one, first._loop) for one in (start_lanes, check_lanes, clear_lanes)
        )
        threads = threads_for(self.lanes, first, dtype) if threads is None else threads
        loop = group_loop(first, threads, dtype) if threads > 1 else None
        self.threads = threads if loop is not None else 1
        self._play_on = (
            device.compile(play_lanes, first._loop) if loop is None
            else device.compile_group(loop, memory_of(first, dtype), threads)
        )  # fmt: skip
        self._launch(self._clear, self._learning)
        self._launch(self._start, self._learning)

    def _launch(self, function: Launch, play: Play, steps: int = 0) -> None:
        function(self._constants, self._runs, play, steps, self.lanes)

    def _put(self, value: Any) -> Any:
        """What the world is made of there; a number is passed as it is."""
        if isinstance(value, tuple):
            parts = [self._put(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return self.device.put(value) if isinstance(value, np.ndarray) else value

    def _play(self, keys: Sequence[Any], episodes: int, learning: bool) -> Play:
        """Room to learn, or to play so many episodes."""
        first, device = self.learners[0], self.device
        n, actions = first.task.n, first.table.shape[1]

        def empty(*shape: int, dtype: Any = np.float64) -> Any:
            return device.empty((self.lanes, *shape), dtype)

        return Play(
            empty(first.x.size, dtype=np.int64), empty(dtype=records.PROGRESS),
            device.put(self._settings(keys, learning)), empty(records.INTEGERS, n, dtype=np.int64),
            empty(records.REALS, n), empty(3, actions), empty(episodes), empty(episodes, dtype=np.int64),
            empty(episodes, dtype=np.int64), empty(max(episodes, 1), n),
        )  # fmt: skip

    def _settings(self, keys: Sequence[Any], learning: bool) -> np.ndarray:
        """[N] RUN."""
        rows = [
            (*one._workspace(one.progress, key, learning).run, len(one.made.codes))
            for one, key in zip(self.learners, keys, strict=True)
        ]
        return np.array(rows, records.RUN)

    def run(self, steps: int) -> Iterator[None]:
        """Learn for so many steps; a pause after each launch."""
        yield from self._pieces(self._learning, steps)

    def evaluate(self, seed: int) -> Iterator[None]:
        """Play greedily without learning: `played` has the episodes; a pause after each launch."""
        keys = [rng.stream_key(one.settings.seed, rng.EVALUATION, seed) for one in self.learners]
        episodes, first = self._evaluation.score.shape[1], self.learners[0]
        self._evaluation = self._evaluation._replace(run=self.device.put(self._settings(keys, learning=False)))
        self._launch(self._start, self._evaluation)
        limit = first._limit if first._limit > 0 else LONGEST_EPISODE
        yield from self._pieces(self._evaluation, episodes * limit)

    def played(self) -> list[EpisodeReturns | BadInput]:
        """The episodes of the last evaluation, for each run; an error where they did not end."""
        names = ("score", "length", "terminated", "returns", "progress")
        score, length, terminated, returns, progress = (self.device.get(getattr(self._evaluation, n)) for n in names)
        return [
            EpisodeReturns(score[lane], length[lane], terminated[lane], returns[lane, :, : one._n])
            if progress["episodes"][lane] >= score.shape[1]
            else BadInput(f"greedy play did not end {score.shape[1]} episodes of {one.task.name!r}: give it a limit")
            for lane, one in enumerate(self.learners)
        ]

    def _pieces(self, play: Play, steps: int) -> Iterator[None]:
        """As many steps at a time as make a launch of about a quarter of a second."""
        piece, evaluating = 100, play.score.shape[1] > 0
        while steps > 0:
            size, start = min(piece, steps), time.perf_counter()
            self._launch(self._play_on, play, size)
            progress = self.device.get(play.progress)  # which waits for it
            if time.perf_counter() - start < _PIECE_SECONDS:
                piece *= 2
            steps -= size
            yield
            if evaluating and (progress["episodes"] >= play.score.shape[1]).all():
                return

    def infinite(self) -> list[int]:
        """The lanes in which something that was learned is not finite."""
        self._launch(self._check, self._learning)
        return np.flatnonzero(self.device.get(self._runs.finite) == 0).tolist()

    def take_back(self, lane: int) -> CompiledLearner:
        """The learner of one lane, with what it has learned; it can go on alone. An error where it is not finite."""
        learner = self.learners[lane]
        learner.table[...] = self.device.get(self._runs.table[lane])
        learner.counts[...] = self.device.get(self._runs.counts[lane])
        learner.x[...] = self.device.get(self._learning.x[lane])
        learner.progress[0] = self.device.get(self._learning.progress)[lane]
        learner._refuse_infinite()
        return learner
