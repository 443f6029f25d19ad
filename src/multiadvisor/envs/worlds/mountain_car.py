"""The compiled world of MountainCar-v0, with an advisor for each of several shapings of its one reward.

The state x is [the cell of the position, that of the speed, position, velocity], int64; the last two are counted from
their lowest values in steps of 2^-40, and their cells are what advisors see. Cells of positions are drawn as the hill,
those of speeds as a row below it.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from multiadvisor.core.board_layout import Grid, Sprite, Tile
from multiadvisor.core.compiling import compiled
from multiadvisor.core.rng import WORLD, draw, uniform
from multiadvisor.envs.registry import Between, register_task
from multiadvisor.task import Advisor, Task, World

FINE = float(1 << 40)
LEFT, RIGHT, GOAL, FASTEST = -1.2, 0.6, 0.5, 0.07
FORCE, GRAVITY = 0.001, 0.0025
PLACES, SPEEDS = 36, 28  # cells: .05 and .005 wide
SHAPINGS = ("none", "position", "height", "speed")


class MountainCarConstants(NamedTuple):
    """What never changes during a run."""

    discount: float
    potential: np.ndarray  # [advisors, cells] of the cells of positions and of speeds


@compiled
def cell_of(value, low, high, cells):
    """Which of the cells between low and high."""
    return min(max(np.int64((value - low) / (high - low) * cells), 0), cells - 1)


@compiled
def put(x, position, velocity):
    """Write a state."""
    x[0] = cell_of(position, LEFT, RIGHT, PLACES)
    x[1] = PLACES + cell_of(velocity, -FASTEST, FASTEST, SPEEDS)
    x[2] = np.int64(math.floor((position - LEFT) * FINE + 0.5))
    x[3] = np.int64(math.floor((velocity + FASTEST) * FINE + 0.5))


@compiled
def reset(world, x, key):
    """At rest, in the valley."""
    put(x, -0.6 + 0.2 * uniform(draw(key, WORLD)), 0.0)


@compiled
def begin(world, x, advisors):
    """All of them, always."""
    for j in range(4):
        advisors[j] = j
    return 4


@compiled
def local_states(world, x, advisors, m, local):
    """The cells of position and speed."""
    for i in range(m):
        local[i] = x[0] + (PLACES + SPEEDS) * x[1]


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    """Push left, not at all, or right; each step costs 1, and every advisor is paid its shaping besides."""
    before, fast = x[2] / FINE + LEFT, x[3] / FINE - FASTEST
    velocity = fast + (action - 1) * FORCE - GRAVITY * math.cos(3.0 * before)
    velocity = min(max(velocity, -FASTEST), FASTEST)
    position = min(max(before + velocity, LEFT), RIGHT)
    if position == LEFT and velocity < 0.0:
        velocity = 0.0
    over = position >= GOAL and velocity >= 0.0
    place, speed = x[0], x[1]
    put(x, position, velocity)
    for i in range(m):
        j = advisors[i]
        ahead = 0.0 if over else world.discount * (world.potential[j, x[0]] + world.potential[j, x[1]])
        reward[i] = -1.0 + ahead - (world.potential[j, place] + world.potential[j, speed])
    return over


def potentials(scale: float) -> np.ndarray:
    """Of the cells of positions and of speeds [advisors, cells]; those of a state are added, to -scale at the least.

    They are functions of what an advisor sees, and 0 at the end: so they change no policy, as the theory has it.
    """
    places = LEFT + (np.arange(PLACES) + 0.5) * (RIGHT - LEFT) / PLACES
    speeds = np.abs(np.arange(SPEEDS) + 0.5 - SPEEDS / 2) / (SPEEDS / 2)
    shares = np.zeros((len(SHAPINGS), PLACES + SPEEDS))  # how far below the best
    shares[1, :PLACES] = (RIGHT - places) / (RIGHT - LEFT)
    shares[2, :PLACES] = (1.0 - np.sin(3.0 * places)) / 2
    shares[3, PLACES:] = 1.0 - speeds
    return -scale * shares


def in_its_cells(world: MountainCarConstants, x: np.ndarray) -> bool:
    """Whether the cells fit the numbers, to the rounding of these."""
    again = np.zeros(4, np.int64)
    put(again, x[2] / FINE + LEFT, x[3] / FINE - FASTEST)
    return bool((np.abs(again - x) <= 1).all())


def _grid() -> Grid:
    centres = LEFT + (np.arange(PLACES) + 0.5) * (RIGHT - LEFT) / PLACES
    rows = np.rint((1.0 - np.sin(3.0 * centres)) * 6.0).astype(int)
    hill = np.stack([rows, np.arange(PLACES)], axis=1)
    gauge = np.stack([np.full(SPEEDS, 15), np.arange(SPEEDS) + (PLACES - SPEEDS) // 2], axis=1)
    cells = np.concatenate([hill, gauge])
    ground = [Tile("wall", row, column) for row0, column in hill.tolist() for row in range(row0 + 1, 14)]
    place = np.arange(len(cells))[:, None]
    neighbour = np.where(place < PLACES, np.clip(place + np.array([-1, 0, 1]), 0, PLACES - 1), place)
    return Grid(
        (16, PLACES), cells, neighbour, ((0, -1), (0, 0), (0, 1)), (Sprite("player", 0), Sprite("ghost", 1)),
        (((0, 1), (1, PLACES + SPEEDS)),) * len(SHAPINGS), tiles=tuple(ground),
    )  # fmt: skip


@register_task("mountain-car")
def mountain_car(
    scale: Annotated[float, Between(0)] = 50.0, discount: Annotated[float, Between(0, 1)] = 0.99, limit: int = 200
) -> Task:
    """MountainCar-v0 in cells of position and speed: an advisor without shaping, three shaped by a potential.

    scale: the largest difference of potential, in steps.
    discount: that of the shaping; learn with the same gamma, so that it does not change the best policy.
    limit: episodes are cut off after this many steps.
    """
    cells = PLACES + SPEEDS
    advisors = tuple(Advisor(name, state="position, speed", states=cells * cells) for name in SHAPINGS)
    sizes = (PLACES, cells, int((RIGHT - LEFT) * FINE) + 2, int(2 * FASTEST * FINE) + 2)
    world = World(
        MountainCarConstants(discount, potentials(scale)), 4, reset, begin, local_states, step, sizes, in_its_cells,
        bounds=np.array([[-1.0 - scale, -1.0 + scale]] * len(SHAPINGS)),
    )  # fmt: skip
    return Task("mountain-car", ("left", "coast", "right"), advisors, world, limit=limit, board=_grid())
