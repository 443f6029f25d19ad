"""How an advisor plans: the policy that it expects to be followed in the next state (the paper's section 4).

A planning is a pure function from the advice in the next state, advice [n, A], and what is known of what follows there,
`Ahead`, to a policy [n, A] for each advisor. The value an advisor bootstraps on is the same line for all of them,
`bootstrap`. The functions work on NumPy and JAX arrays alike; the deep learner, the solver and the readable reference
call them. Beside each stands its compiled twin, on one advisor's values q [A], which gives the value itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.errors import BadInput, unknown

Array = Any  # a NumPy or JAX array
GREEDY, TAKEN, BEHAVIOUR, COUNTS, TARGET = NEEDS = ("greedy", "taken", "behaviour", "counts", "target")
TEMPERATURE = 0.1  # of `tempered`, in units of reward


class Ahead(NamedTuple):
    """What is known of the next state x'. A planning names what it needs; the rest may be missing.

    >>> Ahead(greedy=2).greedy
    2
    """

    greedy: Any = 0
    """f_Sigma(x'): the aggregator's greedy action, ties broken as when it acts."""
    taken: Any = 0
    """The action that is really taken there."""
    behaviour: Any = None
    """[A] the probability with which each action is taken there, exploration included."""
    counts: Any = None
    """[n, A] (for the compiled twin [A]): how often each action was the greedy one in the advisor's own local state."""
    target: Any = None
    """[n, A] (for the compiled twin [A]): the policy that the advisor was given to value, in its own local state."""


@dataclass(frozen=True)
class Planning:
    """A registered planning."""

    name: str
    policy: Callable[[Array, Ahead], Array]
    """advice [n, A], ahead -> policy [n, A]."""
    value: Callable[[Any, Any], float] | None = None
    """Its compiled twin: q [A], ahead -> what the advisor expects. None: there is none, and tables cannot use it."""
    needs: tuple[str, ...] = ()
    """The fields of `Ahead` that it looks at."""
    expects: str = ""
    """What an advisor that plans so expects, for reports: "that its own best actions follow"."""
    when_stuck: str = ""
    """What may help if episodes with such advisors are stuck; {gamma} is theirs. Empty: nothing that is due to it."""

    def __call__(self, advice: Array, ahead: Ahead | None = None) -> Array:
        """The policy [n, A] that advisors with this advice [n, A] expect."""
        if getattr(advice, "ndim", None) != 2:
            shape = getattr(advice, "shape", ())
            raise ValueError(f"advice must have the axes [advisor, action], not the shape {shape}")
        policy = self.policy(advice, Ahead() if ahead is None else ahead)
        if getattr(policy, "shape", None) != advice.shape:
            raise BadInput(
                f"planning {self.name!r} gives the shape {getattr(policy, 'shape', None)} for advice {advice.shape}: "
                "give a policy with a row for each advisor"
            )
        return policy


PLANNINGS: dict[str, Planning] = {}
OR_IMPORT = ", or import the file that registers it (on the command line --import FILE.py)"


def register_planning(
    name: str, *, compiled: Callable[[Any, Any], float] | None = None, needs: tuple[str, ...] = (),
    expects: str = "", when_stuck: str = "",
) -> Callable[[Callable[[Array, Ahead], Array]], Planning]:  # fmt: skip
    """Register a planning under a name, for the library, the command line, sweeps and checkpoints alike.

    The function gives the policy [n, A]; `compiled` is its twin for tables, in what numba can compile: loops over
    single numbers. `expects` and `when_stuck` are what reports say of it.

    >>> import numpy as np
    >>> def worst_value(q, ahead):
    ...     worst = q[0]
    ...     for action in range(1, q.shape[0]):
    ...         worst = min(worst, q[action])
    ...     return worst
    >>> @register_planning("worst", compiled=worst_value)
    ... def worst(advice, ahead):
    ...     return one_hot(advice.argmin(axis=1), advice)
    >>> bootstrap(worst, np.array([[1.0, 0.0], [2.0, 3.0]]))
    array([0., 2.])
    >>> del PLANNINGS["worst"]
    """
    check_name("planning", name, PLANNINGS)
    for need in needs:
        if need not in NEEDS:
            raise unknown("need of a planning", need, NEEDS)

    def register(policy: Callable[[Array, Ahead], Array]) -> Planning:
        made = Planning(name, policy, compiled, tuple(needs), expects or f"what its planning {name!r} says", when_stuck)
        made.__dict__["__doc__"] = policy.__doc__
        PLANNINGS[name] = made
        return made

    return register


def check_name(kind: str, name: str, known: dict[str, Any]) -> None:
    """Refuse a name that the command line could not spell, or that is taken."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BadInput(f"{name!r} cannot name {a(kind)}: use lower-case letters, digits and underscores")
    if name in known:
        raise BadInput(f"{a(kind)} called {name!r} is registered already: choose another name")


def a(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def planning_named(name: str) -> Planning:
    """The planning of that name, or an error that lists them."""
    if name not in PLANNINGS:
        raise unknown("planning", name, PLANNINGS, OR_IMPORT)
    return PLANNINGS[name]


def bootstrap(expected: Planning, advice: Array, ahead: Ahead | None = None) -> Array:
    """The values [n] that advisors with this advice [n, A] bootstrap on: each expects its planning's policy.

    >>> import numpy as np
    >>> advice = np.array([[1.0, 0.0], [0.0, 3.0]])
    >>> bootstrap(egocentric, advice), bootstrap(agnostic, advice), bootstrap(empathic, advice, Ahead(greedy=1))
    (array([1., 3.]), array([0.5, 1.5]), array([0., 3.]))
    """
    return (expected(advice, ahead) * advice).sum(axis=1)


def one_hot(action: Array, like: Array) -> Array:
    """Policies [n, A] that take one action: the same for all, or one for each advisor [n]."""
    chosen = action[:, None] if getattr(action, "ndim", 0) == 1 else action
    return (chosen == np.arange(like.shape[1])) | np.zeros(like.shape, bool)


# ---- the plannings ---------------------------------------------------------------------------------------------------
def egocentric_value(q: Any, ahead: Any) -> Any:
    """The largest value; the four of a grid without a loop."""
    if q.shape[0] == 4:
        first = q[0] if q[0] > q[1] else q[1]
        second = q[2] if q[2] > q[3] else q[3]
        return first if first > second else second
    best = q[0]
    for action in range(1, q.shape[0]):
        best = q[action] if q[action] > best else best
    return best


def agnostic_value(q: Any, ahead: Any) -> Any:
    """The mean; the four of a grid without a loop."""
    if q.shape[0] == 4:
        return 0.25 * q[0] + 0.25 * q[1] + 0.25 * q[2] + 0.25 * q[3]
    share, total = 1.0 / q.shape[0], 0.0
    for action in range(q.shape[0]):
        total += share * q[action]
    return total


def empathic_value(q: Any, ahead: Any) -> Any:
    """The value of the aggregator's action."""
    return q[ahead.greedy]


def estimate_value(q: Any, ahead: Any) -> Any:
    """The values weighed by how often the aggregator was seen to act so."""
    worth, times = 0.0, 0.0
    for action in range(q.shape[0]):
        times += ahead.counts[action]
    for action in range(q.shape[0]):
        worth += ahead.counts[action] / times * q[action]
    return worth


def sarsa_value(q: Any, ahead: Any) -> Any:
    """The value of the action taken."""
    return q[ahead.taken]


def expected_sarsa_value(q: Any, ahead: Any) -> Any:
    """The values weighed by the behaviour."""
    worth = 0.0
    for action in range(q.shape[0]):
        worth += ahead.behaviour[action] * q[action]
    return worth


def tempered_value(q: Any, ahead: Any) -> Any:
    """The values weighed by how near they are to the best."""
    best, worth, total = q[0], 0.0, 0.0
    for action in range(1, q.shape[0]):
        best = q[action] if q[action] > best else best
    for weighing in (False, True):  # the chances are added first, then divided by
        for action in range(q.shape[0]):
            near = 1.0 + (best - q[action]) / (16.0 * TEMPERATURE)
            near *= near
            near *= near
            near *= near
            chance = 1.0 / (near * near)
            if weighing:
                worth += chance / total * q[action]
            else:
                total += chance
    return worth


def target_value(q: Any, ahead: Any) -> Any:
    """The values weighed by the target policy."""
    worth = 0.0
    for action in range(q.shape[0]):
        worth += ahead.target[action] * q[action]
    return worth


HOPEFUL = (
    "each hopes to have its way later and none gives in now: plan empathically, lower gamma (it is {gamma:g}), or let "
    "the strongest wish decide (aggregation max)"
)
DONE = "what is really done, exploration included (these episodes were played without it)"


@register_planning(
    "egocentric", compiled=egocentric_value, expects="that its own best actions follow", when_stuck=HOPEFUL
)
def egocentric(advice: Array, ahead: Ahead) -> Array:
    """Each advisor expects its own best action, as if it were in control: overestimates, creates attractors.

    >>> egocentric(np.array([[1.0, 0.0, 0.4], [0.0, 1.0, 0.7]])).astype(int).tolist()
    [[1, 0, 0], [0, 1, 0]]
    """
    return one_hot(advice.argmax(axis=1), advice)


@register_planning(
    "agnostic", compiled=agnostic_value, expects="that any action follows, at random",
    when_stuck="agnostic advisors are over-cautious here: plan empathically, or lower gamma",
)  # fmt: skip
def agnostic(advice: Array, ahead: Ahead) -> Array:
    """Each advisor expects random actions, as if it knew nothing of the others: fearful near danger.

    >>> agnostic(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return np.full(advice.shape, 1.0 / advice.shape[1])


@register_planning("empathic", compiled=empathic_value, needs=(GREEDY,), expects="what the aggregator does")
def empathic(advice: Array, ahead: Ahead) -> Array:
    """Each advisor expects the action the aggregator would take, f_Sigma(x'): near optimal, robust to noise.

    >>> empathic(np.array([[1.0, 0.0, 0.4], [0.0, 1.0, 0.7]]), Ahead(greedy=2)).astype(int).tolist()
    [[0, 0, 1], [0, 0, 1]]
    """
    return one_hot(ahead.greedy, advice)


@register_planning(
    "estimate", compiled=estimate_value, needs=(GREEDY, COUNTS), expects="what it has seen the aggregator do"
)
def estimate(advice: Array, ahead: Ahead) -> Array:
    """Empathic on an estimate: each advisor expects what it saw the aggregator do in its own local state, f_j(x'_j).

    It takes the place of f_Sigma(x'), which an advisor cannot know from its local state alone.
    """
    return ahead.counts / ahead.counts.sum(axis=1)[:, None]


@register_planning("sarsa", compiled=sarsa_value, needs=(TAKEN,), expects=DONE)
def sarsa(advice: Array, ahead: Ahead) -> Array:
    """Each advisor expects the action that is really taken next, exploration and all: local Sarsa."""
    return one_hot(ahead.taken, advice)


@register_planning("expected_sarsa", compiled=expected_sarsa_value, needs=(BEHAVIOUR,), expects=DONE)
def expected_sarsa(advice: Array, ahead: Ahead) -> Array:
    """Each advisor expects the behaviour: the aggregator's action, or with probability epsilon any other."""
    return ahead.behaviour[None, :] * np.ones(advice.shape)


@register_planning(
    "tempered", compiled=tempered_value, expects="that its own nearly best actions follow", when_stuck=HOPEFUL
)
def tempered(advice: Array, ahead: Ahead) -> Array:
    """Each advisor expects its own nearly best actions, temperature 0.1: local as egocentric, less biased by noise.

    The policy is Boltzmann's with (1 + d / 16T)^-16 instead of exp(-d / T), which gives the same bits everywhere.
    """
    near = 1.0 + (advice.max(axis=1, keepdims=True) - advice) / (16.0 * TEMPERATURE)
    near = near * near
    near = near * near
    near = near * near
    chances = 1.0 / (near * near)
    return chances / chances.sum(axis=1, keepdims=True)


@register_planning("target", compiled=target_value, needs=(TARGET,))
def target(advice: Array, ahead: Ahead) -> Array:
    """Each advisor values the fixed policy of its advisor (`Advisor(target=...)`): a general value function."""
    return ahead.target
