"""Merging MDPs whose solutions are known (Singh and Cohn 1998): bounds from the components prune actions of the whole.

Where rewards are never negative, max_j w_j V_j(x_j) <= V(x) <= sum_j w_j V_j(x_j): the lower one is earned by whoever
follows the best component, the upper one would need all of them to be followed at once. Value iteration on both bounds
keeps them, and an action whose upper value lies below the lower value of the state is never looked at again.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import best_actions, solve_local
from multiadvisor.errors import BadInput

_SWEEPS = 100_000


class MergeResult(NamedTuple):
    """What value iteration found, and what it cost."""

    lower: np.ndarray  # [S] the optimal value is at least this
    upper: np.ndarray  # [S] and at most this
    allowed: np.ndarray  # [S, A] bool: actions that may be the best, one for each state where the policy is certain
    backups: int
    """Values of an action that were computed; two bounds are two. Those of the components are not among them."""
    course: np.ndarray  # [sweeps, 2] backups so far, and the share of states in which one action is left
    components: int = 0
    """Backups that the components' own optima took, which the method takes for known."""


def component_bounds(mdp: FiniteMDP, gamma: float) -> tuple[np.ndarray, np.ndarray, int]:
    """The bounds [S], [S] on the optimal value from the components' own optima, and the backups these took."""
    paid = mdp.reward * mdp.weights
    if (paid < 0).any():
        j = int(np.argwhere(paid < 0)[0, 2])
        raise BadInput(f"advisor {mdp.advisors[j]!r} of {mdp.name!r} may lose, and bounds need rewards of at least 0")
    values, backups = np.zeros((mdp.n, mdp.states)), 0
    gamma = mdp.one_discount(gamma, "there is no one optimum")
    for j, (local, markov) in enumerate(mdp.local_mdps):
        if not markov:
            raise BadInput(
                f"what advisor {mdp.advisors[j]!r} of {mdp.name!r} sees is not an MDP by itself: merge others"
            )
        q, _, sweeps = solve_local(local, gamma)
        there = mdp.local[j] >= 0
        values[j, there] = mdp.weights[j] * q.max(axis=1)[mdp.local[j, there]]
        backups += sweeps * q.size
    return values.max(axis=0), values.sum(axis=0), backups


def merge(mdp: FiniteMDP, gamma: float = 0.9, tolerance: float = 1e-6) -> MergeResult:
    """Value iteration between the components' bounds, until the policy is certain or the bounds meet.

    >>> mdp = random_components(2, 5, 3, 1)
    >>> merged, plain = merge(mdp), value_iteration(mdp)
    >>> bool((merged.allowed & plain.allowed).any(axis=1).all()), merged.backups < plain.backups
    (True, True)
    """
    gamma = mdp.one_discount(gamma, "there is no one optimum")
    lower, upper, components = component_bounds(mdp, gamma)
    allowed = np.ones(mdp.reward.shape[:2], bool)
    backups, course = 0, [(0, 0.0)]
    for _ in range(_SWEEPS):
        if course[-1][1] == 1.0 or (upper - lower).max() <= tolerance:
            return MergeResult(lower, upper, allowed, backups, np.array(course), components)
        backups += 2 * int(allowed.sum())
        low, high = (np.where(allowed, mdp.whole.backup(value, gamma), -np.inf) for value in (lower, upper))
        lower, upper = np.maximum(lower, low.max(axis=1)), np.minimum(upper, high.max(axis=1))
        allowed &= high >= lower[:, None]
        course.append((backups, decided(allowed)))
    raise BadInput(f"the bounds of {mdp.name!r} do not meet in {_SWEEPS} sweeps: choose a smaller gamma")


def value_iteration(mdp: FiniteMDP, gamma: float = 0.9, tolerance: float = 1e-6) -> MergeResult:
    """Plain value iteration from 0, which ends as `merge` does: its bounds are those of the last change."""
    value, backups = np.zeros(mdp.states), 0
    course = [(0, 0.0)]
    for _ in range(_SWEEPS):
        q = mdp.whole.backup(value, gamma)
        backups += q.size
        off = gamma / (1.0 - gamma) * float(np.abs(q.max(axis=1) - value).max())
        value = q.max(axis=1)
        allowed = q + off >= (value - off)[:, None]
        course.append((backups, decided(allowed)))
        if course[-1][1] == 1.0 or 2 * off <= tolerance:
            left = allowed if course[-1][1] == 1.0 else best_actions(q)
            return MergeResult(value - off, value + off, left, backups, np.array(course))
    raise BadInput(f"the values of {mdp.name!r} do not converge in {_SWEEPS} sweeps: choose a smaller gamma")


def decided(allowed: np.ndarray) -> float:
    """The share of states in which one of the actions [S, A] is left."""
    return float((allowed.sum(axis=1) == 1).mean())


def random_components(components: int = 3, states: int = 5, own: int = 3, busy: int = 2, seed: int = 0) -> FiniteMDP:
    """Random MDPs to be run at once: an action is one of `own` for each, and all but `busy` must take their first.

    Each advisor sees its own component, which pays in one of its states, nothing for the first action.
    """
    generator = np.random.default_rng([seed, components, states, own, busy])
    chance = generator.dirichlet(np.ones(2), (components, states, own))  # [n, states, own, 2] two outcomes each
    to = generator.integers(states, size=chance.shape)
    pays = np.zeros((components, states, own))
    pays[:, 0, 1:] = generator.random((components, own - 1))
    which, sizes = np.arange(components), (states,) * components
    acts = np.array([one for one in itertools.product(range(own), repeat=components) if np.count_nonzero(one) <= busy])
    at = np.stack(np.unravel_index(np.arange(states**components), sizes))  # [n, S]
    here, does = at[:, :, None], acts.T[:, None, :]  # [n, S, 1] and [n, 1, A]
    outcomes = list(itertools.product(range(2), repeat=components))
    probability = [np.prod([chance[j, here[j], does[j], k[j]] for j in which], axis=0) for k in outcomes]
    successor = [np.ravel_multi_index([to[j, here[j], does[j], k[j]] for j in which], sizes) for k in outcomes]
    chances = np.stack(probability, axis=-1)  # [S, A, K]
    return FiniteMDP(
        name="random components", actions=tuple(" ".join(map(str, act)) for act in acts),
        advisors=tuple(f"component {j + 1}" for j in which), successor=np.stack(successor, axis=-1),
        probability=chances, final=np.zeros(chances.shape, bool),
        reward=np.stack([pays[j, here[j], does[j]] for j in which], axis=-1), weights=np.ones(components), local=at,
        start=np.full(len(chances), 1.0 / len(chances)),
    )  # fmt: skip
