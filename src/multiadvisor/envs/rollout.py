"""The episodes of an evaluation, one step at a time: in a compiled world, or in a Python environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from multiadvisor.core.rng import CHOICE, EVALUATION, draw_python, environment_seed, episode_key, stream_key
from multiadvisor.envs.compiled_episodes import Episode
from multiadvisor.envs.stepping import LONGEST_EPISODE, copied, endless, finite_reward
from multiadvisor.errors import BadInput
from multiadvisor.task import Task


class Step(NamedTuple):
    """What one step brought to the advisors that were active in it."""

    state: Any  # where it began: x [size], or an observation
    action: Any  # counted from 0, or an array from -1 to 1
    advisors: np.ndarray  # [m] who was active
    reward: np.ndarray  # [m]
    ended: np.ndarray  # [m] bool: whose own part it ended
    terminated: bool
    truncated: bool
    after: Any  # where it led
    gain: float  # what it adds to the score

    @property
    def over(self) -> bool:
        """Whether it was the episode's last."""
        return self.terminated or self.truncated


class Source(Protocol):
    """Where episodes are played."""

    task: Task

    def deal(self, episode: int) -> Any:
        """Begin this episode: its first state."""

    def draw(self) -> int:
        """The 64 bits that this step's choice is drawn from."""

    def step(self, state: Any, action: Any) -> Step:
        """Play a step."""


def rollout(source: Source, episode: int, act: Callable[[Any, int], Any]) -> Iterator[Step]:
    """One episode, step by step; `act` chooses by the state and the step's draw, and counts actions from 0.

    >>> import multiadvisor as mad
    >>> source = episodes_of(mad.make("three-fruits"), 0, 0)
    >>> [step.action for step in rollout(source, 0, lambda x, draw: 0)][:3]
    [0, 0, 0]
    """
    state = source.deal(episode)
    for _ in range(LONGEST_EPISODE):
        step = source.step(state, act(state, source.draw()))
        yield step
        if step.over:
            return
        state = step.after
    raise endless(source.task.name)


def episodes_of(task: Task, seed: int, evaluation: int, apart: bool = False, env: Any = None) -> Source:
    """The episodes that an agent with this seed plays in an evaluation.

    `apart`: each episode has draws of its own, as those have that a network plays side by side. `env`: another
    instance of the task's environment, in which they are to be played.
    """
    if task.world is not None:
        return _Compiled(task, seed, evaluation, apart)
    return _Environment(task, seed, evaluation, env)


class _Compiled:
    """Episodes of a compiled world."""

    def __init__(self, task: Task, seed: int, evaluation: int, apart: bool) -> None:
        self.task, self._seed, self._evaluation, self._apart = task, seed, evaluation, apart
        self._weights = task.weights
        self._take(stream_key(seed, EVALUATION, evaluation))

    def _take(self, key: np.uint64) -> None:
        self._key, self._episode = int(key), Episode(self.task, key)

    def deal(self, episode: int) -> np.ndarray:
        """Begin this episode: the state x."""
        if self._apart:
            self._take(episode_key(self._seed, self._evaluation, episode))
        self._episode.deal()
        return self._episode.x.copy()

    def draw(self) -> int:
        """The 64 bits that this step's choice is drawn from."""
        return draw_python(self._key, self._episode.elapsed, CHOICE)

    def step(self, state: Any, action: Any) -> Step:
        """Play a step."""
        now = self._episode.step(action)
        gain = float(self._weights[now.advisors] @ now.reward)
        return Step(
            state,
            action,
            now.advisors,
            now.reward,
            now.ended,
            now.terminated,
            now.truncated,
            self._episode.x.copy(),
            gain,
        )


class _Environment:
    """Episodes of a Python environment."""

    def __init__(self, task: Task, seed: int, evaluation: int, env: Any = None) -> None:
        assert task.adapter is not None
        if task.adapter.vector:
            raise BadInput(f"task {task.name!r} is a vector environment: a trace is of single episodes")
        if env is None:
            task.adapter.stage.user = None  # whoever trains in the environment has to find its way back
        self.task, self._seed, self._evaluation, self._weights = task, seed, evaluation, task.weights
        self._adapter = task.adapter.fresh(table=False, env=env)
        self._key, self._step = int(stream_key(seed, EVALUATION, evaluation)), 0

    def deal(self, episode: int) -> Any:
        """Begin this episode: the observation."""
        self._adapter.reset(environment_seed(self._seed, EVALUATION, ((1 + self._evaluation) << 32) + episode))
        if self.task.goals is not None:  # the episodes of a bank have draws of their own
            self._key, self._step = int(episode_key(self._seed, self._evaluation, episode)), 0
        return copied(self._adapter.observation)

    def draw(self) -> int:
        """The 64 bits that this step's choice is drawn from."""
        return draw_python(self._key, self._step, CHOICE)

    def step(self, state: Any, action: Any) -> Step:
        """Play a step."""
        adapter, goals = self._adapter, self.task.goals
        advisors = np.flatnonzero(adapter.now_active)
        terminated, truncated = adapter.step(action)
        self._step += 1
        reward, after = adapter.paid[advisors], copied(adapter.observation)
        ended = (adapter.has_ended[advisors] == 1) | (adapter.now_active[advisors] == 0)
        gain = float(self._weights[advisors] @ reward)
        if goals is not None:  # each is paid in units of its goal, and the score is the environment's own
            gain = finite_reward(adapter.signals[0])
            advisors, reward = np.arange(self.task.n), goals.earned(state, after, gain, self.task.n)
            ended = reward != 0  # whoever has reached its goal
        return Step(state, action, advisors, reward, ended, terminated, truncated, after, gain)
