"""The learner with tables in a Gymnasium environment: one compiled call per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core import rng
from multiadvisor.core.aggregations import SELECTIONS
from multiadvisor.core.compiling import entry, specialise
from multiadvisor.core.validation import Arrays, array, require, whole
from multiadvisor.envs.segment import Segment
from multiadvisor.envs.stepping import LONGEST_EPISODE, endless
from multiadvisor.errors import BadInput
from multiadvisor.learners.protocol import EpisodeReturns, Exploration, not_finite
from multiadvisor.learners.tabular import kernel, records
from multiadvisor.learners.tabular.compiled_learner import Tables, check_clock, grown, made_committee, shared_advisors
from multiadvisor.learners.tabular.rules import gpi
from multiadvisor.learners.tabular.rules.arbitration import needs_of, only_in_control
from multiadvisor.learners.tabular.rules.mapped import is_mapped
from multiadvisor.learners.tabular.rules.update_rules import as_learned, ways_of
from multiadvisor.settings import Settings
from multiadvisor.task import Task, Transition


class _Slots(NamedTuple):
    """What the adapter's kernel is given and remembers between two steps; `kernel` names the rows and entries."""

    whole: np.ndarray  # [ADAPTER_WHOLE, n] int64
    real: np.ndarray  # [ADAPTER_REAL, n]
    aggregator: np.ndarray  # [3, A] preferences and scratch
    clock: np.ndarray  # [15] int64
    tally: np.ndarray  # [4]


class AdapterLearner(Tables):
    """Learns in a Gymnasium environment."""

    def __init__(self, task: Task, settings: Settings) -> None:
        self._n = task.n  # those who are paid
        task = as_learned(task, settings)
        assert task.adapter is not None
        self.task, self.settings, self.adapter = task, settings, task.adapter.fresh()
        self._lock = task.adapter.lock
        self.made = made_committee(task, settings)
        if is_mapped(task):
            raise BadInput(f"mappings are for compiled worlds, and task {task.name!r} is an environment: drop them")
        if self.made.needs & kernel.NEEDS["target"]:
            raise BadInput(
                f"target policies are valued in compiled worlds, and task {task.name!r} is a Python environment: plan "
                "egocentrically towards a goal, or agnostically"
            )
        self.table, self.weights = np.zeros((max(self.adapter.rows, 64), len(task.actions))), task.weights
        self.plans = gpi.plans_of(task, self.made.aggregator, len(self.table), self.adapter)
        self.counts = np.zeros(self.table.shape if self.made.counting else (1, len(task.actions)))
        ways = ways_of(task, settings, self.made.aggregator)
        voice_of = gpi.planning_voice if len(self.plans.sizes) else kernel.plain_voice
        self._call = specialise(
            kernel.adapter_step, combine=self.made.combine, expect=self.made.expect, voice_of=voice_of, **ways
        )
        self._code: Callable[..., int] | None = None  # of `_call`, once it is needed
        self.key = rng.stream_key(settings.seed, rng.TRAINING)
        self.exploration = Exploration()
        self.slots = self._slots(self.key, learning=True)
        self._aside = self._slots(self.key, learning=False)  # for a look at a state, beside the run
        self.segment = Segment(task.name, settings.seed)

    def _slots(self, key: np.uint64, learning: bool) -> _Slots:
        task, settings, adapter = self.task, self.settings, self.adapter
        made, parts = self.made, len(self.made.codes)
        whole = np.zeros((kernel.ADAPTER_WHOLE, task.n), np.int64)
        real = np.zeros((kernel.ADAPTER_REAL, task.n))
        whole[kernel.POSITION], whole[kernel.ONE], whole[kernel.NOW_ADVISES] = adapter.position, 1, 1
        whole[kernel.VIEW], whole[kernel.SOURCE] = adapter.view_of, adapter.source
        whole[kernel.KIND_OF], whole[kernel.PART_OF] = made.kinds, made.aggregator.of
        whole[kernel.CODES, :parts], whole[kernel.ENDS, :parts] = made.codes, made.ends
        real[kernel.WEIGHT_OF], real[kernel.GAMMA_OF] = task.weights, task.gammas(settings.gamma)
        real[kernel.ALPHA_OF], real[kernel.PARAMETERS, :parts] = task.alphas(settings.alpha), made.parameters
        clock, tally = np.zeros(15, np.int64), np.zeros(4)
        clock[kernel.FRESH], clock[kernel.LEARNING], clock[kernel.PARTS] = 1, int(learning), parts
        clock[kernel.KIND], clock[kernel.NEEDED] = made.kind, made.needs
        clock[kernel.KEY], clock[kernel.HALF] = key.astype(np.int64), settings.alpha_half
        clock[kernel.SHARED], clock[kernel.COOLING] = shared_advisors(task), settings.epsilon_half
        if learning:
            tally[kernel.EPSILON], tally[kernel.SIGMA] = settings.epsilon, settings.noise
        return _Slots(whole, real, np.zeros((3, len(task.actions))), clock, tally)

    @property
    def clock(self) -> np.ndarray:
        """Steps, episodes, steps of this episode, and whether a new one is due, first of all."""
        return self.slots.clock

    @property
    def tally(self) -> np.ndarray:
        """The score of this episode, and of all episodes before it, first of all."""
        return self.slots.tally

    def _step(self, slots: _Slots) -> Callable[[int], int]:
        """The compiled call, with all that stays the same bound to it."""
        adapter = self.adapter
        whole, real, _, clock, tally = slots
        firsts, signals, aggregator = adapter.firsts, adapter.signals, self._room(slots)
        if self._code is None:
            fixed = (whole, real, aggregator, firsts, signals, clock, tally)
            self._code = entry(self._call, self.table, self.counts, *fixed, kernel.WENT_ON)
        call = self._code
        adapter.bind(whole[kernel.NOW_ACTIVE], whole[kernel.NOW_ADVISES], whole[kernel.HAS_ENDED])

        def step(event: int) -> int:
            if adapter.rows > len(self.table):
                self._grow()
            action = call(self.table, self.counts, whole, real, aggregator, firsts, signals, clock, tally, event)
            if action < 0:
                raise not_finite(self.task.advisors[-1 - action])
            return action

        def step_with_plans(event: int) -> int:
            nonlocal aggregator
            if adapter.rows > len(self.table):
                self._grow()
            aggregator = self._room(slots)
            return step(event)

        return step_with_plans if len(self.plans.sizes) else step

    def _room(self, slots: _Slots) -> Any:
        """What the compiled call works in: with plans, those as well."""
        return (slots.aggregator, self.plans) if len(self.plans.sizes) else slots.aggregator

    def _grow(self) -> None:
        rows = max(self.adapter.rows, 2 * len(self.table))
        self.plans = gpi.grown_plans(self.task, self.plans, rows)  # first, as it may refuse
        self.table = grown(self.table, rows)
        if self.made.counting:
            self.counts = grown(self.counts, rows)

    @property
    def _offset(self) -> np.ndarray:
        return self.adapter.position

    def _deal(self, step: Callable[[int], int]) -> int:
        """Start the next training episode."""
        self.adapter.reset(self.segment.next_seed(int(self.clock[kernel.STEP])))
        return step(kernel.DEAL)

    def _return(self, step: Callable[[int], int]) -> None:
        """Play the current segment again up to where it was."""
        over = self.segment.play_again(self.adapter.reset, self.adapter.step)
        if over != bool(self.clock[kernel.FRESH]):
            raise self.segment.not_reproducible()
        if not over:
            step(kernel.RETURN)

    def prepare(self) -> None:
        """Compile, where that has not been done."""
        self._step(self._aside)

    def run(self, steps: int) -> None:
        """Play and learn for this many steps."""
        with self._lock as lock:
            step = self._step(self.slots)
            if lock.user is not self and self.segment.actions:
                self._return(step)
            lock.user = self
            self._run(step, steps)

    def _run(self, step: Callable[[int], int], steps: int) -> None:
        env_step, trail = self.adapter.step, self.segment.actions
        action = -1 if self.clock[kernel.FRESH] else int(self.clock[kernel.ACTION])
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
                    following = step(kernel.WENT_ON)
                    trail.append(action)
                    action = following
        except BaseException:
            self._lock.user = None  # nobody knows where the environment is
            if not self.clock[kernel.EPISODE_STEP]:  # the episode was only begun: it is begun once more
                self.clock[kernel.FRESH], self.clock[kernel.HELD] = 1, 0
            raise
        self._refuse_infinite()

    # ---- episodes that somebody else plays ---------------------------------------------------------------------------
    def _total(self, state: Any) -> np.ndarray:
        step = self._step(self._aside)
        self.adapter.look(state)
        step(kernel.RETURN)
        return self._aside.aggregator[0]

    def observe(self, transition: Transition, following: int | None) -> None:
        """Learn from a transition that somebody else played; the run's own episode, if one was going on, is given
        up."""
        over = transition.terminated or transition.truncated
        if self.made.needs & kernel.NEEDS["taken"] and following is None and not over:
            what = "aggregation" if needs_of(self.settings.aggregation) else "planning"
            raise BadInput(
                f"{what} {getattr(self.settings, what)!r} learns from the action taken next: give next_action, or "
                f"choose another {what}"
            )
        with self._lock:
            self._give_up()
            try:
                self._observe(transition, following)
            finally:  # whatever comes next: no episode of the run's own is going on
                self.segment.begin(int(self.clock[kernel.STEP]))
                self.clock[kernel.FRESH], self.clock[kernel.HELD] = 1, 0
            if over:
                self.clock[kernel.EPISODE_STEP], self.tally[kernel.EPISODE_SCORE] = 0, 0.0

    def _give_up(self) -> None:
        if self.segment.actions or not self.clock[kernel.FRESH]:
            self.clock[kernel.EPISODE_STEP], self.tally[kernel.EPISODE_SCORE] = 0, 0.0

    def _observe(self, transition: Transition, following: int | None) -> None:
        adapter, clock, step = self.adapter, self.clock, self._step(self.slots)
        adapter.arrive(transition.observation)
        step(kernel.RETURN)
        rows = records.Slots(*self.slots.whole[: records.WHOLE_SLOTS], *self.slots.real[: records.REAL_SLOTS]).rows
        learned = rows[: clock[kernel.ACTIVE]].copy()
        clock[kernel.ACTION] = transition.action - adapter.first_action
        adapter.check_reward(transition.reward)
        terminated, truncated = adapter.step(int(clock[kernel.ACTION]), (
            transition.next_observation, transition.reward, transition.terminated, transition.truncated,
            transition.info,
        ))  # fmt: skip
        if following is not None and self.made.needs & kernel.NEEDS["taken"]:
            clock[kernel.HELD] = following + 1
        step(kernel.TERMINATED if terminated else kernel.TRUNCATED if truncated else kernel.WENT_ON)
        self._refuse_infinite(learned)

    # ---- playing without learning ------------------------------------------------------------------------------------
    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Play greedily without learning; the run goes on afterwards as if nothing had happened."""
        with self._lock as lock:
            lock.user = None
            return self._evaluate(episodes, seed)

    def _evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        adapter, n = self.adapter, self._n
        played = EpisodeReturns(
            np.zeros(episodes), np.zeros(episodes, np.int64), np.zeros(episodes, np.int64), np.zeros((episodes, n))
        )
        slots = self._slots(rng.stream_key(self.settings.seed, rng.EVALUATION, seed), learning=False)
        step = self._step(slots)
        for episode in range(episodes):
            adapter.reset(rng.evaluation_seed(self.settings.seed, seed, episode))
            slots.real[kernel.RETURNS] = 0.0
            action, over = step(kernel.DEAL), False
            while not over:
                terminated, truncated = adapter.step(action)
                over = terminated or truncated
                action = step(kernel.TERMINATED if terminated else kernel.TRUNCATED if truncated else kernel.WENT_ON)
                if slots.clock[kernel.EPISODE_STEP] > LONGEST_EPISODE:
                    raise endless(self.task.name)
            played.score[episode], played.length[episode] = (
                slots.tally[kernel.EPISODE_SCORE],
                slots.clock[kernel.EPISODE_STEP],
            )
            played.terminated[episode], played.returns[episode] = int(terminated), slots.real[kernel.RETURNS, :n]
        return played

    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The active advisors [m] and their rows [m] for an observation."""
        adapter = self.adapter
        active, speaking = np.zeros(self.task.n, np.int64), np.ones(self.task.n, np.int64)
        adapter.bind(active, speaking, np.zeros(self.task.n, np.int64))
        adapter.look(state)
        if adapter.rows > len(self.table):
            self._grow()
        selection = self.settings.aggregation if self.settings.aggregation in SELECTIONS else None
        advisors = np.flatnonzero(active & speaking if selection is None else active)
        rows = adapter.firsts[adapter.view_of[advisors]] + adapter.position[advisors]
        if selection is None:
            return advisors, rows
        voice = self.weights[advisors] * speaking[advisors]
        heard = only_in_control(selection, self.table, advisors, rows, voice, self._n)
        return advisors[heard], rows[heard]

    def values(self, j: int) -> np.ndarray:
        """Q_j of one advisor: one row for each local state, in order, or in the order they were met."""
        view = self.adapter.views[self.adapter.view_of[j]]
        firsts = np.array(
            list(view.seen.values()) if view.states is None else view.first + view.width * np.arange(view.states),
            np.int64,
        )
        return self.table[firsts + self.adapter.position[j]]

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything the run is made of; what is no array travels as JSON."""
        counted = self.adapter.counted()
        counts = {"counts": self.counts[: self.adapter.rows]} if self.made.counting else {}
        if len(self.plans.sizes):
            counts["plans"] = self.plans.table[: self.adapter.rows]
        return {
            "table": self.table[: self.adapter.rows], "clock": self.slots.clock, "tally": self.slots.tally, **counts,
            "seeded_at": np.array([self.segment.seeded_at], np.int64),
            "trail": np.array(self.segment.actions, np.int64), "counted": np.frombuffer(counted, np.uint8),
            **self.exploration.tensors(self.steps),
        }  # fmt: skip

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""
        own, actions = self.slots, self.table.shape[1]
        clock = array(tensors, "clock", own.clock.shape, np.int64)
        tally = array(tensors, "tally", own.tally.shape, np.float64)
        table = array(tensors, "table", (None, actions), np.float64)
        trail = whole(tensors, "trail", (None,), 0, actions)
        seeded_at = whole(tensors, "seeded_at", (1,))
        check_clock(clock, -1, actions)
        require((clock[kernel.SHARED :] == own.clock[kernel.SHARED :]).all(), "clock")  # the settings
        require((tally[kernel.EPSILON :] == own.tally[kernel.EPSILON :]).all(), "tally")
        require(0 <= clock[kernel.ACTION] < actions and 0 <= clock[kernel.ACTIVE] <= self.task.n, "clock")
        require(seeded_at[0] + len(trail) == clock[kernel.STEP] and (len(trail) or clock[kernel.FRESH]), "trail")
        if self.made.counting:
            self.counts = np.array(array(tensors, "counts", table.shape, np.float64))
            require((self.counts >= 0).all(), "counts")
        if len(self.plans.sizes):
            shape = (len(table), *self.plans.table.shape[1:])
            self.plans = self.plans._replace(table=np.array(array(tensors, "plans", shape, np.float64)))
        self.adapter.recount(array(tensors, "counted", (None,), np.uint8).tobytes(), len(table))
        own.clock[:], own.tally[:] = clock, tally
        self.table, self.segment.seeded_at, self.segment.actions = np.array(table), int(seeded_at[0]), trail.tolist()
        self._refuse_infinite()
        self.exploration.restore(tensors, self.steps)
