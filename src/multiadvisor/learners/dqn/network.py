"""The network: one output for each advisor and action, in JAX for learning and in NumPy for acting.

Its parameters have the axes [S, G, ...] in front: S runs that learn side by side, each with G networks of one shape.
All advisors may share a network, or have their own, or one for each group. An advisor that sees only a part of the
observation gets the rest as zeros, which is the same as a smaller network, and lets all of them be one product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.validation import Shapes
from multiadvisor.errors import BadInput
from multiadvisor.learners.dqn.backend import jax, jnp

Array = Any  # a NumPy or JAX array
KERNEL = 3  # convolutions are 3 x 3


@dataclass(frozen=True)
class NetworkPlan:
    """The shape of a network: what goes in, who shares what, and what comes out."""

    shape: tuple[int, ...]
    """Of an observation: [features], or [channels, height, width]."""
    scale: float
    """Observations are multiplied by it: 1 / 255 for bytes."""
    masks: tuple[tuple[int, ...], ...]
    """For each network, 1 where it sees the feature or channel."""
    network_of: tuple[int, ...]
    """Which network has the outputs of advisor j."""
    actions: int
    convolutions: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    hidden: tuple[int, ...] = (64, 64)

    @property
    def n(self) -> int:
        """The number of advisors."""
        return len(self.network_of)

    @cached_property
    def outputs(self) -> int:
        """The largest number of advisors that share a network."""
        return max(self.network_of.count(g) for g in range(len(self.masks)))

    @cached_property
    def places(self) -> np.ndarray:
        """[n] where advisor j stands among all outputs of all networks."""
        return np.array([g * self.outputs + self.network_of[:j].count(g) for j, g in enumerate(self.network_of)])

    @cached_property
    def seen(self) -> np.ndarray:
        """[G, features or channels] the masks."""
        return np.array(self.masks, np.float32)

    @cached_property
    def hides(self) -> bool:
        """Whether some network does not see something."""
        return any(0 in mask for mask in self.masks)


def plan_networks(
    shape: Sequence[int], scale: float, views: Sequence[Sequence[int]], shares: Sequence[object], actions: int,
    convolutions: Sequence[int] = (), strides: Sequence[int] = (), hidden: Sequence[int] = (64, 64),
) -> NetworkPlan:  # fmt: skip
    """A network for each distinct (view, share): `views` has the advisors' masks, `shares` whom they share with.

    >>> plan_networks((3,), 1.0, [(1, 1, 0), (1, 1, 0), (0, 0, 1)], ["all", "all", "all"], actions=2).network_of
    (0, 0, 1)
    """
    keys = [(tuple(view), share) for view, share in zip(views, shares, strict=True)]
    distinct = list(dict.fromkeys(keys))
    return NetworkPlan(
        tuple(shape), scale, tuple(view for view, _ in distinct), tuple(distinct.index(key) for key in keys), actions,
        tuple(convolutions), tuple(strides) or (1,) * len(convolutions), tuple(hidden),
    )  # fmt: skip


class Layer(NamedTuple):
    """x [S, G, samples, in] -> [S, G, samples, out], linear."""

    weight: Array  # [S, G, in, out]
    bias: Array  # [S, G, 1, out]

    def __call__(self, x: Array) -> Array:
        """The product, and the bias."""
        return x @ self.weight + self.bias


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Network:
    """Observations [S, B, ...] -> advice [S, B, n, A]."""

    convolutions: tuple[Layer, ...]
    hidden: tuple[Layer, ...]
    last: Layer
    plan: NetworkPlan = field(metadata={"static": True})

    def __call__(self, observation: Array) -> Array:
        """The advice of every advisor."""
        plan, xp = self.plan, np if isinstance(observation, np.ndarray) else jnp
        x = observation.astype(np.float32)[:, None]  # [S, 1, B, ...]
        if plan.scale != 1.0:
            x = x * np.float32(plan.scale)
        if self.convolutions:
            x = xp.moveaxis(x, 3, -1)  # channels last: patches are then rows of a product
        if plan.hides:
            x = x * plan.seen.reshape(1, len(plan.seen), *(1,) * (x.ndim - 3), -1)
        for layer, stride in zip(self.convolutions, plan.strides, strict=True):
            patches = _patches(x, stride, xp)  # [S, G or 1, B, height, width, in]
            rows = patches.reshape(*patches.shape[:2], -1, patches.shape[-1])
            flat = xp.maximum(layer(rows), 0)
            x = flat.reshape(*flat.shape[:2], *patches.shape[2:5], flat.shape[-1])
        if x.ndim > 4:
            x = x.reshape(*x.shape[:3], -1)
        for layer in self.hidden:
            x = xp.maximum(layer(x), 0)
        x = self.last(x)  # [S, G, B, outputs * A]
        runs, networks, samples = x.shape[:3]
        each = x.reshape(runs, networks, samples, plan.outputs, plan.actions)
        if networks == 1:
            return each[:, 0]
        together = xp.swapaxes(each, 1, 2).reshape(runs, samples, -1, plan.actions)
        return together[:, :, plan.places]


def _patches(x: Array, stride: int, xp: Any) -> Array:
    """[..., height, width, in] -> [..., height', width', 9 in]: the neighbourhood of every place, side by side.

    A product with the patches is the convolution; on a CPU it is faster than the library's own, and with many networks
    at once it is on a GPU as well.
    """
    height, width = ((size - KERNEL) // stride + 1 for size in x.shape[-3:-1])
    parts = [
        x[..., i : i + stride * height : stride, j : j + stride * width : stride, :]
        for i in range(KERNEL)
        for j in range(KERNEL)
    ]
    return xp.concatenate(parts, axis=-1)


def initial(plan: NetworkPlan, seeds: Sequence[int]) -> Network:
    """A network for each seed, NumPy arrays."""
    runs = [_initial_one(plan, np.random.default_rng([seed, 0x0DEE9])) for seed in seeds]
    stacked: Network = jax.tree.map(lambda *leaves: np.stack(leaves), *runs)
    return stacked


def layer_sizes(plan: NetworkPlan) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(inputs, outputs) of the convolutions and of the layers behind them, the last one among these."""
    convolutions, size = [], int(np.prod(plan.shape))
    if plan.convolutions:
        channels, height, width = plan.shape
        for filters, stride in zip(plan.convolutions, plan.strides, strict=True):
            height, width = ((side - KERNEL) // stride + 1 for side in (height, width))
            if min(height, width) < 1:
                raise BadInput(
                    f"the convolutions {plan.convolutions} with strides {plan.strides} leave nothing of an image of "
                    f"{plan.shape[1]} x {plan.shape[2]}: use fewer"
                )
            convolutions.append((KERNEL * KERNEL * channels, filters))
            channels = filters
        size = channels * height * width
    return convolutions, list(pairwise((size, *plan.hidden, plan.outputs * plan.actions)))


def check_saved(plan: NetworkPlan, runs: int, saved: Shapes) -> None:
    """Refuse a network that is not the one in a checkpoint, before memory is asked for it."""
    sizes = [size for part in layer_sizes(plan) for size in part]
    for k, size in enumerate(sizes):
        if saved.get(f"network {2 * k:03}") != (runs, len(plan.masks), *size):
            raise BadInput("the checkpoint's network does not fit this task and its settings: restore it from a copy")


def initial_layer(generator: np.random.Generator, inputs: int, outputs: int, networks: int = 1) -> Layer:
    """A layer [G, in, out] of so many networks: uniform in +-1 / sqrt(inputs), independent of the release of JAX."""
    limit = 1.0 / np.sqrt(inputs)
    weight = generator.uniform(-limit, limit, (networks, inputs, outputs)).astype(np.float32)
    return Layer(weight, generator.uniform(-limit, limit, (networks, 1, outputs)).astype(np.float32))


def _initial_one(plan: NetworkPlan, generator: np.random.Generator) -> Network:
    convolutions, (*hidden, last) = (
        tuple(initial_layer(generator, *size, len(plan.masks)) for size in part) for part in layer_sizes(plan)
    )
    return Network(convolutions, tuple(hidden), last, plan)
