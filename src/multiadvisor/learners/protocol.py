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


class ComparedActions(NamedTuple):
    """Two actions of real numbers that are compared, as the environment has them, and what the actor follows."""

    mine: np.ndarray
    other: np.ndarray
    control: float  # what the critic that the actor follows says of the first
    slopes: np.ndarray  # [m, d] of the weighted values at the first, each number of an action from -1 to 1


class Decision(NamedTuple):
    """One step before it is played: m advisors were asked about K choices."""

    action: Any  # as an environment of episodes takes it: counted from 0, or numbers from -1 to 1 [d]
    chosen: int  # its place among the choices
    explored: bool  # whether it was drawn at random
    advisors: np.ndarray  # [m] who was asked: places among all that may be
    values: np.ndarray  # [m, K] what they expect of each choice, before weights
    weights: np.ndarray  # [m]
    goals: np.ndarray | None = None  # [m] the places that they point at, below 0: none
    push: np.ndarray | None = None  # [m] each one's share of the push at an action of real numbers; NaN: none
    compared: ComparedActions | None = None  # where two actions of real numbers were compared


class Decider(Protocol):
    """Whoever decides on a step: traces, reports, videos and the page ask for nothing else."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What is compared [K]."""

    @property
    def asked(self) -> tuple[Advisor, ...]:
        """Who may be asked [n]."""

    @property
    def combined(self) -> Aggregator:
        """How these n are combined."""

    def decide(self, state: Any, draw: int = 0, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """What is done in a state by 64 random bits; without `values` nobody is asked."""

    def compare(self, state: Any, action: Any = None, against: Any = None) -> Decision:
        """The decision in a state about two actions, by default its own and the usual one to compare with."""


class Learner(Decider, Protocol):
    """Learns the advisors' values of one task, in episodes of its own or from transitions that it is told.

    Actions are counted from 0, or numbers from -1 to 1. A state is an observation of a Gymnasium task, or the state x
    of a compiled world. `learners.finite_choice.FiniteChoice` has what learners of a finite choice have in common.
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
        """How the aggregator combines the advisors."""

    def consult(self, state: Any) -> Advice:
        """The active advisors' advice in one state."""

    def preferences(self, state: Any) -> np.ndarray:
        """What the aggregator makes of the advice in one state [A]."""

    def aggregator_at(self, state: Any) -> Aggregator:
        """How those who are active in one state [m] are combined there."""

    def values(self, j: int) -> np.ndarray:
        """Q_j of one advisor [local states, A], where there is a table."""

    def judge_actions(self, state: Any, actions: Any) -> Advice:
        """The active advisors' values of given actions of real numbers, as the environment has them."""

    def read_action(self, name: str, action: Any) -> Any:
        """An action of the environment's own; `name` is what an error calls it."""

    def prepare(self) -> None:
        """Whatever has to be done once before learning, such as compiling."""

    def run(self, steps: int) -> None:
        """Play and learn for this many steps."""

    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Play greedily without learning; the run goes on afterwards as if nothing had happened."""

    def act(self, state: Any, draw: float = 0.0, *, explore: bool = False) -> Any:
        """The action in one state, as the environment has it; with `explore`, the one that learning would take."""

    def explore(self, state: Any) -> Any:
        """The action that learning would take in one state: at random with probability epsilon, else the best."""

    def epsilon_now(self) -> float:
        """The probability of a random action in the next step."""

    def last_losses(self) -> dict[str, float] | None:
        """A network's loss in its last updates, by advisor or in total; None without a network."""

    def observe(self, transition: Transition, following: int | None) -> None:
        """Learn from a transition that somebody else played, and from the action that followed where it is known."""

    def refuses_weights(self) -> str:
        """Why other weights would make what was learned out of date; empty where they would not."""

    def reweighted(self, task: Task, anew: bool) -> Learner:
        """The learner that goes on with the weights of this task; `anew`: what the old weights are in begins again."""

    def tensors(self) -> Arrays:
        """Everything the run is made of."""

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""


class TableLearner(Learner, Protocol):
    """A learner with the tables of a compiled world, for those who read exact values or fill them in."""

    table: np.ndarray  # [rows, A]
    layout: np.ndarray  # [2, n] the first row of each advisor, and how far its rows are apart
    weights: np.ndarray  # [n]

    def rows(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The active advisors [m] and their rows [m] in a state."""

    def fill(self, j: int, states: np.ndarray, values: np.ndarray) -> None:
        """Put values [S, A] into the table of an advisor, for these local states [S]."""

    @property
    def plan_values(self) -> np.ndarray:
        """[rows, J, A] under `gpi`, what following each plan is worth."""


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
