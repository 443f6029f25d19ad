"""Attractors: where staying, real or imagined, beats every action that leaves (the paper's Definition 1, made usable).

Taken literally, the definition can never hold where an action keeps the system in x for free, since that action is
worth exactly the right-hand side; yet the paper's own examples have such an action. So the test is put on the actions
that leave x.

An aggregation that is no sum has attractors in the same sense: an action that stays for free is imagined, worth
gamma_j max_a Q_j to advisor j, and the aggregator is asked whether it would rather take it than leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import TIE, Solution, best_actions, exceeds, fixpoint, solve
from multiadvisor.errors import BadInput
from multiadvisor.task import Task


@dataclass(frozen=True)
class Attractor:
    """One state in which the aggregator would rather stay.

    >>> import multiadvisor as mad
    >>> [found] = mad.theory.attractors(mad.make("two-goal"), gamma=0.9)
    >>> found.action, found.stable, round(found.margin, 2)
    ('a_0', True, 0.8)
    """

    state: int
    label: str
    margin: float
    """By how much staying beats the best action that leaves."""
    stable: bool
    """Whether the greedy aggregator can remain: here, or within a set of attractors."""
    action: str
    """What the greedy aggregator does here."""
    advisors: tuple[str, ...]
    """Who would rather stay than take the best action that leaves, strongest first."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        kept = ("margin", "stable", "advisors", "action")
        return {"state": self.label, **{key: getattr(self, key) for key in kept}, "advisors": list(self.advisors)}


class Pull(NamedTuple):
    """The comparison behind the test, for every state."""

    stay: np.ndarray  # [S] what staying is worth: for a sum, gamma * sum_j w_j max_a Q_j
    leave: np.ndarray  # [S] the best preference among the actions that leave, -inf where none does
    options: np.ndarray  # [S, A] the preferences of the actions that leave, -inf of the others
    idle: np.ndarray  # [n, S] what staying is worth to each advisor


def leaves(mdp: FiniteMDP) -> np.ndarray:
    """[S, A] bool: the actions that may lead out of the state, end the episode, or pay somebody."""
    away = mdp.successor != np.arange(mdp.states)[:, None, None]
    moves = ((mdp.probability > 0) & (away | mdp.final)).any(axis=-1)
    return np.asarray(moves | (mdp.reward != 0).any(axis=-1))


def pull(solution: Solution) -> Pull:
    """What staying and leaving are worth to the aggregator."""
    mdp = solution.mdp
    idle = mdp.discounts(solution.gamma)[:, None] * solution.values.max(axis=-1)  # [n, S]
    # beside the others, as a vote or a rank depends on what else there is to choose
    with_stay = solution.prefer(np.concatenate([solution.values, idle[:, :, None]], axis=-1))  # [S, A + 1]
    stay, options = with_stay[:, -1], np.where(leaves(mdp), with_stay[:, :-1], -np.inf)
    return Pull(stay, options.max(axis=-1), options, idle)


def margins(solution: Solution) -> np.ndarray:
    """[S] stay - leave: above 0 in attractors; -inf where nothing leaves, as there is nothing to prefer."""
    stay, leave, *_ = pull(solution)
    return np.where(np.isfinite(leave), stay - leave, -np.inf)


def attractor_states(solution: Solution) -> np.ndarray:
    """[S] bool."""
    stay, leave, *_ = pull(solution)
    return np.asarray(np.isfinite(leave) & exceeds(stay, leave))


def stable_states(solution: Solution, attracting: np.ndarray) -> np.ndarray:
    """[S] bool: attractors that some greedy action leaves only for others like them, with no chance of an end."""
    mdp, greedy = solution.mdp, best_actions(solution.preferences)
    return fixpoint(lambda stable: stable & (greedy & mdp.stays_in(stable)).any(axis=-1), attracting)


def stuck_states(solution: Solution) -> np.ndarray:
    """[S] bool: an attractor set in the wide sense; greedy play from here never earns anything and never ends.

    Ties count as taken at random: every greedy action must stay inside. States without an active advisor do not count.

    >>> import multiadvisor as mad
    >>> mdp = mad.theory.enumerate_task(mad.make("three-fruits"))
    >>> [int(stuck_states(solve(mdp, "egocentric", gamma)).sum()) for gamma in (0.4, 0.9)]
    [0, 6]
    """
    return stuck_by(solution.mdp, solution.preferences)


def stuck_by(mdp: FiniteMDP, preferences: np.ndarray) -> np.ndarray:
    """The same of any preferences [S, A], whatever they were made of."""
    idle, unpaid = ~best_actions(preferences), (mdp.reward * mdp.weights <= 0).all(axis=-1)  # [S, A]
    return fixpoint(lambda stuck: stuck & (idle | (mdp.stays_in(stuck) & unpaid)).all(axis=-1), mdp.active)


def attractors(
    what: Task | FiniteMDP | Solution | str, gamma: float = 0.9, aggregation: str = "sum"
) -> list[Attractor]:
    """All attractors, the strongest first, of a task or its name, or an MDP, under egocentric planning; or of a
    solution, which has its own gamma and aggregation.

    >>> import multiadvisor as mad
    >>> [found.stable for found in attractors(mad.make("four-fruits"), gamma=0.4)]
    [False]
    """
    mdp = what.mdp if isinstance(what, Solution) else what if isinstance(what, FiniteMDP) else enumerate_task(what)
    solution = what if isinstance(what, Solution) else solve(mdp, "egocentric", gamma, aggregation)
    stay, leave, options, idle = pull(solution)
    attracting, greedy = attractor_states(solution), best_actions(solution.preferences)
    stable = stable_states(solution, attracting)
    found = []
    for state in np.flatnonzero(attracting).tolist():
        tied = options[state] >= leave[state] - TIE * max(1.0, abs(leave[state]))
        wish = mdp.weights * (idle[:, state] - solution.values[:, state, tied].mean(axis=1))  # [n]
        who = [j for j in np.argsort(-wish) if wish[j] > TIE * max(1.0, abs(stay[state]))]
        action = " or ".join(mdp.actions[a] for a in np.flatnonzero(greedy[state]))
        found.append(
            Attractor(
                state, mdp.label(state), float(stay[state] - leave[state]), bool(stable[state]), action,
                tuple(mdp.advisors[j] for j in who),
            )
        )  # fmt: skip
    return sorted(found, key=lambda one: -one.margin)


def critical_gamma(mdp: FiniteMDP, what: str = "attractor", aggregation: str = "sum") -> float | None:
    """The smallest gamma above which some state is an attractor, by bisection; None if none is.

    `what` may also be "stable", for attractors that hold the aggregator, or "stuck", for greedy play that never earns.

    An attractor that comes and goes within a step of 0.02 may be missed.

    >>> import multiadvisor as mad
    >>> round(critical_gamma(mad.theory.enumerate_task(mad.make("two-goal", r2=3.0))), 4)
    0.75
    """

    def caught(gamma: float) -> bool:
        solution = solve(mdp, "egocentric", gamma, aggregation)
        if what == "stuck":
            return bool(stuck_states(solution).any())
        found = attractor_states(solution)
        return bool((stable_states(solution, found) if what == "stable" else found).any())

    if any(own is not None for own in mdp.gammas):
        raise BadInput(f"advisors of {mdp.name!r} have their own gammas, so there is no one gamma to look for")
    return first_gamma(caught)


def first_gamma(caught: Callable[[float], bool], grid: int = 50, digits: int = 7) -> float | None:
    """The smallest gamma at which something is caught: the first of `grid` steps, halved; None where it never is."""
    low, high = safe_and_caught(caught, [*(k / grid for k in range(1, grid)), 1.0 - 1e-6], digits)
    return None if high is None else 0.5 * (low + high)


def safe_and_caught(
    caught: Callable[[float], bool], steps: Iterable[float], digits: int, low: float = 0.0
) -> tuple[float, float | None]:
    """Two gammas of so many digits: up to the first nothing is caught, at the second something is (None: nowhere).

    Tries the steps upwards from `low`, which is known to be safe, and halves the first one in which something is
    caught. What comes and goes within one step may be missed.
    """
    for high in steps:
        if caught(high):
            break
        low = high
    else:
        return low, None
    while high - low > 1.5 * 10.0**-digits:
        middle = round(0.5 * (low + high), digits)
        low, high = (low, middle) if caught(middle) else (middle, high)
    return low, high
