"""Aggregators that are better than the sum, exact: generalised policy improvement, and the correction of the sum.

Generalised policy improvement (Barreto and others 2017): advisor j's plan pi_j is its own greedy policy, as if it were
in control. With the cross values Q_k^{pi_j}, what j's plan is worth to k, the aggregator acts by the best over j of
sum_k w_k Q_k^{pi_j}(x, a): at least as good as letting any single advisor drive, for weights of any sign.

The correction D is what the sum of the advisors promises too much, so that Q_Sigma - D is the global optimum.

    D(x, a) = E[ sum_j w_j gamma_j V_j(x'_j) - gamma max_a' (Q_Sigma(x', a') - D(x', a')) ]

V_j is what advisor j bootstraps on. Take D from Q_Sigma and the V_j cancel: what is left is the Bellman equation of the
weighted reward, whose only solution is Q*. For egocentric advisors that share one gamma, with weights of at least 0,
D >= 0, as a sum of maxima is at least the maximum of the sum; with a negative weight D may have either sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import Solution, error_bound, evaluate, greedy_policy, solve
from multiadvisor.core.plannings import bootstrap, planning_named
from multiadvisor.errors import BadInput

_ROUNDS = 100_000


# ---- generalised policy improvement ----------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Improvement:
    """The cross values, and what the aggregator makes of them."""

    mdp: FiniteMDP
    gamma: float
    cross: np.ndarray  # [n, n, S, A] Q_k^{pi_j}(x, a), the plan j first
    bound: float
    """No cross value is further from the true one than this."""

    @property
    def plans(self) -> np.ndarray:
        """[n, S, A] what each plan is worth to all together, sum_k w_k Q_k^{pi_j}(x, a)."""
        return np.asarray(np.einsum("k,jksa->jsa", self.mdp.weights, self.cross))

    @property
    def preferences(self) -> np.ndarray:
        """[S, A] the best over the plans."""
        return np.asarray(self.plans.max(axis=0))

    @property
    def policy(self) -> np.ndarray:
        """[S, A] the greedy aggregator's, ties shared evenly."""
        return greedy_policy(self.preferences)


def improve(mdp: FiniteMDP, gamma: float = 0.9) -> Improvement:
    """The cross values of egocentric advisors over the whole states, and the improved preferences.

    >>> import multiadvisor as mad
    >>> from multiadvisor.analysis.theory import enumerate_task
    >>> improve(enumerate_task(mad.make("two-goal")), 0.9).preferences.round(6).tolist()
    [[0.9, 1.0, 1.0]]
    """
    mdp.one_discount(gamma, "plans have no one worth: give them one gamma")
    own = solve(mdp, "egocentric", gamma).values
    # plans are the advisors' own greedy policies, ties shared evenly; whoever is inactive has none: any action
    worth = [evaluate(mdp, greedy_policy(values), gamma) for values in own]
    return Improvement(mdp, gamma, np.stack([each.values for each in worth]), max(each.bound for each in worth))


# ---- the correction --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Correction:
    """D [S, A] of a solution, and what is known of its error."""

    solution: Solution
    values: np.ndarray  # [S, A]
    residual: float
    """The largest change that one more round would make."""
    bound: float
    """No value is further from the true D than this (infinite for gamma = 1)."""
    converged: bool
    iterations: int

    @property
    def preferences(self) -> np.ndarray:
        """[S, A] Q_Sigma - D: the global optimum."""
        return np.asarray(self.solution.preferences - self.values)

    @property
    def policy(self) -> np.ndarray:
        """[S, A] the greedy aggregator's, ties shared evenly."""
        return greedy_policy(self.preferences)


def expected(solution: Solution) -> np.ndarray:
    """[S, A] E sum_j w_j gamma_j V_j(x'_j): what the advisors together expect of the next state."""
    mdp, planning = solution.mdp, planning_named(solution.planning)
    if planning.needs:
        raise BadInput(
            f"{solution.planning} advisors look at what the aggregator does, which the correction changes: solve the "
            "task with egocentric or agnostic planning"
        )
    if not solution.markov:
        raise BadInput(
            f"an advisor of {mdp.name!r} cannot tell from its local state what follows, so that no correction makes "
            "its values optimal: enumerate the task with full=True"
        )
    discounted = mdp.weights * mdp.discounts(solution.gamma)
    ahead = discounted @ np.stack([bootstrap(planning, values) for values in solution.values])  # [S]
    return mdp.whole.expect(ahead)


def correct(solution: Solution) -> Correction:
    """The fixed point D of a solution's advisors, from 0 on; gamma is the solution's, the aggregator's own.

    >>> import multiadvisor as mad
    >>> from multiadvisor.analysis.theory import enumerate_task, solve
    >>> found = correct(solve(enumerate_task(mad.make("two-goal")), "egocentric", 0.9))
    >>> found.values.round(6).tolist(), found.preferences.round(6).tolist()
    ([[0.9, 0.0, 0.0]], [[0.9, 1.0, 1.0]])
    """
    mdp, gamma, promised = solution.mdp, solution.gamma, solution.preferences
    source = expected(solution)

    def once_more(values: np.ndarray) -> np.ndarray:
        return source - gamma * mdp.whole.expect((promised - values).max(axis=-1))

    values = np.zeros_like(promised)
    scale = max(1.0, float(np.abs(promised).max(initial=0.0)))
    moved, rounds = np.inf, 0
    while moved > 1e-15 * scale and rounds < _ROUNDS:
        after = once_more(values)
        moved = float(np.abs(after - values).max(initial=0.0))
        values, rounds = after, rounds + 1
    residual = float(np.abs(once_more(values) - values).max(initial=0.0))
    bound = error_bound(residual, np.array([gamma]), np.abs(values) + np.abs(promised))
    return Correction(solution, values, residual, bound, residual <= 1e-12 * scale, rounds)
