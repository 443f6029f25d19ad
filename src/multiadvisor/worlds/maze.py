"""The compiled world of mazes with fruits and ghosts: Pac-Boy, fruit grids and the fruit gadgets.

The state x is [Pac-Boy's cell, each ghost's cell, 1 or 0 for each fruit place], int64; cells are numbered
over the free places in reading order. Advisors are the ghosts first, then the fruit places.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiadvisor.compiling import compiled
from multiadvisor.draws import WORLD, below, draw, low_half
from multiadvisor.worlds.slots import slot_of

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
    if left == 0:  # a game without fruit would be over before it began
        place = below(draw(key, _PLACE + places), candidates)
        place += 1 if here >= 0 and place >= here else 0
        x[1 + ghosts + place] = 1


def going(world: MazeConstants, x: np.ndarray) -> bool:
    """Whether a game can stand in x: some fruit is left, no more than there was, and none under Pac-Boy."""
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
def step(world, x, action, key, advisors, m, reward, ended):
    """One turn: Pac-Boy moves, the ghosts move, touches are paid, fruit is eaten."""
    ghosts = world.ghost_start.shape[0]
    before = x[0]
    cell = world.neighbour[before, action]
    x[0] = cell
    for g in range(ghosts):
        old = x[1 + g]
        word = draw(key, WORLD + g)
        if world.ghosts_always_move:
            new = world.free[old, below(word, world.degree[old])] if world.degree[old] > 0 else old
            touched = new == cell or (new == before and old == cell)
        else:
            new = world.neighbour[old, below(word, 4)]
            touched = old == cell or new == cell
        x[1 + g] = new
        if touched:
            reward[g] = world.touch_reward
    place = world.fruit_at[cell]
    if place >= 0 and x[1 + ghosts + place] == 1:
        x[1 + ghosts + place] = 0
        slot = slot_of(advisors, m, ghosts + place)
        reward[slot] = world.fruit_reward
        ended[slot] = 1
        return m == ghosts + 1  # it was the last one
    return False
