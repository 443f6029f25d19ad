"""The compiled world of the racetrack (Russell and Zimdars 2003): a car with a velocity, two advisors.

The state x is [the car's cell, its velocity], int64. Velocities are cells as well, the first of them: they are drawn
as a dial on the infield, so that a picture shows the whole state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from multiadvisor.core.board_layout import Grid, Sprite, Tile
from multiadvisor.core.compiling import compiled
from multiadvisor.core.rng import WORLD, below, draw, uniform
from multiadvisor.envs.registry import register_task
from multiadvisor.task import Advisor, Outcome, Task, World

INFIELD, WIDTH = (15, 20), 10
FASTEST = 3  # cells a step, each way
SPEEDS = 2 * FASTEST + 1
LAP, CRASH, STEP, SHAPING = 10.0, -1.0, -0.1, 10.0
# coasting, then the eight directions in a circle, so that a swerve by 45 degrees is the next one
ACTIONS = {
    "coast": (0, 0), "N": (-1, 0), "NE": (-1, 1), "E": (0, 1), "SE": (1, 1), "S": (1, 0), "SW": (1, -1), "W": (0, -1),
    "NW": (-1, -1),
}  # fmt: skip
SWERVES = np.array([0, 1, -1, 2, -2])  # by which an acceleration may go astray, in eighths; or it does nothing
CHANCES = np.array([0.9, 0.03, 0.03, 0.01, 0.01, 0.02])
PROGRESS, WALLS = 0, 1


class RacetrackConstants(NamedTuple):
    """What never changes during a run."""

    cell: np.ndarray  # [height, width] the number of the cell, or -1 for a wall
    place: np.ndarray  # [cells, 2] row and column
    arc: np.ndarray  # [cells] how much of the lap is done, 0 to 1
    push: np.ndarray  # [9, 2] what each action adds to the velocity
    swerves: np.ndarray  # [5] eighths by which it may be turned
    chances: np.ndarray  # [6] cumulative
    line: int  # a lap ends where this column is entered from the West, below the infield
    below: int  # the first row below the infield
    fastest: int


@compiled
def reset(world, x, key):
    """Just beyond the line, in any lane, at rest."""
    lanes = world.cell.shape[0] - world.below
    x[0] = world.cell[world.below + below(draw(key, WORLD), lanes), world.line]
    x[1] = world.fastest * (2 * world.fastest + 1) + world.fastest


@compiled
def begin(world, x, advisors):
    """Both, always."""
    advisors[0], advisors[1] = 0, 1
    return 2


@compiled
def local_states(world, x, advisors, m, local):
    """The whole state."""
    for i in range(m):
        local[i] = x[1] + (2 * world.fastest + 1) ** 2 * x[0]


@compiled
def pushed(world, action, k):
    """The row of `push` that an action comes to where outcome k of its chances happens."""
    if action == 0 or k == 5:
        return 0
    return 1 + (action - 1 + world.swerves[k]) % 8


@compiled
def within(value, most):
    """A component of a velocity, held between -most and most."""
    return min(max(value, -most), most)


@compiled
def drive(world, x, push):
    """Move the car, cell by cell on a straight line, up to a wall; 2 where it ends the lap, 1 where it crashes."""
    speeds = 2 * world.fastest + 1
    down = within(x[1] // speeds - world.fastest + world.push[push, 0], world.fastest)
    right = within(x[1] % speeds - world.fastest + world.push[push, 1], world.fastest)
    row, column = world.place[x[0], 0], world.place[x[0], 1]
    parts = max(abs(down), abs(right))
    happened, r, c = 0, row, column
    for k in range(parts):
        r_next = row + (2 * down * (k + 1) + parts) // (2 * parts)
        c_next = column + (2 * right * (k + 1) + parts) // (2 * parts)
        low = r >= world.below and r_next >= world.below
        outside = r_next < 0 or r_next >= world.cell.shape[0] or c_next < 0 or c_next >= world.cell.shape[1]
        if outside or world.cell[r_next, c_next] < 0 or (low and c == world.line and c_next < c):  # no way back
            happened = 1
            break
        if low and c == world.line - 1 and c_next > c:
            happened = 2
        r, c = r_next, c_next
        if happened == 2:
            break
    if happened == 1:  # each component of the velocity goes back by 1
        down = down - 1 if down > 0 else down + 1 if down < 0 else 0
        right = right - 1 if right > 0 else right + 1 if right < 0 else 0
    x[0] = world.cell[r, c]
    x[1] = (down + world.fastest) * speeds + right + world.fastest
    return happened


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    """The acceleration may go astray; then the car moves."""
    chance, k = uniform(draw(key, WORLD)), 0
    while chance >= world.chances[k]:
        k += 1
    before = world.arc[x[0]]
    happened = drive(world, x, pushed(world, action, k))
    if happened == 2:
        reward[0] = STEP + LAP + SHAPING * (1.0 - before)
        return True
    reward[0] = STEP + SHAPING * (world.arc[x[0]] - before)
    reward[1] = CRASH if happened == 1 else 0.0
    return False


# ---- what the track answers besides ----------------------------------------------------------------------------------
def outcomes(world: RacetrackConstants, x: tuple[int, ...], action: int) -> Iterator[Outcome]:
    """What the acceleration may come to."""
    for k, probability in enumerate(np.diff(world.chances, prepend=0.0)):
        after = np.array(x)
        happened = drive(world, after, pushed(world, action, k))
        arc = 1.0 if happened == 2 else world.arc[after[0]]
        reward = {PROGRESS: STEP + LAP * (happened == 2) + SHAPING * (arc - world.arc[x[0]])}
        if happened == 1:
            reward[WALLS] = CRASH
        yield Outcome(float(probability), tuple(after.tolist()), reward, happened == 2)


def on_the_track(world: RacetrackConstants, x: np.ndarray) -> bool:
    """Not on the dial."""
    return bool(x[0] >= (2 * world.fastest + 1) ** 2)


def _constants(height: int, width: int, lane: int, line: int) -> RacetrackConstants:
    rows, columns = np.indices((height, width))
    inside = (rows >= lane) & (rows < height - lane) & (columns >= lane) & (columns < width - lane)
    corner = (height - SPEEDS) // 2, (width - SPEEDS) // 2
    dial = np.stack([index.ravel() for index in np.indices((SPEEDS, SPEEDS))], axis=1) + corner
    place = np.concatenate([dial, np.argwhere(~inside)])
    cell = np.full((height, width), -1, np.int64)
    cell[tuple(place[len(dial) :].T)] = np.arange(len(dial), len(place))
    angle = np.arctan2(place[:, 1] - (line - 0.5), place[:, 0] - (height - 1) / 2) % (2 * math.pi)
    arc = np.where(np.arange(len(place)) < len(dial), 0.0, angle / (2 * math.pi))
    chances = np.cumsum(CHANCES)
    chances[-1] = 1.0
    push = np.array(list(ACTIONS.values()))
    return RacetrackConstants(cell, place, arc, push, SWERVES, chances, line, height - lane, FASTEST)


def _grid(world: RacetrackConstants) -> Grid:
    height, width = world.cell.shape
    dial = {(int(row), int(column)) for row, column in world.place[: SPEEDS**2]}
    tiles = [Tile("wall", int(r), int(c)) for r, c in np.argwhere(world.cell < 0) if (int(r), int(c)) not in dial]
    to = world.place[:, None] + world.push  # [cells, 9, 2]
    there = np.clip(to, 0, (height - 1, width - 1))
    free = world.cell[there[..., 0], there[..., 1]]
    off = (to != there).any(axis=-1) | (free < 0) | (np.arange(len(world.place)) < SPEEDS**2)[:, None]
    return Grid(
        shape=(height, width), cells=world.place, neighbour=np.where(off, np.arange(len(free))[:, None], free),
        vectors=tuple(ACTIONS.values()), sprites=(Sprite("player", 0), Sprite("ghost", 1)),
        terms=(((0, SPEEDS**2), (1, 1)),) * 2, tiles=tuple(tiles),
    )  # fmt: skip


@register_task("racetrack")
def racetrack(limit: int = 1000) -> Task:
    """A lap on a track 10 wide around an infield of 15 x 20: an advisor for progress, one for the walls.

    limit: episodes are cut off after this many steps.
    """
    height, width = (side + 2 * WIDTH for side in INFIELD)
    constants = _constants(height, width, WIDTH, width // 2)
    sizes = (len(constants.place), SPEEDS**2)
    advisors = tuple(Advisor(name, state="car", states=sizes[0] * sizes[1]) for name in ("progress", "walls"))
    most = STEP + LAP + SHAPING
    world = World(
        constants, 2, reset, begin, local_states, step, sizes, on_the_track, outcomes=outcomes,
        bounds=np.array([[STEP - SHAPING, most], [CRASH, 0.0]]),
    )  # fmt: skip
    return Task("racetrack", tuple(ACTIONS), advisors, world, limit=limit, board=_grid(constants))
