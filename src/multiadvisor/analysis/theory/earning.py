"""How soon a greedy aggregator earns: a bound that holds at every gamma under `max`, and the walk to check it by.

Let M(x) = max_j w_j V_j(x). Under `max` a greedy action is worth M(x) to some advisor j. Where the world has no chance,
either it pays j at once, or w_j V_j(x') = M(x) / gamma, so that M(x') >= M(x) / gamma. M is bounded: something is paid
after at most ln(max M / M(x)) / ln(1 / gamma) other steps, whatever the ties.

The p-norm of n wishes is at least the largest of them and at most n^(1/p) times as much, so that some advisor has
w_j Q_j(x, a) >= M(x) / n^(1/p), and the same holds with gamma n^(1/p) for gamma, where that is below 1. The maximum is
p without bound, and the sum is p = 1.

The maximum with a share c of the sum, of either sign: the sum of n wishes is between 0 and n M(x), so that some advisor
has w_j Q_j(x, a) >= (1 - |c| n) M(x), and the same holds with gamma / (1 - |c| n) for gamma, where that is below 1.

With chance the argument holds in expectation: E[gamma^(T - 1)] >= M(x) / max M, where T is the step that may pay.

With fears that are added to the maximum of wishes, a greedy action is worth at least M(x) - D(x) to some wish, D(x) the
largest difference that the fears make between actions. M grows with each step as long as D(x) < (1 - gamma) M(x).
"""

from __future__ import annotations

import math

import numpy as np

from multiadvisor.analysis.theory.solver import TIE, Solution, best_actions, fixpoint
from multiadvisor.errors import BadInput

_SWEEPS = 100_000


def exponent(solution: Solution) -> float | None:
    """The p of an aggregation that is one p-norm over everybody: 1 for a sum, infinity for `max`; None for others."""
    if len(solution.aggregator.parts) != 1:
        return None
    found, parameter = solution.aggregator.parts[0]
    return {"sum": 1.0, "max": math.inf, "p_norm": parameter}.get(found.name)


def share_of_sum(solution: Solution) -> float | None:
    """|c| of an aggregation that is one `max_plus` over everybody; None for others."""
    if len(solution.aggregator.parts) != 1 or solution.aggregator.parts[0][0].name != "max_plus":
        return None
    return abs(solution.aggregator.parts[0][1])


def broken_premises(solution: Solution, *, chance: bool = False) -> tuple[str, ...]:
    """What the bound needs and this solution has not, each with an instance; with `chance`, actions may be uncertain.

    Rewards below 0 are no obstacle to a maximum, which is paid by whoever leads; in a sum they outweigh others.
    """
    mdp, found = solution.mdp, []
    if solution.planning != "egocentric":
        found.append(f"planning is {solution.planning}, not egocentric")
    p = exponent(solution)
    if p is None and share_of_sum(solution) is None:
        found.append(f"the aggregation {solution.aggregation!r} is no maximum, p-norm or sum of all advisors")
    if (mdp.weights < 0).any():
        found.append(f"the weight of {mdp.advisors[int(mdp.weights.argmin())]!r} is negative")
    if p is not None and p < math.inf and (mdp.reward < 0).any():
        state, action, j = np.argwhere(mdp.reward < 0)[0]
        found.append(f"{mdp.actions[action]!r} pays {mdp.advisors[j]!r} less than nothing in {mdp.label(int(state))}")
    if not solution.markov:
        found.append("what an advisor sees is not enough to foresee what it will see next")
    uncertain = (mdp.probability > 1e-12).sum(axis=-1) > 1  # [S, A]
    if not chance and uncertain.any():
        state, action = np.argwhere(uncertain)[0]
        found.append(f"{mdp.actions[action]!r} is random in {mdp.label(int(state))}")
    return tuple(found)


def hope(solution: Solution) -> np.ndarray:
    """M(x) [S] = max_j w_j V_j(x): what the strongest wish is worth; 0 where nobody speaks, or wishes for anything."""
    mdp = solution.mdp
    strongest = np.asarray((mdp.state_weights.T[:, :, None] * solution.values).max(axis=(0, 2), initial=0.0))  # [S]
    if (mdp.reward >= 0).all():
        return strongest  # what is 0 is exactly 0
    # losses and gains that cancel leave rounding, which is no wish
    unsure = float(np.abs(mdp.weights).max()) * (solution.bound if np.isfinite(solution.bound) else TIE)
    return np.where(strongest > unsure, strongest, 0.0)


def rate(solution: Solution) -> float:
    """gamma n^(1/p), or gamma / (1 - |c| n), for the n that speak at the same time: the bound needs it below 1."""
    p, share = exponent(solution), share_of_sum(solution)
    most = max(int((solution.mdp.state_weights > 0).sum(axis=1).max()), 1)
    gamma = float(solution.mdp.discounts(solution.gamma).max())
    if p is not None:
        return float(gamma * most ** (1.0 / p))
    return math.inf if share is None or share * most >= 1.0 else gamma / (1.0 - share * most)


def earning_bound(solution: Solution) -> np.ndarray:
    """[S] steps within which the greedy aggregator earns something from each state, ties taken either way.

    Infinite if no advisor wishes for anything. Refused if a premise fails, or if gamma n^(1/p) is not below 1.

    >>> import multiadvisor as mad
    >>> from multiadvisor.analysis.theory import enumerate_task, solve
    >>> earning_bound(solve(enumerate_task(mad.make("three-fruits")), "egocentric", 0.99, "max"))[:3]
    array([2., 1., 1.])
    """
    if broken := broken_premises(solution):
        raise BadInput(f"nothing bounds the steps until {solution.mdp.name!r} pays: {broken[0]}")
    factor = rate(solution)
    if factor >= 1.0:
        raise BadInput(
            f"{'gamma n^(1/p)' if exponent(solution) else 'gamma / (1 - |c| n)'} is {factor:.4g} in "
            f"{solution.mdp.name!r}, and only below 1 are the steps bounded: take a smaller gamma, a larger p, or max"
        )
    strongest = hope(solution)
    if factor == 0.0:  # who looks no further than one step is paid in that step
        return np.where(strongest > 0, 1.0, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        unpaid = np.log(strongest.max() / strongest) / -math.log(factor)
    return np.where(strongest > 0, 1.0 + np.floor(unpaid + 1e-6), np.inf)


def chance_bound(solution: Solution) -> np.ndarray:
    """[S] M(x) / max M: what is left of the bound with chance, a lower bound on `discounted_earning` under `max`."""
    if broken := broken_premises(solution, chance=True):
        raise BadInput(f"nothing bounds when {solution.mdp.name!r} pays: {broken[0]}")
    if exponent(solution) != math.inf:
        raise BadInput(f"with randomness only max is bounded, and {solution.mdp.name!r} uses {solution.aggregation}")
    strongest = hope(solution)
    return strongest / max(float(strongest.max()), 1e-300)


def fear_margin(solution: Solution) -> np.ndarray:
    """[S] (1 - gamma) M(x) - D(x) for a maximum of wishes plus a sum of fears: never stuck where it is always above 0.

    >>> from multiadvisor.analysis.theory import counterexamples, solve
    >>> fear_margin(solve(counterexamples.gate(0.05), "egocentric", 0.9, "wishes=max")).round(3)
    array([0.04, 0.1 ])
    """
    mdp, aggregator = solution.mdp, solution.aggregator
    names = [found.name for found, _ in aggregator.parts]
    if sorted(names) != ["max", "sum"]:
        raise BadInput(
            f"{solution.aggregation!r} is no maximum of wishes with a sum of fears: try wishes=max,fears=sum"
        )
    if broken := broken_premises(solution.aggregated_by("max")):
        raise BadInput(f"nothing is promised of {mdp.name!r}: {broken[0]}")
    wished = aggregator.of == names.index("max")
    worth = mdp.state_weights.T[:, :, None] * solution.values  # [n, S, A]
    strongest, feared = worth[wished].max(axis=(0, 2), initial=0.0), worth[~wished].sum(axis=0)  # [S], [S, A]
    margin = (1.0 - mdp.discounts(solution.gamma)[wished].max()) * strongest - np.ptp(feared, axis=-1)
    return np.asarray(margin)


def weak_fears(solution: Solution) -> bool:
    """Whether fears are proved to hold nobody: `fear_margin` is known, and above 0 wherever there is a wish."""
    try:
        margin = fear_margin(solution)
    except BadInput:
        return False
    return bool((margin[hope(solution) > 0] > 0).all())


def _pays(solution: Solution) -> np.ndarray:
    """[S, A] bool: the actions that pay somebody, with some chance at least."""
    return np.asarray((solution.mdp.reward > 0).any(axis=-1))


def earning_steps(solution: Solution) -> np.ndarray:
    """[S] the steps until the greedy walk earns, at worst: over ties and over chance; infinite where it may not."""
    mdp, greedy, pays = solution.mdp, best_actions(solution.preferences, tiny=True), _pays(solution)

    def one_further(steps: np.ndarray) -> np.ndarray:  # states whose every way out is known
        ahead = np.where(mdp.probability > 0, np.where(mdp.final, np.inf, steps[mdp.successor]), -np.inf).max(axis=-1)
        return np.asarray(np.where(greedy, np.where(pays, 1.0, 1.0 + ahead), -np.inf).max(axis=-1))

    return fixpoint(one_further, np.full(mdp.states, np.inf))


def discounted_earning(solution: Solution) -> np.ndarray:
    """[S] E[gamma^(T - 1)], T the step that pays, at worst over ties: 1 where it pays now, 0 where it never does."""
    mdp, greedy, pays = solution.mdp, best_actions(solution.preferences, tiny=True), _pays(solution)
    gamma = float(mdp.discounts(solution.gamma).max())
    worth = np.zeros(mdp.states)
    for _ in range(_SWEEPS):
        ahead = gamma * mdp.whole.expect(worth)
        new = np.where(greedy, np.where(pays, 1.0, ahead), np.inf).min(axis=-1)
        if np.abs(new - worth).max(initial=0.0) <= 1e-14:
            break
        worth = new
    return worth
