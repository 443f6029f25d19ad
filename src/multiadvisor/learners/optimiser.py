"""The optimiser of every network: Adam on all its numbers as one long vector, faster than on many short ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.learners.dqn.backend import jax, jnp, optax

ADAM = optax.flatten(optax.scale_by_adam())


class TrainState(NamedTuple):
    """Networks with their optimiser."""

    networks: Any
    optimiser: Any


def copied(networks: Any) -> Any:
    """Other buffers: those of a state are given away at every update, and none may be given twice."""
    return jax.tree.map(jnp.array, networks)


def fresh(networks: Any, stacked: bool) -> TrainState:
    """Networks before their first update; `stacked` are those of several runs, with their axis in front."""
    networks = copied(networks)
    shapes = jax.eval_shape(jax.vmap(ADAM.init) if stacked else ADAM.init, networks)
    # Adam begins with nothing but zeros: to compute them compiles a dozen small programs
    return TrainState(networks, jax.tree.map(lambda part: jnp.array(np.zeros(part.shape, part.dtype)), shapes))


def better(learned: TrainState, gradient: Any, rate: Any) -> TrainState:
    """After a step of Adam."""
    change, optimiser = ADAM.update(gradient, learned.optimiser, learned.networks)
    return TrainState(jax.tree.map(lambda old, step: old - rate * step, learned.networks, change), optimiser)
