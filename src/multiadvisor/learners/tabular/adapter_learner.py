"""The learner with tables in a Gymnasium environment: one compiled call per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from multiadvisor.core import rng
from multiadvisor.core.compiling import entry, specialise
from multiadvisor.core.plannings import TAKEN
from multiadvisor.core.validation import Arrays, Shapes, array, require, whole
from multiadvisor.envs.python_env import Segment
from multiadvisor.envs.step import LONGEST_EPISODE, endless
from multiadvisor.errors import BadInput
from multiadvisor.learners.protocol import EpisodeReturns, not_finite
from multiadvisor.learners.tabular import kernel, records
from multiadvisor.learners.tabular.compiled_learner import (
    CompiledLearner,
    Tables,
    grown,
    progress_tensors,
    restored_progress,
)
from multiadvisor.learners.tabular.rules.mapped import is_mapped
from multiadvisor.learners.tabular.rules.update_rules import (
    extra_of,
    extra_table,
)
from multiadvisor.settings import Settings
from multiadvisor.task import Task, Transition


class AdapterLearner(Tables):
    """Learns in a Gymnasium environment."""

    def __init__(self, task: Task, settings: Settings) -> None:
        super().__init__(task, settings)
        task = self.task
        assert task.adapter is not None
        self.adapter, self._lock = task.adapter.fresh(), task.adapter.lock
        if is_mapped(task):
            raise BadInput(f"mappings are for compiled worlds, and task {task.name!r} is an environment: drop them")
        if self.made.needs & kernel.NEEDS["target"]:
            raise BadInput(
                f"target policies are valued in compiled worlds, and task {task.name!r} is a Python environment: plan "
                "egocentrically towards a goal, or agnostically"
            )
        self.table = np.zeros((max(self.adapter.rows, 64), len(task.actions)))
        self.extra = extra_of(task, settings, self.made.aggregator, len(self.table), self.adapter)
        self.counts = np.zeros(self.table.shape if self.made.counting else (1, len(task.actions)))
        self._call = specialise(kernel.adapter_step, RULE=self.made.rule)
        self._code: Callable[..., int] | None = None  # of `_call`, once it is needed
        self.arrays = self._new_arrays(self.key, learning=True)
        self.progress, self.offset = self.arrays.progress, self.adapter.position
        self._aside = self._new_arrays(self.key, learning=False)  # for a look at a state, beside the run
        self.segment = Segment(task.name, settings.seed)

    def _new_arrays(self, key: np.uint64, learning: bool) -> records.AdapterArrays:
        """What the compiled step is given and remembers between two steps."""
        task, adapter, made = self.task, self.adapter, self.made
        parts, actions = len(made.codes), len(task.actions)
        integers = np.zeros((records.ADAPTER_INTEGERS, task.n), np.int64)
        reals, room = np.zeros((records.ADAPTER_REALS, task.n)), np.zeros((3, actions))
        packed = records.unpack_committee.py_func(integers, reals)
        for row, values in zip(packed, self._committee(adapter.position, np.ones_like(adapter.position)), strict=True):
            row[:] = values
        events = records.unpack_events.py_func(integers, reals)
        events.phi[:], events.source[:], events.advises[:] = adapter.view_of, adapter.source, 1
        aggregator = records.unpack_parts.py_func(integers, reals, room, parts)
        aggregator.code[:], aggregator.ends[:], aggregator.parameter[:] = made.codes, made.ends, made.parameters
        run = np.array([(*self._run_record(key, -1, learning), parts)], records.RUN)
        return records.AdapterArrays(
            integers, reals, room, records.new_progress(), run, adapter.firsts, adapter.signals
        )

    @property
    def _values(self) -> records.Values:
        return records.Values(self.table, self.counts, self.counts, self.extra)

    def _step(self, arrays: records.AdapterArrays) -> Callable[[int], int]:
        """The compiled call, with all that stays the same bound to it."""
        adapter, values = self.adapter, self._values
        if self._code is None:
            try:
                self._code = entry(self._call, values, arrays, kernel.CONTINUED)
            except NumbaError as error:
                raise self._not_compiled(error) from None
        call = self._code
        events = records.unpack_events.py_func(arrays.integers, arrays.reals)
        adapter.bind(events.active, events.advises, events.ended)

        def step(event: int) -> int:
            nonlocal values
            if adapter.rows > len(self.table):
                self._grow()
            if values.table is not self.table:
                values = self._values
            action = call(values, arrays, event)
            if action < 0:
                raise not_finite(self.task.names[-1 - action])
            return action

        return step

    def _grow(self) -> None:
        rows = max(self.adapter.rows, 2 * len(self.table))
        if (extra := extra_table(self.extra)) is not None:  # first, as it may refuse
            self._extend(grown(extra, rows))
        self.table = grown(self.table, rows)
        if self.made.counting:
            self.counts = grown(self.counts, rows)

    def _extend(self, table: np.ndarray) -> None:
        """Let what is learned besides be this table."""
        if (learned := self.aggregator.learned) is not None:
            learned.check_size(self.task, table.size)
        self.extra = self.extra._replace(table=table)

    def _deal(self, step: Callable[[int], int]) -> int:
        """Start the next training episode."""
        self.adapter.reset(self.segment.next_seed(self.steps))
        return step(kernel.RESET)

    def _return(self, step: Callable[[int], int]) -> None:
        """Play the current segment again up to where it was."""
        over = self.segment.play_again(self.adapter.reset, self.adapter.step)
        if over != bool(self.progress["fresh"][0]):
            raise self.segment.not_reproducible()
        if not over:
            step(kernel.RETURN)

    def prepare(self) -> None:
        """Compile, where that has not been done."""
        self._step(self._aside)

    def run(self, steps: int) -> None:
        """Play and learn for this many steps."""
        with self._lock as lock:
            step = self._step(self.arrays)
            if lock.user is not self and self.segment.actions:
                self._return(step)
            lock.user = self
            self._run(step, steps)

    def _run(self, step: Callable[[int], int], steps: int) -> None:
        env_step, trail = self.adapter.step, self.segment.actions
        progress = self.progress[0]
        action = -1 if progress["fresh"] else int(progress["action"])
        try:
            for _ in range(steps):
                if action < 0:
                    action = self._deal(step)
                terminated, truncated = env_step(action)
                if terminated or truncated:
                    step(kernel.TERMINATED if terminated else kernel.TRUNCATED)
                    trail.append(action)  # only now: a step that failed on the way is no part of the run
                    action = -1
                else:
                    following = step(kernel.CONTINUED)
                    trail.append(action)
                    action = following
        except BaseException:
            self._lock.user = None  # nobody knows where the environment is
            if not progress["episode_step"]:  # the episode was only begun: it is begun once more
                progress["fresh"], progress["held"] = 1, 0
            raise
        self._refuse_infinite()

    # ---- episodes that somebody else plays ---------------------------------------------------------------------------
    def _total(self, state: Any) -> np.ndarray:
        step = self._step(self._aside)
        self.adapter.look(state)
        step(kernel.RETURN)
        found: np.ndarray = self._aside.room[0]
        return found

    def observe(self, transition: Transition, following: int | None) -> None:
        """Learn from a transition that somebody else played; the run's own episode, if one was going on, is given
        up."""
        over = transition.terminated or transition.truncated
        if self.made.needs & kernel.NEEDS["taken"] and following is None and not over:
            learned = self.aggregator.learned
            what = "aggregation" if learned is not None and TAKEN in learned.needs else "planning"
            raise BadInput(
                f"{what} {getattr(self.settings, what)!r} learns from the action taken next: give next_action, or "
                f"choose another {what}"
            )
        with self._lock:
            if self.segment.actions or not self.progress["fresh"][0]:
                self._forget_episode()
            try:
                self._observe(transition, following)
            finally:  # whatever comes next: no episode of the run's own is going on
                self.segment.begin(self.steps)
                self.progress["fresh"], self.progress["held"] = 1, 0
            if over:
                self._forget_episode()

    def _forget_episode(self) -> None:
        self.progress["episode_step"], self.progress["episode_score"] = 0, 0.0

    def _observe(self, transition: Transition, following: int | None) -> None:
        adapter, progress, step = self.adapter, self.progress[0], self._step(self.arrays)
        adapter.arrive(transition.observation)
        step(kernel.RETURN)
        slots = records.unpack_slots.py_func(self.arrays.integers, self.arrays.reals)
        learned = slots.rows[: progress["active"]].copy()
        progress["action"] = transition.action - adapter.first_action
        adapter.check_reward(transition.reward)
        terminated, truncated = adapter.step(int(progress["action"]), (
            transition.next_observation, transition.reward, transition.terminated, transition.truncated,
            transition.info,
        ))  # fmt: skip
        if following is not None and self.made.needs & kernel.NEEDS["taken"]:
            progress["held"] = following + 1
        step(kernel.TERMINATED if terminated else kernel.TRUNCATED if truncated else kernel.CONTINUED)
        self._refuse_infinite(learned)

    # ---- playing without learning ------------------------------------------------------------------------------------
    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Play greedily without learning; the run goes on afterwards as if nothing had happened."""
        with self._lock as lock:
            lock.user = None
            return self._evaluate(episodes, seed)

    def _evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        adapter, n = self.adapter, self._n
        played = EpisodeReturns.zeros(episodes, n)
        arrays = self._new_arrays(rng.stream_key(self.settings.seed, rng.EVALUATION, seed), learning=False)
        step, progress = self._step(arrays), arrays.progress[0]
        returns = records.unpack_events.py_func(arrays.integers, arrays.reals).returns
        for episode in range(episodes):
            adapter.reset(rng.evaluation_seed(self.settings.seed, seed, episode))
            returns[:] = 0.0
            action, over = step(kernel.RESET), False
            while not over:
                terminated, truncated = adapter.step(action)
                over = terminated or truncated
                action = step(kernel.TERMINATED if terminated else kernel.TRUNCATED if truncated else kernel.CONTINUED)
                if progress["episode_step"] > LONGEST_EPISODE:
                    raise endless(self.task.name)
            played.score[episode], played.length[episode] = progress["episode_score"], progress["episode_step"]
            played.terminated[episode], played.returns[episode] = int(terminated), returns[:n]
        return played

    def _active(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        adapter = self.adapter
        active, advises = np.zeros(self.task.n, np.int64), np.ones(self.task.n, np.int64)
        adapter.bind(active, advises, np.zeros(self.task.n, np.int64))
        adapter.look(state)
        if adapter.rows > len(self.table):
            self._grow()
        advisors = np.flatnonzero(active)
        rows = adapter.firsts[adapter.view_of[advisors]] + adapter.position[advisors]
        return advisors, rows, advises[advisors] == 1

    def values(self, j: int) -> np.ndarray:
        """Q_j of one advisor: one row for each local state, in order, or in the order they were met."""
        view = self.adapter.views[self.adapter.view_of[j]]
        firsts = np.array(
            list(view.seen.values()) if view.states is None else view.first + view.width * np.arange(view.states),
            np.int64,
        )
        found: np.ndarray = self.table[firsts + self.adapter.position[j]]
        return found

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything the run is made of; what is no array travels as JSON."""
        counted = self.adapter.counted()
        by_row: Arrays = {"counts": self.counts[: self.adapter.rows]} if self.made.counting else {}
        if (extra := extra_table(self.extra)) is not None:
            by_row["extra"] = extra[: self.adapter.rows]
        return {
            "table": self.table[: self.adapter.rows], **progress_tensors(self.progress), **by_row,
            "seeded_at": np.array([self.segment.seeded_at], np.int64),
            "trail": np.array(self.segment.actions, np.int64), "counted": np.frombuffer(counted, np.uint8),
            **self.exploration.tensors(self.steps),
        }  # fmt: skip

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""
        actions = self.table.shape[1]
        progress = restored_progress(tensors, -1, actions)
        table = array(tensors, "table", (None, actions), np.float64)
        trail = whole(tensors, "trail", (None,), 0, actions)
        seeded_at = whole(tensors, "seeded_at", (1,))
        require(progress["active"][0] <= self.task.n, "counters")
        steps, fresh = progress["step"][0], progress["fresh"][0]
        require(seeded_at[0] + len(trail) == steps and (len(trail) or fresh), "trail")
        if self.made.counting:
            self.counts = np.array(array(tensors, "counts", table.shape, np.float64))
            require((self.counts >= 0).all(), "counts")
        if (extra := extra_table(self.extra)) is not None:
            found = array(tensors, "extra", (len(table), *extra.shape[1:]), np.float64)
            self._extend(np.array(found))
        self.adapter.recount(array(tensors, "counted", (None,), np.uint8).tobytes(), len(table))
        self.progress[:] = progress
        self.table, self.segment.seeded_at, self.segment.actions = np.array(table), int(seeded_at[0]), trail.tolist()
        self._refuse_infinite()
        self.exploration.restore(tensors, self.steps)


def tabular_learner(task: Task, settings: Settings, saved: Shapes | None = None) -> Tables:
    """Tables in a compiled world, or in a Python environment."""
    return AdapterLearner(task, settings) if task.world is None else CompiledLearner(task, settings)
