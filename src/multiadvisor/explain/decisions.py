"""What a learner tells about a step, whatever it is: who spoke, what they said of which choices, and what is done.

Traces, reports and the page know a learner by its `Decider` alone. Of a finite choice of actions every one has values.
An action that is real numbers has ever so many others beside it: what is done is compared with the middle of all. Whose
advisors point at goals says where, too. A step's rewards are told by `worlds.rollout`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from multiadvisor.agent import MultiAdvisor, bank_of
from multiadvisor.core.aggregator import Aggregator, aggregator_of
from multiadvisor.errors import BadInput
from multiadvisor.explain.ablation import summed
from multiadvisor.explain.explanation import ENTROPY
from multiadvisor.learners.sac.push import push_shares
from multiadvisor.task import Advisor

TAKEN, CENTRE = "action taken", "centre of the box"
"""What is compared where actions are real numbers."""
_BITS = 32


class Decision(NamedTuple):
    """One step before it is played: m advisors spoke of K choices."""

    action: Any  # as a source of episodes takes it: counted from 0, or numbers from -1 to 1 [d]
    chosen: int  # its place among the choices
    explored: bool  # whether it was taken by chance
    advisors: np.ndarray  # [m] who spoke: places among all that may
    values: np.ndarray  # [m, K] what they expect of each choice, before weights
    weights: np.ndarray  # [m]
    goals: np.ndarray | None = None  # [m] the places that they point at, below 0: none
    push: np.ndarray | None = None  # [m] each one's share of the push at an action of real numbers; NaN: none


class Decider(Protocol):
    """A learner that tells about its steps."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What is compared [K]."""

    @property
    def advisors_asked(self) -> tuple[Advisor, ...]:
        """Who may speak [n]."""

    @property
    def aggregator(self) -> Aggregator:
        """How the aggregator hears these n."""

    def tell(self, state: Any, draw: int, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """What is done in a state by 64 random bits; without `values` nobody is asked."""


class _Chooser:
    """Whoever chooses among a few actions: tables, networks, and anybody's agent that gives advice."""

    def __init__(self, agent: Any) -> None:
        self._agent, task = agent, agent.task
        self.choices: tuple[str, ...] = task.actions
        self.advisors_asked: tuple[Advisor, ...] = getattr(agent, "advisors", task.advisors)
        self.aggregator: Aggregator = (
            agent.aggregator if hasattr(agent, "aggregator") else aggregator_of(task, agent.settings.aggregation)
        )
        self._place = {advisor.name: j for j, advisor in enumerate(self.advisors_asked)}

    def tell(self, state: Any, draw: int, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        high, low = divmod(draw, 1 << _BITS)
        said = self._said(state) if values else _silence(len(self.choices))
        if high / (1 << _BITS) < epsilon:
            action = low * len(self.choices) >> _BITS
            return Decision(action, action, True, *said)
        action = self._agent.task.numbered(self._agent.act(state, low / (1 << _BITS)))
        return Decision(action, action, False, *said)

    def _said(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Who spoke [m], their values [m, A] and weights [m]."""
        if isinstance(self._agent, MultiAdvisor):
            told = self._agent._learner.consult(state)
            names, values, weights = told.names, told.advice, told.weights
        else:
            names, values = self._agent.advice(state)
            weights = np.array([self.advisors_asked[self._place[name]].weight for name in names], float)
        return np.array([self._place[name] for name in names], np.int64), np.asarray(values), weights


class _Pointer(_Chooser):
    """A bank of general value functions, whose advisors point at goals."""

    def __init__(self, agent: MultiAdvisor) -> None:
        super().__init__(agent)
        self._bank = bank_of(agent)

    def tell(self, state: Any, draw: int, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        restless = max(epsilon, self._bank.goals.restless)
        action, greedy = self._bank._choose(state, draw, restless, False)
        if not values:
            return Decision(action, action, action != greedy, *_silence(len(self.choices)))
        return Decision(action, action, action != greedy, *self._bank.pointing(state))


class _Actor:
    """An actor, whose action is real numbers; what is expected of the entropy speaks as an advisor does."""

    def __init__(self, agent: MultiAdvisor) -> None:
        self._learner = agent._actor()
        names = [advisor.name for advisor in agent.advisors]
        entropy = Advisor(ENTROPY if ENTROPY not in names else f"{ENTROPY} of the actor")
        self._entropy = self._learner.tells_entropy
        self.choices = (TAKEN, CENTRE)
        self.advisors_asked: tuple[Advisor, ...] = (*agent.advisors, *((entropy,) if self._entropy else ()))
        self.aggregator, self._place = summed(len(self.advisors_asked)), {name: j for j, name in enumerate(names)}
        self._name = agent.task.name

    def tell(self, state: Any, draw: int, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        if epsilon:
            raise BadInput(f"epsilon is for a finite choice, and actions of {self._name!r} are real numbers: leave it")
        action = self._learner.choose(state)
        if not values:
            return Decision(action, 0, False, *_silence(len(self.choices)))
        told = self._learner.judge(state, np.stack([action, np.zeros_like(action)]))
        who, said, weights = [self._place[name] for name in told.names], told.values, told.weights
        push = push_shares(told.slopes)[0]
        if self._entropy:
            who, weights, push = [*who, len(self._place)], np.append(weights, 1.0), np.append(push, np.nan)
            said = np.concatenate([said, told.entropy[None]])
        return Decision(action, 0, False, np.array(who, np.int64), said, weights, None, push)


def _silence(choices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(0, np.int64), np.zeros((0, choices)), np.zeros(0)


def decider_of(agent: Any) -> Decider:
    """How this agent tells about its steps.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("two-goal"), gamma=0.9).learn(2_000, progress=False)
    >>> told = decider_of(agent).tell(agent.task.initial_state(), 0)
    >>> told.values.shape, told.action == agent.act(agent.task.initial_state())
    ((2, 3), True)
    """
    if agent.task.continuous:
        return _Actor(agent)
    return _Chooser(agent) if agent.task.goals is None else _Pointer(agent)
