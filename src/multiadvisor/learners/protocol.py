"""What a learner offers, be it a table or a network: the agent above knows nothing else of it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from multiadvisor.core.aggregator import Aggregator
from multiadvisor.core.validation import Arrays, whole
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, Task, Transition


class EpisodeReturns(NamedTuple):
    """Episodes of an evaluation."""

    score: np.ndarray  # [episodes]
    length: np.ndarray  # [episodes] in steps
    terminated: np.ndarray  # [episodes] 1 where the episode terminated, 0 where it was cut off
    returns: np.ndarray  # [episodes, n] each advisor's sum of rewards, before weights


class Advice(NamedTuple):
    """The active advisors in one state."""

    names: tuple[str, ...]  # [m]
    advice: np.ndarray  # [m, A]
    weights: np.ndarray  # [m]
    advisors: np.ndarray  # [m] int64 their indices


class Learner(Protocol):
    """Learns the advisors' values of one task, in episodes of its own or from transitions that it is told.

    Actions are counted from 0. A state is an observation of a Gymnasium task, or the state x of a compiled world.
    """

    @property
    def steps(self) -> int:
        """Transitions learned from."""

    @property
    def episodes(self) -> int:
        """Episodes that came to their end."""

    @property
    def score_sum(self) -> float:
        """The scores of those episodes together."""

    @property
    def advisors(self) -> tuple[Advisor, ...]:
        """Whose values they are."""

    @property
    def aggregator(self) -> Aggregator:
        """How the aggregator hears the advisors."""

    def consult(self, state: Any) -> Advice:
        """The active advisors' advice in one state."""

    def preferences(self, state: Any) -> np.ndarray:
        """What the aggregator makes of the advice in one state [A]."""

    def aggregator_at(self, state: Any) -> Aggregator:
        """How those who are active in one state [m] are heard there."""

    def values(self, j: int) -> np.ndarray:
        """Q_j of one advisor [local states, A], where there is a table."""

    def prepare(self) -> None:
        """Whatever has to be done once before learning, such as compiling."""

    def run(self, steps: int) -> None:
        """Play and learn for this many steps."""

    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Play greedily without learning; the run goes on afterwards as if nothing had happened."""

    def explore(self, state: Any) -> int:
        """The action that learning would take in one state: at random with probability epsilon, else the best."""

    def observe(self, transition: Transition, following: int | None) -> None:
        """Learn from a transition that somebody else played, and from the action that followed where it is known."""

    def tensors(self) -> Arrays:
        """Everything the run is made of."""

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""


class Exploration:
    """Which draw an exploring action takes: that of the step to come, or the first one that is not taken yet.

    So a loop that asks once a step draws as learning does, and one that asks for many episodes gets a draw for each.
    """

    def __init__(self) -> None:
        self._last = -1

    def step(self, steps: int) -> int:
        """The number of the draw, after so many steps."""
        self._last = max(self._last + 1, steps)
        return self._last

    def tensors(self, steps: int) -> Arrays:
        """What a checkpoint keeps: nothing, unless draws of steps to come were taken."""
        return {"explored": np.array([self._last], np.int64)} if self._last >= steps else {}

    def restore(self, tensors: Arrays, steps: int) -> None:
        """Take up what `tensors` gave."""
        self._last = int(whole(tensors, "explored", (1,), steps)[0]) if "explored" in tensors else -1


def refuse_unobservable(task: Task) -> None:
    """Refuse a task whose transitions nobody else can tell."""
    if task.adapter is None:
        raise BadInput(
            f"task {task.name!r} is a compiled world, which pays and ends its advisors inside: let the agent learn in "
            "it, or observe a task that Task.from_gymnasium made"
        )
    if task.adapter.vector:
        raise BadInput(
            f"task {task.name!r} is a vector environment, and transitions are observed one by one: make the task from "
            "a single environment"
        )


def not_finite(advisor: Advisor) -> BadInput:
    """The complaint about a reward that is not finite."""
    return BadInput(f"the reward of advisor {advisor.name!r} is not finite: correct its reward function")
