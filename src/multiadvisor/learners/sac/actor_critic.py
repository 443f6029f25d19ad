"""Actor and critics: small networks as tuples of arrays, on NumPy and JAX alike.

A network is a tuple of (weight, bias): [in, out] and [out], the last weight [out, in]. Those of several runs have an
axis more, in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from multiadvisor.learners.dqn.backend import jax, jnp
from multiadvisor.learners.dqn.network import initial_layer

Array = Any
Layers = tuple[tuple[Array, Array], ...]

LOG_STD = (-20.0, 2.0)  # of the actor's normal distribution, before tanh
_LOG_2, _LOG_2_PI = float(np.log(2.0)), float(np.log(2.0 * np.pi))


def initial(generator: np.random.Generator, inputs: int, hidden: Sequence[int], outputs: int) -> Layers:
    """Fresh layers, NumPy arrays."""
    made = [initial_layer(generator, *size) for size in pairwise((inputs, *hidden, outputs))]
    *before, (weight, bias) = ((layer.weight[0], layer.bias[0, 0]) for layer in made)
    return (*before, (np.ascontiguousarray(weight.T), bias))


def forward(layers: Layers, x: Array) -> Array:
    """[..., samples, in] -> [..., samples, out]."""
    for weight, bias in layers[:-1]:
        x = (x @ weight + bias[..., None, :]).clip(0)
    weight, bias = layers[-1]
    return x @ weight.swapaxes(-1, -2) + bias[..., None, :]


def slopes(layers: Layers, x: np.ndarray) -> np.ndarray:
    """The derivative of each output at one input x [in], [out, in]."""
    masks = []
    for weight, bias in layers[:-1]:
        x = (x @ weight + bias).clip(0)
        masks.append(x > 0)
    slope: np.ndarray = layers[-1][0]  # [out, hidden]
    for (weight, _), mask in zip(reversed(layers[:-1]), reversed(masks), strict=True):
        slope = (slope * mask) @ weight.T
    return slope


def means(actor: Layers, observation: Array) -> Array:
    """The actor's own choice without noise, [..., samples, d] in (-1, 1)."""
    out = forward(actor, observation)
    xp = np if isinstance(out, np.ndarray) else jnp
    return xp.tanh(out[..., : out.shape[-1] // 2])


def explored(actor: Layers, observation: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The actor's choice with noise [..., samples, d] from a standard normal distribution; NumPy.

    A single sample costs its calls, not its arithmetic: so there are few of them.
    """
    x = observation
    for weight, bias in actor[:-1]:
        x = x @ weight
        x += bias[..., None, :]
        np.maximum(x, 0, out=x)
    weight, bias = actor[-1]
    x = x @ weight.swapaxes(-1, -2)
    x += bias[..., None, :]
    d = noise.shape[-1]
    deviation = np.maximum(x[..., d:], LOG_STD[0])
    np.exp(np.minimum(deviation, LOG_STD[1], out=deviation), out=deviation)
    deviation *= noise
    deviation += x[..., :d]
    found: np.ndarray = np.tanh(deviation, out=deviation)
    return found


def sampled(actor: Layers, observation: Array, noise: Array) -> tuple[Array, Array]:
    """Actions [samples, d] and the logarithm of their density [samples]."""
    mean, log_std = jnp.split(forward(actor, observation), 2, axis=-1)
    log_std = log_std.clip(*LOG_STD)
    before = mean + jnp.exp(log_std) * noise
    normal = -0.5 * jnp.square(noise) - log_std - 0.5 * _LOG_2_PI
    squashed = 2.0 * (_LOG_2 - before - jax.nn.softplus(-2.0 * before))  # log(1 - tanh^2), without cancellation
    return jnp.tanh(before), (normal - squashed).sum(axis=-1)


def critic_input(observation: Array, action: Array) -> Array:
    """[samples, F + d]."""
    return jnp.concatenate([observation, action], axis=-1)
