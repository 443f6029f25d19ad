"""What an aggregator learns by a network of its own: one more output, the last, that sees the whole observation.

The correction (`theory.correction`) has the weight -1: what the sum of the others promises too much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from multiadvisor.learners.dqn.backend import jnp

if TYPE_CHECKING:
    from multiadvisor.learners.dqn.dqn_update import Batch, Rules

Array = Any


class OwnOutput(NamedTuple):
    """How such an output learns."""

    weight: float
    expects: Callable[[Rules, Array, Array, Any], Array]
    """(rules, value [n, A], active [n], the greedy action) -> what it expects of the next state."""
    earns: Callable[[Rules, Batch, Array], Array]
    """(rules, batch, what is expected of the next state [..., n]) -> its rewards [..., 1], without noise."""


def what_all_get(rules: Rules, value: Array, active: Array, greedy: Any) -> Array:
    """Minus what all together can get."""
    return -rules.aggregator.prefer(value, jnp.asarray(rules.weights, value.dtype) * active)[greedy]


def what_was_promised(rules: Rules, batch: Batch, follows: Array) -> Array:
    """What the others expect of the next state."""
    weights = jnp.asarray(rules.weights[:-1], follows.dtype) * batch.active[..., :-1]
    return (weights * batch.discount[..., :-1] * follows[..., :-1]).sum(axis=-1, keepdims=True)


CORRECTION = OwnOutput(-1.0, what_all_get, what_was_promised)
