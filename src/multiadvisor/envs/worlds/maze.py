"""The compiled world of mazes with fruits and ghosts: Pac-Boy, fruit grids and the fruit gadgets.

The state x is [Pac-Boy's cell, each ghost's cell, 1 or 0 for each fruit place], int64; cells are numbered
over the free places in reading order. Advisors are the ghosts first, then the fruit places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from multiadvisor.core.board_layout import Grid, Item, Sprite, Tile
from multiadvisor.core.compiling import compiled
from multiadvisor.core.rng import WORLD, below, draw, low_half
from multiadvisor.envs.slots import slot_of
from multiadvisor.envs.worlds.board import DIRECTIONS, Board
from multiadvisor.task import Outcome, Task, World

_PLACE = 1 << 20  # the purpose of the draws that place fruits, beyond any number of ghosts


class MazeConstants(NamedTuple):
    """What never changes during a run."""

    neighbour: np.ndarray  # [cells, 4] the cell that each action leads to
    free: np.ndarray  # [cells, 4] the neighbours that are not walls, first `degree` of them
    degree: np.ndarray  # [cells]
    start: int  # Pac-Boy's cell, or -1 for any
    ghost_start: np.ndarray  # [ghosts]
    fruit_cell: np.ndarray  # [fruits] the cell of each place that may hold fruit
    fruit_at: np.ndarray  # [cells] the place on that cell, or -1
    fruits: int  # this many of them, or -1: each place with `probability`
    probability: float
    ghosts_always_move: bool  # the rules "hra"
    fruit_reward: float
    touch_reward: float


@compiled
def reset(world, x, key):
    """Pac-Boy and the ghosts at their starts, fruit placed anew, never under Pac-Boy."""
    cells, ghosts, places = world.neighbour.shape[0], world.ghost_start.shape[0], world.fruit_cell.shape[0]
    x[0] = world.start if world.start >= 0 else below(draw(key, WORLD), cells)
    for g in range(ghosts):
        x[1 + g] = world.ghost_start[g]
    here = world.fruit_at[x[0]]
    candidates = places - (1 if here >= 0 else 0)
    wanted, seen, left = min(world.fruits, candidates), 0, 0
    for place in range(places):
        x[1 + ghosts + place] = 0
        if place == here:
            continue
        chance = low_half(draw(key, _PLACE + place))
        # selection sampling: the ones still wanted out of those still to come
        share = (wanted - left) / (candidates - seen) if world.fruits >= 0 else world.probability
        seen += 1
        if chance < share:
            x[1 + ghosts + place] = 1
            left += 1
    if left == 0:  # an episode without fruit would be over before it began
        place = below(draw(key, _PLACE + places), candidates)
        place += 1 if here >= 0 and place >= here else 0
        x[1 + ghosts + place] = 1


def going(world: MazeConstants, x: np.ndarray) -> bool:
    """Whether an episode can stand in x: some fruit is left, no more than there was, and none under Pac-Boy."""
    fruit = x[1 + len(world.ghost_start) :]
    here = world.fruit_at[x[0]]
    most = world.fruits if world.fruits > 0 else len(fruit)
    return bool(1 <= fruit.sum() <= most and (here < 0 or fruit[here] == 0))


@compiled
def begin(world, x, advisors):
    """All ghosts, and the places where fruit is left."""
    ghosts, places = world.ghost_start.shape[0], world.fruit_cell.shape[0]
    m = 0
    for g in range(ghosts):
        advisors[m] = g
        m += 1
    for place in range(places):
        if x[1 + ghosts + place] == 1:
            advisors[m] = ghosts + place
            m += 1
    return m


@compiled
def local_states(world, x, advisors, m, local):
    """phi_j: Pac-Boy's cell for a fruit; Pac-Boy's and the ghost's cell for a ghost."""
    cells, ghosts = world.neighbour.shape[0], world.ghost_start.shape[0]
    cell = x[0]
    for i in range(m):  # from 0: a loop from elsewhere is compiled to slow scattered stores
        local[i] = cell
    for i in range(ghosts if m > 0 else 0):
        local[i] = cell * cells + x[1 + i]


@compiled
def local_state(world, x, j):
    """phi_j of one advisor."""
    return x[0] * world.neighbour.shape[0] + x[1 + j] if j < world.ghost_start.shape[0] else x[0]


@compiled
def ways(world, cell):
    """How many moves a ghost may make from a cell, each as likely as the others."""
    return max(world.degree[cell], 1) if world.ghosts_always_move else 4


@compiled
def moved(world, cell, k):
    """Where move k takes a ghost."""
    if world.ghosts_always_move:
        return world.free[cell, k] if world.degree[cell] > 0 else cell
    return world.neighbour[cell, k]


@compiled
def touched(world, before, cell, old, new):
    """Whether Pac-Boy, going from `before` to `cell`, and a ghost, from `old` to `new`, touch; arrays as well."""
    if world.ghosts_always_move:
        return (new == cell) | ((new == before) & (old == cell))
    return (old == cell) | (new == cell)


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    """One step: Pac-Boy moves, the ghosts move, touches are paid, fruit is eaten."""
    ghosts = world.ghost_start.shape[0]
    before = x[0]
    cell = world.neighbour[before, action]
    x[0] = cell
    for g in range(ghosts):
        old = x[1 + g]
        new = moved(world, old, below(draw(key, WORLD + g), ways(world, old)))
        x[1 + g] = new
        if touched(world, before, cell, old, new):
            reward[g] = world.touch_reward
    place = world.fruit_at[cell]
    if place >= 0 and x[1 + ghosts + place] == 1:
        x[1 + ghosts + place] = 0
        slot = slot_of(advisors, m, ghosts + place)
        reward[slot] = world.fruit_reward
        ended[slot] = 1
        return m == ghosts + 1  # it was the last one
    return False


# ---- what the maze answers besides -----------------------------------------------------------------------------------
def ghost_moves(world: MazeConstants) -> tuple[np.ndarray, np.ndarray]:
    """Where a ghost may go from each cell, and with which probability, both [cells, 4]."""
    cells = np.arange(len(world.neighbour))
    count = np.array([ways.py_func(world, cell) for cell in cells])
    to = [[moved.py_func(world, cell, k) if k < count[cell] else cell for k in range(4)] for cell in cells]
    return np.array(to), (np.arange(4) < count[:, None]) / count[:, None]


def outcomes(world: MazeConstants, x: tuple[int, ...], action: int) -> Iterator[Outcome]:
    """Every combination of the ghosts' moves."""
    ghosts, cell = len(world.ghost_start), int(world.neighbour[x[0], action])
    place, fruits = int(world.fruit_at[cell]), list(x[1 + ghosts :])
    eaten = place >= 0 and fruits[place] == 1
    if eaten:
        fruits[place] = 0
    old = x[1 : 1 + ghosts]
    counts = [int(ways.py_func(world, at)) for at in old]
    for choice in itertools.product(*map(range, counts)):
        new = tuple(int(moved.py_func(world, at, k)) for at, k in zip(old, choice, strict=True))
        touches = [touched.py_func(world, x[0], cell, *pair) for pair in zip(old, new, strict=True)]
        reward = {g: world.touch_reward for g, touch in enumerate(touches) if touch}
        if eaten:
            reward[ghosts + place] = world.fruit_reward
        yield Outcome(1 / math.prod(counts), (cell, *new, *fruits), reward, eaten and not any(fruits))


def world_of(constants: MazeConstants) -> World:
    """The maze with these constants."""
    cells, ghosts, places = len(constants.neighbour), len(constants.ghost_start), len(constants.fruit_cell)
    pays = np.repeat([constants.touch_reward, constants.fruit_reward], [ghosts, places])
    sizes = (cells,) * (1 + ghosts) + (2,) * places
    return World(
        constants, len(sizes), reset, begin, local_states, step, sizes, going, outcomes=outcomes,
        bounds=np.stack([np.minimum(pays, 0.0), np.maximum(pays, 0.0)], axis=1), local_state=local_state,
    )  # fmt: skip


def grid_of(world: MazeConstants, board: Board) -> Grid:
    """How it is drawn."""
    ghosts = len(world.ghost_start)
    pair = tuple(((0, len(board.place)), (1 + g, 1)) for g in range(ghosts))
    return Grid(
        shape=board.shape, cells=board.place, neighbour=world.neighbour, vectors=tuple(DIRECTIONS.values()),
        sprites=(Sprite("player", 0), *(Sprite("ghost", 1 + g) for g in range(ghosts))),
        terms=(*pair, *(((0, 1),) for _ in world.fruit_cell)),
        items=tuple(
            Item("fruit", 1 + ghosts + k, int(cell), ghosts + k) for k, cell in enumerate(world.fruit_cell)
        ),
        tiles=tuple(Tile("wall", int(row), int(column)) for row, column in np.argwhere(board.walls)),
    )  # fmt: skip


def maze_of(task: Task) -> MazeConstants | None:
    """The maze of a task; None where it is another world."""
    constants = None if task.world is None else task.world.constants
    return constants if isinstance(constants, MazeConstants) else None
