"""A bunny, its food and a wolf on a small meadow: two advisors whose wishes and fears have no common scale.

After the bunny world of Simpkins and Isbell (2019), small enough to be given as arrays.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from multiadvisor.envs.registry import Between, register_task
from multiadvisor.envs.worlds.board import DIRECTIONS, parse_maze
from multiadvisor.envs.worlds.gadgets import finite_task
from multiadvisor.task import Task

SIDE = 4
CELLS, CORNERS = SIDE * SIDE, (0, SIDE - 1, SIDE * (SIDE - 1), SIDE * SIDE - 1)


@register_task("bunny")
def bunny(food: Annotated[float, Between(0)] = 1.0, wolf: Annotated[float, Between(0)] = 1.0) -> Task:
    """A bunny looks for food, which comes up in another corner when it is eaten, and a wolf strolls about.

    food: what the food advisor gets for a meal.
    wolf: what the wolf advisor loses when the wolf catches the bunny, which ends the episode.
    """
    to = parse_maze("\n".join(["." * SIDE] * SIDE), "the meadow", random_start=True).neighbour
    states, actions, strolls, others = CELLS * CELLS * 4, len(DIRECTIONS), len(DIRECTIONS), 3
    at, prowls, corner = np.unravel_index(np.arange(states), (CELLS, CELLS, 4))  # [S]
    # the outcomes are the wolf's step, then the corner in which food comes up next
    shape = (states, actions, strolls, others)
    arrives = np.broadcast_to(to[at][:, :, None, None], shape)
    wolf_at = np.broadcast_to(to[prowls][:, None, :, None], shape)
    eats = arrives == np.array(CORNERS)[corner][:, None, None, None]
    caught = (arrives == wolf_at) | (arrives == prowls[:, None, None, None])
    elsewhere = (corner[:, None, None, None] + 1 + np.arange(others)) % 4
    after = np.where(eats, elsewhere, corner[:, None, None, None])
    reward = np.stack([food * eats, -wolf * caught], axis=-1).astype(float)
    flat = (states, actions, strolls * others)
    start = np.zeros((CELLS, CELLS, 4))
    start[1, CELLS - 2] = 0.25  # food in any corner, the wolf far away
    local = np.stack([4 * at + corner, CELLS * at + prowls])
    labels = tuple(f"bunny in {a}, wolf in {p}, food {c}" for a, p, c in zip(at, prowls, corner, strict=True))
    return finite_task(
        "bunny", tuple(DIRECTIONS), ("food", "wolf"), start.ravel(), np.full(flat, 1.0 / flat[2]),
        np.ravel_multi_index((arrives, wolf_at, after), (CELLS, CELLS, 4)).reshape(flat), reward.reshape(*flat, 2),
        caught.reshape(flat), local=local, labels=labels, limit=100,
    )  # fmt: skip
