"""Finite MDPs with one reward per advisor: arrays in, checked once, and each advisor's own local MDP out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from multiadvisor.core.aggregator import Team
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, check_gamma

LARGEST = 40_000_000  # entries of the transition array: beyond it nothing here ends in a sensible time


class LocalMDP(NamedTuple):
    """One advisor's environment: outcome k of (local state, action)."""

    successor: np.ndarray  # [S, A, K] int64
    weight: np.ndarray  # [S, A, K] probability, 0 where the advisor's part ends
    reward: np.ndarray  # [S, A] expected


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

    def __post_init__(self) -> None:
        off = np.abs(self.probability.sum(axis=-1) - 1.0) > 1e-9
        if off.any() or (self.probability < 0).any() or not np.isfinite(self.probability).all():
            state, action = np.argwhere(off | (self.probability < 0).any(axis=-1))[0]
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
        if self.weights.shape != (self.n,):
            raise BadInput(f"{self.name!r} has {self.n} advisors but {self.weights.size} weights: give one for each")
        if self.groups and len(self.groups) != self.n:
            raise BadInput(f"{self.name!r} has {self.n} advisors but {len(self.groups)} groups: give one for each")
        if not np.isfinite(self.weights).all():
            raise BadInput(f"{self.name!r} has a weight that is not finite")

    @property
    def states(self) -> int:
        """S."""
        return self.successor.shape[0]

    @property
    def n(self) -> int:
        """The number of advisors."""
        return len(self.advisors)

    @cached_property
    def team(self) -> Team:
        """The advisors and their groups, for settings that name them."""
        groups = self.groups or ("",) * self.n
        return Team(
            self.name, tuple(Advisor(name, group=group) for name, group in zip(self.advisors, groups, strict=True))
        )

    @cached_property
    def heard(self) -> np.ndarray:
        """[S, n] the weights with which advisors are heard: 0 where they are inactive, as these are silent."""
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

    def discounts(self, gamma: float) -> np.ndarray:
        """gamma_j [n], checked: 1 needs an end."""
        given = np.array([gamma if own is None else own for own in self.gammas or (None,) * self.n], float)
        for value in given:
            check_gamma(value)
        if (given == 1.0).any() and self.endless:
            raise BadInput(f"gamma is 1 and no episode of {self.name!r} ever ends: choose it below 1")
        return given

    @classmethod
    def from_arrays(
        cls,
        transition: np.ndarray,
        reward: np.ndarray,
        *,
        end: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        name: str = "given",
        actions: Sequence[str] | None = None,
        advisors: Sequence[str] | None = None,
        groups: Sequence[str] = (),
    ) -> FiniteMDP:
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
        transition = np.where((ending == 1.0)[:, :, None], 0.0, transition)
        width = max(int((transition > 0).sum(axis=-1).max()), 1) + 1
        order = np.argsort(-transition, axis=-1, kind="stable")[:, :, : width - 1]
        going = np.take_along_axis(transition, order, axis=-1)
        pad = width - 1 - going.shape[-1]
        order, going = np.pad(order, ((0, 0), (0, 0), (0, pad))), np.pad(going, ((0, 0), (0, 0), (0, pad)))
        probability = np.concatenate([going, ending[:, :, None]], axis=-1)
        successor = np.concatenate([order, np.zeros((states, acts, 1), np.int64)], axis=-1)
        final = np.zeros(probability.shape, bool)
        final[:, :, -1] = True
        n = len(reward)
        return cls(
            name=name,
            actions=tuple(actions or (f"a{a}" for a in range(acts))),
            advisors=tuple(advisors or (f"advisor {j}" for j in range(n))),
            successor=successor,
            probability=probability,
            final=final,
            reward=np.moveaxis(reward, 0, -1),
            weights=np.ones(n) if weights is None else np.asarray(weights, float),
            local=np.tile(np.arange(states), (n, 1)),
            start=np.full(states, 1.0 / states),
            groups=tuple(groups),
        )

    def local_mdp(self, j: int) -> tuple[LocalMDP, bool]:
        """Advisor j's own MDP over its local states, and whether it is Markov (the paper's Assumption 1).

        Where it is not, global states that look alike to the advisor count equally.
        """
        row = self.local[j]
        if (row >= 0).all() and np.array_equal(row, np.arange(self.states)):
            return LocalMDP(self.successor, self.going_on, self.reward[:, :, j]), True
        states, acts = int(row.max()) + 1, len(self.actions)
        flow = np.zeros((states, acts, states))
        lowest, highest = np.full((states, acts, states), np.inf), np.full((states, acts, states), -np.inf)
        pay, count = np.zeros((states, acts)), np.zeros(states)
        low_pay, high_pay = np.full((states, acts), np.inf), np.full((states, acts), -np.inf)
        for state in np.flatnonzero(row >= 0):
            here, to = row[state], row[self.successor[state]]  # [A, K]
            chance = np.where(to >= 0, self.going_on[state], 0.0)
            mine = np.zeros((acts, states))
            np.add.at(mine, (np.arange(acts)[:, None], np.maximum(to, 0)), chance)
            flow[here] += mine
            lowest[here], highest[here] = np.minimum(lowest[here], mine), np.maximum(highest[here], mine)
            pay[here] += self.reward[state, :, j]
            low_pay[here] = np.minimum(low_pay[here], self.reward[state, :, j])
            high_pay[here] = np.maximum(high_pay[here], self.reward[state, :, j])
            count[here] += 1
        seen = count > 0
        markov = bool(
            (highest[seen] - lowest[seen] < 1e-9).all() and (high_pay[seen] - low_pay[seen] < 1e-9).all()
        )  # fmt: skip
        share = np.maximum(count, 1)
        flow, pay = flow / share[:, None, None], pay / share[:, None]
        width = max(int((flow > 0).sum(axis=-1).max()), 1)
        order = np.argsort(-flow, axis=-1, kind="stable")[:, :, :width]
        return LocalMDP(order, np.take_along_axis(flow, order, axis=-1), pay), markov
