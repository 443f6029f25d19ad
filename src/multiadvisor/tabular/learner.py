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
from multiadvisor.compiling import first_use, specialise
from multiadvisor.errors import BadInput
from multiadvisor.restored import MOST_TURNS, Arrays, array, require, whole
from multiadvisor.settings import Settings
from multiadvisor.tabular import kernel
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


class _Tables(ABC):
    """What the learners with tables answer alike."""

    task: Task
    table: np.ndarray
    clock: Any  # [...] int64
    tally: Any  # [...]

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

    def consult(self, state: Any) -> Consulted:
        """The active advisors' advice in one state."""
        advisors, rows = self.rows(state)
        return Consulted(tuple(self.task.names[j] for j in advisors), self.table[rows], self.task.weights[advisors])


def shared_advisors(task: Task) -> int:
    """How many advisors, the first ones, may share tables: -1 where they are too many, or not the first."""
    sharing = [j for j, focus in enumerate(task.foci) if focus.table is not None]
    if not sharing:
        return 0
    return len(sharing) if sharing == list(range(len(sharing))) and len(sharing) <= 8 else -1


class CompiledLearner(_Tables):
    """Learns inside a compiled world."""

    def __init__(self, task: Task, settings: Settings) -> None:
        assert task.world is not None
        if settings.learner == "linear":  # a feature of its own for every advisor's local state, as in the paper
            task = replace(task, foci=tuple(replace(focus, table=None) for focus in task.foci))
        self.task, self.settings = task, settings
        world = task.world
        assert world is not None
        layout = task.layout()
        self.layout = np.stack([layout.offset, layout.stride])
        self.focus = np.stack([task.weights, task.gammas(settings.gamma)])
        self.table = empty_table(task, layout.rows)
        estimating = settings.foresight == "estimate"
        self.counts = np.zeros(self.table.shape if estimating else (0, len(task.actions)))
        self.x = np.zeros(world.size, np.int64)
        self.clock = np.array([0, 0, 0, 1])
        self.tally = np.zeros(2)
        self.key = draws.stream_key(settings.seed, draws.TRAINING)
        self._limit = -1 if task.limit is None else task.limit
        self._shared = shared_advisors(task)
        self._code = kernel.LINEAR if settings.learner == "linear" else kernel.PLANNING_CODES[settings.planning]
        self._code = kernel.ESTIMATE if estimating else self._code
        self._loop = specialise(
            kernel.play, reset=world.reset, begin=world.begin, local_states=world.local_states, step=world.step
        )

    def _play(
        self, x: np.ndarray, clock: np.ndarray, tally: np.ndarray, key: np.uint64, *, turns: int, games: int,
        learning: bool,
    ) -> Played:  # fmt: skip
        task, settings = self.task, self.settings
        assert task.world is not None
        whole, real = np.zeros((6, task.n), np.int64), np.zeros((2, task.n))
        played = Played(
            np.zeros(games), np.zeros(games, np.int64), np.zeros(games, np.int64), np.zeros((games, task.n))
        )
        self._loop(
            task.world.constants, x, self.table, self.counts, np.zeros(self.table.shape[1]), whole, real,
            self.layout, self.focus, clock, tally, key, self._code, float(settings.alpha),
            settings.alpha_half,
            float(settings.epsilon) if learning else 0.0, float(settings.noise) if learning else 0.0, self._limit,
            self._shared, learning, turns, *played,
        )  # fmt: skip
        return played

    def prepare(self) -> None:
        """Compile, where that has not been done: nothing is played."""
        try:
            with first_use(self._loop):
                self._play(self.x, self.clock, self.tally, self.key, turns=0, games=0, learning=True)
        except NumbaError as error:
            reason = " ".join(str(error).split())[:200]
            raise BadInput(
                f"the world of task {self.task.name!r} cannot be compiled: run check_task on it, which names the "
                f"function ({reason} ...)"
            ) from None

    def run(self, turns: int) -> None:
        """Play and learn for this many turns."""
        self._play(self.x, self.clock, self.tally, self.key, turns=turns, games=0, learning=True)
        if not np.isfinite(self.table).all():
            row = int(np.argwhere(~np.isfinite(self.table))[0, 0])
            raise BadInput(
                f"a value of task {self.task.name!r} is no longer finite (table row {row}): look for a reward that is "
                "not, or choose a gamma below 1"
            )

    def evaluate(self, games: int, seed: int) -> Played:
        """Play greedily without learning; the run itself is not touched."""
        key = draws.stream_key(self.settings.seed, draws.EVALUATION, seed)
        x, clock = np.zeros_like(self.x), np.array([0, 0, 0, 1])
        turns = games * (self._limit if self._limit > 0 else _LONGEST_GAME)
        played = self._play(x, clock, np.zeros(2), key, turns=turns, games=games, learning=False)
        if clock[kernel.GAMES] < games:
            raise BadInput(
                f"the greedy policy did not end {games} games of {self.task.name!r} in {turns} turns: give the task "
                "a limit"
            )
        return played

    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The active advisors [m] and their rows [m] in a state x of the world."""
        world = self.task.world
        assert world is not None
        x = world.checked(state, self.task.name)
        advisors, local = np.zeros(self.task.n, np.int64), np.zeros(self.task.n, np.int64)
        m = world.begin(world.constants, x, advisors)
        world.local_states(world.constants, x, advisors, m, local)
        advisors = advisors[:m]
        return advisors, self.layout[0, advisors] + self.layout[1, advisors] * local[:m]

    def values(self, j: int) -> np.ndarray:
        """Q_j [states, A] of one advisor."""
        states = self.task.foci[j].states or 0
        return self.table[self.layout[0, j] + self.layout[1, j] * np.arange(states)]

    def tensors(self) -> dict[str, np.ndarray]:
        """Everything the run is made of."""
        counted = {"counts": self.counts} if len(self.counts) else {}
        return {"table": self.table, "x": self.x, "clock": self.clock, "tally": self.tally, **counted}

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave; a game whose state cannot be checked is begun anew."""
        own, world = self.tensors(), self.task.world
        assert world is not None
        for name, mine in own.items():
            array(tensors, name, mine.shape, mine.dtype)
        require(len(self.counts) == 0 or (tensors["counts"] >= 0).all(), "counts")
        _check_clock(tensors["clock"], self._limit)
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


def _check_clock(clock: np.ndarray, limit: int) -> None:
    """The entries that all clocks have."""
    turn, games, game_turn, fresh = clock[: kernel.FRESH + 1].tolist()
    longest = turn if limit < 0 else min(turn, limit)
    require(0 <= turn < MOST_TURNS and 0 <= games <= turn and 0 <= game_turn <= longest, "clock")
    require(fresh in (0, 1) and (fresh or game_turn < limit or limit < 0), "clock")


class _Slots(NamedTuple):
    """What the adapter's kernel is given and remembers between two steps; `kernel` names the rows and entries."""

    total: np.ndarray  # [A]
    whole: np.ndarray  # [14, n] int64
    real: np.ndarray  # [5, n]
    clock: np.ndarray  # [11] int64
    tally: np.ndarray  # [5]


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
        if settings.foresight == "estimate":
            raise BadInput(f"an estimate of the aggregator needs a compiled world, and {task.name!r} is none")
        self.task, self.settings, self.adapter = task, settings, task.adapter.fresh()
        self._shared_environment = task.adapter
        self.table = np.zeros((max(self.adapter.rows, 64), len(task.actions)))
        self.slots = self._slots(draws.stream_key(settings.seed, draws.TRAINING), learning=True)
        self.trail: list[int] = []
        self.seeded_at = np.zeros(1, np.int64)

    def _slots(self, key: np.uint64, learning: bool) -> _Slots:
        task, settings, adapter = self.task, self.settings, self.adapter
        whole, real = np.zeros((14, task.n), np.int64), np.zeros((5, task.n))
        whole[kernel.POSITION], whole[kernel.ONE] = adapter.position, 1
        whole[kernel.VIEW], whole[kernel.SOURCE] = adapter.view_of, adapter.source
        real[kernel.WEIGHT_OF], real[kernel.GAMMA_OF] = task.weights, task.gammas(settings.gamma)
        clock, tally = np.zeros(11, np.int64), np.zeros(5)
        clock[kernel.FRESH], clock[kernel.LEARNING] = 1, int(learning)
        clock[kernel.PLANNING], clock[kernel.SHARED] = kernel.PLANNING_CODES[settings.planning], shared_advisors(task)
        clock[kernel.KEY], clock[kernel.HALF] = key.astype(np.int64), settings.alpha_half
        tally[kernel.ALPHA] = settings.alpha
        if learning:
            tally[kernel.EPSILON], tally[kernel.SIGMA] = settings.epsilon, settings.noise
        return _Slots(np.zeros(len(task.actions)), whole, real, clock, tally)

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
        adapter, call = self.adapter, kernel.adapter_turn
        total, whole, real, clock, tally = slots
        firsts, signals = adapter.firsts, adapter.signals
        adapter.bind(whole[kernel.NOW_ACTIVE], whole[kernel.HAS_ENDED])

        def turn(event: int) -> int:
            if adapter.rows > len(self.table):
                self._grow()
            action = call(self.table, total, whole, real, firsts, signals, clock, tally, event)
            if action < 0:
                name = self.task.foci[-1 - action].name
                raise BadInput(f"the reward of focus {name!r} is not finite: correct its reward function")
            return action

        return turn

    def _grow(self) -> None:
        bigger = np.zeros((max(self.adapter.rows, 2 * len(self.table)), self.table.shape[1]))
        bigger[: len(self.table)] = self.table
        self.table = bigger

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
        with first_use(kernel.adapter_turn):
            kernel.adapter_turn(
                self.table,
                slots.total,
                slots.whole,
                slots.real,
                firsts,
                signals,
                slots.clock,
                slots.tally,
                kernel.RETURN,
            )

    def run(self, turns: int) -> None:
        """Play and learn for this many turns."""
        turn, step, trail = self._turn(self.slots), self.adapter.step, self.trail
        if self._shared_environment.user is not self and trail:
            self._return(turn)
        self._shared_environment.user = self
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
            self._shared_environment.user = None  # nobody knows where the environment is
            raise

    def evaluate(self, games: int, seed: int) -> Played:
        """Play greedily without learning; the run goes on afterwards as if nothing had happened."""
        self._shared_environment.user = None
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
        active = np.zeros(self.task.n, np.int64)
        adapter.bind(active, np.zeros(self.task.n, np.int64))
        adapter.look(state)
        if adapter.rows > len(self.table):
            self._grow()
        advisors = np.flatnonzero(active)
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
        return {
            "table": self.table[: self.adapter.rows], "clock": self.slots.clock, "tally": self.slots.tally,
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
        _check_clock(clock, -1)
        settings = [kernel.PLANNING, kernel.SHARED, kernel.LEARNING, kernel.KEY, kernel.HALF]
        require((clock[settings] == own.clock[settings]).all(), "clock")
        require((tally[kernel.ALPHA :] == own.tally[kernel.ALPHA :]).all(), "tally")
        require(0 <= clock[kernel.ACTION] < actions and 0 <= clock[kernel.ACTIVE] <= self.task.n, "clock")
        require(seeded_at[0] + len(trail) == clock[kernel.TURN] and (len(trail) or clock[kernel.FRESH]), "trail")
        self.adapter.recount(array(tensors, "counted", (None,), np.uint8).tobytes(), len(table))
        own.clock[:], own.tally[:], self.seeded_at[:] = clock, tally, seeded_at
        self.table, self.trail = np.array(table), trail.tolist()

    def close(self) -> None:
        """Close the environment."""
        self.adapter.env.close()


def tabular_learner(task: Task, settings: Settings) -> CompiledLearner | AdapterLearner:
    """The learner that fits the task."""
    return CompiledLearner(task, settings) if task.world is not None else AdapterLearner(task, settings)
