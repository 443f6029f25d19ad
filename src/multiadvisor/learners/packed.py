"""A state in few arrays: each one that a compiled call takes or gives back costs microseconds on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.learners.dqn.backend import jax, jnp

Array = Any
_SHORT = 16_384  # numbers of an array that is packed: copying a longer one costs more than handing it over


class PackedLayout(NamedTuple):
    """Where the arrays of a tree are."""

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]
    """The type of each short array, or "" where it is a long one."""


_layout = lru_cache(maxsize=64)(PackedLayout)  # one object for each, so that a compiled call knows it at once


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Packed:
    """The arrays of a tree, on NumPy and JAX alike."""

    long: tuple[Array, ...]
    short: dict[str, Array]
    """For each type, all short arrays one after the other."""
    layout: PackedLayout = field(metadata={"static": True})

    def _leaves(self, short: dict[str, Array]) -> Iterator[Array]:
        """The arrays of the tree, in its order."""
        long, first = iter(self.long), dict.fromkeys(short, 0)
        for shape, kind in zip(self.layout.shapes, self.layout.kinds, strict=True):
            if not kind:
                yield next(long)
                continue
            start, first[kind] = first[kind], first[kind] + prod(shape)
            yield short[kind][start : first[kind]].reshape(shape)

    def tree(self) -> Any:
        """What was packed."""
        return jax.tree.unflatten(self.layout.tree, self._leaves(self.short))

    def copied(self) -> Any:
        """What was packed, as NumPy arrays of its own: the memory of a state is given away at its next update."""
        return jax.tree.map(np.array, self).tree()

    def first(self, count: int) -> list[np.ndarray]:
        """The first so many arrays of the tree, copied likewise."""
        short = {kind: np.asarray(row) for kind, row in self.short.items()}
        return [np.array(leaf) for leaf in islice(self._leaves(short), count)]


def pack(tree: Any, stacked: bool) -> Packed:
    """The arrays of a tree; those of several runs stay as they are, as these share the costs of a call."""
    leaves, shape = jax.tree.flatten(tree)
    kinds = tuple("" if stacked or np.size(leaf) > _SHORT else leaf.dtype.name for leaf in leaves)
    parts: dict[str, list[Array]] = {kind: [] for kind in ("", *sorted({*kinds}))}
    for leaf, kind in zip(leaves, kinds, strict=True):
        parts[kind].append(jnp.ravel(leaf) if kind else jnp.asarray(leaf))
    long = tuple(parts.pop(""))
    short = {kind: jnp.concatenate(rows) for kind, rows in parts.items()}
    return Packed(long, short, _layout(shape, tuple(np.shape(leaf) for leaf in leaves), kinds))


def on_packed(call: Callable[..., tuple[Any, Array]], stacked: bool) -> Callable[..., tuple[Packed, Array]]:
    """A call that changes its first tree, compiled for packed ones; the first one's memory is given away."""

    def packed(*given: Any) -> tuple[Packed, Array]:
        changed, found = call(*(part.tree() if isinstance(part, Packed) else part for part in given))
        return pack(changed, stacked), found

    return jax.jit(packed, donate_argnums=0)
