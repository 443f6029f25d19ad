"""Games without learning, and who has the only environment there is: what learners with networks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.deep.sources import PythonSource, VectorSource
from multiadvisor.draws import EVALUATION, environment_seed
from multiadvisor.errors import BadInput
from multiadvisor.learner import Played, refuse_unobservable
from multiadvisor.restored import Arrays
from multiadvisor.task import Task
from multiadvisor.worlds.stage import Stage
from multiadvisor.worlds.stepping import LONGEST_GAME, endless


class Staged(ABC):
    """Takes the stage before it plays, and finds back to its own games where somebody else has played."""

    task: Task
    source: Any
    _opened: bool
    """Whether its games have begun."""
    _watching: bool
    """Whether somebody else plays, and it observes."""

    def prepare(self) -> None:
        """Begin the games, unless somebody else plays; the update is compiled when it is first needed."""
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
        """Where its games stand, for a checkpoint."""
        return {"watching": np.ones(1, np.int64)} if self._watching else self.source.tensors()

    def _take_up(self, games: Arrays, turns: np.ndarray) -> bool:
        """Go on where they stood after so many turns; whether they could be gone on with."""
        self._watching = "watching" in games
        self._opened = not self._watching
        self._see()
        if self._watching:
            refuse_unobservable(self.task)
            return True
        with self._stage() as stage:
            stage.user = self
            return bool(self.source.restore(games, turns))

    @abstractmethod
    def _see(self) -> None:
        """What follows from the networks, after they were changed."""

    @abstractmethod
    def _times(self) -> np.ndarray:
        """How many turns each game has seen; the learner's."""

    @abstractmethod
    def _begin(self) -> None:
        """What a learner has to do where its games have just begun."""

    def run(self, turns: int) -> None:
        """Play and learn for this many turns, rounded up to whole turns of all games."""
        self._open()
        with self._stage():
            self._find_back()
            try:
                self._run(turns)
            except BaseException:
                if (self.source.turns != self._times()).any():  # the games have gone on and the memory has not:
                    self._opened = False  # others are begun, lest a transition lead from one place to another
                raise

    @abstractmethod
    def _run(self, turns: int) -> None:
        """Play and learn, with the stage taken and the games found back to."""

    @property
    def _alone(self) -> bool:
        """Whether training and evaluation have to share the only environment there is."""
        adapter = self.task.adapter
        return adapter is not None and not adapter.vector and self.source.envs[0] is adapter.env

    def _stage(self) -> Stage:
        """To be taken before training: the only environment's, or one of its own where nobody else plays."""
        adapter = self.task.adapter
        return adapter.stage if adapter is not None and (self._alone or adapter.vector) else Stage()

    def _find_back(self) -> None:
        """Where somebody else has played in the only environment, or a turn failed, play the current stretch again.

        In a vector environment other games are begun.
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
        """New games instead of those that were going on, to which there is no way back."""
        self.source.open()
        self._begin()


class Tracked:
    """The first game of each of so many places: its score, length, end and returns."""

    def __init__(self, places: int, task: Task) -> None:
        self.weights, self.names = task.weights, task.names
        self.returns = np.zeros((places, task.n))
        self.turns, self.finished = np.zeros(places, np.int64), np.zeros(places, np.int64)
        self.going = np.ones(places, bool)

    def add(self, turn: Any, counted: np.ndarray | None = None) -> bool:
        """One turn more of the games that go on; True when none does."""
        counts = self.going if counted is None else self.going & counted
        wrong = ~np.isfinite(turn.paid[counts]).all(axis=0)  # [n]
        if wrong.any():
            name = self.names[int(np.argmax(wrong))]
            raise BadInput(f"the reward of focus {name!r} is not finite: correct its reward function")
        with np.errstate(over="ignore"):  # a sum that is no longer finite is refused with the games
            self.returns += np.where(counts[:, None], turn.paid, 0.0)
        self.turns += counts
        self.finished[counts & turn.terminated] = 1
        self.going &= ~(counts & turn.over)
        return not self.going.any()

    def played(self, part: slice) -> Played:
        """As an evaluation's result."""
        returns = self.returns[part]
        with np.errstate(all="ignore"):
            score = returns @ self.weights
        return Played(score, self.turns[part], self.finished[part], returns)


def play_games(source: PythonSource, own: int, seed: int, games: int, act: Callable[[], np.ndarray]) -> Played:
    """The games of the evaluation `seed` of a run whose own seed is `own`, one after the other in one environment."""
    parts = []
    for game in range(games):
        source.begin(environment_seed(own, EVALUATION, ((1 + seed) << 32) + game))
        tracked = Tracked(1, source.task)
        for _ in range(LONGEST_GAME):
            if tracked.add(source.step(act(), again=False)):
                break
        else:
            raise endless(source.task.name)
        parts.append(tracked.played(slice(0, 1)))
    return Played(*(np.concatenate(axis) for axis in zip(*parts, strict=True)))


def play_vector(source: VectorSource, seed: int, games: int, act: Callable[[], np.ndarray]) -> Played:
    """The first games of each of a vector environment's places."""
    source.opened = (1 << 20) + seed
    source.open()
    places = source.env.num_envs
    rounds = [Tracked(places, source.task) for _ in range(-(-games // places))]
    place = np.zeros(places, np.int64)
    for _ in range(LONGEST_GAME):
        turn = source.step(act())
        for number, tracked in enumerate(rounds):
            tracked.add(turn, (place == number) & ~turn.dealt)
        place += turn.over
        if (place >= len(rounds)).all():
            break
    else:
        raise endless(source.task.name)
    parts = [tracked.played(slice(None)) for tracked in rounds]
    whole = Played(*(np.concatenate(axis) for axis in zip(*parts, strict=True)))
    return Played(*(axis[:games] for axis in whole))
