"""Small networks fitted to known values: many models of one shape in one compiled program, one after the other.

All random numbers come from NumPy generators of the caller, so that a model depends on its seed and not on the release
of JAX that drew for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from multiadvisor.learners.dqn.backend import jax, jnp, optax

HIDDEN = (100, 50)
BATCH = 32
RATE = 1e-3

# One (weights [in, out], biases [out]) for each layer; stacked models have one axis more, in front.
Layers = tuple[tuple[np.ndarray, np.ndarray], ...]


def initial(generator: np.random.Generator, inputs: int, outputs: int, hidden: Sequence[int] = HIDDEN) -> Layers:
    """Glorot-uniform weights, biases of zero.

    The hidden layers are drawn first: two networks from equal generators differ in their last layer alone, and only
    if they have different numbers of outputs.
    """
    sizes = (inputs, *hidden, outputs)
    layers = []
    for width, height in pairwise(sizes):
        limit = np.sqrt(6 / (width + height))
        weights = generator.uniform(-limit, limit, (width, height)).astype(np.float32)
        layers.append((weights, np.zeros(height, np.float32)))
    return tuple(layers)


def shuffles(generator: np.random.Generator, samples: int, epochs: int) -> np.ndarray:
    """The order of the samples in each epoch, [epochs, samples]."""
    return generator.permuted(np.tile(np.arange(samples, dtype=np.int32), (epochs, 1)), axis=1)


def forward(layers: Layers, x: jax.Array) -> jax.Array:
    """The network: ReLU between the layers, the last one linear; [samples, in] -> [samples, out]."""
    for weights, biases in layers[:-1]:
        x = jax.nn.relu(x @ weights + biases)
    weights, biases = layers[-1]
    return x @ weights + biases


def loss(layers: Layers, x: jax.Array, y: jax.Array, weight: jax.Array) -> jax.Array:
    """Mean squared error over outputs and over the samples whose weight is 1 and not 0."""
    error = forward(layers, x) - y  # [batch, out]
    return (jnp.square(error).mean(axis=1) * weight).sum() / weight.sum()


@jax.jit
def _fit(start: Layers, x: jax.Array, ys: jax.Array, orders: jax.Array, weights: jax.Array) -> tuple[Layers, jax.Array]:
    adam = optax.adam(RATE)
    batches = weights.shape

    def fit_one(y: jax.Array) -> tuple[Layers, jax.Array]:
        def step(carry: Any, batch: Any) -> tuple[Any, jax.Array]:
            layers, state = carry
            value, gradient = jax.value_and_grad(loss)(layers, *batch)
            change, state = adam.update(gradient, state, layers)
            return (optax.apply_updates(layers, change), state), value

        def epoch(carry: Any, order: jax.Array) -> tuple[Any, jax.Array]:
            # gathered once an epoch: gathering each batch by itself costs more
            shuffled = (x[order].reshape(*batches, -1), y[order].reshape(*batches, -1), weights)
            carry, values = jax.lax.scan(step, carry, shuffled)
            return carry, (values * weights.sum(axis=1)).sum() / weights.sum()

        (layers, _), losses = jax.lax.scan(epoch, (start, adam.init(start)), orders)
        return layers, losses

    # on a CPU one small model after the other is twice as fast as all of them side by side (vmap)
    found: tuple[Layers, jax.Array] = jax.lax.map(fit_one, ys)
    return found


def fit(start: Layers, x: np.ndarray, ys: np.ndarray, orders: np.ndarray) -> tuple[Layers, np.ndarray]:
    """Fit one network to each of several targets, from the same start and with the same batches: Adam on the MSE.

    x [samples, in]; ys [models, samples, out]; orders [epochs, samples]. Returns the layers, with an axis of models in
    front, and the mean loss of each epoch, [models, epochs]. Calls with equal shapes share one compiled program. The
    last batch of an epoch is a small one if the samples don't divide evenly.
    """
    epochs, samples = orders.shape
    batches = -(-samples // BATCH)
    padded = np.zeros((epochs, batches * BATCH), np.int32)
    padded[:, :samples] = orders
    weights = (np.arange(batches * BATCH) < samples).astype(np.float32).reshape(batches, BATCH)
    layers, losses = _fit(start, x.astype(np.float32), ys.astype(np.float32), padded, weights)
    return jax.tree.map(np.asarray, layers), np.asarray(losses)


def model(layers: Layers, index: int) -> Layers:
    """One of several stacked models."""
    return tuple((weights[index], biases[index]) for weights, biases in layers)


_forward = jax.jit(forward)


def predict(layers: Layers, x: np.ndarray) -> np.ndarray:
    """What a fitted network says, in float64: [samples, in] -> [samples, out]."""
    return np.asarray(_forward(layers, x.astype(np.float32)), np.float64)
