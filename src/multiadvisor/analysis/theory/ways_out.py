"""Ways out for an aggregator that gets stuck: other aggregations and empathic planning, with the gamma each is safe to.

What a proof covers is said to be proved; the rest is searched on the task itself.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from multiadvisor.analysis.theory.attractors import first_gamma, stuck_states
from multiadvisor.analysis.theory.earning import broken_premises, rate, weak_fears
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import Solution, solve

_GAMMAS = (0.3, 0.6, 0.9, 0.99)  # at which empathic planning with local states is tried: it takes long
_MOST_STATES = 500  # beyond which it takes too long
_MOST_NAMES = 3  # wishes without a group that are worth spelling


class WayOut(NamedTuple):
    """One thing to do."""

    flag: str
    """What to add to the command, or to say in Python."""
    gamma: float | None
    """Up to this gamma it does not get stuck; 1 stands for every gamma below 1, None for no promise."""
    proved: float | None
    """Up to this gamma it is proved; beyond it, searched on the task itself."""
    text: str
    """What it is, in words."""

    def __str__(self) -> str:
        how = "searched, not proved"
        if self.proved is not None:
            how = "proved" if self.proved == self.gamma else f"searched; proved up to {self.proved:.4g}"
        safe = "no guarantee; look at the episodes"
        if self.gamma is not None:
            limit = "at any gamma below 1" if self.gamma >= 1.0 else f"up to gamma = {self.gamma:.4g}"
            safe = f"never stuck {limit} ({how})"
        return f"{self.text}, {self.flag}: {safe}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"way": self.flag, "safe_gamma": self.gamma, "proved_gamma": self.proved}


def least_exponent(actions: int, gamma: float) -> float:
    """p >= ln(|A| - 1) / ln(1 / gamma), in tenths, rounded up: with goals that are reached once, Theorem 4 for p-norms.

    An advisor with one goal has Q_j = r gamma^d, so that the p-th powers are the values of gamma^p, and the p-norm acts
    as the sum would at gamma^p.

    >>> least_exponent(4, 0.9), least_exponent(4, 1 / 3)
    (10.5, 1.0)
    """
    if gamma <= 0.0 or actions <= 2:
        return 1.0
    exact = math.log(actions - 1) / -math.log(min(gamma, 1.0 - 1e-9))
    return max(1.0, math.ceil(10 * exact - 1e-9) / 10)


def wishes(mdp: FiniteMDP) -> str | None:
    """The aggregation that takes the maximum of wishes and adds fears; None where they cannot be told apart."""
    low, high = mdp.reward.min(axis=(0, 1)), mdp.reward.max(axis=(0, 1))  # [n]
    if (low >= 0).all():
        return "max"
    if ((low < 0) & (high > 0)).any() or (low < 0).all():
        return None
    names = mdp.groups if mdp.groups and all(mdp.groups) else mdp.advisors
    wished = list(dict.fromkeys(name for name, least in zip(names, low, strict=True) if least >= 0))
    feared = {name for name, least in zip(names, low, strict=True) if least < 0}
    if feared & set(wished) or len(wished) > _MOST_NAMES:
        return None
    return ",".join(f"{name}=max" for name in wished)


def ways_out(mdp: FiniteMDP, gamma: float, aggregation: str = "sum") -> list[WayOut]:
    """What may be done about a task in which `aggregation` gets stuck."""
    found = [_by_max(mdp, gamma), _by_p_norm(mdp, gamma), _by_empathy(mdp)]
    return [way for way in found if way is not None and way.flag != f"--aggregation {aggregation}"]


def _stuck_somewhere(solution: Solution) -> bool:
    return bool(stuck_states(solution).any())


def _searched(mdp: FiniteMDP, aggregation: str) -> float:
    """The gamma up to which no greedy walk of egocentric advisors is stuck; 1 where none was found at any."""
    first = first_gamma(lambda gamma: _stuck_somewhere(solve(mdp, "egocentric", gamma, aggregation)), grid=20, digits=3)
    return 1.0 if first is None else math.floor(1e3 * (first - 1e-3)) / 1e3


def _by_max(mdp: FiniteMDP, gamma: float) -> WayOut | None:
    name = wishes(mdp)
    if name is None:
        return None
    what = "follow the strongest wish" if name == "max" else "follow the strongest wish and all fears"
    solution = solve(mdp, "egocentric", gamma, name)
    if not broken_premises(solution, chance=True):
        return WayOut(f"--aggregation {name}", 1.0, 1.0, what)
    safe = _searched(mdp, name)
    if not _stuck_somewhere(solution):  # fears may hold at small gammas too, so that "up to" does not say it all
        what += f" (not stuck at gamma = {gamma:g}{', proved' * weak_fears(solution)})"
    return WayOut(f"--aggregation {name}", safe if safe >= gamma else None, None, what)


def _by_p_norm(mdp: FiniteMDP, gamma: float) -> WayOut | None:
    """The p of Theorem 4, or where that does not hold here the one that needs no cancelling, ln(n) / ln(1 / gamma)."""
    if wishes(mdp) != "max" or gamma >= 1.0:
        return None
    most = max(int((mdp.local >= 0).sum(axis=0).max()), 1)
    for p in (least_exponent(len(mdp.actions), gamma), least_exponent(most + 1, gamma) + 0.1):
        if p == 1.0:  # the sum itself
            continue
        name = f"p_norm:{p:g}"
        solution = solve(mdp, "egocentric", gamma, name)
        if not _stuck_somewhere(solution):
            proved = gamma if not broken_premises(solution) and rate(solution) < 1.0 else None
            safe = max(gamma, _searched(mdp, name))
            return WayOut(f"--aggregation {name}", safe, proved, "use a p-norm of the wishes")
    return None


def _by_empathy(mdp: FiniteMDP) -> WayOut:
    """Optimal with whole states; tried where states are local and not too many."""
    what = "plan empathically"
    if mdp.full:
        return WayOut("--planning empathic", 1.0, 1.0, f"{what}, which is optimal with whole states")
    safe = None
    for gamma in _GAMMAS if mdp.states <= _MOST_STATES else ():
        solution = solve(mdp, "empathic", gamma)
        if not solution.converged or _stuck_somewhere(solution):
            break
        safe = gamma
    return WayOut("--planning empathic", safe, None, what)
