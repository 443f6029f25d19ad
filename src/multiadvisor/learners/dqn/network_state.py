"""What a checkpoint keeps of learners with networks: networks, episodes and memory, each by its own kind of names."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.core.validation import Arrays, array
from multiadvisor.errors import Diverged
from multiadvisor.learners.dqn.backend import jax, jnp


def kept(networks: Any, episodes: Arrays, memory: Arrays) -> Arrays:
    """All three, unless the networks have gone astray."""
    leaves = [np.atleast_1d(np.asarray(leaf)) for leaf in jax.tree.leaves(networks)]
    if not all(leaf.dtype.kind != "f" or np.isfinite(leaf).all() for leaf in leaves):
        raise Diverged("the networks are no longer finite: they were not saved; lower the learning rate")
    parts = {"network": {f"{k:03}": leaf for k, leaf in enumerate(leaves)}, "episodes": episodes, "replay": memory}
    return {f"{kind} {name}": values for kind, part in parts.items() for name, values in part.items()}


def part_of(tensors: Arrays, kind: str) -> Arrays:
    """What was kept of the episodes, or as replay."""
    return {name.removeprefix(f"{kind} "): values for name, values in tensors.items() if name.startswith(f"{kind} ")}


def leaves_of(tensors: Arrays, networks: Any) -> list[np.ndarray]:
    """The arrays of networks like these, in their order."""
    return [
        array(tensors, f"network {k:03}", np.shape(leaf) or (1,), leaf.dtype)
        for k, leaf in enumerate(jax.tree.leaves(networks))
    ]


def networks_of(leaves: list[np.ndarray], networks: Any) -> Any:
    """Networks like these, with other numbers."""
    there, tree = jax.tree.flatten(networks)
    own = [jnp.array(leaf).reshape(np.shape(like)) for leaf, like in zip(leaves, there, strict=True)]
    return jax.tree.unflatten(tree, own)
