"""What the paper's theorems promise for a task: progressive advisors, the gamma bound with its premises, a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from multiadvisor.analysis.theory.attractors import attractors, critical_gamma, stuck_states
from multiadvisor.analysis.theory.earning import broken_premises, chance_bound, earning_bound, exponent, hope
from multiadvisor.analysis.theory.mdp import FiniteMDP, LocalMDP
from multiadvisor.analysis.theory.solver import TIE, Solution, solve, solve_local
from multiadvisor.analysis.theory.ways_out import WayOut, ways_out

GRID = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


class Regression(NamedTuple):
    """The state and action by which an advisor is not progressive: worse than losing a step."""

    advisor: str
    state: str
    action: str
    shortfall: float


def progressive(solution: Solution) -> list[Regression]:
    """The advisors that are not progressive (Definition 2), each with its worst state and action; [] if all are.

    >>> import multiadvisor as mad
    >>> solution = mad.theory.solve(mad.theory.enumerate_task(mad.make("three-fruits")), "egocentric", 0.9)
    >>> progressive(solution)[0].advisor
    'fruit (0, 2)'
    """
    mdp, found = solution.mdp, []
    discounts = mdp.discounts(solution.gamma)
    for j in range(mdp.n):
        values = solution.values[j]  # [S, A]
        idle = discounts[j] * values.max(axis=-1, keepdims=True)
        short = np.where((mdp.local[j] >= 0)[:, None], idle - values, -np.inf)
        state, action = np.unravel_index(int(short.argmax()), short.shape)
        if short[state, action] > TIE * max(1.0, float(np.abs(values).max())):
            worst = mdp.label(int(state)), mdp.actions[action], float(short[state, action])
            found.append(Regression(mdp.advisors[j], *worst))
    return found


@dataclass(frozen=True)
class Bound:
    """Theorem 4 for a task: no attractor up to `gamma`, provided that its premises hold.

    >>> import multiadvisor as mad
    >>> gamma_bound(mad.theory.enumerate_task(mad.make("two-goal"))).broken
    ("'a_2' cannot be cancelled in local state 0 of 'goal 1'",)
    """

    gamma: float | None
    """1 / (|A| - 1), or None where a premise fails."""
    stable: float | None
    """1 / (|A| - 2): up to it, by the paper's remark, no attractor can hold the aggregator."""
    broken: tuple[str, ...]
    """The premises that fail, each with an instance."""


def gamma_bound(mdp: FiniteMDP) -> Bound:
    """Theorem 4 with its premises checked in every advisor's own environment.

    >>> import multiadvisor as mad
    >>> round(gamma_bound(mad.theory.enumerate_task(mad.make("three-fruits"))).gamma, 4)
    0.3333
    """
    parts = []
    for name, row, (local, markov) in zip(mdp.advisors, mdp.local, mdp.local_mdps, strict=True):
        if not markov:
            return Bound(None, None, (f"what {name!r} sees is not enough to foresee what it will see next",))
        parts.append((name, local, np.unique(row[row >= 0])))
    return bound_of(parts, mdp.actions, mdp.weights)


def bound_of(parts: Iterable[tuple[str, LocalMDP, np.ndarray]], actions: tuple[str, ...], weights: np.ndarray) -> Bound:
    """Theorem 4 for advisors given as (name, local MDP, the local states that occur).

    Each action must be deterministic and pay nothing negative, and what an advisor would not do itself must be possible
    to cancel. (An action that ends the advisor's part at its best reward is one that it would do itself.)
    """
    broken: dict[str, str] = {}
    limit = 1.0 / (len(actions) - 1) if len(actions) > 1 else 1.0
    if (weights < 0).any():
        broken["weight"] = "a weight is negative"
    for name, local, seen in parts:
        for premise, (fails, text) in _premises(local, limit).items():
            if fails[seen].any():
                state, action = np.argwhere(fails[seen])[0]
                where = f"in local state {seen[state]} of {name!r}"
                broken.setdefault(premise, f"{actions[action]!r} {text} {where}")
    if broken:
        return Bound(None, None, tuple(broken.values()))
    return Bound(min(limit, 1.0), min(1.0 / (len(actions) - 2), 1.0) if len(actions) > 2 else 1.0, ())


def _premises(local: LocalMDP, limit: float) -> dict[str, tuple[np.ndarray, str]]:
    """Where each premise fails, [S, A] bool, and how to say it."""
    going, largest = local.weight.sum(axis=-1), local.weight.max(axis=-1)  # [S, A]
    certain = (largest > 1 - 1e-12) | (going < 1e-12)
    to = np.take_along_axis(local.successor, local.weight.argmax(axis=-1)[..., None], axis=-1)[..., 0]  # [S, A]
    back = (to[to] == np.arange(len(to))[:, None, None]) & (going[to] > 0.5)  # [S, A, A]: a' after a leads back
    cancelled = (going > 0.5) & back.any(axis=-1)
    q, _, _ = solve_local(local, min(limit, 0.999))
    own_choice = (going < 1e-12) & (q >= q.max(axis=-1, keepdims=True) - TIE)
    return {
        "reward": (local.reward < 0, "pays less than nothing"),
        "chance": (~certain, "is random"),
        "cancel": (~(cancelled | own_choice), "cannot be cancelled"),
    }


@dataclass(frozen=True)
class Verdict:
    """Will the egocentric aggregator get stuck in this task?

    >>> import multiadvisor as mad
    >>> verdict(mad.theory.enumerate_task(mad.make("two-goal")), 0.9).text.splitlines()[0]
    'gets stuck at gamma = 0.9: greedy play never earns from 1 state: 0; the smallest gamma where it is stuck is 1/2'
    """

    text: str
    bound: Bound
    critical: float | None = None
    """The gamma from which on there is an attractor."""
    stable: float | None = None
    """... a stable one."""
    stuck: float | None = None
    """... a greedy walk that never earns."""
    always_progressive: bool = False
    learned: bool = False
    """On learned values, of which the definitions say nothing."""
    ways: tuple[WayOut, ...] = ()
    """What else to do where it gets stuck."""


def share(value: float) -> str:
    """A number as a simple fraction where it is one, else with four digits."""
    simple = Fraction(value).limit_denominator(12)
    return str(simple) if abs(float(simple) - value) < 2e-6 else f"{value:.4f}"


def among(names: Sequence[str], what: str = "state") -> str:
    """How many, and the first three of them."""
    count = f"{len(names)} {what}{'s' * (len(names) != 1)}"
    return count + (f": {', '.join(names[:3])}{', ...' * (len(names) > 3)}" if names else "")


def verdict(mdp: FiniteMDP, gamma: float = 0.9, aggregation: str = "sum") -> Verdict:
    """A plain-words verdict on egocentric planning: safe for any gamma, up to some gamma, or stuck from some gamma on.

    >>> import multiadvisor as mad
    >>> from multiadvisor.analysis.theory import enumerate_task
    >>> print(verdict(enumerate_task(mad.make("two-goal")), 0.9).text.splitlines()[0])
    gets stuck at gamma = 0.9: greedy play never earns from 1 state: 0; the smallest gamma where it is stuck is 1/2
    """
    solution = solve(mdp, "egocentric", gamma, aggregation)
    bound = gamma_bound(mdp) if solution.aggregator.plain else Bound(None, None, ("Theorem 4 is about sums",))
    here, held = among([one.label for one in attractors(solution)]), mdp.labelled(stuck_states(solution))
    if any(own is not None for own in mdp.gammas):
        text = fate(held, "with the advisors' own gammas")
        return Verdict(f"{text}\nattractors in {here}", bound)
    if exponent(solution) == math.inf and not broken_premises(solution, chance=True):
        return Verdict(_never_stuck(solution), bound)
    grid = [solve(mdp, "egocentric", g) for g in GRID] if solution.aggregator.plain else []
    if grid and (mdp.weights >= 0).all() and not any(progressive(one) for one in grid):
        text = "safe for any gamma: every advisor is progressive, so that there is no attractor (Theorem 3; looked at "
        text += f"{len(GRID)} gammas from {GRID[0]:g} to {GRID[-1]:g})"
        return Verdict(text, bound, always_progressive=True)
    critical, stable, stuck = (
        critical_gamma(mdp, what, aggregation=aggregation) for what in ("attractor", "stable", "stuck")
    )
    if stuck is None and len(mdp.advisors) == 1:
        text = "never stuck: a single advisor that plans for itself acts optimally, and greedy play goes on to earn, "
        text += "or to the end, from every state at any gamma (searched, not proved)"
        return Verdict(text, critical=critical, stable=stable, stuck=None, bound=bound, always_progressive=False)
    where = "at any gamma (searched, not proved)" if stuck is None and not held else f"at gamma = {gamma:g}"
    limit = "" if stuck is None else f"; the smallest gamma where it is stuck is {share(stuck)}"
    lines = [fate(held, where) + limit, *describe_thresholds(critical, stable, gamma, here)]
    if bound.gamma is not None:
        lines.append(f"safe up to gamma = {share(bound.gamma)} by Theorem 4, whose premises hold")
    elif solution.aggregator.plain and (critical is not None or stuck is not None):
        lines.append(f"Theorem 4 promises nothing: {bound.broken[0]}")
    thresholds = [one for one in (critical, stuck) if one is not None and (held or stuck is not None)]
    ways = tuple(ways_out(mdp, gamma, aggregation)) if thresholds else ()
    lines += what_to_do(thresholds, ways)
    return Verdict("\n".join(lines), bound, critical, stable, stuck, ways=ways)


def fate(held: Sequence[str], where: str) -> str:
    """The answer to the question: what becomes of greedy play."""
    if held:
        return f"gets stuck {where}: greedy play never earns from {among(held)}"
    return f"does not get stuck {where}: greedy play goes on to earn, or to the end, from every state"


def _never_stuck(solution: Solution) -> str:
    """The verdict where the bound on the steps until something is earned holds, or with chance what is left of it."""
    mdp, wished = solution.mdp, hope(solution) > 0
    followed = "followed until it pays or fails" if broken_premises(solution) else "followed until it pays"
    lines = [f"never stuck while there is something to earn, at any gamma below 1: the strongest wish is {followed}"]
    if not wished.any():
        lines.append("there is nothing to earn here")
    elif broken_premises(solution):
        least = float(chance_bound(solution)[wished].min())
        lines.append(
            "as there is chance, this may take any number of steps; it comes to an action that may pay with a "
            f"probability of at least {least:.3g}, from every state with something to earn"
        )
    elif solution.gamma < 1.0:
        steps = np.where(wished, earning_bound(solution), -1.0)
        most, where = int(steps.max()), mdp.label(int(steps.argmax()))
        lines.append(
            f"at gamma = {solution.gamma:g} something is earned within {most} step{'s' * (most != 1)} whatever the "
            f"ties; that many, at most, from {where}"
        )
    if (mdp.reward < 0).any():
        lines.append("but a maximum is deaf to losses: what is taken from those who do not lead does not count")
    return "\n".join(lines)


def describe_thresholds(critical: float | None, stable: float | None, gamma: float, here: str) -> list[str]:
    """Sentences on where attractors begin; `here` says how many there are at this gamma."""
    if critical is None:
        return ["no attractor was found at any gamma (searched, not proved)"]
    if here.startswith("0 ") and gamma > critical:
        lines = [f"attractors from gamma = {share(critical)} on that come and go; none at gamma = {gamma:g}"]
    else:
        lines = [f"attractors from gamma = {share(critical)} on; at gamma = {gamma:g} in {here}"]
    if stable is None:
        lines.append("none of them was found to be stable, that is, to hold the aggregator by itself")
    elif stable > critical + 1e-5:
        lines.append(f"stable ones, which hold the aggregator by themselves, first at gamma = {share(stable)}")
    return lines


def what_to_do(thresholds: Sequence[float], ways: Sequence[WayOut]) -> list[str]:
    """Where there are thresholds: stay below them, or take another way out."""
    if not thresholds:
        return []
    keep = [f"keep gamma at or below {share(min(thresholds))}"] if min(thresholds) > 1e-4 else []
    return [("what to do: " if k == 0 else "  or ") + way for k, way in enumerate([*keep, *map(str, ways)])]
