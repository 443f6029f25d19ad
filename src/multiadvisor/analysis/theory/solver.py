"""Exact fixed points of the plannings, the global optimum, and values of a given policy, each certified.

The iteration sweeps the states forwards and backwards in place, in float64, until nothing moves; the certificate is
computed afresh by one plain Bellman backup, so that it does not depend on the iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from multiadvisor.analysis.theory.mdp import FiniteMDP, LocalMDP
from multiadvisor.core.aggregations import weighted_sum
from multiadvisor.core.aggregator import Aggregator, aggregator_of
from multiadvisor.core.compiling import cached
from multiadvisor.core.plannings import Ahead, bootstrap, egocentric, planning_named, target
from multiadvisor.errors import BadInput

_SWEEPS = 1_000_000
TIE = 1e-12  # relative: values closer than this count as equal, as the last bits are rounding
LOCAL = ("egocentric", "agnostic")  # plannings whose values need nobody else's
SOLVED = (*LOCAL, "empathic")


@dataclass(frozen=True, eq=False)
class Solution:
    """A fixed point: values [n, S, A] over the global states, and what is known of their error.

    >>> import multiadvisor as mad
    >>> solution = solve(mad.theory.enumerate_task(mad.make("two-goal")), "egocentric", 0.9)
    >>> solution.preferences[0].round(2).tolist(), bool(solution.bound < 1e-12)
    ([1.8, 1.0, 1.0], True)
    """

    mdp: FiniteMDP
    planning: str
    gamma: float
    values: np.ndarray  # [n, S, A] Q_j(phi_j(x), a); 0 where advisor j is inactive
    residual: float
    """The largest change that one more Bellman backup would make."""
    bound: float
    """No value is further from the true fixed point than this (infinite for gamma = 1)."""
    converged: bool
    iterations: int
    cycle: int = 0
    """For empathic planning: the length of the cycle of policies it fell into, 0 for none."""
    markov: bool = True
    """Whether every advisor's local environment is Markov; where not, values are those of the averaged one."""
    aggregation: str = "sum"
    """What the aggregator makes of the advice."""

    @cached_property
    def aggregator(self) -> Aggregator:
        """The aggregation, spread over the advisors."""
        return aggregator_of(self.mdp.team, self.aggregation)

    @cached_property
    def preferences(self) -> np.ndarray:
        """The aggregator's preferences [S, A]: for a sum Q_Sigma. Inactive advisors are silent."""
        return self.prefer(self.values)

    def prefer(self, values: np.ndarray) -> np.ndarray:
        """What the aggregator would make of values [n, S, B]: preferences [S, B]."""
        return np.asarray(self.aggregator.prefer(np.moveaxis(values, 0, 1), self.mdp.state_weights))

    def aggregated_by(self, aggregation: str) -> Solution:
        """The same values, aggregated otherwise. (Empathic values depend on the aggregation: solve them anew.)"""
        return replace(self, aggregation=aggregation)

    @property
    def policy(self) -> np.ndarray:
        """The greedy aggregator's policy [S, A], ties shared evenly."""
        return greedy_policy(self.preferences)


def aggregate(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Q_Sigma [S, A] from Q_j [n, S, A], whoever is active."""
    n, states, actions = values.shape
    return np.asarray(weighted_sum(values.reshape(n, states * actions), weights).reshape(states, actions))


def best_actions(preferences: np.ndarray, *, tiny: bool = False) -> np.ndarray:
    """[..., A] bool: the greedy actions, all of those that are equal up to rounding.

    Rounding is relative to the best one and at least to 1; where values are `tiny`, as of far goals, to the largest.
    """
    best = preferences.max(axis=-1, keepdims=True)
    size = np.abs(preferences).max(axis=-1, keepdims=True) if tiny else np.maximum(1.0, np.abs(best))
    return np.asarray(preferences >= best - TIE * size)


def exceeds(one: np.ndarray, other: np.ndarray | float) -> np.ndarray:
    """Whether `one` is larger than the other by more than rounding."""
    return np.asarray(one - other > TIE * np.maximum(1.0, np.abs(one)))


def fixpoint(operator: Callable[[np.ndarray], np.ndarray], first: np.ndarray) -> np.ndarray:
    """Apply an operator until it changes nothing."""
    while not np.array_equal(after := operator(first), first):
        first = after
    return first


def greedy_policy(preferences: np.ndarray) -> np.ndarray:
    """[S, A] probabilities: the best actions, ties shared evenly."""
    best = best_actions(preferences)
    return np.asarray(best / best.sum(axis=-1, keepdims=True))


# ---- one advisor -----------------------------------------------------------------------------------------------------
@cached
def _sweep(
    successor: np.ndarray, weight: np.ndarray, reward: np.ndarray, policy: np.ndarray, gamma: float, greedy: bool,
    tolerance: float, limit: int, value: np.ndarray,
) -> int:  # fmt: skip
    """In-place sweeps, forwards and backwards by steps, until no state value moves by more than the tolerance."""
    states, actions, outcomes = weight.shape
    for iteration in range(limit):
        moved = 0.0
        for place in range(states):
            state = place if iteration % 2 == 0 else states - 1 - place
            best, mean = -np.inf, 0.0
            for a in range(actions):
                ahead = 0.0
                for k in range(outcomes):
                    if weight[state, a, k] > 0.0:
                        ahead += weight[state, a, k] * value[successor[state, a, k]]
                q = reward[state, a] + gamma * ahead
                best = max(best, q)
                mean += policy[state, a] * q
            new = best if greedy else mean
            moved = max(moved, abs(new - value[state]))
            value[state] = new
        if moved <= tolerance:
            return iteration + 1
    return -1


def solve_local(
    local: LocalMDP, gamma: float, planning: str = "egocentric", policy: np.ndarray | None = None
) -> tuple[np.ndarray, float, int]:
    """One advisor's fixed point Q [S, A], its residual and the sweeps it took (-1: not converged).

    `planning` is egocentric or agnostic; with `policy` [S, A] it is the value of that policy.
    """
    states, actions = local.reward.shape
    expected = target if policy is not None else planning_named(planning)
    mean = np.full((states, actions), 1.0 / actions) if policy is None else np.ascontiguousarray(policy, float)
    value = np.zeros(states)
    scale = max(1.0, float(np.abs(local.reward).max(initial=0.0)))
    took = _sweep(
        np.ascontiguousarray(local.successor, np.int64), np.ascontiguousarray(local.weight, float),
        np.ascontiguousarray(local.reward, float), mean, float(gamma), expected is egocentric, 1e-15 * scale, _SWEEPS,
        value,
    )  # fmt: skip
    q = local.backup(value, gamma)
    ahead = bootstrap(expected, q, Ahead(target=mean))
    residual = float(np.abs(local.backup(ahead, gamma) - q).max(initial=0.0))
    return q, residual, int(took)


def error_bound(residual: float, gammas: np.ndarray, values: np.ndarray) -> float:
    """How far values with this Bellman residual may be from the fixed point; the rounding of the residual included."""
    largest = float(gammas.max())
    rounding = 8 * np.finfo(float).eps * float(np.abs(values).max(initial=0.0))
    return (residual + rounding) / (1.0 - largest) if largest < 1.0 else np.inf


def _each(
    mdp: FiniteMDP, gamma: float, planning: str, policies: Sequence[np.ndarray] | None = None, *, full: bool = False
) -> Solution:
    """Every advisor's fixed point, in its own local MDP or with full states, spread over the global states."""
    gammas = mdp.discounts(gamma)
    values = np.zeros((mdp.n, mdp.states, len(mdp.actions)))
    residual, sweeps, converged, markov = 0.0, 0, True, True
    for j in range(mdp.n):
        local, is_markov = (mdp.paying(mdp.reward[:, :, j]), True) if full else mdp.local_mdps[j]
        q, off, took = solve_local(local, gammas[j], planning, None if policies is None else policies[j])
        row = np.arange(mdp.states) if full else mdp.local[j]
        values[j] = np.where((row >= 0)[:, None], q[np.maximum(row, 0)], 0.0)
        residual, sweeps = max(residual, off), max(sweeps, took)
        converged, markov = converged and took > 0, markov and is_markov
    bound = error_bound(residual, gammas, values)
    return Solution(mdp, planning, gamma, values, residual, bound, converged, sweeps, markov=markov)


# ---- the whole -------------------------------------------------------------------------------------------------------
def solve(mdp: FiniteMDP, planning: str = "egocentric", gamma: float = 0.9, aggregation: str = "sum") -> Solution:
    """The exact fixed point of a planning under an aggregation: `max`, `p_norm:5`, or by group `fruits=max`.

    >>> from multiadvisor.analysis.theory import enumerate_task
    >>> import multiadvisor as mad
    >>> solution = solve(enumerate_task(mad.make("two-goal")), "egocentric", 0.9)
    >>> solution.preferences.round(6).tolist()
    [[1.8, 1.0, 1.0]]
    """
    check_planning(planning)
    aggregator_of(mdp.team, aggregation)  # an unknown name is refused before the work begins
    if planning != "empathic":
        return _each(mdp, gamma, planning).aggregated_by(aggregation)
    return _empathic(mdp, gamma, aggregation)


def check_planning(planning: str) -> None:
    """Refuse a planning whose fixed point the solver does not know."""
    planning_named(planning)
    if planning not in SOLVED:
        raise BadInput(f"the solver does not know the planning {planning!r}: choose one of {', '.join(SOLVED)}")


def evaluate(mdp: FiniteMDP, policy: np.ndarray, gamma: float = 0.9) -> Solution:
    """The value of a given global policy [S, A] to every advisor, with full states."""
    if policy.shape != (mdp.states, len(mdp.actions)) or np.abs(policy.sum(axis=-1) - 1).max() > 1e-9:
        raise BadInput(f"a policy of {mdp.name!r} is [{mdp.states}, {len(mdp.actions)}] with rows that sum to 1")
    return _each(mdp, gamma, "policy", [policy] * mdp.n, full=True)


def optimum(mdp: FiniteMDP, gamma: float = 0.9) -> tuple[np.ndarray, float]:
    """The global optimum Q* [S, A] of the weighted reward, and the bound on its error; advisors share one gamma.

    >>> import multiadvisor as mad
    >>> optimum(mad.theory.enumerate_task(mad.make("two-goal")), 0.9)[0][0].round(2).tolist()
    [0.9, 1.0, 1.0]
    """
    own = mdp.one_discount(gamma, "there is no one optimum")
    q, residual, _ = solve_local(mdp.whole, own)
    return q, error_bound(residual, np.array([own]), q)


def _one_greedy(preferences: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    """A greedy policy [S, A] of one action each; the one before where it is still among the best, so that equal
    policies do not alternate."""
    best = best_actions(preferences)
    kept = best if before is None else best * before
    action = np.where(kept.any(axis=-1), kept.argmax(axis=-1), best.argmax(axis=-1))
    return np.asarray(np.eye(best.shape[1])[action])


def _empathic(mdp: FiniteMDP, gamma: float, aggregation: str) -> Solution:
    """What the aggregator does, and what that is worth to each advisor, in turns until a policy comes again.

    With whole states this is policy iteration: of a sum every round is an improvement, and the end is the optimum.
    Other aggregations promise neither. With local states each advisor estimates the aggregator's policy by how often
    each action is greedy where it stands, and nothing promises that this settles. A cycle of policies is reported.
    """
    policy = None
    found = _each(mdp, gamma, "agnostic", full=mdp.full)
    seen: dict[bytes, int] = {}
    cycle = -1
    for iteration in range(10_000 if mdp.full else 200):
        preferences = found.aggregated_by(aggregation).preferences
        policy = _one_greedy(preferences, policy) if mdp.full else greedy_policy(preferences)
        if (before := seen.setdefault(policy.tobytes(), iteration)) < iteration:
            cycle = iteration - before
            break
        if mdp.full:
            found = evaluate(mdp, policy, gamma)
        else:
            found = _each(mdp, gamma, "empathic", local_estimates(mdp, policy))
    settled = cycle == 1
    return replace(
        found, planning="empathic", aggregation=aggregation, converged=settled and found.converged,
        iterations=iteration + 1, cycle=0 if settled else cycle,
    )  # fmt: skip


def visits(mdp: FiniteMDP, policy: np.ndarray, epsilon: float) -> np.ndarray:
    """How often each state is met [S] from episode to episode, exploring with probability epsilon; every state a
    little."""
    mixed = (1 - epsilon) * policy + epsilon / policy.shape[1]
    flow = mixed[:, :, None] * mdp.probability  # [S, A, K]
    occupied = mdp.start.copy()
    for _ in range(2000):
        after = np.zeros(mdp.states)
        stays = np.where(mdp.final, 0.0, flow) * occupied[:, None, None]
        np.add.at(after, mdp.successor, stays)
        after += (1.0 - after.sum()) * mdp.start  # ended episodes begin anew
        if np.abs(after - occupied).max() < 1e-12:
            break
        occupied = 0.5 * (after + occupied)  # averaged, so that periodic walks settle as well
    return occupied + 1e-9


def local_estimates(mdp: FiniteMDP, policy: np.ndarray) -> list[np.ndarray]:
    """f_j(a | x_j) [S_j, A] of each advisor: how often each action is greedy in each local state, where global states
    weigh as much as a slightly exploring aggregator visits them."""
    met, found = policy * visits(mdp, policy, 0.05)[:, None], []
    for row in mdp.local:
        total = np.zeros((int(row.max()) + 1, policy.shape[1]))
        np.add.at(total, row[row >= 0], met[row >= 0])
        mass = total.sum(axis=-1, keepdims=True)
        found.append(np.where(mass > 0, total / np.maximum(mass, 1e-300), 1.0 / policy.shape[1]))
    return found
