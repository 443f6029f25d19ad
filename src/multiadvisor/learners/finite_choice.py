"""What learners of a finite choice of actions have in common: a base class with most of the protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import nullcontext
from operator import index
from typing import Any

import numpy as np

from multiadvisor.core.aggregations import CORRECTION, SELECTIONS, greedy
from multiadvisor.core.aggregator import Aggregator, plannings_of
from multiadvisor.core.validation import Arrays
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.envs.step import Step
from multiadvisor.errors import BadInput, short
from multiadvisor.learners.protocol import Advice, Decision, EpisodeReturns, Learner
from multiadvisor.learners.registry import make_learner
from multiadvisor.settings import Settings
from multiadvisor.task import Advisor, Task, Transition

_BITS = 32


def nobody(choices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is said where nobody is asked: advisors [0], values [0, K] and weights [0]."""
    return np.zeros(0, np.int64), np.zeros((0, choices)), np.zeros(0)


class FiniteChoice(ABC):
    """A learner that chooses one of the task's actions; a subclass learns, and says what it expects (`consult`)."""

    task: Task
    settings: Settings

    # ---- what a subclass has to say ----------------------------------------------------------------------------------
    @property
    @abstractmethod
    def steps(self) -> int:
        """Transitions learned from."""

    @property
    @abstractmethod
    def episodes(self) -> int:
        """Episodes that came to their end."""

    @property
    @abstractmethod
    def score_sum(self) -> float:
        """The scores of those episodes together."""

    @abstractmethod
    def consult(self, state: Any) -> Advice:
        """The active advisors' advice in one state."""

    @abstractmethod
    def run(self, steps: int) -> None:
        """Play and learn for this many steps."""

    @abstractmethod
    def explore(self, state: Any) -> int:
        """The action that learning would take in one state."""

    @abstractmethod
    def observe(self, transition: Transition, following: int | None) -> None:
        """Learn from a transition that somebody else played."""

    @abstractmethod
    def tensors(self) -> Arrays:
        """Everything the run is made of."""

    @abstractmethod
    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""

    # ---- what follows from it ----------------------------------------------------------------------------------------
    aggregator: Aggregator

    @property
    def advisors(self) -> tuple[Advisor, ...]:
        """The task's own."""
        return self.task.advisors

    @property
    def choices(self) -> tuple[str, ...]:
        """The task's actions [K]."""
        return self.task.actions

    @property
    def asked(self) -> tuple[Advisor, ...]:
        """Its advisors [n]."""
        return self.advisors

    @property
    def combined(self) -> Aggregator:
        """How these n are combined."""
        return self.aggregator

    def preferences(self, state: Any) -> np.ndarray:
        """What the aggregator makes of the advice in one state [A]."""
        told = self.consult(state)
        found: np.ndarray = self.aggregator.prefer(told.advice, told.weights, told.advisors)
        return found

    def aggregator_at(self, state: Any) -> Aggregator:
        """How those who are active in one state [m] are combined there."""
        return self.aggregator._replace(of=self.aggregator.of[self.consult(state).advisors])

    def decide(self, state: Any, draw: int = 0, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """What is done in a state by 64 random bits, of which the high ones explore and the low ones choose."""
        high, low = divmod(draw, 1 << _BITS)
        if explored := high / (1 << _BITS) < epsilon:
            action = low * len(self.choices) >> _BITS
        else:
            action = int(greedy(self.preferences(state), low / (1 << _BITS)))
        if not values:
            return Decision(action, action, explored, *nobody(len(self.choices)))
        told = self.consult(state)
        return Decision(action, action, explored, told.advisors, told.advice, told.weights)

    def play(self, episode: int, seed: int, epsilon: float = 0.0) -> Iterator[Step]:
        """One episode of an evaluation, step by step, without learning.

        It has random numbers of its own, as the settings have to say (`own_draws`), so that it is the same whichever
        others are played; the run goes on afterwards as if nothing had happened.
        """
        with nullcontext() if self.task.adapter is None else self.task.adapter.lock:
            source = EvaluationEpisodes(self.task, self.settings.seed, seed, apart=True)
            yield from rollout(source, episode, lambda x, bits: self.decide(x, bits, epsilon, values=False).action)

    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Play greedily without learning, one episode after the other."""
        score, steps, finished = np.zeros(episodes), np.zeros(episodes, np.int64), np.zeros(episodes, np.int64)
        played = EpisodeReturns(score, steps, finished, np.zeros((episodes, self.task.n)))
        for episode in range(episodes):
            for step in self.play(episode, seed):
                score[episode] += step.gain
                steps[episode] += 1
                played.returns[episode] += step.reward
                finished[episode] = int(step.terminated)
        return played

    def compare(self, state: Any, action: Any = None, against: Any = None) -> Decision:
        """All actions are compared with each other: the greedy decision."""
        return self.decide(state)

    def act(self, state: Any, draw: float = 0.0, *, explore: bool = False) -> Any:
        """The greedy action, as the environment numbers it; `draw` in [0, 1) picks among exact ties."""
        return self.task.played(self.explore(state) if explore else int(greedy(self.preferences(state), draw)))

    def epsilon_now(self) -> float:
        """The probability of a random action in the next step."""
        return self.settings.exploring(self.steps)

    def last_losses(self) -> dict[str, float] | None:
        """There is no network."""
        return None

    def values(self, j: int) -> np.ndarray:
        """There is no table."""
        raise BadInput(
            f"a learner of the kind {self.settings.learner_settings.name!r} has no table of values: ask for the advice "
            "in a state"
        )

    def prepare(self) -> None:  # noqa: B027
        """Nothing has to be done."""

    def judge_actions(self, state: Any, actions: Any) -> Advice:
        """All actions are judged in any case."""
        raise BadInput(f"the actions of task {self.task.name!r} are a finite choice: leave actions out")

    def read_action(self, name: str, action: Any) -> int:
        """An action of the environment's own, counted from 0."""
        first, count = self.task.first_action, len(self.task.actions)
        several = None if self.task.adapter is None else self.task.adapter.several
        try:
            number = index(action) - first if several is None else several.number(action)
        except TypeError:
            number = -1
        if not 0 <= number < count:
            own = f"{first} to {first + count - 1}" if several is None else short(str(several.space), 60)
            raise BadInput(f"{name} is {short(repr(action))}: give one of the environment's, {own}")
        return number

    def refuses_weights(self) -> str:
        """Whether the weights are in the values, or in what is expected of the aggregator."""
        settings = self.settings
        if not settings.learner_settings.per_advisor or settings.aggregation in (CORRECTION, *SELECTIONS):
            return "weights are in the values it learned"
        asks = any(planning.needs for planning in plannings_of(self.task, settings.planning))
        return f"{settings.planning} values depend on the weights" if asks else ""

    def reweighted(self, task: Task, anew: bool) -> Learner:
        """The values that do not depend on the weights stay as they are."""
        if why := self.refuses_weights():
            raise BadInput(f"the agent's {why}: train again with other weights")
        learner = make_learner(task, self.settings)
        learner.restore(self.tensors())
        return learner
