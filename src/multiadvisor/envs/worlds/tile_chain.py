"""A chain whose places are seen through overlapping tiles: where linear values are only near the truth.

Tiling j puts tiles of `width` places over the chain, shifted by j; an advisor for each sees the number of its tile. As
features of linear Q-learning they cannot tell neighbouring places quite apart (van Seijen, Fatemi and Tavakoli 2019).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from multiadvisor.core.compiling import compiled
from multiadvisor.core.rng import WORLD, below, draw
from multiadvisor.envs.registry import Between, register_task
from multiadvisor.task import Advisor, Task, World


class ChainConstants(NamedTuple):
    """What never changes during a run."""

    length: int
    width: int


@compiled
def reset(world, x, key):
    """Any place."""
    x[0] = below(draw(key, WORLD), world.length)


@compiled
def begin(world, x, advisors):
    """All tilings."""
    for j in range(world.width):
        advisors[j] = j
    return world.width


@compiled
def local_states(world, x, advisors, m, local):
    """The tile of each tiling."""
    for i in range(m):
        local[i] = (x[0] + advisors[i]) // world.width


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    """Left, or right; beyond the last place is the goal, which pays the first tiling."""
    if action == 1 and x[0] == world.length - 1:
        reward[0] = 1.0
        return True
    x[0] = x[0] + 1 if action == 1 else max(x[0] - 1, 0)
    return False


@register_task("tile-chain")
def tile_chain(
    length: Annotated[int, Between(2, 10_000)] = 50, width: Annotated[int, Between(1, 20)] = 2,
    mapping: str | None = None, mapped_alpha: float = 1.0,
) -> Task:  # fmt: skip
    """A chain of places, any of them the first; beyond its right end is 1. Seen through overlapping tiles.

    length: how many places.
    width: how many of them a tile covers, and how many tilings there are: an advisor for each.
    mapping: the scale on which values are moved, as in log:100.
    mapped_alpha: the step size on that scale.
    """
    advisors = tuple(
        Advisor(f"tiling {j + 1}", state=f"tile {j + 1}", states=(length - 1 + j) // width + 1, mapping=mapping,
              mapped_alpha=mapped_alpha)
        for j in range(width)
    )  # fmt: skip
    world = World(
        ChainConstants(length, width), 1, reset, begin, local_states, step, (length,),
        bounds=np.array([[0.0, 1.0]] + [[0.0, 0.0]] * (width - 1)),
    )  # fmt: skip
    return Task("tile-chain", ("left", "right"), advisors, world, limit=4 * length)
