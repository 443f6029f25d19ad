"""How an advisor plans: the value it bootstraps on in the next state (the paper's section 4).

Each planning is a pure function from the advice in the next state, advice [n, A], and the action the aggregator would
take there, to the bootstrap values [n]. They work on NumPy and JAX arrays alike, and the tabular learner, the deep
learner and the exact solver all use them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multiadvisor.errors import unknown

Array = Any  # a NumPy or JAX array
Planning = Callable[[Array, Any], Array]


def _check(advice: Array) -> None:
    if getattr(advice, "ndim", None) != 2:
        raise ValueError(f"advice must have the axes [advisor, action], not the shape {getattr(advice, 'shape', ())}")


def egocentric(advice: Array, action: Any = None) -> Array:
    """Each advisor bootstraps on its own best action, as if it were in control: overestimates, creates attractors.

    >>> import numpy as np
    >>> egocentric(np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([1., 3.])
    """
    _check(advice)
    return advice.max(axis=1)


def agnostic(advice: Array, action: Any = None) -> Array:
    """Each advisor bootstraps on the mean over the actions, as if any could follow: fearful near danger.

    >>> import numpy as np
    >>> agnostic(np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([0.5, 1.5])
    """
    _check(advice)
    return advice.mean(axis=1)


def empathic(advice: Array, action: Any) -> Array:
    """Each advisor bootstraps on the action the aggregator would take, f_Sigma(x'): near optimal, robust to noise.

    >>> import numpy as np
    >>> empathic(np.array([[1.0, 0.0], [0.0, 3.0]]), action=1)
    array([0., 3.])
    """
    _check(advice)
    return advice[:, action]


def foreseen(advice: Array, counts: Array) -> Array:
    """Empathic planning on an estimate: each advisor weighs its values by how often it saw the aggregator act so.

    counts [n, A] is how often each action was the aggregator's in the advisor's own local state, the paper's f_j(x'_j).
    It takes the place of f_Sigma(x'), which an advisor cannot know from its local state alone.

    >>> import numpy as np
    >>> foreseen(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[3.0, 1.0], [0.0, 4.0]]))
    array([0.75, 3.  ])
    """
    _check(advice)
    return (counts * advice).sum(axis=1) / counts.sum(axis=1)


PLANNINGS: dict[str, Planning] = {
    "egocentric": egocentric,
    "agnostic": agnostic,
    "empathic": empathic,
}

WEIGHTLESS = ("egocentric", "agnostic")
"""Plannings whose values do not depend on the advisors' weights: they ask nothing of the aggregator."""


def planning_named(name: str) -> Planning:
    """The planning of that name, or an error that lists them."""
    if name not in PLANNINGS:
        raise unknown("planning", name, PLANNINGS)
    return PLANNINGS[name]
