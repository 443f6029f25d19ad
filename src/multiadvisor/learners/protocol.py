"""What a learner offers, be it a table or a network: the agent above knows nothing else of it."""

from __future__ import annotations

from abc import abstractmethod
from operator import index
from typing import Any, NamedTuple, Protocol

import numpy as np

from multiadvisor.core.aggregations import greedy
from multiadvisor.core.aggregator import Aggregator, plannings_of
from multiadvisor.core.validation import Arrays, whole
from multiadvisor.errors import BadInput, short
from multiadvisor.learners.kinds import make_learner
from multiadvisor.settings import Settings
from multiadvisor.task import Advisor, Task, Transition

_BITS = 32


class EpisodeReturns(NamedTuple):
    """Episodes of an evaluation."""

    score: np.ndarray  # [episodes]
    length: np.ndarray  # [episodes] in steps
    terminated: np.ndarray  # [episodes] 1 where the episode terminated, 0 where it was cut off
    returns: np.ndarray  # [episodes, n] each advisor's sum of rewards, before weights

    @classmethod
    def zeros(cls, episodes: int, n: int) -> EpisodeReturns:
        """Room for so many."""
        counts = np.zeros((2, episodes), np.int64)
        return cls(np.zeros(episodes), counts[0], counts[1], np.zeros((episodes, n)))


class Advice(NamedTuple):
    """The active advisors in one state."""

    names: tuple[str, ...]  # [m]
    advice: np.ndarray  # [m, A]
    weights: np.ndarray  # [m]
    advisors: np.ndarray  # [m] int64 their indices


def nobody(choices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is given where nobody is asked: advisors [0], values [0, K] and weights [0]."""
    return np.zeros(0, np.int64), np.zeros((0, choices)), np.zeros(0)


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

    def decide(self, state: Any, random_bits: int = 0, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """What is done in a state by 64 random bits; without `values` nobody is asked."""

    def compare(self, state: Any, action: Any = None, against: Any = None) -> Decision:
        """The decision in a state about two actions, by default its own and the usual one to compare with."""


class Learner(Decider, Protocol):
    """Learns the advisors' values of one task, in episodes of its own or from transitions that it observes.

    Actions are counted from 0, or numbers from -1 to 1. A state is an observation of a Gymnasium task, or the state x
    of a compiled world. What is not abstract is what a learner of a finite choice of actions answers
    (`finite_choice.FiniteChoice` can play and evaluate besides); others say it otherwise.
    """

    task: Task
    settings: Settings
    aggregator: Aggregator
    """How the aggregator combines the advisors."""

    # ---- how far it is -----------------------------------------------------------------------------------------------
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

    def epsilon_now(self) -> float:
        """The probability of a random action in the next step."""
        return self.settings.exploring(self.steps)

    def last_losses(self) -> dict[str, float] | None:
        """A network's loss in its last updates, by advisor or in total; None without a network."""
        return None

    # ---- who is asked ------------------------------------------------------------------------------------------------
    @property
    def advisors(self) -> tuple[Advisor, ...]:
        """Whose values they are."""
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

    def aggregator_at(self, state: Any) -> Aggregator:
        """How those who are active in one state [m] are combined there."""
        return self.aggregator._replace(of=self.aggregator.of[self.consult(state).advisors])

    # ---- what it says ------------------------------------------------------------------------------------------------
    @abstractmethod
    def consult(self, state: Any) -> Advice:
        """The active advisors' advice in one state."""

    def preferences(self, state: Any) -> np.ndarray:
        """What the aggregator makes of the advice in one state [A]."""
        given = self.consult(state)
        found: np.ndarray = self.aggregator.prefer(given.advice, given.weights, given.advisors)
        return found

    def values(self, j: int) -> np.ndarray:
        """Q_j of one advisor [local states, A], where there is a table."""
        own = self.settings.learner_settings.name
        raise BadInput(f"learner {own!r} has no table of values: ask for the advice in a state")

    def judge_actions(self, state: Any, actions: Any) -> Advice:
        """The active advisors' values of given actions of real numbers, as the environment has them."""
        raise BadInput(f"the actions of task {self.task.name!r} are a finite choice: leave actions out")

    def read_action(self, name: str, action: Any) -> Any:
        """An action of the environment's own, counted from 0; `name` is what an error calls it."""
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

    # ---- what it does ------------------------------------------------------------------------------------------------
    def decide(self, state: Any, random_bits: int = 0, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """What is done in a state by 64 random bits, of which the high ones explore and the low ones choose."""
        high, low = divmod(random_bits, 1 << _BITS)
        if explored := high / (1 << _BITS) < epsilon:
            action = low * len(self.choices) >> _BITS
        else:
            action = int(greedy(self.preferences(state), low / (1 << _BITS)))
        if not values:
            return Decision(action, action, explored, *nobody(len(self.choices)))
        given = self.consult(state)
        return Decision(action, action, explored, given.advisors, given.advice, given.weights)

    def compare(self, state: Any, action: Any = None, against: Any = None) -> Decision:
        """All actions are compared with each other: the greedy decision."""
        return self.decide(state)

    def act(self, state: Any, draw: float = 0.0, *, explore: bool = False) -> Any:
        """The greedy action, as the environment has it; `draw` in [0, 1) picks among exact ties."""
        return self.task.played(self.explore(state) if explore else int(greedy(self.preferences(state), draw)))

    @abstractmethod
    def explore(self, state: Any) -> Any:
        """The action that learning would take in one state: at random with probability epsilon, else the best."""

    @abstractmethod
    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Play greedily without learning; the run goes on afterwards as if nothing had happened."""

    # ---- learning ----------------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Whatever has to be done once before learning, such as compiling."""

    @abstractmethod
    def run(self, steps: int) -> None:
        """Play and learn for this many steps."""

    @abstractmethod
    def observe(self, transition: Transition, following: int | None) -> None:
        """Learn from a transition that somebody else played, and from the action that followed where it is known."""

    def refuses_weights(self) -> str:
        """Why other weights would make what was learned out of date; empty where they would not."""
        settings, learned = self.settings, self.aggregator.learned
        if not settings.learner_settings.per_advisor or (learned is not None and learned.holds_weights):
            return "weights are in the values it learned"
        asks = any(planning.needs for planning in plannings_of(self.task, settings.planning))
        return f"{settings.planning} values depend on the weights" if asks else ""

    def reweighted(self, task: Task, anew: bool) -> Learner:
        """The learner that goes on with the weights of this task; `anew`: what the old weights are in begins again."""
        if why := self.refuses_weights():
            raise BadInput(f"the agent's {why}: train again with other weights")
        learner = make_learner(task, self.settings)
        learner.restore(self.tensors())
        return learner

    @abstractmethod
    def tensors(self) -> Arrays:
        """Everything the run is made of."""

    @abstractmethod
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


def not_finite(advisor: str, kind: type[BadInput] = BadInput) -> BadInput:
    """The complaint about a reward that is not finite."""
    why = "correct what pays it; a function without a return gives None"
    return kind(f"the reward of advisor {advisor!r} is not finite: {why}")


def push_shares(slopes: np.ndarray) -> tuple[np.ndarray, float]:
    """Each advisor's share of the push [m], from slopes [m, d]; and how much is left once opposite ones have cancelled.

    >>> shares, left = push_shares(np.array([[3.0, 0.0], [-1.0, 0.0]]))
    >>> shares.tolist(), left
    ([0.75, 0.25], 0.5)
    """
    lengths = np.linalg.norm(slopes, axis=1)
    total = float(lengths.sum())
    if total == 0.0:
        return np.zeros(len(slopes)), 1.0
    return lengths / total, float(np.linalg.norm(slopes.sum(axis=0)) / total)
