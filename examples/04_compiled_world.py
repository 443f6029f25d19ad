"""Your own compiled world: a warehouse with two parcels and a wandering forklift.

The four functions below are compiled and inlined into the learning loop, so that millions of transitions a second are
learned from. docs/compiled-worlds.md explains the rules they follow.
"""

from typing import NamedTuple

import numpy as np

import multiadvisor as mad
from multiadvisor.core.rng import WORLD, below, draw
from multiadvisor.envs.slots import slot_of

WIDTH, HEIGHT = 6, 4
PARCELS = 2  # advisors 0 and 1; advisor 2 watches the forklift
FORKLIFT = 2


class Warehouse(NamedTuple):
    """What never changes during a run."""

    neighbour: np.ndarray  # [cells, 4] the cell that each action leads to


# The state x is [the cart's cell, the forklift's cell, the cell of parcel 1, of parcel 2 (-1: collected)].


@mad.compiled
def reset(world, x, key):
    cells = world.neighbour.shape[0]
    x[0] = 0
    x[1] = cells - 1
    x[2] = 1 + below(draw(key, WORLD), cells - 1)
    x[3] = 1 + below(draw(key, WORLD + 1), cells - 2)
    if x[3] >= x[2]:  # never both on one cell
        x[3] += 1


@mad.compiled
def begin(world, x, advisors):
    m = 0
    for parcel in range(PARCELS):
        if x[2 + parcel] >= 0:
            advisors[m] = parcel
            m += 1
    advisors[m] = FORKLIFT
    return m + 1


@mad.compiled
def local_states(world, x, advisors, m, local):
    cells = world.neighbour.shape[0]
    for i in range(m):
        other = x[1] if advisors[i] == FORKLIFT else x[2 + advisors[i]]
        local[i] = x[0] * cells + other


@mad.compiled
def step(world, x, action, key, advisors, m, reward, ended):
    before = x[1]
    x[0] = world.neighbour[x[0], action]
    x[1] = world.neighbour[before, below(draw(key, WORLD), 4)]
    if x[0] == before or x[0] == x[1]:
        reward[slot_of(advisors, m, FORKLIFT)] = -1.0
    for parcel in range(PARCELS):
        if x[2 + parcel] == x[0]:
            x[2 + parcel] = -1
            slot = slot_of(advisors, m, parcel)
            reward[slot] = 1.0
            ended[slot] = 1
            return m == 2  # it was the last one: only the forklift's advisor is left
    return False


def warehouse() -> mad.Task:
    cells = WIDTH * HEIGHT
    row, column = np.divmod(np.arange(cells), WIDTH)
    neighbour = np.stack(
        [
            np.maximum(row - 1, 0) * WIDTH + column,
            row * WIDTH + np.maximum(column - 1, 0),
            np.minimum(row + 1, HEIGHT - 1) * WIDTH + column,
            row * WIDTH + np.minimum(column + 1, WIDTH - 1),
        ],
        axis=1,
    )
    advisors = [
        mad.Advisor("parcel 1", state="cart, parcel 1", states=cells * cells, table="parcels"),
        mad.Advisor("parcel 2", state="cart, parcel 2", states=cells * cells, table="parcels"),
        mad.Advisor("forklift", state="cart, forklift", states=cells * cells),
    ]
    world = mad.World(Warehouse(neighbour), 4, reset, begin, local_states, step)
    return mad.Task("warehouse", ("N", "W", "S", "E"), tuple(advisors), world, limit=100)


if __name__ == "__main__":
    task = warehouse()
    print(mad.check_task(task))
    for planning, gamma in (("egocentric", 0.4), ("agnostic", 0.9), ("empathic", 0.9)):
        agent = mad.MultiAdvisor(task, planning=planning, gamma=gamma, seed=0)
        agent.learn(1_000_000, progress=False)
        print(f"{planning:10} {gamma}: {agent.evaluate(episodes=500)}")
