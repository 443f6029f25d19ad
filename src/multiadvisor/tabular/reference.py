"""The learner as one would write it on a blackboard; `kernel.py` is its compiled twin, checked against this.

Everything random is a function of the run's key and the turn (`draws`), so both make the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from multiadvisor.aggregation import epsilon_greedy, greedy, weighted_sum
from multiadvisor.draws import CHOICE, FORESIGHT, NOISE, draw, high_half, low_half, normal, turn_key
from multiadvisor.planning import Planning
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
    epsilon: float
    sigma: float
    key: np.uint64
    turn: int = 0
    frame: Frame | None = None

    def learn(self, turns: int) -> list[int]:
        """Play and learn; the actions taken."""
        actions = []
        for _ in range(turns):
            if self.frame is None:
                self.frame = self.source.deal()
            key = turn_key(self.key, self.turn)
            word = draw(key, CHOICE)
            preferences = weighted_sum(self.table[self.frame.rows], self.weights[self.frame.advisors])  # [A]
            action = int(epsilon_greedy(preferences, self.epsilon, high_half(word), low_half(word)))
            outcome = self.source.step(action)
            self.update(self.frame, action, outcome, key)
            self.frame = None if outcome.terminated or outcome.truncated else outcome.frame
            self.turn += 1
            actions.append(action)
        return actions

    def update(self, before: Frame, action: int, outcome: Outcome, key: np.uint64) -> None:
        """Those who are gone learn their last reward; the others bootstrap by their planning."""
        reward = outcome.reward
        if self.sigma > 0:
            reward = reward + self.sigma * np.array([normal(draw(key, NOISE + int(j))) for j in before.advisors])
        gone = outcome.gone | outcome.terminated
        self.nudge(before.rows[gone], action, reward[gone])
        if outcome.terminated:
            return
        after = outcome.frame
        preferences = weighted_sum(self.table[after.rows], self.weights[after.advisors])  # Q_Sigma(x', .) [A]
        ahead = int(greedy(preferences, low_half(draw(key, FORESIGHT))))  # f_Sigma(x')
        values = self.planning(self.table[outcome.rows[~gone]], ahead)  # [those who stay]
        self.nudge(before.rows[~gone], action, reward[~gone] + self.gammas[before.advisors[~gone]] * values)

    def nudge(self, rows: np.ndarray, action: int, targets: np.ndarray) -> None:
        """q += alpha * (target - q), in turn, as two advisors may share a row."""
        for row, target in zip(rows, targets, strict=True):
            new = self.table[row, action] + self.alpha * (target - self.table[row, action])
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
