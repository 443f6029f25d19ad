"""An ensemble: advisors that learn each in a way of its own, one with a table, another with a network, aggregated.

Inside a MultiAdvisor all advisors are tables, or all are outputs of networks. In an ensemble every member is an agent
with a task of its own, on the same environment: its own reward, its own view, its own learner and settings. All of them
learn from every transition, and the aggregation is one of the registered ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.aggregations import epsilon_greedy, greedy
from multiadvisor.core.aggregator import Team, aggregator_of
from multiadvisor.errors import BadInput
from multiadvisor.settings import LARGEST_WEIGHT, number_between, whole_number
from multiadvisor.task import Advisor


class Ensemble:
    """Agents that are aggregated: `act` and `observe` are those of a MultiAdvisor.

    A member that plans egocentrically learns as if it were in control; with sarsa, from what the ensemble does next.
    Continuous actions are the mean of the members' own, by weight; so is what they would do while learning.

    >>> import gymnasium
    >>> import multiadvisor as mad
    >>> env = gymnasium.make("multiadvisor/mo-TwoGoal-v0", r2=2.0)
    >>> def alone(j, **how):
    ...     task = mad.Task.from_gymnasium(env, [mad.Advisor(f"goal {j + 1}", reward=j)])
    ...     return mad.MultiAdvisor(task, planning="egocentric", gamma=0.3, **how)
    >>> ensemble = Ensemble({"first": alone(0, alpha=0.5), "second": alone(1, alpha=0.1)})
    >>> for action in (1, 2) * 50:
    ...     ensemble.observe(0, action, np.eye(3)[action][1:] * [1.0, 2.0], 0, terminated=True)
    >>> ensemble.preferences(0).round(2).tolist(), ensemble.act(0)
    ([0.0, 1.0, 1.99], 2)
    """

    def __init__(
        self, members: Mapping[str, MultiAdvisor], *, aggregation: str = "sum",
        weights: Mapping[str, float] | None = None, epsilon: float | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        """`epsilon`, by default 0.05, is the probability of a random action where `act` explores a finite choice."""
        if not members:
            raise BadInput("an ensemble needs members: give at least one")
        self.names, self.members = tuple(members), tuple(members.values())
        for name, member in members.items():
            if _actions(member) != _actions(self.members[0]):
                raise BadInput(f"member {name!r} has other actions than {self.names[0]!r}: give both one environment")
        given = dict(weights or {})
        for name in given:
            if name not in members:
                raise BadInput(f"no member of the ensemble is called {name!r}: its members are {', '.join(members)}")
        self.continuous = self.members[0].task.continuous
        low = 0.0 if self.continuous else -LARGEST_WEIGHT
        self.weights = np.array([
            number_between(f"the weight of {name!r}", given.get(name, 1.0), low, LARGEST_WEIGHT) for name in members
        ])  # fmt: skip
        if self.continuous and (aggregation != "sum" or epsilon is not None or not self.weights.any()):
            raise BadInput(
                "the members' actions are real numbers, and an ensemble takes their mean: leave aggregation and "
                "epsilon "
                "out, and give one of them a weight above 0"
            )
        self.aggregation = aggregation
        self.aggregator = aggregator_of(Team("ensemble", tuple(Advisor(name) for name in self.names)), aggregation)
        self.epsilon = number_between("epsilon", 0.05 if epsilon is None else epsilon, 0.0, 1.0)
        self._generator = np.random.default_rng(whole_number("seed", seed))

    def advice(self, state: Any) -> tuple[tuple[str, ...], np.ndarray]:
        """The members' names [m], and what each of them prefers [m, A]; of real numbers, its own action [m, ...]."""
        if self.continuous:
            return self.names, np.stack([member.act(state) for member in self.members])
        return self.names, np.stack([np.asarray(member.preferences(state), float) for member in self.members])

    def preferences(self, state: Any) -> np.ndarray:
        """What comes of it [A]."""
        if self.continuous:
            raise BadInput("an ensemble of agents whose actions are real numbers prefers none: ask for act, or advice")
        found: np.ndarray = self.aggregator.prefer(self.advice(state)[1], self.weights)
        if not np.isfinite(found).all():
            raise BadInput("the members' preferences times their weights are too large for a number: lower the weights")
        return found

    def act(self, state: Any, draw: float = 0.0, *, explore: bool = False) -> Any:
        """The greedy action, as the environment has it; with `explore`, with probability epsilon any other."""
        if self.continuous:
            actions = np.stack([member.act(state, explore=explore) for member in self.members])
            return np.average(actions, axis=0, weights=self.weights).astype(actions.dtype)
        preferences, played = self.preferences(state), self.members[0].task.played
        if explore:
            return played(int(epsilon_greedy(preferences, self.epsilon, *self._generator.random(2))))
        return played(int(greedy(preferences, draw)))

    def observe(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, terminated: bool,
        truncated: bool = False, info: dict[str, Any] | None = None, *, next_action: int | None = None,
    ) -> None:  # fmt: skip
        """All of them learn from the transition, each for its own reward."""
        for member in self.members:
            member.observe(
                observation, action, reward, next_observation, terminated, truncated, info, next_action=next_action
            )


def _actions(member: MultiAdvisor) -> tuple[Any, ...]:
    """What two members must have in common: the actions' names, and the environment's own space of them."""
    adapter = member.task.adapter
    env = None if adapter is None else adapter.env
    return member.task.actions, getattr(env, "single_action_space", getattr(env, "action_space", None))
