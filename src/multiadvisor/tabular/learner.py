"""Learners with tables: what they have in common, and the one for compiled worlds (`environment.py` has the other).

They hold everything a run is made of in plain arrays, so that it can be cut anywhere, saved, and taken up again with
the same bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from multiadvisor import draws
from multiadvisor.aggregations import LEARNED
from multiadvisor.committee import Voices, plannings_of, voices_of
from multiadvisor.compiling import first_use, specialise
from multiadvisor.errors import BadInput, short
from multiadvisor.learner import Consulted, Exploration, Played, refuse_unobservable
from multiadvisor.plannings import TARGET
from multiadvisor.restored import MOST_TURNS, Arrays, array, require
from multiadvisor.settings import Settings
from multiadvisor.tabular import kernel, plans, switch
from multiadvisor.tabular.mapped import mappings_of
from multiadvisor.tabular.selection import needs_of
from multiadvisor.tabular.ways import as_learned, ways_of
from multiadvisor.task import Focus, Task, Transition
from multiadvisor.worlds.stepping import LONGEST_GAME

_ROWS = kernel.Slots._fields.index("rows")  # of the slots' first array; advisors and voices are first in theirs


class Tables(ABC):
    """What the learners with tables answer alike."""

    task: Task
    settings: Settings
    table: np.ndarray
    weights: np.ndarray  # [n]
    key: np.uint64
    clock: Any  # [...] int64
    tally: Any  # [...]
    made: Made
    plans: kernel.Plans
    exploration: Exploration

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

    def _refuse_infinite(self, rows: np.ndarray | None = None) -> None:
        """Of all values, or of those in these rows [m]; neither may their weighted sum be too large for a number."""
        with np.errstate(over="ignore", invalid="ignore"):
            reach = max(1.0, float(np.abs(self.weights).sum()))
            wrong = ~np.isfinite((self.table if rows is None else self.table[rows]) * reach)
        if wrong.any():
            row = np.argwhere(wrong)[0, 0] if rows is None else rows[np.argwhere(wrong)[0, 0]]
            raise BadInput(
                f"a value of task {self.task.name!r} is no longer finite (table row {row}), or not so times the "
                "weights: look for a reward that is not, or is very large, or choose a gamma below 1"
            )

    @abstractmethod
    def _total(self, state: Any) -> np.ndarray:
        """The preferences [A] in a state, as the loop itself finds them."""

    def explore(self, state: Any) -> int:
        """The action that learning would take in one state."""
        total = self._total(state)
        turn = self.exploration.turn(self.turns)
        word = draws.draw(np.uint64(draws.turn_key(self.key, turn)), draws.CHOICE)
        return int(kernel.choose(total, self.settings.exploring(turn), np.uint64(word)))

    def consult(self, state: Any) -> Consulted:
        """The active advisors' advice in one state."""
        advisors, rows = self.rows(state)
        names = self.task.names
        advice = self.table[rows]
        return Consulted(tuple([names[j] for j in advisors.tolist()]), advice, self.weights[advisors], advisors)

    def hearing(self, state: Any) -> Voices:
        """How those who are active in one state [m] are heard there."""
        return plans.hearing(self.task.foci, self.voices, self.plans, self._offset, *self.rows(state))

    @property
    @abstractmethod
    def _offset(self) -> np.ndarray:
        """[n] what tells the rows of advisors apart that are in one local state."""

    def preferences(self, state: Any) -> np.ndarray:
        """What the aggregator makes of the advice in one state [A]."""
        told = self.consult(state)
        if len(self.plans.sizes):
            return self.hearing(state).prefer(told.advice, told.weights)
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
    plannings, voices = plannings_of(task, settings.planned), voices_of(task, settings.aggregation, LEARNED)
    known, heard = switch.known_to(plannings, tuple(aggregation for aggregation, _ in voices.parts))
    code = {planning: k for k, planning in enumerate(known)}
    kinds = np.array([code[planning] for planning in plannings], np.int64)
    needs = {need for planning in plannings for need in planning.needs} | needs_of(settings.aggregation)
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


class CompiledLearner(Tables):
    """Learns inside a compiled world, in the way that the settings name (`ways`)."""

    def __init__(self, task: Task, settings: Settings) -> None:
        self._n = task.n  # those who are paid
        task = as_learned(task, settings)
        self.task, self.settings = task, settings
        world = task.world
        assert world is not None
        layout, actions = task.layout(), len(task.actions)
        self.layout = np.stack([layout.offset, layout.stride])
        self.made = made_committee(task, settings)
        self.committee = kernel.Committee(
            layout.offset, layout.stride, self.made.kinds, self.made.voices.of, task.weights,
            task.gammas(settings.gamma), task.alphas(settings.alpha), targets_of(task, self.made.needs, layout.rows),
            mappings_of(task, settings),
        )  # fmt: skip
        self.weights = self.committee.weight
        self.table = empty_table(task, layout.rows)
        self.counts = np.zeros(self.table.shape if self.made.counting else (1, actions))
        self.plans = plans.plans_of(task, self.made.voices, layout.rows)
        ways = ways_of(task, settings, self.made.voices)
        self.x = np.zeros(world.size, np.int64)
        self.clock = np.array([0, 0, 0, 1, 0])
        self.tally = np.zeros(2)
        self.key = draws.stream_key(settings.seed, draws.TRAINING)
        self.exploration = Exploration()
        self._limit = -1 if task.limit is None else task.limit
        self._shared = shared_advisors(task)
        self._loop = specialise(
            kernel.play, reset=world.reset, begin=world.begin, local_states=world.local_states, step=world.step,
            speaks=world.speaks or kernel.everybody_speaks, SPEAKS=world.speaks is not None, JOINS=world.joins,
            pseudo=world.pseudo or kernel.nothing_besides, PSEUDO=world.pseudo is not None,
            combine=self.made.combine, expect=self.made.expect, **ways,
        )  # fmt: skip
        self._ask = specialise(
            kernel.ask, begin=world.begin, local_states=world.local_states, combine=self.made.combine,
            speaks=world.speaks or kernel.everybody_speaks, hear=ways["hear"],
        )  # fmt: skip

    def _play(
        self, x: np.ndarray, clock: np.ndarray, tally: np.ndarray, key: np.uint64, *, turns: int, games: int,
        learning: bool,
    ) -> Played:  # fmt: skip
        task, settings, made = self.task, self.settings, self.made
        assert task.world is not None
        whole, real = np.zeros((kernel.WORLD_WHOLE, task.n), np.int64), np.zeros((kernel.WORLD_REAL, task.n))
        run = kernel.Run(
            key, settings.alpha_half, float(settings.epsilon) if learning else 0.0,
            float(settings.noise) if learning else 0.0, self._limit, self._shared, learning, made.kind, made.needs,
            settings.epsilon_half,
        )  # fmt: skip
        returns = np.zeros((max(games, 1), task.n))
        scores, lengths, finished = np.zeros(games), np.zeros(games, np.int64), np.zeros(games, np.int64)
        self._loop(
            task.world.constants, x, self.table, self.counts, whole, real, self.committee, self._voice(), clock, tally,
            run,
            turns, scores, lengths, finished, returns,
        )  # fmt: skip
        return Played(scores, lengths, finished, returns[:games, : self._n])

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
        turns = games * (self._limit if self._limit > 0 else LONGEST_GAME)
        played = self._play(x, clock, np.zeros(2), key, turns=turns, games=games, learning=False)
        if clock[kernel.GAMES] < games:
            raise BadInput(
                f"the greedy policy did not end {games} games of {self.task.name!r} in {turns} turns: give the task "
                "a limit"
            )
        return played

    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The advisors that have a say [m] and their rows [m] in a state x of the world."""
        m, whole, real, _ = self._asked(state)
        advisors, rows, heard = whole[0, :m], whole[_ROWS, :m], real[0, :m] != 0.0
        return (advisors, rows) if heard.all() else (advisors[heard], rows[heard])

    @property
    def _offset(self) -> np.ndarray:
        return self.committee.offset

    def preferences(self, state: Any) -> np.ndarray:
        """The preferences [A] in a state x, as the loop itself finds them."""
        return self._asked(state)[3]

    _total = preferences

    def observe(self, transition: Transition, following: int | None) -> None:
        """Nobody but the world can tell."""
        refuse_unobservable(self.task)

    def _voice(self) -> kernel.Voice:
        """How the kernel hears, with room to work in."""
        room = np.zeros((3, self.table.shape[1]))
        return kernel.Voice(
            self.made.codes, self.made.ends, self.made.parameters, room[0], room[1], room[2], np.zeros(3), self.plans
        )

    def _asked(self, state: Any) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
        """How many are active, the two arrays of the slots in which they stand, and the preferences [A]."""
        world = self.task.world
        assert world is not None
        x = world.checked(state, self.task.name)
        whole, real = np.empty((kernel.WHOLE_SLOTS, self.task.n), np.int64), np.empty((kernel.REAL_SLOTS, self.task.n))
        voice = self._voice()
        try:
            m = self._ask(world.constants, x, self.table, whole, real, self.committee, voice)
        except NumbaError as error:
            raise self._not_compiled(error) from None
        return m, whole, real, voice.total

    def values(self, j: int) -> np.ndarray:
        """Q_j [states, A] of one advisor."""
        states = self.task.foci[j].states or 0
        return self.table[self.layout[0, j] + self.layout[1, j] * np.arange(states)]

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything the run is made of."""
        return {**self._own(), **self.exploration.tensors(self.turns)}

    def _own(self) -> Arrays:
        counted = {"counts": self.counts} if self.made.counting else {}
        planned = {"plans": self.plans.table} if len(self.plans.sizes) else {}
        return {"table": self.table, "x": self.x, "clock": self.clock, "tally": self.tally, **counted, **planned}

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave; a game whose state cannot be checked is begun anew."""
        own, world = self._own(), self.task.world
        assert world is not None
        for name, mine in own.items():
            array(tensors, name, mine.shape, mine.dtype)
        require(not self.made.counting or (tensors["counts"] >= 0).all(), "counts")
        check_clock(tensors["clock"], self._limit, self.table.shape[1])
        for name, mine in own.items():
            mine[...] = tensors[name]
        self._refuse_infinite()
        self.exploration.restore(tensors, self.turns)
        if not self.clock[kernel.FRESH] and not world.sound(self.x, self.task.name):
            self.clock[kernel.FRESH], self.clock[kernel.HELD] = 1, 0


def linear_learner(task: Task, settings: Settings) -> CompiledLearner:
    """One Q-function, linear in a feature of its own for every advisor's local state, as in the paper."""
    if task.world is None:
        raise BadInput(f"linear Q-learning needs a compiled world, and task {task.name!r} is a Python environment")
    if task.world.speaks is not None or task.world.pseudo is not None:
        raise BadInput(
            f"in task {task.name!r} advisors fall silent, or learn from pseudo-rewards, and linear Q-learning has one "
            "value for the score of all of them: learn with tables"
        )
    for what, each in (("gamma", task.gammas(settings.gamma)), ("alpha", task.alphas(settings.alpha))):
        if (each != each[0]).any():
            raise BadInput(f"linear Q-learning has one {what} for everything: leave those of advisors out")
    return CompiledLearner(task, settings)


def empty_table(task: Task, rows: int) -> np.ndarray:
    """Zeros [rows, A]."""
    try:
        return np.zeros((rows, len(task.actions)))
    except (MemoryError, ValueError):
        raise BadInput(
            f"a table for task {task.name!r} has {rows} rows, more than the memory of this machine: make the task "
            "smaller, or learn with a network (deep=, on the command line --deep)"
        ) from None


def targets_of(task: Task, needs: int, rows: int) -> np.ndarray:
    """The policies [rows, A] that advisors were given to value; next to nothing where none needs one."""
    actions = len(task.actions)
    if not needs & kernel.NEEDS[TARGET]:
        return np.zeros((1, actions))
    layout, policies = task.layout(), np.zeros((rows, actions))
    for j, focus in enumerate(task.foci):
        if focus.target is not None:
            for state in range(focus.states or 0):
                policies[layout.offset[j] + layout.stride[j] * state] = _policy(focus, focus.target(state), actions)
    return policies


def _policy(focus: Focus, given: Any, actions: int) -> np.ndarray:
    """Probabilities [A] from an action or from probabilities."""
    if isinstance(given, int | np.integer) and 0 <= given < actions:
        return np.eye(actions)[given]
    policy = np.asarray(given, float)
    if policy.shape != (actions,) or not (policy >= 0).all() or not abs(policy.sum() - 1.0) < 1e-9:
        raise BadInput(
            f"the target of focus {focus.name!r} gives {short(repr(given))}: give an action below {actions}, or "
            f"{actions} probabilities that sum to 1"
        )
    return policy


def grown(table: np.ndarray, rows: int) -> np.ndarray:
    """A table [rows, A] that begins as this one."""
    bigger = np.zeros((rows, table.shape[1]))
    bigger[: len(table)] = table
    return bigger


def check_clock(clock: np.ndarray, limit: int, actions: int) -> None:
    """The entries that all clocks have."""
    turn, games, game_turn, fresh, held = clock[: kernel.HELD + 1].tolist()
    longest = turn if limit < 0 else min(turn, limit)
    require(0 <= turn < MOST_TURNS and 0 <= games <= turn and 0 <= game_turn <= longest, "clock")
    require(fresh in (0, 1) and (fresh or game_turn < limit or limit < 0), "clock")
    require(0 <= held <= (0 if fresh else actions), "clock")
