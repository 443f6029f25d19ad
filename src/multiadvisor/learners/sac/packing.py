"""The state of an update in few arrays: each one that is handed to a compiled call costs microseconds on both sides.

Matrices and long vectors stay as they are. Biases, scalars and counts, most of a state's arrays, become two vectors.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.learners.dqn.backend import jax, jnp

Array = Any
_SMALL = 1024  # numbers of a vector that is packed


class PackedTree(NamedTuple):
    """The arrays of a tree; those of several runs have an axis more, in front."""

    large: tuple[Array, ...]
    small: Array  # [V] all short vectors and scalars, one after the other
    counts: Array  # [C] all whole numbers


class Layout:
    """Where the arrays of a tree are. There is one object for each layout, so that programs are compiled once."""

    def __init__(self, tree: Any, shapes: tuple[tuple[int, ...], ...], kinds: tuple[str, ...]) -> None:
        self.tree = tree
        ends = {"large": 0, "small": 0, "counts": 0}
        self.places: list[tuple[str, int, int, tuple[int, ...]]] = []  # what, from, to and in which shape
        for shape, kind in zip(shapes, kinds, strict=True):
            first = ends[kind]
            ends[kind] += 1 if kind == "large" else int(np.prod(shape))
            self.places.append((kind, first, ends[kind], shape))

    def pack(self, tree: Any, axes: int = 0) -> PackedTree:
        """Copies of the arrays; `axes` of each are in front of its own."""
        parts: dict[str, list[Array]] = {"large": [], "small": [], "counts": []}
        for leaf, (kind, _, _, _) in zip(jax.tree.leaves(tree), self.places, strict=True):
            parts[kind].append(jnp.array(leaf) if kind == "large" else jnp.reshape(leaf, (*np.shape(leaf)[:axes], -1)))
        small, counts = (jnp.concatenate(parts[kind], axis=-1) for kind in ("small", "counts"))
        return PackedTree(tuple(parts["large"]), small, counts)

    def leaves(self, packed: PackedTree, count: int | None = None) -> list[Array]:
        """The first so many arrays of the tree, or all of them."""
        found = []
        for kind, first, last, shape in self.places[:count]:
            if kind == "large":
                found.append(packed.large[first])
            else:
                row = packed.small if kind == "small" else packed.counts
                found.append(row[..., first:last].reshape((*row.shape[:-1], *shape)))
        return found

    def unpack(self, packed: PackedTree) -> Any:
        """The tree."""
        return jax.tree.unflatten(self.tree, self.leaves(packed))


def layout_of(tree: Any, axes: int) -> Layout:
    """Of a tree whose arrays have `axes` in front of their own."""
    leaves, shape = jax.tree.flatten(tree)
    shapes = tuple(np.shape(leaf)[axes:] for leaf in leaves)
    return _layout(shape, shapes, tuple(map(_kind, leaves, shapes)))


def _kind(leaf: Array, shape: tuple[int, ...]) -> str:
    if np.dtype(leaf.dtype).kind in "iu":
        return "counts"
    return "small" if len(shape) < 2 and np.prod(shape) <= _SMALL else "large"


_layout = lru_cache(maxsize=64)(Layout)


class NetworkState:
    """A state between updates: packed, and unpacked where somebody asks."""

    def __init__(self, tree: Any, axes: int) -> None:
        self.layout: Layout = layout_of(tree, axes)
        self.packed: PackedTree = self.layout.pack(tree, axes)
        self._read: tuple[Any, Any] = (None, None)  # the packed one that was unpacked last, and what it was

    def tree(self) -> Any:
        """All of it, as NumPy arrays; copies, as the memory is given away at the next update."""
        if self._read[0] is not self.packed:
            self._read = self.packed, self.layout.unpack(jax.tree.map(np.array, self.packed))
        return self._read[1]

    def first(self, count: int) -> list[Any]:
        """So many arrays; of these the small ones are copies."""
        return self.layout.leaves(self.packed._replace(small=np.array(self.packed.small)), count)
