"""A compiled world played step by step from Python: for environments, the reference learner, checks and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.compiling import specialise
from multiadvisor.draws import GAME, draw, turn_key
from multiadvisor.task import Task


class Happening(NamedTuple):
    """What one turn brought to the advisors that were active in it."""

    advisors: np.ndarray  # [m] who was active
    reward: np.ndarray  # [m]
    ended: np.ndarray  # [m] bool: whose own part is over
    local: np.ndarray  # [m] phi_j of the state arrived in
    terminated: bool
    truncated: bool


WAITS = 2  # instead of fresh: leave this game alone


def reset(constants, x, key):
    """Bound to the world's function before compiling, as are the three below."""


def begin(constants, x, advisors):
    """See `reset`."""


def local_states(constants, x, advisors, m, local):
    """See `reset`."""


def step(constants, x, action, key, advisors, m, reward, ended):
    """See `reset`."""


def many_turns(constants, x, action, fresh, turn, key, limit, advisors, active, local, reward, ended, terminated, over):
    """One turn of every game of a batch, the games in axis 0; a fresh game is dealt and waits for its first action."""
    for b in range(x.shape[0]):
        if fresh[b] == WAITS:
            continue
        now = turn_key(key[b], turn[b, 0])
        over[b] = False
        terminated[b] = False
        for i in range(advisors.shape[1]):
            reward[b, i] = 0.0
            ended[b, i] = 0
        if fresh[b] == 1:
            reset(constants, x[b], draw(now, GAME))
            active[b] = begin(constants, x[b], advisors[b])
            turn[b, 1] = 0
        else:
            active[b] = begin(constants, x[b], advisors[b])
            terminated[b] = step(constants, x[b], action[b], now, advisors[b], active[b], reward[b], ended[b])
            turn[b, 0] += 1
            turn[b, 1] += 1
            over[b] = terminated[b] or turn[b, 1] == limit
        local_states(constants, x[b], advisors[b], active[b], local[b])


class Games:
    """A batch of games of one compiled world, stepped together in one compiled call.

    Game b draws from keys[b]; its turns are numbered on through all its games, so that a game depends on its key and on
    how many turns went before it, and on nothing else.
    """

    def __init__(self, task: Task, keys: Any) -> None:
        assert task.world is not None
        world = task.world
        self.task = task
        self.keys = np.asarray(keys, np.uint64)
        batch, n = len(self.keys), task.n
        self.x = np.zeros((batch, world.size), np.int64)
        self.turn = np.zeros((batch, 2), np.int64)  # all turns, turns of this game
        self.fresh = np.ones(batch, np.int64)
        self.advisors = np.zeros((batch, n), np.int64)
        self.active = np.zeros(batch, np.int64)
        self.local = np.zeros((batch, n), np.int64)
        self.reward = np.zeros((batch, n))
        self.ended = np.zeros((batch, n), np.int64)
        self.terminated = np.zeros(batch, bool)
        self.over = np.zeros(batch, bool)  # terminated or truncated
        self._limit = -1 if task.limit is None else task.limit
        self._turns = specialise(
            many_turns, reset=world.reset, begin=world.begin, local_states=world.local_states, step=world.step
        )

    def step(self, actions: np.ndarray) -> None:
        """One turn of every game; fresh ones are dealt."""
        assert self.task.world is not None
        self._turns(
            self.task.world.constants, self.x, np.ascontiguousarray(actions, np.int64), self.fresh, self.turn,
            self.keys, self._limit, self.advisors, self.active, self.local, self.reward, self.ended,
            self.terminated, self.over,
        )  # fmt: skip
        self.fresh[:] = 0

    def until_over(self, act: Callable[[], np.ndarray], longest: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Play each game to its end, or so many turns: who played a turn [B] bool, and what it paid by advisor [B, n].

        `act` gives the actions [B]; a game that is over waits where it ended.

        >>> import multiadvisor as mad
        >>> games = Games(mad.make("three-fruits"), [0, 1])
        >>> games.deal(np.ones(2, bool))
        >>> len(list(games.until_over(lambda: np.zeros(2, np.int64), 5)))
        5
        """
        playing = np.ones(len(self.keys), bool)
        for _ in range(longest):
            self.fresh[:] = np.where(playing, 0, WAITS)
            self.step(act())
            game, slot = np.nonzero(playing[:, None] & (np.arange(self.task.n) < self.active[:, None]))
            paid = np.zeros((len(playing), self.task.n))
            paid[game, self.advisors[game, slot]] = self.reward[game, slot]
            yield playing, paid
            playing = playing & ~self.over
            if not playing.any():
                return

    def deal(self, which: np.ndarray) -> None:
        """Start the games in `which` [B] anew; the others wait."""
        self.fresh[:] = np.where(which, 1, WAITS)
        self.step(np.zeros(len(self.keys), np.int64))


class Game:
    """One game of a compiled world."""

    def __init__(self, task: Task, key: np.uint64) -> None:
        self._games = Games(task, [key])

    @property
    def x(self) -> np.ndarray:
        """The state x."""
        return self._games.x[0]

    @property
    def turn(self) -> int:
        """The number of turns played, over all games."""
        return int(self._games.turn[0, 0])

    def deal(self) -> tuple[np.ndarray, np.ndarray]:
        """Start a game: the active advisors [m] and their local states [m]."""
        self._games.fresh[:] = 1
        self._games.step(np.zeros(1, np.int64))
        m = self._games.active[0]
        return self._games.advisors[0, :m].copy(), self._games.local[0, :m].copy()

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """Who is active where the game stands [m], and their local states [m]."""
        world = self._games.task.world
        assert world is not None
        advisors, local = np.zeros((2, self._games.task.n), np.int64)
        m = world.begin(world.constants, self.x, advisors)
        world.local_states(world.constants, self.x, advisors, m, local)
        return advisors[:m], local[:m]

    def step(self, action: int) -> Happening:
        """Play one turn."""
        games = self._games
        games.step(np.array([action]))
        m = games.active[0]
        return Happening(
            games.advisors[0, :m].copy(), games.reward[0, :m].copy(), games.ended[0, :m] != 0,
            games.local[0, :m].copy(), bool(games.terminated[0]), bool(games.over[0] and not games.terminated[0]),
        )  # fmt: skip
