"""Episodes without learning, and who has the only environment there is: what learners with networks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.core.rng import EVALUATION, environment_seed
from multiadvisor.core.validation import Arrays
from multiadvisor.envs.env_lock import EnvironmentLock
from multiadvisor.envs.stepping import LONGEST_EPISODE, endless
from multiadvisor.errors import BadInput
from multiadvisor.learners.dqn.env_sources import PythonSource, VectorSource
from multiadvisor.learners.protocol import EpisodeReturns, refuse_unobservable
from multiadvisor.task import Task


class LockedRollout(ABC):
    """Takes the stage before it plays, and finds back to its own episodes where somebody else has played."""

    task: Task
    source: Any
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
        self.source.forget(self._times())
        with self._stage() as stage:
            stage.user = self
            self.source.open()
        self._begin()
        self._opened, self._watching = True, False

    def _stand(self) -> Arrays:
        """Where its episodes stand, for a checkpoint."""
        return {"watching": np.ones(1, np.int64)} if self._watching else self.source.tensors()

    def _take_up(self, episodes: Arrays, steps: np.ndarray) -> bool:
        """Go on where they stood after so many steps; whether they could be gone on with."""
        self._watching = "watching" in episodes
        self._opened = not self._watching
        self._see()
        if self._watching:
            refuse_unobservable(self.task)
            return True
        with self._stage() as stage:
            stage.user = self
            return bool(self.source.restore(episodes, steps))

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
        with self._stage():
            self._find_back()
            try:
                self._run(steps)
            except BaseException:
                if (self.source.steps != self._times()).any():  # the episodes have gone on and the memory has not:
                    self._opened = False  # others are begun, lest a transition lead from one place to another
                raise

    @abstractmethod
    def _run(self, steps: int) -> None:
        """Play and learn, with the stage taken and the episodes found back to."""

    @property
    def _alone(self) -> bool:
        """Whether training and evaluation have to share the only environment there is."""
        adapter = self.task.adapter
        return adapter is not None and not adapter.vector and self.source.envs[0] is adapter.env

    def _stage(self) -> EnvironmentLock:
        """To be taken before training: the only environment's, or one of its own where nobody else plays."""
        adapter = self.task.adapter
        return adapter.stage if adapter is not None and (self._alone or adapter.vector) else EnvironmentLock()

    def _find_back(self) -> None:
        """Where somebody else has played in the only environment, or a step failed, play the current stretch again.

        In a vector environment other episodes are begun.
        """
        if getattr(self.source, "torn", False):
            self.source.find_back()
        stage = self._stage()
        if stage.user is not self:
            if self._alone:
                self.source.find_back()
            elif self.task.adapter is not None and self.task.adapter.vector:
                self._begin_others()
            stage.user = self

    def _begin_others(self) -> None:
        """New episodes instead of those that were going on, to which there is no way back."""
        self.source.open()
        self._begin()


class EpisodeStatistics:
    """The first episode of each of so many places: its score, length, end and returns."""

    def __init__(self, places: int, task: Task) -> None:
        self.weights, self.names = task.weights, task.names
        self.returns = np.zeros((places, task.n))
        self.steps, self.terminated = np.zeros(places, np.int64), np.zeros(places, np.int64)
        self.going = np.ones(places, bool)

    def add(self, step: Any, counted: np.ndarray | None = None) -> bool:
        """One step more of the episodes that go on; True when none does."""
        counts = self.going if counted is None else self.going & counted
        wrong = ~np.isfinite(step.paid[counts]).all(axis=0)  # [n]
        if wrong.any():
            name = self.names[int(np.argmax(wrong))]
            raise BadInput(f"the reward of advisor {name!r} is not finite: correct its reward function")
        with np.errstate(over="ignore"):  # a sum that is no longer finite is refused with the episodes
            self.returns += np.where(counts[:, None], step.paid, 0.0)
        self.steps += counts
        self.terminated[counts & step.terminated] = 1
        self.going &= ~(counts & step.over)
        return not self.going.any()

    def played(self, part: slice) -> EpisodeReturns:
        """As an evaluation's result."""
        returns = self.returns[part]
        with np.errstate(all="ignore"):
            score = returns @ self.weights
        return EpisodeReturns(score, self.steps[part], self.terminated[part], returns)


def play_episodes(
    source: PythonSource, own: int, seed: int, episodes: int, act: Callable[[], np.ndarray]
) -> EpisodeReturns:
    """The episodes of the evaluation `seed` of a run whose own seed is `own`, one after the other in one
    environment."""
    parts = []
    for episode in range(episodes):
        source.begin(environment_seed(own, EVALUATION, ((1 + seed) << 32) + episode))
        tracked = EpisodeStatistics(1, source.task)
        for _ in range(LONGEST_EPISODE):
            if tracked.add(source.step(act(), again=False)):
                break
        else:
            raise endless(source.task.name)
        parts.append(tracked.played(slice(0, 1)))
    return EpisodeReturns(*(np.concatenate(axis) for axis in zip(*parts, strict=True)))


def play_vector(source: VectorSource, seed: int, episodes: int, act: Callable[[], np.ndarray]) -> EpisodeReturns:
    """The first episodes of each of a vector environment's places."""
    source.opened = (1 << 20) + seed
    source.open()
    places = source.env.num_envs
    rounds = [EpisodeStatistics(places, source.task) for _ in range(-(-episodes // places))]
    place = np.zeros(places, np.int64)
    for _ in range(LONGEST_EPISODE):
        step = source.step(act())
        for number, tracked in enumerate(rounds):
            tracked.add(step, (place == number) & ~step.dealt)
        place += step.over
        if (place >= len(rounds)).all():
            break
    else:
        raise endless(source.task.name)
    parts = [tracked.played(slice(None)) for tracked in rounds]
    whole = EpisodeReturns(*(np.concatenate(axis) for axis in zip(*parts, strict=True)))
    return EpisodeReturns(*(axis[:episodes] for axis in whole))
