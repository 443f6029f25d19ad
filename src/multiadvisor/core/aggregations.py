"""How the aggregator, which is in control, turns the advice of its advisors into an action (the paper's section 3).

An aggregation is a pure function from advice [..., m, A] and weights [..., m] to preferences [..., A], for NumPy and
JAX arrays alike; an advisor whose weight is 0 is silent in all of them. Beside each stands its compiled twin.
None draws random numbers: the caller passes draws in [0, 1) from the run's own generator, so that a tie is broken
at random and yet the same way in every repetition of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.core.learned import LearnedAggregation
from multiadvisor.core.plannings import OR_IMPORT, check_name
from multiadvisor.core.plugins import imported
from multiadvisor.errors import BadInput, short, unknown

if TYPE_CHECKING:
    from multiadvisor.task import Advisor

Array = Any  # a NumPy or JAX array
_RULES = "multiadvisor.learners.tabular.rules"


@dataclass(frozen=True)
class Aggregation:
    """A registered aggregation."""

    name: str
    prefer: Callable[[Array, Array, float], Array]
    """advice [..., m, A], weights [..., m], parameter -> preferences [..., A]."""
    fill: Callable[..., None] | None = None
    """Its compiled twin: (table, rows [m], weights [m], m, parameter, preferences [A]) fills the preferences."""
    parameter: float = 0.0
    """The parameter where none is given."""
    least: float = -math.inf
    """The parameter is never below this; where there is none, both are infinite."""
    takes: str = ""
    """What the parameter is; empty where there is none."""
    wishes: bool = False
    """Whether it is meant for rewards of at least 0 only: a maximum does not hear fears."""
    additive: bool = False
    """Whether it adds up what it would make of each advisor alone, so that everybody's share can be told apart."""
    learner: str | type[LearnedAggregation] | None = None
    """What the aggregator itself learns for it, as module:Class or the class; None: nothing, it is told by advice."""

    @cached_property
    def learned(self) -> LearnedAggregation | None:
        """What the aggregator itself learns for it."""
        if self.learner is None:
            return None
        made: LearnedAggregation = imported(self.learner)()
        made.name = self.name
        return made

    def __call__(self, advice: Array, weights: Array, parameter: float | None = None) -> Array:
        """The preferences [..., A] for advice [..., m, A] and weights [..., m]."""
        if advice.ndim < 2 or weights.shape != advice.shape[:-1]:
            raise ValueError(f"advice {advice.shape} must be [..., m, A] and weights {weights.shape} [..., m]")
        if advice.shape[-2] == 0:
            return advice.sum(axis=-2)  # nobody is there, so that nobody prefers anything
        preferences = self.prefer(advice, weights, self.parameter if parameter is None else parameter)
        if getattr(preferences, "shape", None) != (*advice.shape[:-2], advice.shape[-1]):
            raise BadInput(
                f"aggregation {self.name!r} gives the shape {getattr(preferences, 'shape', None)} for advice "
                f"{advice.shape}: give a preference for each action"
            )
        return preferences


@dataclass(frozen=True, eq=False)
class PlanAggregation(Aggregation):
    """An aggregation in one state, in which it is known what the plan of each advisor is worth to all; the advice is
    not asked for."""

    worth: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    """[m, J, A] of plan j and this action to each of the m members of the group that are active."""
    planners: tuple[Advisor, ...] = ()
    """[J] whose plans they are, those included whose own part is over."""


AGGREGATIONS: dict[str, Aggregation] = {}


def register_aggregation(
    name: str, *, compiled: Callable[..., None] | None = None, takes: str = "", parameter: float = 0.0,
    least: float = -math.inf, wishes: bool = False, additive: bool = False,
) -> Callable[[Callable[[Array, Array, float], Array] | type[LearnedAggregation]], Aggregation]:  # fmt: skip
    """Register an aggregation under a name, for the library, the command line, sweeps and checkpoints alike.

    The function gives preferences; `compiled` is its twin for tables and for acting, in what numba can compile. What
    `takes` a parameter is written `name:parameter`. Advisors of weight 0 must be ignored, and if all are of weight 0
    all preferences are 0. `wishes` is for rewards of at least 0: others cause a warning. What is `additive` is
    explained faster. Where the aggregator itself has to learn, it is not a function that is registered, but a class of
    `core.learned.LearnedAggregation`, which says the rest.

    >>> import numpy as np
    >>> @register_aggregation("mean")
    ... def mean(advice, weights, parameter):
    ...     return (weights[..., None] * advice).sum(axis=-2) / np.maximum((weights != 0).sum(axis=-1), 1)[..., None]
    >>> mean(np.array([[1.0, 0.0], [0.0, 3.0], [5.0, 5.0]]), np.array([1.0, 1.0, 0.0]))
    array([0.5, 1.5])
    >>> del AGGREGATIONS["mean"]
    """
    check_name("aggregation", name, AGGREGATIONS)

    def register(given: Callable[[Array, Array, float], Array] | type[LearnedAggregation]) -> Aggregation:
        if isinstance(given, type) and issubclass(given, LearnedAggregation):
            return _add_learned(name, given, given.__module__, given.__doc__ or "")
        return _add(Aggregation(name, given, compiled, parameter, least, takes, wishes, additive), given.__doc__)

    return register


def _add(made: Aggregation, text: str | None) -> Aggregation:
    made.__dict__["__doc__"] = text
    AGGREGATIONS[made.name] = made
    return made


def _add_learned(name: str, learner: str | type[LearnedAggregation], module: str, text: str) -> Aggregation:
    """Register what advice alone does not tell."""

    def prefer(advice: Array, weights: Array, parameter: float = 0.0) -> Array:
        raise not_learned(made)

    prefer.__module__ = module  # by which is seen what is shipped
    made = Aggregation(name, prefer, fill_nothing, learner=learner)
    return _add(made, text)


def not_learned(aggregation: Aggregation) -> BadInput:
    """The complaint where there is nothing beside which it could be learned."""
    beside = " or ".join(() if aggregation.learned is None else aggregation.learned.learned_by)
    return BadInput(
        f"the aggregation {aggregation.name!r} is learned beside {beside}, and there are none here: choose another"
    )


def aggregation_named(text: str) -> tuple[Aggregation, float]:
    """The aggregation and its parameter from `name` or `name:parameter`, or an error that lists them.

    >>> aggregation_named("p_norm:3")[1], aggregation_named("sum")[0].name
    (3.0, 'sum')
    """
    name, colon, given = str(text).partition(":")
    if name not in AGGREGATIONS:
        raise unknown("aggregation", name, AGGREGATIONS, OR_IMPORT)
    found = AGGREGATIONS[name]
    if not colon:
        return found, found.parameter
    if not found.takes:
        raise BadInput(f"the aggregation {name!r} takes no parameter: leave {short(':' + given)!r} out")
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= found.least):
        raise BadInput(
            f"the {found.takes} of {name!r} is {short(given)!r}: give a number of at least {found.least:g}, as in "
            f"{name}:{found.parameter:g}"
        )
    return found, number


# ---- the aggregations ------------------------------------------------------------------------------------------------
# In the twins the order of adding is the array form's, advisor by advisor, so that both give the same bits where they
# only add; a weight of 0 is passed over, as the advisor is silent.
def fill_sum(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
    """Four columns at a time: four sums stay in registers."""
    actions = table.shape[1]
    action = 0
    while action + 4 <= actions:
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for i in range(m):
            row, w = np.uintp(rows[i]), weights[i]
            t0 += w * table[row, action]
            t1 += w * table[row, action + 1]
            t2 += w * table[row, action + 2]
            t3 += w * table[row, action + 3]
        preferences[action], preferences[action + 1] = t0, t1
        preferences[action + 2], preferences[action + 3] = t2, t3
        action += 4
    while action < actions:
        total = 0.0
        for i in range(m):
            total += weights[i] * table[np.uintp(rows[i]), action]
        preferences[action] = total
        action += 1


def fill_max(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
    """The largest, column by column; four at a time."""
    actions = table.shape[1]
    first = 0  # that advises
    while first < m and weights[first] == 0.0:
        first += 1
    if first == m:
        preferences[:] = 0.0
        return
    silent = False
    for i in range(m):
        silent |= weights[i] == 0.0
    start, loud = np.uintp(rows[first]), weights[first]
    action = 0
    while not silent and action + 4 <= actions:  # nobody is left out, so that nothing has to be asked on the way
        b0, b1 = loud * table[start, action], loud * table[start, action + 1]
        b2, b3 = loud * table[start, action + 2], loud * table[start, action + 3]
        for i in range(m):
            row, w = np.uintp(rows[i]), weights[i]
            q0, q1 = w * table[row, action], w * table[row, action + 1]
            q2, q3 = w * table[row, action + 2], w * table[row, action + 3]
            b0 = q0 if q0 > b0 else b0
            b1 = q1 if q1 > b1 else b1
            b2 = q2 if q2 > b2 else b2
            b3 = q3 if q3 > b3 else b3
        preferences[action], preferences[action + 1] = b0, b1
        preferences[action + 2], preferences[action + 3] = b2, b3
        action += 4
    while action < actions:
        best = loud * table[start, action]
        for i in range(first + 1, m):
            if weights[i] != 0.0:
                q = weights[i] * table[np.uintp(rows[i]), action]
                best = q if q > best else best
        preferences[action] = best
        action += 1


def fill_max_plus(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
    """The largest, and a share of the positive parts, added."""
    for action in range(table.shape[1]):
        best, total = -np.inf, 0.0
        for i in range(m):
            if weights[i] != 0.0:
                q = weights[i] * table[np.uintp(rows[i]), action]
                best = q if q > best else best
                total += q if q > 0.0 else 0.0
        preferences[action] = best + parameter * total if best > -np.inf else 0.0


def fill_p_norm(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
    """Powers of what is divided by the largest, so that nothing overflows; whole ones by squaring, ten times faster."""
    whole = int(parameter) if parameter < 1024.0 else 0
    for action in range(table.shape[1]):
        largest = 0.0
        for i in range(m):
            q = weights[i] * table[np.uintp(rows[i]), action]
            largest = q if q > largest else largest
        total = 0.0
        if largest > 0.0:
            for i in range(m):
                q = weights[i] * table[np.uintp(rows[i]), action]
                if q > 0.0 and whole == parameter:
                    share, power, left = q / largest, 1.0, whole
                    while left > 0:
                        power *= share if left & 1 else 1.0
                        share *= share
                        left >>= 1
                    total += power
                elif q > 0.0:
                    total += (q / largest) ** parameter
        preferences[action] = largest * total ** (1.0 / parameter)


def fill_majority(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
    """Votes; who has several best actions splits its vote."""
    actions = table.shape[1]
    preferences[:] = 0.0
    for i in range(m):
        row = np.uintp(rows[i])
        best, ties = table[row, 0], 0
        for action in range(1, actions):
            best = table[row, action] if table[row, action] > best else best
        for action in range(actions):
            ties += 1 if table[row, action] == best else 0
        vote = weights[i] / ties
        for action in range(actions):
            preferences[action] += vote if table[row, action] == best else 0.0


def fill_ranks(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
    """A point for each action that is worse, half a point for one that is equal."""
    actions = table.shape[1]
    preferences[:] = 0.0
    for i in range(m):
        row, w = np.uintp(rows[i]), weights[i]
        for action in range(actions):
            points = 0.5  # against itself
            for other in range(actions):
                points += 1.0 if table[row, action] > table[row, other] else 0.0
                points += 0.5 if table[row, action] == table[row, other] else 0.0
            preferences[action] += w * points


def boltzmann_twin(product: bool) -> Callable[..., None]:
    """The advisors' own Boltzmann policies, added, or of a product their logarithms."""

    def fill(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
        actions = table.shape[1]
        preferences[:] = 0.0
        for i in range(m):
            row = np.uintp(rows[i])
            best, total = table[row, 0], 0.0
            for action in range(1, actions):
                best = table[row, action] if table[row, action] > best else best
            for action in range(actions):
                total += math.exp((table[row, action] - best) / parameter)
            for action in range(actions):
                scaled = (table[row, action] - best) / parameter
                share = scaled - math.log(total) if product else math.exp(scaled) / total
                preferences[action] += weights[i] * share

    return fill


def fill_normalised(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
    """The positive parts, added, then divided by the largest sum."""
    largest = 0.0
    for action in range(table.shape[1]):
        total = 0.0
        for i in range(m):
            q = weights[i] * table[np.uintp(rows[i]), action]
            total += q if q > 0.0 else 0.0
        preferences[action] = total
        largest = total if total > largest else largest
    for action in range(table.shape[1]):
        preferences[action] = preferences[action] / largest if largest > 0.0 else 0.0


def fill_nothing(table: Any, rows: Any, weights: Any, m: int, parameter: float, preferences: Any) -> None:
    """Of what is learned beside the advisors' tables the advice alone says nothing."""
    preferences[:] = 0.0


@register_aggregation("sum", compiled=fill_sum, additive=True)
def weighted_sum(advice: Array, weights: Array, parameter: float = 0.0) -> Array:
    """Q_Sigma(x, a) = sum_j w_j Q_j(x_j, a), the paper's: weights may be any real numbers.

    >>> import numpy as np
    >>> weighted_sum(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([1.0, -0.5]))
    array([ 1. , -1.5])
    """
    return (weights[..., None] * advice).sum(axis=-2)


@register_aggregation("max", compiled=fill_max, wishes=True)
def maximum(advice: Array, weights: Array, parameter: float = 0.0) -> Array:
    """The strongest wish, max_j w_j Q_j(x_j, a): no attractors at any gamma where rewards are at least 0."""
    xp = advice.__array_namespace__()
    wished = xp.where(weights[..., None] != 0, weights[..., None] * advice, -math.inf)
    best = wished.max(axis=-2, initial=-math.inf)
    return xp.where(best == -math.inf, 0.0, best)


@register_aggregation(
    "max_plus", compiled=fill_max_plus, takes="share of the sum", parameter=0.1, least=-1.0, wishes=True
)
def max_plus(advice: Array, weights: Array, parameter: float = 0.1) -> Array:
    """max_j w_j Q_j + c sum_j max(w_j Q_j, 0): the strongest wish, and a little of all of them.

    Below 0 it leads away from crowds: of wishes that are equally strong, those without neighbours come first.
    """
    xp = advice.__array_namespace__()
    return maximum(advice, weights) + parameter * xp.maximum(weights[..., None] * advice, 0.0).sum(axis=-2)


@register_aggregation("p_norm", compiled=fill_p_norm, takes="exponent", parameter=5.0, least=1.0, wishes=True)
def p_norm(advice: Array, weights: Array, parameter: float = 5.0) -> Array:
    """(sum_j max(w_j Q_j, 0)^p)^(1/p): from the sum of wishes, p = 1, to the strongest of them, p without bound."""
    xp = advice.__array_namespace__()
    wished = xp.maximum(weights[..., None] * advice, 0.0)
    largest = wished.max(axis=-2, keepdims=True, initial=0.0)
    share = wished / xp.where(largest > 0, largest, 1.0)
    return largest[..., 0, :] * (share**parameter).sum(axis=-2) ** (1.0 / parameter)


@register_aggregation("majority", compiled=fill_majority, additive=True)
def majority(advice: Array, weights: Array, parameter: float = 0.0) -> Array:
    """Each advisor has w_j votes for its own best action; where several are equal it splits them."""
    best = advice == advice.max(axis=-1, keepdims=True)
    vote = weights / best.sum(axis=-1)
    return (vote[..., None] * best).sum(axis=-2)


@register_aggregation("ranks", compiled=fill_ranks, additive=True)
def ranks(advice: Array, weights: Array, parameter: float = 0.0) -> Array:
    """Each advisor gives w_j times 1 for its worst action, 2 for the next, ... A for the best; equals share (Borda)."""
    mine, other = advice[..., :, None], advice[..., None, :]  # [..., m, A, A]
    points = 0.5 + (mine > other).sum(axis=-1) + 0.5 * (mine == other).sum(axis=-1)
    return (weights[..., None] * points).sum(axis=-2)


@register_aggregation(
    "boltzmann_product", compiled=boltzmann_twin(product=True), takes="temperature", parameter=1.0, least=1e-6,
    additive=True,
)  # fmt: skip
def boltzmann_product(advice: Array, weights: Array, parameter: float = 1.0) -> Array:
    """The logarithm of the product of the advisors' Boltzmann policies, each to the power w_j."""
    xp = advice.__array_namespace__()
    scaled = (advice - advice.max(axis=-1, keepdims=True)) / parameter
    policy = scaled - xp.log(xp.exp(scaled).sum(axis=-1, keepdims=True))
    return (weights[..., None] * policy).sum(axis=-2)


@register_aggregation(
    "boltzmann_sum", compiled=boltzmann_twin(product=False), takes="temperature", parameter=1.0, least=1e-6,
    additive=True,
)  # fmt: skip
def boltzmann_sum(advice: Array, weights: Array, parameter: float = 1.0) -> Array:
    """The sum of the advisors' Boltzmann policies, each times w_j."""
    xp = advice.__array_namespace__()
    chances = xp.exp((advice - advice.max(axis=-1, keepdims=True)) / parameter)
    return (weights[..., None] * (chances / chances.sum(axis=-1, keepdims=True))).sum(axis=-2)


@register_aggregation("normalised", compiled=fill_normalised)
def normalised(advice: Array, weights: Array, parameter: float = 0.0) -> Array:
    """The sum of the positive parts, max(w_j Q_j, 0), divided by its maximum over actions (as HRA does)."""
    xp = advice.__array_namespace__()
    total = xp.maximum(weights[..., None] * advice, 0.0).sum(axis=-2)
    largest = total.max(axis=-1, keepdims=True)
    return xp.where(largest > 0, total / xp.where(largest > 0, largest, 1.0), 0.0)


for _name, _class, _text in (
    ("correction", f"{_RULES}.correction:LearnedCorrection",
     "The sum less the correction D(x, a) that the aggregator learns beside it: what the sum promises too much."),
    ("gpi", f"{_RULES}.gpi:GPI",
     "Generalised policy improvement: the best over j of sum_k w_k Q_k^{pi_j}(x, a), what j's plan is worth to all."),
    ("w_learning", f"{_RULES}.arbitration:WLearning",
     "W-learning: in control is the one that would lose most if it were not obeyed, by the W_j(x_j) it has learned."),
    ("arbi_q", f"{_RULES}.arbitration:ArbiQ",
     "Arbi-Q: in control is the one whom an arbitrator, paid the task's own reward, has learned to choose, by Sarsa."),
):  # fmt: skip
    _add_learned(_name, _class, __name__, _text)


# ---- acting ----------------------------------------------------------------------------------------------------------
def greedy(preferences: Array, draw: Any) -> Any:
    """The best action; where several are exactly equal, the one that `draw` in [0, 1) picks among them.

    >>> import numpy as np
    >>> [int(greedy(np.array([2.0, 1.0, 2.0]), draw)) for draw in (0.0, 0.49, 0.5, 0.99)]
    [0, 0, 2, 2]
    """
    tied = preferences == preferences.max()  # [A]
    rank = (draw * tied.sum()) // 1  # which of the tied ones, from 0
    return (tied.cumsum() > rank).argmax()


def epsilon_greedy(preferences: Array, epsilon: Any, explore: Any, draw: Any) -> Any:
    """The greedy action, or with probability epsilon any action; `explore` and `draw` are draws in [0, 1).

    >>> import numpy as np
    >>> int(epsilon_greedy(np.array([2.0, 1.0, 0.0]), 0.1, explore=0.05, draw=0.9))
    2
    >>> int(epsilon_greedy(np.array([2.0, 1.0, 0.0]), 0.1, explore=0.2, draw=0.9))
    0
    """
    exploring = explore < epsilon
    anything = (draw * preferences.shape[0]) // 1
    # Arithmetic instead of a branch, so that it can be traced as well.
    return (exploring * anything + (1 - exploring) * greedy(preferences, draw)).astype(int)


def behaviour(preferences: Array, epsilon: Any) -> Array:
    """The probabilities [A] of `epsilon_greedy`: the best actions share what exploring leaves.

    >>> import numpy as np
    >>> behaviour(np.array([2.0, 1.0, 2.0, 0.0]), 0.2)
    array([0.45, 0.05, 0.45, 0.05])
    """
    tied = preferences == preferences.max()
    return epsilon / preferences.shape[0] + (1.0 - epsilon) * tied / tied.sum()
