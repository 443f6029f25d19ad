"""A compiled world as an environment: N episodes, stepped together in one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.core.compiling import specialise
from multiadvisor.core.rng import EPISODE, draw, step_key
from multiadvisor.core.validation import MOST_STEPS, Arrays, array, require, whole
from multiadvisor.envs.observation_encoder import ObservationEncoder
from multiadvisor.envs.step import Step
from multiadvisor.task import Task

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
    """One step of every episode of a batch, the episodes in axis 0; a fresh one is begun and waits for its first
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


def who_is_active(constants, x, advisors, active):
    """active [N, n] from the states x [N, size]; `advisors` [n] is a place to write."""
    for b in range(x.shape[0]):
        for j in range(active.shape[1]):
            active[b, j] = False
        for i in range(begin(constants, x[b], advisors)):
            active[b, advisors[i]] = True


class CompiledEnv:
    """N episodes of one compiled world.

    Episode b draws from keys[b]; its steps are numbered on through all its episodes, so that an episode depends on its
    key and on how many steps went before it, and on nothing else.

    >>> import multiadvisor as mad
    >>> env = CompiledEnv(mad.make("three-fruits"), [0, 1])
    >>> env.reset().tolist()
    [[12, 1, 1, 1], [12, 1, 1, 1]]
    >>> env.step(np.array([0, 1])).next_state.tolist()
    [[7, 1, 1, 1], [11, 1, 1, 1]]
    """

    waits = False

    def __init__(
        self, task: Task, keys: Any, encoder: ObservationEncoder | None = None, activity: bool = False
    ) -> None:
        """`activity`: steps also say who is active where they led."""
        assert task.world is not None
        self.task, self.world, self.encoder = task, task.world, encoder
        self.keys = np.asarray(keys, np.uint64)
        batch, n = len(self.keys), task.n
        self.x = np.zeros((batch, self.world.size), np.int64)
        self.elapsed = np.zeros((batch, 2), np.int64)  # all steps, steps of this episode
        self.fresh = np.ones(batch, np.int64)
        self.slots = np.zeros((batch, n), np.int64)  # the active advisors, as many as `count` says
        self.count = np.zeros(batch, np.int64)
        self.local = np.zeros((batch, n), np.int64)  # their local states
        self.reward = np.zeros((batch, n))
        self.ended = np.zeros((batch, n), np.int64)
        self.terminated = np.zeros(batch, bool)
        self.over = np.zeros(batch, bool)  # terminated or truncated
        self._activity, self._places = activity, np.arange(n)
        self._limit = -1 if task.limit is None else task.limit
        functions = {name: getattr(self.world, name) for name in ("reset", "begin", "local_states", "step")}
        self._steps = specialise(many_steps, **functions)
        self._active = specialise(who_is_active, begin=self.world.begin)

    # ---- playing -----------------------------------------------------------------------------------------------------
    @property
    def state(self) -> np.ndarray:
        """[N, size] where the episodes are."""
        return self.x

    @property
    def active(self) -> np.ndarray:
        """[N, n] who is active there."""
        return self._mask(self.x)

    def _mask(self, x: np.ndarray) -> np.ndarray:
        active = np.zeros((len(x), self.task.n), bool)
        self._active(self.world.constants, x, np.zeros(self.task.n, np.int64), active)
        return active

    def active_in(self, state: Any) -> np.ndarray:
        """[n] who is active in a state from outside."""
        return np.asarray(self._mask(self.world.checked(state, self.task.name)[None])[0])

    def advance(self, actions: np.ndarray) -> None:
        """The compiled call: what `fresh` says begins or waits, all others make a step."""
        self._steps(
            self.world.constants, self.x, np.ascontiguousarray(actions, np.int64), self.fresh, self.elapsed, self.keys,
            self._limit, self.slots, self.count, self.local, self.reward, self.ended, self.terminated, self.over,
        )  # fmt: skip
        self.fresh[:] = 0

    def reset(self, which: np.ndarray | None = None) -> np.ndarray:
        """Begin an episode in every place, or in those of `which` [N] bool: where the episodes are [N, size]."""
        self.fresh[:] = 1 if which is None else np.where(which, 1, WAITS)
        self.advance(np.zeros(len(self.keys), np.int64))
        return self.x.copy()

    def step(self, actions: np.ndarray, playing: np.ndarray | None = None) -> Step:
        """A step of every episode; those not in `playing` [N] bool wait."""
        count, n = len(self.keys), self.task.n
        state, going = self.x.copy(), np.ones(count, bool) if playing is None else playing
        self.fresh[:] = np.where(going, 0, WAITS)
        self.advance(actions)
        episode, slot = np.nonzero(going[:, None] & (self._places < self.count[:, None]))
        who = self.slots[episode, slot]
        advisors, reward, ended = np.zeros((count, n), bool), np.zeros((count, n)), np.zeros((count, n), bool)
        advisors[episode, who], reward[episode, who] = True, self.reward[episode, slot]
        ended[episode, who] = self.ended[episode, slot] != 0
        terminated = self.terminated & going
        after = self._mask(self.x) if self._activity else advisors
        return Step(
            state, actions, advisors, reward, ended, terminated, self.over & going & ~terminated, self.x.copy(), after,
            np.zeros(count, bool),
        )  # fmt: skip

    def encode(self, states: np.ndarray) -> np.ndarray:
        """States [N, size] as a network sees them [N, F]."""
        assert self.encoder is not None
        return self.encoder.rows(states)

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    @property
    def steps(self) -> np.ndarray:
        """[N] how many each place has seen."""
        return self.elapsed[:, 0]

    def forget(self, steps: np.ndarray) -> None:
        """The episodes are given up, after `steps` [N]: new ones can be begun."""
        self.elapsed[:, 0], self.elapsed[:, 1] = steps, 0

    def tensors(self) -> Arrays:
        """Where the episodes are."""
        return {"x": self.x, "episode_step": self.elapsed}

    def restore(self, tensors: Arrays, steps: np.ndarray) -> bool:
        """Resume the episodes after `steps` [N]; False where they cannot be checked and others were begun."""
        limit = self.task.limit or MOST_STEPS
        x, step = array(tensors, "x", self.x.shape, np.int64), whole(tensors, "episode_step", self.elapsed.shape)
        sound = (step[:, 0] == steps).all() and (step[:, 1] <= steps).all() and (step[:, 1] < limit).all()
        require(sound, "episode_step")
        self.elapsed[...] = step
        if not all(self.world.sound(each, self.task.name) for each in x):
            self.reset()
            return False
        self.x[...], self.fresh[:] = x, 0
        return True
