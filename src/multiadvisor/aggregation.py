"""How the aggregator, which is in control, turns the advice of n advisors into an action (the paper's section 3).

Pure functions on NumPy and JAX arrays alike. They never draw random numbers: the caller passes draws in [0, 1) from the
run's own generator, so that a tie is broken at random and yet the same way in every repetition of the run.
"""

from __future__ import annotations

from typing import Any

Array = Any  # a NumPy or JAX array


def weighted_sum(advice: Array, weights: Array) -> Array:
    """Q_Sigma(x, a) = sum_j w_j Q_j(x_j, a): advice [n, A] and weights [n], any real ones, to preferences [A].

    >>> import numpy as np
    >>> weighted_sum(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([1.0, -0.5]))
    array([ 1. , -1.5])
    """
    if advice.ndim != 2 or weights.shape != advice.shape[:1]:
        raise ValueError(f"advice {advice.shape} must be [n, A] and weights {weights.shape} [n]")
    return (weights[:, None] * advice).sum(axis=0)


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
    # Arithmetic in the place of a branch, so that it may be traced as well.
    return (exploring * anything + (1 - exploring) * greedy(preferences, draw)).astype(int)
