"""The compiled learner with its memory: one class for compiled worlds, one for Python environments.

Both hold everything a run is made of in plain arrays, so that it can be cut anywhere, saved, and taken up again with
the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from multiadvisor import draws
from multiadvisor.compiled import is_cached, specialise
from multiadvisor.errors import BadInput
from multiadvisor.settings import Settings
from multiadvisor.tabular import kernel
from multiadvisor.task import Task


class Played(NamedTuple):
    """Games of an evaluation."""

    score: np.ndarray  # [games]
    turns: np.ndarray  # [games]
    finished: np.ndarray  # [games] 1 where the game terminated, 0 where it was cut off
    returns: np.ndarray  # [games, n] each advisor's sum of rewards, before weights


def _say_compiling(dispatcher: Any) -> None:
    if not is_cached(dispatcher):
        print("compiling for this machine, once (about 10 s) ...", file=sys.stderr, flush=True)


def shared_advisors(task: Task) -> int:
    """How many advisors, the first ones, may share tables: -1 where they are too many, or not the first."""
    sharing = [j for j, focus in enumerate(task.foci) if focus.table is not None]
    if not sharing:
        return 0
    return len(sharing) if sharing == list(range(len(sharing))) and len(sharing) <= 8 else -1


class CompiledLearner:
    """Learns inside a compiled world."""

    def __init__(self, task: Task, settings: Settings) -> None:
        assert task.world is not None
        self.task, self.settings = task, settings
        world = task.world
        layout = task.layout()
        self.layout = np.stack([layout.offset, layout.stride])
        self.focus = np.stack([task.weights, task.gammas(settings.gamma)])
        self.table = np.zeros((layout.rows, len(task.actions)))
        self.x = np.zeros(world.size, np.int64)
        self.clock = np.array([0, 0, 0, 1])
        self.tally = np.zeros(2)
        self.key = draws.stream_key(settings.seed, draws.TRAINING)
        self._limit = -1 if task.limit is None else task.limit
        self._shared = shared_advisors(task)
        self._loop = specialise(
            kernel.play, reset=world.reset, begin=world.begin, local_states=world.local_states, step=world.step
        )

    def _play(
        self, x: np.ndarray, clock: np.ndarray, tally: np.ndarray, key: np.uint64, *, turns: int, games: int,
        learning: bool,
    ) -> Played:  # fmt: skip
        task, settings = self.task, self.settings
        assert task.world is not None
        whole, real = np.zeros((5, task.n), np.int64), np.zeros((2, task.n))
        played = Played(
            np.zeros(games), np.zeros(games, np.int64), np.zeros(games, np.int64), np.zeros((games, task.n))
        )
        _say_compiling(self._loop)
        self._loop(
            task.world.constants, x, self.table, np.zeros(self.table.shape[1]), whole, real, self.layout, self.focus,
            clock, tally, key, kernel.PLANNING_CODES[settings.planning], float(settings.alpha),
            float(settings.epsilon) if learning else 0.0, float(settings.noise) if learning else 0.0, self._limit,
            self._shared, learning, turns, *played,
        )  # fmt: skip
        return played

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
        turns = np.iinfo(np.int64).max if self._limit > 0 else games * 100_000
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
        x = np.ascontiguousarray(state, np.int64)
        if x.shape != (world.size,):
            raise BadInput(f"a state of {self.task.name!r} has {world.size} numbers, not the shape {x.shape}")
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
        return {"table": self.table, "x": self.x, "clock": self.clock, "tally": self.tally}

    def restore(self, tensors: dict[str, np.ndarray]) -> None:
        """Take up what `tensors` gave."""
        _copy_all(self.tensors(), tensors)

    def close(self) -> None:
        """Nothing to close."""


def _copy_all(own: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> None:
    for name, array in own.items():
        if name not in given or given[name].shape != array.shape or given[name].dtype != array.dtype:
            raise BadInput(f"the checkpoint's {name!r} does not fit this task: it was made for another one")
        array[...] = given[name]


class _Slots(NamedTuple):
    """What the adapter's kernel needs to remember between two steps."""

    total: np.ndarray  # [A]
    whole: np.ndarray  # [7, n]
    real: np.ndarray  # [2, n]
    clock: np.ndarray  # [6]
    tally: np.ndarray  # [2]
    returns: np.ndarray  # [n]

    @classmethod
    def empty(cls, n: int, actions: int) -> _Slots:
        return cls(
            np.zeros(actions), np.zeros((7, n), np.int64), np.zeros((2, n)), np.array([0, 0, 0, 1, 0, 0]),
            np.zeros(2), np.zeros(n),
        )  # fmt: skip


class AdapterLearner:
    """Learns in a Gymnasium environment.

    Each game starts from a seed of its own and its actions are remembered, so that a run that was saved, or whose
    environment was borrowed for an evaluation, goes on exactly where it was: the game is played again up to that point.
    """

    def __init__(self, task: Task, settings: Settings) -> None:
        assert task.adapter is not None
        self.task, self.settings, self.adapter = task, settings, task.adapter
        n, actions = task.n, len(task.actions)
        adapter = self.adapter
        self.layout = np.stack([adapter.position, np.ones(n, np.int64), adapter.view_of, adapter.source])
        self.focus = np.stack([task.weights, task.gammas(settings.gamma)])
        self.table = np.zeros((max(adapter.rows, 64), actions))
        self.slots = _Slots.empty(n, actions)
        self.key = np.array([draws.stream_key(settings.seed, draws.TRAINING)])
        self.numbers = np.array([settings.alpha, settings.epsilon, settings.noise], float)
        self.trail: list[int] = []
        self._displaced = False
        self._shared = shared_advisors(task)

    @property
    def clock(self) -> np.ndarray:
        """Turns, games, turns of this game, and whether a new one is due."""
        return self.slots.clock

    @property
    def tally(self) -> np.ndarray:
        """The score of this game, and of all games before it."""
        return self.slots.tally

    def _grow(self) -> None:
        if self.adapter.rows > len(self.table):
            bigger = np.zeros((max(self.adapter.rows, 2 * len(self.table)), self.table.shape[1]))
            bigger[: len(self.table)] = self.table
            self.table = bigger

    def _turn(self, slots: _Slots, numbers: np.ndarray, key: np.ndarray, learning: bool) -> Callable[[int], int]:
        """The compiled call with all that stays the same; it is bound anew only when the table grows."""
        adapter, call = self.adapter, kernel.adapter_turn
        planning, shared = kernel.PLANNING_CODES[self.settings.planning], self._shared
        layout, focus, firsts, signals, flags = self.layout, self.focus, adapter.firsts, adapter.signals, adapter.flags
        total, whole, real, clock, tally, returns = slots

        def turn(event: int) -> int:
            if adapter.rows > len(self.table):
                self._grow()
            action = call(
                self.table, total, whole, real, layout, focus, firsts, signals, flags, clock, tally, returns,
                numbers, key, planning, shared, learning, event,
            )  # fmt: skip
            if action < 0:
                name = self.task.foci[-1 - action].name
                raise BadInput(f"the reward of focus {name!r} is not finite: correct its reward function")
            return action

        return turn

    def _game_seed(self, stream: int, index: int, game: int) -> int:
        return int(draws.stream_key(self.settings.seed, stream, index * (1 << 40) + game)) >> 33

    def _deal(self) -> int:
        """Start the next training game."""
        slots = self.slots
        self.adapter.reset(self._game_seed(draws.ENVIRONMENT, 0, int(slots.clock[kernel.GAMES])))
        slots.clock[kernel.FRESH], slots.clock[kernel.GAME_TURN], slots.tally[kernel.GAME_SCORE] = 0, 0, 0.0
        self.trail.clear()
        self._displaced = False
        return self._turn(slots, self.numbers, self.key, True)(kernel.DEAL)

    def _resume(self) -> int:
        """Play the current game again up to where it was, then choose the next action."""
        clock, tally = self.slots.clock, self.slots.tally
        self.adapter.reset(self._game_seed(draws.ENVIRONMENT, 0, int(clock[kernel.GAMES])))
        for action in self.trail:
            terminated, truncated = self.adapter.step(action)
            if terminated or truncated:
                raise BadInput(
                    f"task {self.task.name!r} did not repeat itself from the same seed and actions, so that its run "
                    "cannot go on: run check_task on it"
                )
        self._displaced = False
        score = tally[kernel.GAME_SCORE]
        action = self._turn(self.slots, self.numbers, self.key, True)(kernel.DEAL)
        tally[kernel.GAME_SCORE] = score
        return action

    def run(self, turns: int) -> None:
        """Play and learn for this many turns."""
        _say_compiling(kernel.adapter_turn)
        clock, tally, step = self.slots.clock, self.slots.tally, self.adapter.step
        turn = self._turn(self.slots, self.numbers, self.key, True)
        trail = self.trail
        action = -1 if clock[kernel.FRESH] else self._resume() if self._displaced else int(clock[kernel.ACTION])
        for _ in range(turns):
            if action < 0:
                action = self._deal()
            trail.append(action)
            terminated, truncated = step(action)
            if terminated or truncated:
                turn(kernel.TERMINATED if terminated else kernel.TRUNCATED)
                clock[kernel.GAMES] += 1
                clock[kernel.FRESH] = 1
                tally[kernel.SCORE_SUM] += tally[kernel.GAME_SCORE]
                action = -1
            else:
                action = turn(kernel.STEP)

    def evaluate(self, games: int, seed: int) -> Played:
        """Play greedily without learning; the run goes on afterwards as if nothing had happened."""
        _say_compiling(kernel.adapter_turn)
        self._displaced = True
        n, adapter = self.task.n, self.adapter
        played = Played(np.zeros(games), np.zeros(games, np.int64), np.zeros(games, np.int64), np.zeros((games, n)))
        key = np.array([draws.stream_key(self.settings.seed, draws.EVALUATION, seed)])
        numbers = np.array([0.0, 0.0, 0.0])
        slots = _Slots.empty(n, self.table.shape[1])
        turn = self._turn(slots, numbers, key, False)
        for game in range(games):
            adapter.reset(self._game_seed(draws.EVALUATION, 1 + seed, game))
            slots.tally[:], slots.returns[:] = 0.0, 0.0
            length, over = 0, False
            action = turn(kernel.DEAL)
            while not over:
                terminated, truncated = adapter.step(action)
                over = terminated or truncated
                length += 1
                action = turn(kernel.TERMINATED if terminated else kernel.TRUNCATED if truncated else kernel.STEP)
                if length > 1_000_000:
                    raise BadInput(
                        f"a game of {self.task.name!r} did not end in a million steps: wrap the environment in a "
                        "TimeLimit"
                    )
            played.score[game], played.turns[game] = slots.tally[kernel.GAME_SCORE], length
            played.finished[game], played.returns[game] = int(terminated), slots.returns
        return played

    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The active advisors [m] and their rows [m] for an observation."""
        adapter = self.adapter
        adapter.look(state)
        self._grow()
        self._displaced = True
        advisors = np.flatnonzero(adapter.flags[0])
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
        counted = json.dumps(self.adapter.counted()).encode()
        return {
            "table": self.table[: self.adapter.rows], "clock": self.slots.clock, "tally": self.slots.tally,
            "trail": np.array(self.trail, np.int64), "counted": np.frombuffer(counted, np.uint8),
        }  # fmt: skip

    def restore(self, tensors: dict[str, np.ndarray]) -> None:
        """Take up what `tensors` gave."""
        fixed = {"clock": self.slots.clock, "tally": self.slots.tally}
        for name in ("table", "trail", "counted"):
            if name not in tensors:
                raise BadInput(f"the checkpoint has no {name!r}: it was made for another task")
        _copy_all(fixed, tensors)
        table = tensors["table"]
        if table.ndim != 2 or table.shape[1] != self.table.shape[1]:
            raise BadInput(f"the checkpoint has {table.shape[-1]} actions, the task {self.table.shape[1]}")
        self.adapter.recount(json.loads(tensors["counted"].tobytes()), len(table))
        self.table = np.array(table)
        self.trail = [int(action) for action in tensors["trail"]]
        self._displaced = True

    def close(self) -> None:
        """Close the environment."""
        self.adapter.env.close()


def learner_for(task: Task, settings: Settings) -> CompiledLearner | AdapterLearner:
    """The learner that fits the task."""
    return CompiledLearner(task, settings) if task.world is not None else AdapterLearner(task, settings)
