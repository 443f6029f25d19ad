"""The learner as one would write it on a blackboard; `kernel.py` is its compiled twin, checked against this.

Everything random is a function of the run's key and the turn (`draws`), so both make the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from multiadvisor.aggregation import epsilon_greedy, greedy, weighted_sum
from multiadvisor.draws import (
    CHOICE,
    ENVIRONMENT,
    FORESIGHT,
    NOISE,
    STRETCH,
    draw,
    environment_seed,
    high_half,
    low_half,
    normal,
    turn_key,
)  # fmt: skip
from multiadvisor.planning import Planning, foreseen
from multiadvisor.tabular.kernel import TINY
from multiadvisor.task import Task
from multiadvisor.worlds.game import Game


class Frame(NamedTuple):
    """The active advisors and the rows of the table they look at."""

    advisors: np.ndarray  # [m], rising
    rows: np.ndarray  # [m]


class Outcome(NamedTuple):
    """What a step brought to the advisors of the frame before it."""

    reward: np.ndarray  # [m]
    gone: np.ndarray  # [m] bool: whose own part is over, or who has no say any more
    rows: np.ndarray  # [m] where they are now (any value for those gone)
    frame: Frame  # who is active now
    terminated: bool
    truncated: bool


class Source(Protocol):
    """A world as the reference learner sees it."""

    def deal(self) -> Frame:
        """Start a game."""

    def step(self, action: int) -> Outcome:
        """Play a turn."""


@dataclass
class Reference:
    """Multi-advisor temporal-difference learning, one turn at a time."""

    source: Source
    table: np.ndarray  # [rows, A]
    planning: Planning
    weights: np.ndarray  # [n]
    gammas: np.ndarray  # [n]
    alpha: float
    alpha_half: int
    epsilon: float
    sigma: float
    key: np.uint64
    counts: np.ndarray | None = None  # [rows, A] how often each action was the aggregator's, where advisors estimate it
    linear: bool = False  # one Q-function, linear in the features "advisor j is in local state s"
    turn: int = 0
    frame: Frame | None = None

    def learn(self, turns: int) -> list[int]:
        """Play and learn; the actions taken."""
        actions = []
        for _ in range(turns):
            if self.frame is None:
                self.frame = self.source.deal()
            key = np.uint64(turn_key(self.key, self.turn))
            word = np.uint64(draw(key, CHOICE))
            preferences = weighted_sum(self.table[self.frame.rows], self.weights[self.frame.advisors])  # [A]
            action = int(epsilon_greedy(preferences, self.epsilon, high_half(word), low_half(word)))
            outcome = self.source.step(action)
            (self.update_linear if self.linear else self.update)(self.frame, action, outcome, key)
            self.frame = None if outcome.terminated or outcome.truncated else outcome.frame
            self.turn += 1
            actions.append(action)
        return actions

    def update(self, before: Frame, action: int, outcome: Outcome, key: np.uint64) -> None:
        """Those who are gone learn their last reward; the others bootstrap by their planning."""
        reward = self.noisy(outcome.reward, before.advisors, key)
        gone = outcome.gone | outcome.terminated
        self.nudge(before.rows[gone], action, reward[gone])
        if outcome.terminated:
            return
        after = outcome.frame
        preferences = weighted_sum(self.table[after.rows], self.weights[after.advisors])  # Q_Sigma(x', .) [A]
        ahead = int(greedy(preferences, low_half(np.uint64(draw(key, FORESIGHT)))))  # f_Sigma(x')
        values = self.bootstrap(outcome.rows[~gone], ahead)  # [those who stay]
        self.nudge(before.rows[~gone], action, reward[~gone] + self.gammas[before.advisors[~gone]] * values)

    def bootstrap(self, rows: np.ndarray, ahead: int) -> np.ndarray:
        """What the advisors expect from the rows they arrived at, given f_Sigma(x') or their own estimate of it."""
        if self.counts is None:
            return self.planning(self.table[rows], ahead)
        for row in rows:  # in turn, as two advisors may share a row
            self.counts[row, ahead] += 1.0
        return foreseen(self.table[rows], self.counts[rows])

    def update_linear(self, before: Frame, action: int, outcome: Outcome, key: np.uint64) -> None:
        """Plain Q-learning on the sum; every feature that was present takes an equal share of the step."""
        weights, after = self.weights[before.advisors], outcome.frame
        expected = weighted_sum(self.table[before.rows], weights)[action]
        ahead = (
            weighted_sum(self.table[after.rows], self.weights[after.advisors]).max() if not outcome.terminated else 0.0
        )
        income = sum(weights * self.noisy(outcome.reward, before.advisors, key))
        error = income + self.gammas[0] * ahead - expected
        for row in before.rows:
            new = self.table[row, action] + self.step_size() / len(before.rows) * error
            self.table[row, action] = new if abs(new) > TINY else 0.0

    def noisy(self, reward: np.ndarray, advisors: np.ndarray, key: np.uint64) -> np.ndarray:
        """The rewards [m] as the advisors perceive them."""
        if self.sigma == 0:
            return reward
        return reward + self.sigma * np.array([normal(np.uint64(draw(key, NOISE + int(j)))) for j in advisors])

    def step_size(self) -> float:
        """alpha, falling with the turns where it is to."""
        half = self.alpha_half
        return self.alpha * half / (half + self.turn) if half > 0 else self.alpha

    def nudge(self, rows: np.ndarray, action: int, targets: np.ndarray) -> None:
        """q += alpha * (target - q), in turn, as two advisors may share a row."""
        alpha = self.step_size()
        for row, target in zip(rows, targets, strict=True):
            new = self.table[row, action] + alpha * (target - self.table[row, action])
            self.table[row, action] = new if abs(new) > TINY else 0.0


class CompiledSource:
    """A compiled world for the reference learner."""

    def __init__(self, task: Task, key: np.uint64) -> None:
        self.game = Game(task, key)
        self.layout = task.layout()

    def _frame(self, advisors: np.ndarray, local: np.ndarray) -> Frame:
        return Frame(advisors, self.layout.offset[advisors] + self.layout.stride[advisors] * local)

    def deal(self) -> Frame:
        """Start a game."""
        return self._frame(*self.game.deal())

    def step(self, action: int) -> Outcome:
        """Play a turn."""
        now = self.game.step(action)
        here = self._frame(now.advisors, now.local)
        stay = ~now.ended
        left = Frame(here.advisors[stay], here.rows[stay])
        return Outcome(now.reward, now.ended, here.rows, left, now.terminated, now.truncated)


class AdapterSource:
    """A Gymnasium environment for the reference learner, seeded as the compiled learner seeds it."""

    def __init__(self, task: Task, seed: int) -> None:
        assert task.adapter is not None
        self.adapter, self.seed = task.adapter, seed
        self.turn, self.since = 0, STRETCH
        self.active, self.ended = np.ones(task.n, np.int64), np.zeros(task.n, np.int64)
        self.adapter.bind(self.active, self.ended)

    def _rows(self, advisors: np.ndarray) -> np.ndarray:
        adapter = self.adapter
        return adapter.firsts[adapter.view_of[advisors]] + adapter.position[advisors]

    def _frame(self) -> Frame:
        advisors = np.flatnonzero(self.active)
        return Frame(advisors, self._rows(advisors))

    def deal(self) -> Frame:
        """Start a game; after a stretch of turns, from a new seed."""
        new = self.since >= STRETCH
        self.since = 0 if new else self.since
        self.adapter.reset(environment_seed(self.seed, ENVIRONMENT, self.turn) if new else None)
        self.before = self._frame()
        return self.before

    def step(self, action: int) -> Outcome:
        """Play a turn."""
        advisors = self.before.advisors
        terminated, truncated = self.adapter.step(action)
        self.turn += 1
        self.since += 1
        self.before = self._frame()
        gone = (self.ended[advisors] == 1) | (self.active[advisors] == 0)
        reward = self.adapter.signals[self.adapter.source[advisors]]
        return Outcome(reward, gone, self._rows(advisors), self.before, terminated, truncated)
