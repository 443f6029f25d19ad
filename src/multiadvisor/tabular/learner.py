"""The compiled learner with its memory: one class for compiled worlds, one for Python environments.

Both hold everything a run is made of in plain arrays, so that it can be cut anywhere, saved, and taken up again with
the same bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from multiadvisor import draws
from multiadvisor.committee import Voices, plannings_of, voices_of
from multiadvisor.compiling import first_use, specialise
from multiadvisor.errors import BadInput
from multiadvisor.restored import MOST_TURNS, Arrays, array, require, whole
from multiadvisor.settings import Settings
from multiadvisor.tabular import kernel, linear, switch
from multiadvisor.task import Focus, Task

_LONGEST_GAME = 1_000_000  # an evaluation gives up on a game that takes longer


class Played(NamedTuple):
    """Games of an evaluation."""

    score: np.ndarray  # [games]
    turns: np.ndarray  # [games]
    finished: np.ndarray  # [games] 1 where the game terminated, 0 where it was cut off
    returns: np.ndarray  # [games, n] each advisor's sum of rewards, before weights


class Consulted(NamedTuple):
    """The active advisors in one state."""

    names: tuple[str, ...]  # [m]
    advice: np.ndarray  # [m, A]
    weights: np.ndarray  # [m]
    advisors: np.ndarray  # [m] int64 their indices


class _Tables(ABC):
    """What the learners with tables answer alike."""

    task: Task
    table: np.ndarray
    weights: np.ndarray  # [n]
    clock: Any  # [...] int64
    tally: Any  # [...]
    made: Made

    @property
    def voices(self) -> Voices:
        """How the aggregator hears the advisors."""
        return self.made.voices

    @property
    def turns(self) -> int:
        """Transitions learned from."""
        return int(self.clock[kernel.TURN])

    @property
    def games(self) -> int:
        """Games played to their end."""
        return int(self.clock[kernel.GAMES])

    @property
    def advisors(self) -> tuple[Focus, ...]:
        """The task's own."""
        return self.task.foci

    @property
    def score_sum(self) -> float:
        """The scores of those games together."""
        return float(self.tally[kernel.SCORE_SUM])

    @abstractmethod
    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The active advisors [m] and their rows [m] in a state."""

    def _refuse_infinite(self) -> None:
        wrong = ~np.isfinite(self.table)
        if wrong.any():
            raise BadInput(
                f"a value of task {self.task.name!r} is no longer finite (table row {np.argwhere(wrong)[0, 0]}): look "
                "for a reward that is not, or is very large, or choose a gamma below 1"
            )

    def consult(self, state: Any) -> Consulted:
        """The active advisors' advice in one state."""
        advisors, rows = self.rows(state)
        names = self.task.names
        advice = self.table[rows]
        return Consulted(tuple([names[j] for j in advisors.tolist()]), advice, self.weights[advisors], advisors)

    def preferences(self, state: Any) -> np.ndarray:
        """What the aggregator makes of the advice in one state [A]."""
        told = self.consult(state)
        return self.voices.prefer(told.advice, told.weights, told.advisors)


def shared_advisors(task: Task) -> int:
    """How many advisors, the first ones, may share tables: -1 where they are too many, or not the first."""
    sharing = [j for j, focus in enumerate(task.foci) if focus.table is not None]
    if not sharing:
        return 0
    return len(sharing) if sharing == list(range(len(sharing))) and len(sharing) <= 8 else -1


class Made(NamedTuple):
    """A committee in the kernel's terms: codes, and the switches they are codes of."""

    voices: Voices
    kinds: np.ndarray  # [n] int64 the code of each advisor's planning
    kind: int  # the code of all, or MIXED
    needs: int
    counting: bool
    codes: np.ndarray  # [G] int64 the code of each part's aggregation
    ends: np.ndarray  # [G] int64 the first advisor behind each part; -1 where parts are mixed up
    parameters: np.ndarray  # [G]
    expect: Any
    combine: Any


def made_committee(task: Task, settings: Settings) -> Made:
    """Who plans how and is heard how, as the compiled loop has it."""
    plannings, voices = plannings_of(task, settings.planned), voices_of(task, settings.aggregation)
    known, heard = switch.known_to(plannings, tuple(aggregation for aggregation, _ in voices.parts))
    code = {planning: k for k, planning in enumerate(known)}
    kinds = np.array([code[planning] for planning in plannings], np.int64)
    needs = {need for planning in plannings for need in planning.needs}
    return Made(
        voices, kinds, int(kinds[0]) if (kinds == kinds[0]).all() else kernel.MIXED,
        sum(kernel.NEEDS[need] for need in needs), "counts" in needs,
        np.array([heard.index(aggregation) for aggregation, _ in voices.parts], np.int64),
        _ends(voices), np.array([parameter for _, parameter in voices.parts], float),
        switch.expect_switch(known), switch.combine_switch(heard),
    )  # fmt: skip


def _ends(voices: Voices) -> np.ndarray:
    """The first advisor behind each part, where advisors of a part stand side by side; else -1."""
    ends = np.searchsorted(voices.of, np.arange(len(voices.parts)), side="right")
    return ends if (np.diff(voices.of) >= 0).all() else np.full_like(ends, -1)


class CompiledLearner(_Tables):
    """Learns inside a compiled world."""

    def __init__(self, task: Task, settings: Settings) -> None:
        assert task.world is not None
        features = settings.learner == "linear"
        if features:  # a feature of its own for every advisor's local state, as in the paper
            task = replace(task, foci=tuple(replace(focus, table=None) for focus in task.foci))
        self.task, self.settings = task, settings
        world = task.world
        assert world is not None
        layout, actions = task.layout(), len(task.actions)
        self.layout = np.stack([layout.offset, layout.stride])
        self.made = made_committee(task, settings)
        self.committee = kernel.Committee(
            layout.offset, layout.stride, self.made.kinds, self.made.voices.of, task.weights,
            task.gammas(settings.gamma), task.alphas(settings.alpha),
        )  # fmt: skip
        self.weights = self.committee.weight
        self.table = empty_table(task, layout.rows)
        self.counts = np.zeros(self.table.shape if self.made.counting else (1, actions))
        self.x = np.zeros(world.size, np.int64)
        self.clock = np.array([0, 0, 0, 1, 0])
        self.tally = np.zeros(2)
        self.key = draws.stream_key(settings.seed, draws.TRAINING)
        self._limit = -1 if task.limit is None else task.limit
        self._shared = shared_advisors(task)
        self._loop = specialise(
            kernel.play, reset=world.reset, begin=world.begin, local_states=world.local_states, step=world.step,
            speaks=world.speaks or kernel.everybody_speaks, SPEAKS=world.speaks is not None,
            combine=self.made.combine, expect=self.made.expect,
            settle=linear.settle_features if features else kernel.settle_advisors,
            advance=linear.advance_features if features else kernel.advance_advisors,
        )  # fmt: skip
        self._ask = specialise(
            kernel.ask, begin=world.begin, local_states=world.local_states, combine=self.made.combine,
            speaks=world.speaks or kernel.everybody_speaks,
        )  # fmt: skip

    def _play(
        self, x: np.ndarray, clock: np.ndarray, tally: np.ndarray, key: np.uint64, *, turns: int, games: int,
        learning: bool,
    ) -> Played:  # fmt: skip
        task, settings, made = self.task, self.settings, self.made
        assert task.world is not None
        whole, real = np.zeros((kernel.WHOLE_SLOTS, task.n), np.int64), np.zeros((kernel.REAL_SLOTS, task.n))
        run = kernel.Run(
            key, settings.alpha_half, float(settings.epsilon) if learning else 0.0,
            float(settings.noise) if learning else 0.0, self._limit, self._shared, learning, made.kind, made.needs,
        )  # fmt: skip
        returns = np.zeros((max(games, 1), task.n))
        scores, lengths, finished = np.zeros(games), np.zeros(games, np.int64), np.zeros(games, np.int64)
        self._loop(
            task.world.constants, x, self.table, self.counts, whole, real, self.committee, self._voice(), clock, tally,
            run,
            turns, scores, lengths, finished, returns,
        )  # fmt: skip
        return Played(scores, lengths, finished, returns[:games])

    def prepare(self) -> None:
        """Compile, where that has not been done: nothing is played."""
        try:
            with first_use(self._loop):
                self._play(self.x, self.clock, self.tally, self.key, turns=0, games=0, learning=True)
        except NumbaError as error:
            raise self._not_compiled(error) from None

    def _not_compiled(self, error: NumbaError) -> BadInput:
        reason = " ".join(str(error).split())[:200]
        return BadInput(
            f"the world of task {self.task.name!r} cannot be compiled: run check_task on it, which names the "
            f"function ({reason} ...)"
        )

    def run(self, turns: int) -> None:
        """Play and learn for this many turns."""
        self._play(self.x, self.clock, self.tally, self.key, turns=turns, games=0, learning=True)
        self._refuse_infinite()

    def evaluate(self, games: int, seed: int) -> Played:
        """Play greedily without learning; the run itself is not touched."""
        key = draws.stream_key(self.settings.seed, draws.EVALUATION, seed)
        x, clock = np.zeros_like(self.x), np.array([0, 0, 0, 1, 0])
        turns = games * (self._limit if self._limit > 0 else _LONGEST_GAME)
        played = self._play(x, clock, np.zeros(2), key, turns=turns, games=games, learning=False)
        if clock[kernel.GAMES] < games:
            raise BadInput(
                f"the greedy policy did not end {games} games of {self.task.name!r} in {turns} turns: give the task "
                "a limit"
            )
        return played

    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The advisors that have a say [m] and their rows [m] in a state x of the world."""
        advisors, rows, voice, _ = self._asked(state)
        heard = voice != 0.0
        return (advisors, rows) if heard.all() else (advisors[heard], rows[heard])

    def preferences(self, state: Any) -> np.ndarray:
        """The preferences [A] in a state x, as the loop itself finds them."""
        return self._asked(state)[3]

    def _voice(self) -> kernel.Voice:
        """How the kernel hears, with room to work in."""
        room = np.zeros((3, self.table.shape[1]))
        return kernel.Voice(
            self.made.codes, self.made.ends, self.made.parameters, room[0], room[1], room[2], np.zeros(3)
        )

    def _asked(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Who is active [m], on which rows [m], with which voice [m], and the preferences [A]."""
        world = self.task.world
        assert world is not None
        x = world.checked(state, self.task.name)
        whole, real = np.empty((kernel.WHOLE_SLOTS, self.task.n), np.int64), np.empty((kernel.REAL_SLOTS, self.task.n))
        voice = self._voice()
        try:
            m = self._ask(world.constants, x, self.table, whole, real, self.committee, voice)
        except NumbaError as error:
            raise self._not_compiled(error) from None
        slots = kernel.Slots(*whole, *real)
        return slots.advisors[:m], slots.rows[:m], slots.voice[:m], voice.total

    def values(self, j: int) -> np.ndarray:
        """Q_j [states, A] of one advisor."""
        states = self.task.foci[j].states or 0
        return self.table[self.layout[0, j] + self.layout[1, j] * np.arange(states)]

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything the run is made of."""
        counted = {"counts": self.counts} if self.made.counting else {}
        return {"table": self.table, "x": self.x, "clock": self.clock, "tally": self.tally, **counted}

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave; a game whose state cannot be checked is begun anew."""
        own, world = self.tensors(), self.task.world
        assert world is not None
        for name, mine in own.items():
            array(tensors, name, mine.shape, mine.dtype)
        require(not self.made.counting or (tensors["counts"] >= 0).all(), "counts")
        _check_clock(tensors["clock"], self._limit, self.table.shape[1])
        for name, mine in own.items():
            mine[...] = tensors[name]
        if not self.clock[kernel.FRESH] and not world.sound(self.x, self.task.name):
            self.clock[kernel.FRESH] = 1

    def close(self) -> None:
        """Nothing to close."""


def empty_table(task: Task, rows: int) -> np.ndarray:
    """Zeros [rows, A]."""
    try:
        return np.zeros((rows, len(task.actions)))
    except (MemoryError, ValueError):
        raise BadInput(
            f"a table for task {task.name!r} has {rows} rows, more than the memory of this machine: make the task "
            "smaller, or learn with a network (deep=, on the command line --deep)"
        ) from None


def _grown(table: np.ndarray, rows: int) -> np.ndarray:
    bigger = np.zeros((rows, table.shape[1]))
    bigger[: len(table)] = table
    return bigger


def _check_clock(clock: np.ndarray, limit: int, actions: int) -> None:
    """The entries that all clocks have."""
    turn, games, game_turn, fresh, held = clock[: kernel.HELD + 1].tolist()
    longest = turn if limit < 0 else min(turn, limit)
    require(0 <= turn < MOST_TURNS and 0 <= games <= turn and 0 <= game_turn <= longest, "clock")
    require(fresh in (0, 1) and (fresh or game_turn < limit or limit < 0), "clock")
    require(0 <= held <= (0 if fresh else actions), "clock")


class _Slots(NamedTuple):
    """What the adapter's kernel is given and remembers between two steps; `kernel` names the rows and entries."""

    whole: np.ndarray  # [ADAPTER_WHOLE, n] int64
    real: np.ndarray  # [ADAPTER_REAL, n]
    voices: np.ndarray  # [3, A] preferences and scratch
    clock: np.ndarray  # [14] int64
    tally: np.ndarray  # [4]


class AdapterLearner(_Tables):
    """Learns in a Gymnasium environment.

    The environment is seeded anew every thousand turns or so, at the start of a game, and the actions since then are
    remembered. So a run that was saved, or whose environment was borrowed for an evaluation, goes on exactly where it
    was: that stretch is played again. (Seeding every game would cost more than learning where games are short.)
    """

    def __init__(self, task: Task, settings: Settings) -> None:
        assert task.adapter is not None
        if settings.learner == "linear":
            raise BadInput(f"linear Q-learning needs a compiled world, and task {task.name!r} is a Python environment")
        self.task, self.settings, self.adapter = task, settings, task.adapter.fresh()
        self._stage = task.adapter.stage
        self.made = made_committee(task, settings)
        self.table, self.weights = np.zeros((max(self.adapter.rows, 64), len(task.actions))), task.weights
        self.counts = np.zeros(self.table.shape if self.made.counting else (1, len(task.actions)))
        self._call = specialise(kernel.adapter_turn, combine=self.made.combine, expect=self.made.expect)
        self.slots = self._slots(draws.stream_key(settings.seed, draws.TRAINING), learning=True)
        self.trail: list[int] = []
        self.seeded_at = np.zeros(1, np.int64)

    def _slots(self, key: np.uint64, learning: bool) -> _Slots:
        task, settings, adapter = self.task, self.settings, self.adapter
        made, parts = self.made, len(self.made.codes)
        whole = np.zeros((kernel.ADAPTER_WHOLE, task.n), np.int64)
        real = np.zeros((kernel.ADAPTER_REAL, task.n))
        whole[kernel.POSITION], whole[kernel.ONE], whole[kernel.NOW_SPEAKS] = adapter.position, 1, 1
        whole[kernel.VIEW], whole[kernel.SOURCE] = adapter.view_of, adapter.source
        whole[kernel.KIND_OF], whole[kernel.PART_OF], whole[kernel.CODES, :parts] = (
            made.kinds,
            made.voices.of,
            made.codes,
        )
        real[kernel.WEIGHT_OF], real[kernel.GAMMA_OF] = task.weights, task.gammas(settings.gamma)
        real[kernel.ALPHA_OF], real[kernel.PARAMETERS, :parts] = task.alphas(settings.alpha), made.parameters
        clock, tally = np.zeros(14, np.int64), np.zeros(4)
        clock[kernel.FRESH], clock[kernel.LEARNING], clock[kernel.PARTS] = 1, int(learning), parts
        clock[kernel.KIND], clock[kernel.NEEDED] = made.kind, made.needs
        clock[kernel.KEY], clock[kernel.HALF] = key.astype(np.int64), settings.alpha_half
        clock[kernel.SHARED] = shared_advisors(task)
        if learning:
            tally[kernel.EPSILON], tally[kernel.SIGMA] = settings.epsilon, settings.noise
        return _Slots(whole, real, np.zeros((3, len(task.actions))), clock, tally)

    @property
    def clock(self) -> np.ndarray:
        """Turns, games, turns of this game, and whether a new one is due, first of all."""
        return self.slots.clock

    @property
    def tally(self) -> np.ndarray:
        """The score of this game, and of all games before it, first of all."""
        return self.slots.tally

    def _turn(self, slots: _Slots) -> Callable[[int], int]:
        """The compiled call, with all that stays the same bound to it."""
        adapter, call = self.adapter, self._call
        whole, real, voices, clock, tally = slots
        firsts, signals = adapter.firsts, adapter.signals
        adapter.bind(whole[kernel.NOW_ACTIVE], whole[kernel.NOW_SPEAKS], whole[kernel.HAS_ENDED])

        def turn(event: int) -> int:
            if adapter.rows > len(self.table):
                self._grow()
            action = call(self.table, self.counts, whole, real, voices, firsts, signals, clock, tally, event)
            if action < 0:
                name = self.task.foci[-1 - action].name
                raise BadInput(f"the reward of focus {name!r} is not finite: correct its reward function")
            return action

        return turn

    def _grow(self) -> None:
        rows = max(self.adapter.rows, 2 * len(self.table))
        self.table = _grown(self.table, rows)
        if self.made.counting:
            self.counts = _grown(self.counts, rows)

    def _stretch_seed(self) -> int:
        return draws.environment_seed(self.settings.seed, draws.ENVIRONMENT, int(self.seeded_at[0]))

    def _deal(self, turn: Callable[[int], int]) -> int:
        """Start the next training game."""
        if not self.trail or len(self.trail) >= draws.STRETCH:
            self.seeded_at[0] = self.clock[kernel.TURN]
            self.trail.clear()
            self.adapter.reset(self._stretch_seed())
        else:
            self.adapter.reset(None)
        return turn(kernel.DEAL)

    def _return(self, turn: Callable[[int], int]) -> None:
        """Play the current stretch again up to where it was."""
        self.adapter.reset(self._stretch_seed())
        over, late = False, False
        for turns, action in enumerate(self.trail):
            if over:
                late = turns >= draws.STRETCH  # a new stretch would have begun here
                if late:
                    break
                self.adapter.reset(None)
            terminated, truncated = self.adapter.step(action)
            over = terminated or truncated
        if late or over != bool(self.clock[kernel.FRESH]):
            raise BadInput(
                f"task {self.task.name!r} did not repeat itself from the same seed and actions, so that its run "
                "cannot go on: run check_task on it"
            )
        if not over:
            turn(kernel.RETURN)

    def prepare(self) -> None:
        """Compile, where that has not been done: a call on empty slots that nobody looks at."""
        slots = self._slots(np.uint64(0), learning=False)
        firsts, signals = np.zeros_like(self.adapter.firsts), np.zeros_like(self.adapter.signals)
        with first_use(self._call):
            self._call(self.table, self.counts, slots.whole, slots.real, slots.voices, firsts, signals, slots.clock,
                       slots.tally, kernel.RETURN)  # fmt: skip

    def run(self, turns: int) -> None:
        """Play and learn for this many turns."""
        with self._stage as stage:
            turn = self._turn(self.slots)
            if stage.user is not self and self.trail:
                self._return(turn)
            stage.user = self
            self._run(turn, turns)

    def _run(self, turn: Callable[[int], int], turns: int) -> None:
        step, trail = self.adapter.step, self.trail
        action = -1 if self.clock[kernel.FRESH] else int(self.clock[kernel.ACTION])
        try:
            for _ in range(turns):
                if action < 0:
                    action = self._deal(turn)
                terminated, truncated = step(action)
                if terminated or truncated:
                    turn(kernel.TERMINATED if terminated else kernel.TRUNCATED)
                    trail.append(action)  # only now: a turn that failed on the way is no part of the run
                    action = -1
                else:
                    following = turn(kernel.STEP)
                    trail.append(action)
                    action = following
        except BaseException:
            self._stage.user = None  # nobody knows where the environment is
            raise
        self._refuse_infinite()

    def evaluate(self, games: int, seed: int) -> Played:
        """Play greedily without learning; the run goes on afterwards as if nothing had happened."""
        with self._stage as stage:
            stage.user = None
            return self._evaluate(games, seed)

    def _evaluate(self, games: int, seed: int) -> Played:
        adapter, n = self.adapter, self.task.n
        played = Played(np.zeros(games), np.zeros(games, np.int64), np.zeros(games, np.int64), np.zeros((games, n)))
        slots = self._slots(draws.stream_key(self.settings.seed, draws.EVALUATION, seed), learning=False)
        turn = self._turn(slots)
        for game in range(games):
            adapter.reset(draws.environment_seed(self.settings.seed, draws.EVALUATION, ((1 + seed) << 32) + game))
            slots.real[kernel.RETURNS] = 0.0
            action, over = turn(kernel.DEAL), False
            while not over:
                terminated, truncated = adapter.step(action)
                over = terminated or truncated
                action = turn(kernel.TERMINATED if terminated else kernel.TRUNCATED if truncated else kernel.STEP)
                if slots.clock[kernel.GAME_TURN] > _LONGEST_GAME:
                    raise BadInput(
                        f"a game of {self.task.name!r} did not end in {_LONGEST_GAME} steps: wrap the environment in a "
                        "TimeLimit"
                    )
            played.score[game], played.turns[game] = slots.tally[kernel.GAME_SCORE], slots.clock[kernel.GAME_TURN]
            played.finished[game], played.returns[game] = int(terminated), slots.real[kernel.RETURNS]
        return played

    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The active advisors [m] and their rows [m] for an observation."""
        adapter = self.adapter
        active, speaking = np.zeros(self.task.n, np.int64), np.ones(self.task.n, np.int64)
        adapter.bind(active, speaking, np.zeros(self.task.n, np.int64))
        adapter.look(state)
        if adapter.rows > len(self.table):
            self._grow()
        advisors = np.flatnonzero(active & speaking)
        return advisors, adapter.firsts[adapter.view_of[advisors]] + adapter.position[advisors]

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
        return {
            "table": self.table[: self.adapter.rows], "clock": self.slots.clock, "tally": self.slots.tally, **counts,
            "seeded_at": self.seeded_at,
            "trail": np.array(self.trail, np.int64), "counted": np.frombuffer(counted, np.uint8),
        }  # fmt: skip

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""
        own, actions = self.slots, self.table.shape[1]
        clock = array(tensors, "clock", own.clock.shape, np.int64)
        tally = array(tensors, "tally", own.tally.shape, np.float64)
        table = array(tensors, "table", (None, actions), np.float64)
        trail = whole(tensors, "trail", (None,), 0, actions)
        seeded_at = whole(tensors, "seeded_at", (1,))
        _check_clock(clock, -1, actions)
        require((clock[kernel.SHARED :] == own.clock[kernel.SHARED :]).all(), "clock")  # the settings
        require((tally[kernel.EPSILON :] == own.tally[kernel.EPSILON :]).all(), "tally")
        require(0 <= clock[kernel.ACTION] < actions and 0 <= clock[kernel.ACTIVE] <= self.task.n, "clock")
        require(seeded_at[0] + len(trail) == clock[kernel.TURN] and (len(trail) or clock[kernel.FRESH]), "trail")
        if self.made.counting:
            self.counts = np.array(array(tensors, "counts", table.shape, np.float64))
            require((self.counts >= 0).all(), "counts")
        self.adapter.recount(array(tensors, "counted", (None,), np.uint8).tobytes(), len(table))
        own.clock[:], own.tally[:], self.seeded_at[:] = clock, tally, seeded_at
        self.table, self.trail = np.array(table), trail.tolist()

    def close(self) -> None:
        """Close the environment."""
        self.adapter.env.close()


def tabular_learner(task: Task, settings: Settings) -> CompiledLearner | AdapterLearner:
    """The learner that fits the task."""
    return CompiledLearner(task, settings) if task.world is not None else AdapterLearner(task, settings)
