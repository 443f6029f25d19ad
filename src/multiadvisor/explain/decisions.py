"""Who decides on an agent's steps: its learner, or, of somebody else's agent, what it advises and does."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.core.aggregator import Aggregator, aggregator_of
from multiadvisor.learners.protocol import Decider, Decision, nobody
from multiadvisor.task import Advisor

_BITS = 32


class ForeignDecider:
    """Anybody's agent that has `task`, `settings`, `advice(state)` and `act(state)`, such as an ensemble."""

    def __init__(self, agent: Any) -> None:
        self._agent, self._task = agent, agent.task
        self.choices: tuple[str, ...] = agent.task.actions
        self.asked: tuple[Advisor, ...] = getattr(agent, "advisors", agent.task.advisors)
        self.combined: Aggregator = (
            agent.aggregator
            if hasattr(agent, "aggregator")
            else aggregator_of(agent.task, getattr(agent.settings, "aggregation", "sum"))
        )
        self._place = {advisor.name: j for j, advisor in enumerate(self.asked)}

    def decide(self, state: Any, random_bits: int = 0, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """What it does in a state by 64 random bits; without `values` nobody is asked."""
        high, low = divmod(random_bits, 1 << _BITS)
        said = self._said(state) if values else nobody(len(self.choices))
        if high / (1 << _BITS) < epsilon:
            action = low * len(self.choices) >> _BITS
            return Decision(action, action, True, *said)
        action = self._task.numbered(self._agent.act(state, low / (1 << _BITS)))
        return Decision(action, action, False, *said)

    def compare(self, state: Any, action: Any = None, against: Any = None) -> Decision:
        """All actions are compared with each other: what it does, and what is advised."""
        chosen = self._task.numbered(self._agent.act(state))
        return Decision(chosen, chosen, False, *self._said(state))

    def _said(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Who was asked [m], their values [m, A] and weights [m]."""
        names, values = self._agent.advice(state)
        who = np.array([self._place[name] for name in names], np.int64)
        return who, np.asarray(values), np.array([self.asked[j].weight for j in who.tolist()], float)


def decider_of(agent: Any) -> Decider:
    """Who decides on this agent's steps.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("two-goal"), gamma=0.9).learn(2_000, progress=False)
    >>> decision = decider_of(agent).decide(agent.task.initial_state())
    >>> decision.values.shape, decision.action == agent.act(agent.task.initial_state())
    ((2, 3), True)
    """
    found: Decider = agent.decider if hasattr(agent, "decider") else ForeignDecider(agent)
    return found
