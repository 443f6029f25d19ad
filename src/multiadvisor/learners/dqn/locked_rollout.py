"""Episodes without learning, and who has the only environment there is: what learners with networks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.core.validation import Arrays
from multiadvisor.envs.env_lock import EnvironmentLock
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout, vector_rollout
from multiadvisor.envs.step import Env, Step
from multiadvisor.envs.vector_env import VectorEnv
from multiadvisor.errors import BadInput
from multiadvisor.learners.protocol import EpisodeReturns, refuse_unobservable
from multiadvisor.task import Task


class LockedRollout(ABC):
    """Takes the environment's lock before it plays, and finds back to its own episodes if somebody else has played."""

    task: Task
    env: Any
    """One of the three `Env`, with its encoder."""
    current: np.ndarray
    """[N, F] what is acted on, as the network sees it."""
    _opened: bool
    """Whether its episodes have begun."""
    _watching: bool
    """Whether somebody else plays, and it observes."""

    def prepare(self) -> None:
        """Begin the episodes, unless somebody else plays; the update is compiled when it is first needed."""
        if not self._watching:
            self._open()

    def _open(self) -> None:
        if self._opened:
            return
        self.env.forget(self._times())
        with self._lock() as lock:
            lock.user = self
            self._begin_all()
        self._opened, self._watching = True, False

    def _begin_all(self) -> None:
        """New episodes, instead of those that were going on where there is no way back to them."""
        self.env.reset()
        self._look()
        self._begin()

    def _look(self) -> None:
        """See where the episodes are."""
        self.current = self.env.encode(self.env.state)

    def _step(self, actions: np.ndarray) -> tuple[Step, np.ndarray]:
        """A step of every episode and where it led [N, F]; episodes that it ended begin again."""
        step = self.env.step(actions)
        arrived = self.current = self.env.encode(step.next_state)
        over = step.over
        if np.count_nonzero(over):  # faster than `any`
            self.env.reset(over)
            self._look()
        return step, arrived

    def _episode_tensors(self) -> Arrays:
        """Where its episodes are, for a checkpoint."""
        return {"watching": np.ones(1, np.int64)} if self._watching else self.env.tensors()

    def _resume(self, episodes: Arrays, steps: np.ndarray) -> None:
        """Resume the episodes where they were after so many steps; or begin others, where that cannot be."""
        self._watching = "watching" in episodes
        self._opened = not self._watching
        self._see()
        if self._watching:
            refuse_unobservable(self.task)
            return
        with self._lock() as lock:
            lock.user = self
            resumed = self.env.restore(episodes, steps)
            self._look()
        if not resumed:
            self._begin()

    @abstractmethod
    def _see(self) -> None:
        """What follows from the networks, after they were changed."""

    @abstractmethod
    def _times(self) -> np.ndarray:
        """How many steps each episode has seen; the learner's."""

    @abstractmethod
    def _begin(self) -> None:
        """What a learner has to do where its episodes have just begun."""

    def run(self, steps: int) -> None:
        """Play and learn for this many steps, rounded up to whole steps of all episodes."""
        self._open()
        with self._lock():
            self._find_back()
            try:
                self._run(steps)
            except BaseException:
                if (self.env.steps != self._times()).any():  # the episodes have gone on and the memory has not:
                    self._opened = False  # others are begun, lest a transition lead from one place to another
                raise

    @abstractmethod
    def _run(self, steps: int) -> None:
        """Play and learn, with the lock taken and the episodes found back to."""

    @property
    def _alone(self) -> bool:
        """Whether training and evaluation have to share the only environment there is."""
        adapter = self.task.adapter
        return adapter is not None and not adapter.vector and self.env.envs[0] is adapter.env

    def _lock(self) -> EnvironmentLock:
        """To be taken before training: the only environment's, or another one where nobody else plays."""
        adapter = self.task.adapter
        return adapter.lock if adapter is not None and (self._alone or adapter.vector) else EnvironmentLock()

    def _find_back(self) -> None:
        """Where somebody else has played in the only environment, or a step failed, play the current segment again.

        In a vector environment other episodes are begun.
        """
        lock, adapter = self._lock(), self.task.adapter
        borrowed = lock.user is not self
        if getattr(self.env, "torn", False) or (borrowed and self._alone):
            self.env.find_back()
            self._look()
        elif borrowed and adapter is not None and adapter.vector:
            self._begin_all()
        lock.user = self

    # ---- playing without learning ------------------------------------------------------------------------------------
    def _evaluate_python(self, own: int, seed: int, episodes: int, act: Callable[[Any, int], Any]) -> EpisodeReturns:
        """The episodes of the evaluation `seed` of a run whose own seed is `own`, one after the other."""
        source = EvaluationEpisodes(self.task, own, seed)
        parts = []
        for episode in range(episodes):
            played = EpisodeStatistics(self.task, 1)
            for step in rollout(source, episode, act):
                played.add(step.reward[None], np.array([step.terminated]), np.zeros(1, np.int64))
            parts.append(played.result())
        return EpisodeReturns(*(np.concatenate(axis) for axis in zip(*parts, strict=True)))

    def _evaluate_vector(
        self, env: VectorEnv, seed: int, episodes: int, act: Callable[[], np.ndarray]
    ) -> EpisodeReturns:
        """The first episodes of each of a vector environment's places; the training's episodes begin again."""
        assert self.task.adapter is not None
        try:
            env.opened = (1 << 20) + seed
            env.reset()
            played = play_all(env, act, -(-episodes // env.env.num_envs))
            return EpisodeReturns(*(axis[:episodes] for axis in played.result()))
        finally:  # the training episodes are gone in any case
            self._begin_all()
            self.task.adapter.lock.user = self


class EpisodeStatistics:
    """The first `each` episodes of so many places: score, length, end and returns of each."""

    def __init__(self, task: Task, places: int, each: int = 1) -> None:
        self.weights, self.names = task.weights, task.names
        self.returns = np.zeros((each, places, task.n))
        self.length, self.terminated = np.zeros((each, places), np.int64), np.zeros((each, places), np.int64)

    def add(self, reward: np.ndarray, terminated: np.ndarray, episode: np.ndarray) -> None:
        """One step more: reward [N, n], terminated [N], and the number of the episode that it belongs to [N], or -1."""
        place = np.flatnonzero(episode >= 0)
        at = episode[place], place
        wrong = ~np.isfinite(reward[place]).all(axis=0)  # [n]
        if wrong.any():
            name = self.names[int(np.argmax(wrong))]
            raise BadInput(f"the reward of advisor {name!r} is not finite: correct its reward function")
        with np.errstate(over="ignore"):  # a sum that is no longer finite is refused with the episodes
            self.returns[at] += reward[place]
        self.length[at] += 1
        self.terminated[at] |= terminated[place]

    def result(self, part: slice = slice(None)) -> EpisodeReturns:
        """As an evaluation's result, of the places in `part`; first the first episode of each, then the second."""
        returns = self.returns[:, part]
        with np.errstate(all="ignore"):
            score = np.concatenate([each @ self.weights for each in returns])
        length, terminated = (axis[:, part].ravel() for axis in (self.length, self.terminated))
        return EpisodeReturns(score, length, terminated, returns.reshape(-1, returns.shape[-1]))


def play_all(env: Env, act: Callable[[], np.ndarray], each: int = 1) -> EpisodeStatistics:
    """Play the first `each` episodes of every place of an environment that was reset."""
    played = EpisodeStatistics(env.task, len(env.state), each)
    for step, episode in vector_rollout(env, act, each=each):
        played.add(step.reward, step.terminated, episode)
    return played
