"""Python environments of a task, stepped one after the other; a run that was saved resumes where its segments end.

An environment is seeded again every thousand steps or so, at the start of an episode, and the actions since then are
kept. So a run that was saved, or whose environment was borrowed for an evaluation, resumes exactly where it was: that
segment is played again. (Seeding every episode would cost more than learning where episodes are short.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiadvisor.core.rng import ENVIRONMENT, environment_seed
from multiadvisor.core.validation import Arrays, array, require, whole
from multiadvisor.envs.observation_encoder import ObservationEncoder
from multiadvisor.envs.step import Step, copied
from multiadvisor.errors import BadInput
from multiadvisor.task import Task, Transition

LENGTH = 1000  # steps after which the next episode begins a new segment


class Segment:
    """From the last seed on, in the environment number `place` of a run with this seed."""

    def __init__(self, task: str, seed: int, place: int = 0) -> None:
        self._task, self._seed, self._place = task, seed, place
        self.seeded_at = 0
        """The step at which it began."""
        self.actions: list[Any] = []
        """The actions since then, as the adapter takes them: counted from 0, or arrays."""

    def _first(self) -> int:
        return environment_seed(self._seed, ENVIRONMENT, self.seeded_at + (self._place << 40))

    def next_seed(self, step: int) -> int | None:
        """The seed of the episode that begins at this step; None where it needs none."""
        if self.actions and len(self.actions) < LENGTH:
            return None
        self.begin(step)
        return self._first()

    def begin(self, step: int) -> None:
        """Whatever was going on is given up, and the next episode begins a new segment."""
        self.seeded_at = step
        self.actions.clear()

    def play_again(self, reset: Callable[[int | None], Any], step: Callable[[Any], tuple[bool, bool]]) -> bool:
        """Play it again: whether its last episode is over."""
        reset(self._first())
        over = False
        for steps, action in enumerate(self.actions):
            if over:
                if steps >= LENGTH:  # a new segment would have begun here
                    raise self.not_reproducible()
                reset(None)
            over = any(step(action))
        return over

    def not_reproducible(self) -> BadInput:
        """The complaint about episodes that went another way than before."""
        return BadInput(
            f"task {self._task!r} is not reproducible from the same seed and actions, so its run cannot be resumed: "
            "run check_task on it"
        )


class PythonEnv:
    """N environments of a task; `seeds` are the seed of the run that each serves, and its place in that run.

    >>> import multiadvisor as mad
    >>> task = mad.make("CliffWalking-v1")
    >>> env = PythonEnv(task, [task.adapter.env], [(0, 0)])
    >>> env.reset(), env.step(np.array([0])).next_state
    ([36], [24])
    """

    waits = False

    def __init__(
        self, task: Task, envs: Sequence[Any], seeds: Sequence[tuple[int, int]],
        encoder: ObservationEncoder | None = None,
    ) -> None:  # fmt: skip
        assert task.adapter is not None
        self.task, self.envs, self.encoder = task, list(envs), encoder
        self.adapters = [task.adapter.fresh(table=False, env=env) for env in self.envs]
        self.segments = [Segment(task.name, seed, place) for seed, place in seeds]
        self.steps = np.zeros(len(self.envs), np.int64)
        """[N] how many each place has seen."""
        self.state: list[Any] = [None] * len(self.envs)
        """[N] where the episodes are."""
        self.torn = False
        """Whether a step failed on the way, so that the episodes are not where the segments end."""
        self._varies = task.adapter.varies
        self._ends = any(advisor.ended is not None for advisor in task.advisors)
        self._everybody = np.ones((len(self.envs), task.n), bool)
        self._nobody_begins = np.zeros(len(self.envs), bool)

    @property
    def active(self) -> np.ndarray:
        """[N, n] who is active there."""
        if not self._varies:
            return self._everybody
        return np.array([adapter.now_active for adapter in self.adapters], bool)

    def active_in(self, state: Any) -> np.ndarray:
        """[n] who is active in one state."""
        return self.adapters[0].active_in(state)

    def begin(self, i: int, seed: int | None) -> None:
        """An episode in place i, with this seed."""
        self.adapters[i].reset(seed)
        self.state = [*self.state[:i], copied(self.adapters[i].observation), *self.state[i + 1 :]]

    def reset(self, which: np.ndarray | None = None) -> list[Any]:
        """Begin an episode in every place, or in those of `which` [N] bool: where the episodes are."""
        for i in range(len(self.envs)) if which is None else np.flatnonzero(which).tolist():
            self.begin(i, self.segments[i].next_seed(int(self.steps[i])))
        return self.state

    def step(self, actions: np.ndarray, playing: np.ndarray | None = None) -> Step:
        """A step of every episode."""
        count, n = len(self.envs), self.task.n
        state, advisors = self.state, self.active
        reward, ended = np.zeros((count, n)), np.zeros((count, n), bool)
        terminated, truncated = np.zeros(count, bool), np.zeros(count, bool)
        self.torn = True
        chosen = actions.tolist() if actions.ndim == 1 else list(actions.copy())
        following = []
        for i, (adapter, action) in enumerate(zip(self.adapters, chosen, strict=True)):
            terminated[i], truncated[i] = adapter.step(action)
            reward[i] = adapter.paid
            if self._ends:
                ended[i] = adapter.has_ended
            following.append(copied(adapter.observation))
        self.steps += 1
        for segment, action in zip(self.segments, chosen, strict=True):
            segment.actions.append(action)  # only now: a step that failed on the way is no part of the run
        self.state, self.torn = following, False
        after = advisors
        if self._varies:
            after = self.active
            ended = (ended | ~after) & advisors
        return Step(
            state, actions, advisors, reward, ended, terminated, truncated, following, after,
            self._nobody_begins,
        )  # fmt: skip

    def encode(self, states: Sequence[Any]) -> np.ndarray:
        """Observations [N] as a network sees them [N, F]."""
        assert self.encoder is not None
        return self.encoder.rows(states)

    def read(self, transition: Transition) -> Step:
        """A step of the only place that somebody else made."""
        adapter, number = self.adapters[0], transition.action - self.task.first_action
        self.torn = True  # the adapter looks elsewhere now than where the episode is
        adapter.arrive(transition.observation)
        adapter.check_reward(transition.reward)
        before = self.active
        _, _, reward, after, *rest = transition
        terminated, truncated = adapter.step(number, (after, reward, *rest))
        ended = (adapter.has_ended == 1)[None]
        return Step(
            [transition.observation], np.array([number]), before, adapter.paid[None], (ended | ~self.active) & before,
            np.array([terminated]), np.array([truncated]), [transition.next_observation], self.active,
            self._nobody_begins,
        )  # fmt: skip

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    def forget(self, steps: np.ndarray) -> None:
        """The episodes are given up, after `steps` [N] of them and of others: new ones can be begun."""
        for segment, step in zip(self.segments, steps.tolist(), strict=True):
            segment.begin(step)
        self.steps[...], self.torn = steps, False

    def tensors(self) -> Arrays:
        """Where the episodes are: seeds and actions."""
        logs, box = [segment.actions for segment in self.segments], self.adapters[0].box
        size = () if box is None else (box.size,)
        trail = np.array([action for log in logs for action in log], np.float32 if size else np.int64)
        return {
            "seeded_at": np.array([segment.seeded_at for segment in self.segments], np.int64),
            "env_steps": self.steps, "trail_lengths": np.array([len(log) for log in logs], np.int64),
            "trail": trail.reshape(len(trail), *size),  # [T] their numbers, or [T, size] from -1 to 1
        }  # fmt: skip

    def restore(self, tensors: Arrays, steps: np.ndarray) -> bool:
        """Resume what `tensors` gave after `steps` [N]: the segments are played again up to where they were."""
        count, box = len(self.envs), self.adapters[0].box
        if box is None:
            log = whole(tensors, "trail", (None,), 0, len(self.task.actions))
        else:
            log = array(tensors, "trail", (None, box.size), np.float32)
            require((np.abs(log) <= 1.0).all(), "trail")
        lengths = whole(tensors, "trail_lengths", (count,), 0, len(log) + 1)
        seeded_at = whole(tensors, "seeded_at", (count,))
        require((whole(tensors, "env_steps", (count,)) == steps).all(), "env_steps")
        require((seeded_at + lengths == steps).all() and lengths.sum() == len(log), "trail_lengths")
        self.steps[...] = steps
        parts = np.split(log, np.cumsum(lengths)[:-1])
        for segment, begun, part in zip(self.segments, seeded_at.tolist(), parts, strict=True):
            segment.seeded_at, segment.actions = begun, part.tolist() if box is None else list(part)
        self.find_back()
        return True

    def find_back(self) -> None:
        """Play the segments again up to where they were."""
        for i, (adapter, segment) in enumerate(zip(self.adapters, self.segments, strict=True)):
            if segment.play_again(adapter.reset, adapter.step):
                self.begin(i, segment.next_seed(int(self.steps[i])))
            else:
                self.state[i] = copied(adapter.observation)
        self.torn = False
