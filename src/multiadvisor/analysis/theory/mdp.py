"""Finite MDPs with one reward per advisor: arrays in, checked once, and each advisor's own local MDP out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregator import Team
from multiadvisor.errors import BadInput
from multiadvisor.settings import number_between
from multiadvisor.task import Advisor, Task

LARGEST = 40_000_000  # entries of the transition array: beyond it nothing here ends in a sensible time
_SAME = 1e-9  # probabilities and rewards that differ by less are the same


class LocalMDP(NamedTuple):
    """One reward in one environment: outcome k of (state, action)."""

    successor: np.ndarray  # [S, A, K] int64
    weight: np.ndarray  # [S, A, K] probability, 0 where the advisor's part ends
    reward: np.ndarray  # [S, A] expected

    def expect(self, value: np.ndarray) -> np.ndarray:
        """E[V(x')] [S, A] from V [S]."""
        return np.asarray((self.weight * value[self.successor]).sum(axis=-1))

    def backup(self, value: np.ndarray, gamma: float) -> np.ndarray:
        """The Bellman operator: Q [S, A] from V [S]."""
        return self.reward + gamma * self.expect(value)


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """States 0 .. S - 1, actions 0 .. A - 1, outcome k of each pair, rewards of n advisors.

    >>> mdp = FiniteMDP.from_arrays(np.ones((1, 2, 1)), np.array([[[1.0, 0.0]]]), end=np.array([[1, 0]]))
    >>> mdp.states, mdp.n
    (1, 1)
    """

    name: str
    actions: tuple[str, ...]
    advisors: tuple[str, ...]
    successor: np.ndarray  # [S, A, K] int64
    probability: np.ndarray  # [S, A, K]
    final: np.ndarray  # [S, A, K] bool: the episode ends with this outcome
    reward: np.ndarray  # [S, A, n] expected
    weights: np.ndarray  # [n]
    local: np.ndarray  # [n, S] phi_j(x), or -1 where advisor j is inactive
    start: np.ndarray  # [S] probability of the first state
    labels: tuple[str, ...] = ()  # what people call the states
    gammas: tuple[float | None, ...] = ()  # discounts of their own
    groups: tuple[str, ...] = ()  # the advisors' groups, which an aggregation may name
    known: str = ""  # of an environment, how its states and probabilities are known
    estimated: bool = False  # from a sample, so that nothing is exact

    def __post_init__(self) -> None:
        off = ~(np.abs(self.probability.sum(axis=-1) - 1.0) <= _SAME) | (self.probability < 0).any(axis=-1)
        if off.any():
            state, action = np.argwhere(off)[0]
            raise BadInput(
                f"the probabilities of state {self.label(state)} and action {self.actions[action]!r} of {self.name!r} "
                f"sum to {self.probability[state, action].sum():.6g}: they must not be negative and sum to 1"
            )
        if not np.isfinite(self.reward).all():
            state, action, j = np.argwhere(~np.isfinite(self.reward))[0]
            raise BadInput(
                f"the reward of advisor {self.advisors[j]!r} in state {self.label(state)} of {self.name!r} is "
                f"{self.reward[state, action, j]}: give a finite number"
            )
        for what, given in (("weights", self.weights.size), ("groups", len(self.groups) or self.n)):
            if given != self.n:
                raise BadInput(f"{self.name!r} has {self.n} advisors but {given} {what}: give one for each")
        if not np.isfinite(self.weights).all():
            raise BadInput(f"{self.name!r} has a weight that is not finite")

    @property
    def states(self) -> int:
        """S."""
        return len(self.successor)

    @property
    def n(self) -> int:
        """The number of advisors."""
        return len(self.advisors)

    @cached_property
    def team(self) -> Team:
        """The advisors and their groups, for settings that name them."""
        groups = self.groups or ("",) * self.n
        return Team(self.name, tuple(Advisor(name, group=g) for name, g in zip(self.advisors, groups, strict=True)))

    @cached_property
    def active(self) -> np.ndarray:
        """[S] bool: where somebody has a say."""
        return np.asarray((self.local >= 0).any(axis=0))

    @cached_property
    def state_weights(self) -> np.ndarray:
        """[S, n] the advisors' weights, 0 where they are inactive."""
        return np.where(self.local.T >= 0, self.weights, 0.0)

    @cached_property
    def full(self) -> bool:
        """Whether every advisor can tell all states apart (the inactive ones aside, where it has nothing to tell)."""
        return all(len(np.unique(row[row >= 0])) == (row >= 0).sum() for row in self.local)

    @cached_property
    def going_on(self) -> np.ndarray:
        """[S, A, K] probability of the outcomes that do not end the episode."""
        return np.where(self.final, 0.0, self.probability)

    @property
    def endless(self) -> bool:
        """Whether no outcome ever ends an episode."""
        return not (self.final & (self.probability > 0)).any()

    def label(self, state: int) -> str:
        """A state as people call it."""
        return self.labels[state] if self.labels else str(state)

    def labelled(self, states: np.ndarray) -> list[str]:
        """Those of the states [S] bool, as people call them."""
        return [self.label(state) for state in np.flatnonzero(states).tolist()]

    def discounts(self, gamma: float) -> np.ndarray:
        """gamma_j [n], checked: 1 needs an end."""
        given = np.array([gamma if own is None else own for own in self.gammas or (None,) * self.n], float)
        for value in given:
            number_between("gamma", value, 0, 1)
        if (given == 1.0).any() and self.endless:
            raise BadInput(f"gamma is 1 and no episode of {self.name!r} ever ends: choose it below 1")
        return given

    def one_discount(self, gamma: float, so_that: str) -> float:
        """The discount that all advisors share; refused where they have different ones, `so_that` this is undefined."""
        given = self.discounts(gamma)
        if np.ptp(given) > 0:
            raise BadInput(f"the advisors of {self.name!r} have different gammas, so that {so_that}")
        return float(given[0])

    def stays_in(self, states: np.ndarray) -> np.ndarray:
        """[S, A] bool: the actions that surely lead to one of the states [S] bool, and do not end the episode."""
        inside = np.where(self.probability > 0, states[self.successor] & ~self.final, True)
        return np.asarray(inside.all(axis=-1))

    @classmethod
    def of_task(cls, task: Task, used: Sequence[int] | np.ndarray, **arrays: Any) -> FiniteMDP:
        """A task's MDP for those of its advisors that have a part in it, from the arrays that only the caller knows."""
        advisors = [task.advisors[j] for j in used]
        names = {
            "name": task.name, "actions": task.actions, "advisors": tuple(advisor.name for advisor in advisors),
            "weights": task.weights[list(used)], "gammas": tuple(advisor.gamma for advisor in advisors),
            "groups": tuple(advisor.group for advisor in advisors),
        }  # fmt: skip
        return cls(**{**names, **arrays})

    @classmethod
    def from_arrays(
        cls, transition: np.ndarray, reward: np.ndarray, *, end: np.ndarray | None = None,
        weights: np.ndarray | None = None, name: str = "given", actions: Sequence[str] | None = None,
        advisors: Sequence[str] | None = None, groups: Sequence[str] = (),
    ) -> FiniteMDP:  # fmt: skip
        """From dense arrays: transition [S, A, S], reward [n, S, A], end [S, A] the probability that the episode ends.

        With `end`, the rows of `transition` and `end` together sum to 1; without it episodes never end.
        """
        transition, reward = np.asarray(transition, float), np.asarray(reward, float)
        if transition.ndim != 3 or transition.shape[0] != transition.shape[2]:
            raise BadInput(f"transition has the shape {transition.shape}: give [S, A, S]")
        states, acts, _ = transition.shape
        if reward.ndim != 3 or reward.shape[1:] != (states, acts):
            raise BadInput(f"reward has the shape {reward.shape}: give [n, {states}, {acts}]")
        ending = np.zeros((states, acts)) if end is None else np.asarray(end, float)
        if ending.shape != (states, acts):
            raise BadInput(f"end has the shape {ending.shape}: give [{states}, {acts}]")
        # 1 in `end` alone may stand for "ends whatever happens"
        successor, going = _sparse(np.where((ending == 1.0)[:, :, None], 0.0, transition))
        probability = np.concatenate([going, ending[:, :, None]], axis=-1)
        n = len(reward)
        return cls(
            name=name,
            actions=tuple(actions or (f"a{a}" for a in range(acts))),
            advisors=tuple(advisors or (f"advisor {j}" for j in range(n))),
            successor=np.concatenate([successor, np.zeros((states, acts, 1), np.int64)], axis=-1),
            probability=probability,
            final=np.broadcast_to(np.arange(going.shape[-1] + 1) == going.shape[-1], probability.shape),
            reward=np.moveaxis(reward, 0, -1),
            weights=np.ones(n) if weights is None else np.asarray(weights, float),
            local=np.tile(np.arange(states), (n, 1)),
            start=np.full(states, 1.0 / states),
            groups=tuple(groups),
        )

    # ---- one reward --------------------------------------------------------------------------------------------------
    def paying(self, reward: np.ndarray) -> LocalMDP:
        """The whole environment with one reward [S, A]."""
        return LocalMDP(self.successor, self.going_on, reward)

    @cached_property
    def whole(self) -> LocalMDP:
        """With the weighted rewards of all."""
        return self.paying(self.reward @ self.weights)

    @cached_property
    def local_mdps(self) -> tuple[tuple[LocalMDP, bool], ...]:
        """[n] each advisor's own MDP over its local states, and whether it is Markov (the paper's Assumption 1)."""
        return tuple(self._local_mdp(j) for j in range(self.n))

    def _local_mdp(self, j: int) -> tuple[LocalMDP, bool]:
        """Advisor j's; where it is not Markov, global states that look alike to the advisor count equally."""
        row, paid = self.local[j], self.reward[:, :, j]
        if np.array_equal(row, np.arange(self.states)):
            return self.paying(paid), True
        seen = np.flatnonzero(row >= 0).tolist()
        states, acts = int(row.max()) + 1, len(self.actions)
        flow, pay = np.zeros((states, acts, states)), np.zeros((states, acts))
        for state in seen:
            flow[row[state]] += self._arrivals(row, state)
            pay[row[state]] += paid[state]
        share = np.maximum(np.bincount(row[seen], minlength=states), 1)
        flow, pay = flow / share[:, None, None], pay / share[:, None]
        alike = (
            (np.abs(self._arrivals(row, state) - flow[row[state]]) < _SAME).all()
            and (np.abs(paid[state] - pay[row[state]]) < _SAME).all()
            for state in seen
        )
        return LocalMDP(*_sparse(flow), pay), bool(all(alike))

    def _arrivals(self, row: np.ndarray, state: int) -> np.ndarray:
        """[A, S_j] the probability of each local state after each action, from who sees the states as `row` [S]."""
        to = row[self.successor[state]]  # [A, K]
        found = np.zeros((len(to), int(row.max()) + 1))
        there = np.where(to >= 0, self.going_on[state], 0.0)
        np.add.at(found, (np.arange(len(to))[:, None], np.maximum(to, 0)), there)
        return found


def _sparse(flow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The successors [S, A, K] and probabilities [S, A, K] of a dense array [S, A, S], the likely ones first."""
    width = max(int((flow > 0).sum(axis=-1).max()), 1)
    order = np.argsort(-flow, axis=-1, kind="stable")[:, :, :width]
    return order, np.take_along_axis(flow, order, axis=-1)
