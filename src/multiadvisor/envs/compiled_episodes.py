"""A compiled world played step by step from Python: for environments, the reference learner, checks and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.compiling import specialise
from multiadvisor.core.rng import EPISODE, draw, step_key
from multiadvisor.task import Task


class StepResult(NamedTuple):
    """What one step brought to the advisors that were active in it."""

    advisors: np.ndarray  # [m] who was active
    reward: np.ndarray  # [m]
    ended: np.ndarray  # [m] bool: whose own part is over
    local: np.ndarray  # [m] phi_j of the state arrived in
    terminated: bool
    truncated: bool


WAITS = 2  # instead of fresh: leave this episode alone


def reset(constants, x, key):
    """Bound to the world's function before compiling, as are the three below."""


def begin(constants, x, advisors):
    """See `reset`."""


def local_states(constants, x, advisors, m, local):
    """See `reset`."""


def step(constants, x, action, key, advisors, m, reward, ended):
    """See `reset`."""


def many_steps(
    constants, x, action, fresh, elapsed, key, limit, advisors, active, local, reward, ended, terminated, over
):
    """One step of every episode of a batch, the episodes in axis 0; a fresh episode is dealt and waits for its first
    action."""
    for b in range(x.shape[0]):
        if fresh[b] == WAITS:
            continue
        now = step_key(key[b], elapsed[b, 0])
        over[b] = False
        terminated[b] = False
        for i in range(advisors.shape[1]):
            reward[b, i] = 0.0
            ended[b, i] = 0
        if fresh[b] == 1:
            reset(constants, x[b], draw(now, EPISODE))
            active[b] = begin(constants, x[b], advisors[b])
            elapsed[b, 1] = 0
        else:
            active[b] = begin(constants, x[b], advisors[b])
            terminated[b] = step(constants, x[b], action[b], now, advisors[b], active[b], reward[b], ended[b])
            elapsed[b, 0] += 1
            elapsed[b, 1] += 1
            over[b] = terminated[b] or elapsed[b, 1] == limit
        local_states(constants, x[b], advisors[b], active[b], local[b])


class Episodes:
    """A batch of episodes of one compiled world, stepped together in one compiled call.

    Episode b draws from keys[b]; its steps are numbered on through all its episodes, so that an episode depends on its
    key and on how many steps went before it, and on nothing else.
    """

    def __init__(self, task: Task, keys: Any) -> None:
        assert task.world is not None
        world = task.world
        self.task = task
        self.keys = np.asarray(keys, np.uint64)
        batch, n = len(self.keys), task.n
        self.x = np.zeros((batch, world.size), np.int64)
        self.elapsed = np.zeros((batch, 2), np.int64)  # all steps, steps of this episode
        self.fresh = np.ones(batch, np.int64)
        self.advisors = np.zeros((batch, n), np.int64)
        self.active = np.zeros(batch, np.int64)
        self.local = np.zeros((batch, n), np.int64)
        self.reward = np.zeros((batch, n))
        self.ended = np.zeros((batch, n), np.int64)
        self.terminated = np.zeros(batch, bool)
        self.over = np.zeros(batch, bool)  # terminated or truncated
        self._limit = -1 if task.limit is None else task.limit
        self._steps = specialise(
            many_steps, reset=world.reset, begin=world.begin, local_states=world.local_states, step=world.step
        )

    def step(self, actions: np.ndarray) -> None:
        """One step of every episode; fresh ones are dealt."""
        assert self.task.world is not None
        self._steps(
            self.task.world.constants, self.x, np.ascontiguousarray(actions, np.int64), self.fresh, self.elapsed,
            self.keys, self._limit, self.advisors, self.active, self.local, self.reward, self.ended,
            self.terminated, self.over,
        )  # fmt: skip
        self.fresh[:] = 0

    def until_over(self, act: Callable[[], np.ndarray], longest: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Play each episode to its end, or so many steps: who played a step [B] bool, and what it paid by advisor [B,
        n].

        `act` gives the actions [B]; an episode that is over waits where it ended.

        >>> import multiadvisor as mad
        >>> episodes = Episodes(mad.make("three-fruits"), [0, 1])
        >>> episodes.deal(np.ones(2, bool))
        >>> len(list(episodes.until_over(lambda: np.zeros(2, np.int64), 5)))
        5
        """
        playing = np.ones(len(self.keys), bool)
        for _ in range(longest):
            self.fresh[:] = np.where(playing, 0, WAITS)
            self.step(act())
            episode, slot = np.nonzero(playing[:, None] & (np.arange(self.task.n) < self.active[:, None]))
            paid = np.zeros((len(playing), self.task.n))
            paid[episode, self.advisors[episode, slot]] = self.reward[episode, slot]
            yield playing, paid
            playing = playing & ~self.over
            if not playing.any():
                return

    def deal(self, which: np.ndarray) -> None:
        """Start the episodes in `which` [B] anew; the others wait."""
        self.fresh[:] = np.where(which, 1, WAITS)
        self.step(np.zeros(len(self.keys), np.int64))


class Episode:
    """One episode of a compiled world."""

    def __init__(self, task: Task, key: np.uint64) -> None:
        self._episodes = Episodes(task, [key])

    @property
    def x(self) -> np.ndarray:
        """The state x."""
        return self._episodes.x[0]

    @property
    def elapsed(self) -> int:
        """The number of steps played, over all episodes."""
        return int(self._episodes.elapsed[0, 0])

    def deal(self) -> tuple[np.ndarray, np.ndarray]:
        """Start an episode: the active advisors [m] and their local states [m]."""
        self._episodes.fresh[:] = 1
        self._episodes.step(np.zeros(1, np.int64))
        m = self._episodes.active[0]
        return self._episodes.advisors[0, :m].copy(), self._episodes.local[0, :m].copy()

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """Who is active where the episode stands [m], and their local states [m]."""
        world = self._episodes.task.world
        assert world is not None
        advisors, local = np.zeros((2, self._episodes.task.n), np.int64)
        m = world.begin(world.constants, self.x, advisors)
        world.local_states(world.constants, self.x, advisors, m, local)
        return advisors[:m], local[:m]

    def step(self, action: int) -> StepResult:
        """Play one step."""
        episodes = self._episodes
        episodes.step(np.array([action]))
        m = episodes.active[0]
        return StepResult(
            episodes.advisors[0, :m].copy(),
            episodes.reward[0, :m].copy(),
            episodes.ended[0, :m] != 0,
            episodes.local[0, :m].copy(),
            bool(episodes.terminated[0]),
            bool(episodes.over[0] and not episodes.terminated[0]),
        )
