"""States as text and as pictures: pure functions, a state in, a string or an array [height, width, 3] out.

Shapes are drawn on a finer grid and averaged, so their edges are smooth; each is drawn once and then kept.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from multiadvisor.core.board_layout import Grid
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.errors import BadInput, unknown
from multiadvisor.task import Task

CELL = 24  # pixels
LARGEST = 4096  # pixels a side: beyond it cells shrink
_FINE = 6  # points to a pixel, each way
_ROUNDING = 0.22  # of walls, in cells

FLOOR = (17, 19, 31)
WALL = (96, 103, 122)
EDGE = (133, 141, 163)
FRUIT = (250, 250, 245)
GHOST = (229, 57, 53)
EYE = (255, 255, 255)
PUPIL = (25, 32, 90)
PAC_BOY = (255, 214, 10)
WATER = (38, 84, 150)
GOAL = (64, 150, 90)
_TILES = {"wall": "██", "water": "≈≈"}  # two characters each; a goal shows its label

Colour = tuple[int, int, int]


def text(task: Task, x: np.ndarray | Sequence[int]) -> str:
    """A state as text: walls █, fruit ·, ghosts G and Pac-Boy P, two characters to a cell so that cells look square.

    >>> import multiadvisor as mad
    >>> print(text(mad.make("three-fruits"), [12, 1, 1, 1]))
    ██████████████
    ██    ·     ██
    ██          ██
    ██·   P   · ██
    ██████████████
    """
    state, grid = np.asarray(x), task.board
    if grid is None:
        states = _states(task)
        return (
            f"{task.name}: state {state.tolist()}" if states is None else f"{task.name}: state {state[0]} of {states}"
        )
    signs = np.full(grid.shape, "", object)
    for tile in grid.tiles:
        signs[tile.row, tile.column] = _TILES.get(tile.kind) or tile.label[:2]
    player, *others = grid.movers(state)
    for sign, cells in (("P", [player]), ("G", others), ("·", grid.item_cells[grid.lying(state)])):
        for cell in cells:
            signs[tuple(grid.cells[cell])] += sign
    rim = "██" * (grid.shape[1] + 2)
    return "\n".join([rim, *("██" + "".join(sign[:2].ljust(2) for sign in row) + "██" for row in signs), rim])


def picture(
    task: Task, x: np.ndarray | Sequence[int], *, cell: int | None = None, facing: str = "E"
) -> np.ndarray:  # fmt: skip
    """A state as a picture [height, width, 3] uint8.

    cell: pixels to a cell; None: 24, or fewer where the picture would be beyond 4096 a side.
    facing: N, W, S or E, the way Pac-Boy looks.

    >>> import multiadvisor as mad
    >>> picture(mad.make("three-fruits"), [12, 1, 1, 1]).shape
    (72, 120, 3)
    """
    if facing not in DIRECTIONS:
        raise unknown("direction", facing, DIRECTIONS)
    if cell is not None and cell < 1:
        raise BadInput(f"a cell of {cell} pixels cannot be drawn: choose at least 1")
    state = np.asarray(x)
    if task.board is not None:
        return _grid_picture(task.board, state, cell or _fitting(task.board.shape), facing)
    states = _states(task)
    if states is None:
        raise BadInput(f"task {task.name!r} has no board and no numbered states: nothing is known of how it looks")
    return _states_picture(int(state[0]), states, cell)


def _states(task: Task) -> int | None:
    """The number of states where the world lists them."""
    world = task.world
    return world.sizes[0] if world is not None and world.size == 1 and world.sizes is not None else None


def _fitting(shape: tuple[int, int]) -> int:
    return max(1, min(CELL, LARGEST // max(shape)))


# ---- grids -----------------------------------------------------------------------------------------------------------
def _grid_picture(grid: Grid, x: np.ndarray, cell: int, facing: str) -> np.ndarray:
    image = _tiles_picture(grid, cell).copy()
    tiles = image.reshape(grid.shape[0], cell, grid.shape[1], cell, 3).swapaxes(1, 2)  # a view: [row, column]
    player, *others = grid.movers(x).tolist()
    dot = _fruit(cell)
    for c in grid.item_cells[grid.lying(x)]:
        _lay(tiles[tuple(grid.cells[c])], dot)
    _lay(tiles[tuple(grid.cells[player])], _pac_boy(cell, facing))
    for c in others:
        # seen through where both stand on one cell, or a touch would hide the player
        _lay(tiles[tuple(grid.cells[c])], _ghost(cell), 0.6 if c == player else 1.0)
    return image


def _lay(tile: np.ndarray, sprite: np.ndarray, opacity: float = 1.0) -> None:
    """Lay a sprite [cell, cell, 4] (colour times cover, cover) over a tile [cell, cell, 3]."""
    tile[:] = np.rint(tile * (1.0 - opacity * sprite[..., 3:]) + opacity * sprite[..., :3])


@functools.lru_cache(maxsize=8)
def _tiles_picture(grid: Grid, cell: int) -> np.ndarray:
    """Floor, walls, water and goals, the same in every state."""
    height, width = grid.shape
    image = np.empty((height, cell, width, cell, 3), np.uint8)
    image[:] = FLOOR
    for tile in grid.tiles:
        if tile.kind != "wall":
            image[tile.row, :, tile.column] = WATER if tile.kind == "water" else GOAL
    padded = np.pad(grid.walls, 1)
    for row, column in np.argwhere(grid.walls):
        around = padded[row : row + 3, column : column + 3]
        _lay(image[row, :, column], _wall(tuple(around.ravel().tolist()), cell))
    return image.reshape(height * cell, width * cell, 3)


# ---- shapes, in a cell from (0, 0) to (1, 1), y downwards ------------------------------------------------------------
def _points(cell: int) -> tuple[np.ndarray, np.ndarray]:
    at = (np.arange(cell * _FINE) + 0.5) / (cell * _FINE)
    return at[None, :], at[:, None]


def _disc(x: np.ndarray, y: np.ndarray, at: tuple[float, float], radius: float) -> np.ndarray:
    return (x - at[0]) ** 2 + (y - at[1]) ** 2 <= radius**2


def _sprite(layers: Sequence[tuple[np.ndarray, Colour]]) -> np.ndarray:
    """Layers of (fine mask, colour), the later over the earlier, averaged to pixels: [cell, cell, 4]."""
    size = len(layers[0][0])
    fine = np.zeros((size, size, 4))
    for mask, colour in layers:
        fine[mask] = (*colour, 1.0)
    return np.asarray(fine.reshape(size // _FINE, _FINE, size // _FINE, _FINE, 4).mean(axis=(1, 3)))


@functools.lru_cache(maxsize=1024)
def _wall(around: tuple[bool, ...], cell: int) -> np.ndarray:
    """A wall that grows together with the walls among its eight neighbours; its free edges are lighter."""
    x, y = _points(cell)
    return _sprite([(_block(x, y, around, 0.05), EDGE), (_block(x, y, around, 0.12), WALL)])


def _block(x: np.ndarray, y: np.ndarray, around: tuple[bool, ...], margin: float) -> np.ndarray:
    """The part of the cell that is `margin` away from free neighbours, with rounded corners."""
    wall = np.array(around).reshape(3, 3)
    mask = np.ones((y.size, x.size), bool)
    for down in (0, 2):
        for right in (0, 2):
            u, v = (x if right == 0 else 1.0 - x), (y if down == 0 else 1.0 - y)  # from this corner's two sides
            beside, above, across = wall[1, right], wall[down, 1], wall[down, right]
            if not beside:
                mask &= (u >= margin) | (v > 0.5)
            if not above:
                mask &= (v >= margin) | (u > 0.5)
            if not (beside or above):
                corner = (u < _ROUNDING) & (v < _ROUNDING)
                mask &= ~corner | ((u - _ROUNDING) ** 2 + (v - _ROUNDING) ** 2 <= (_ROUNDING - margin) ** 2)
            if beside and above and not across:
                mask &= u**2 + v**2 >= margin**2
    return mask


@functools.lru_cache(maxsize=16)
def _fruit(cell: int) -> np.ndarray:
    x, y = _points(cell)
    return _sprite([(_disc(x, y, (0.5, 0.5), 0.14), FRUIT)])


@functools.lru_cache(maxsize=64)
def _pac_boy(cell: int, facing: str) -> np.ndarray:
    """A disc with its mouth open towards `facing`."""
    x, y = _points(cell)
    down, right = DIRECTIONS[facing]
    ahead, aside = (x - 0.5) * right + (y - 0.5) * down, (x - 0.5) * down + (y - 0.5) * right
    mouth = np.abs(aside) < np.tan(np.radians(36)) * (ahead + 0.06)
    return _sprite([(_disc(x, y, (0.5, 0.5), 0.41) & ~mouth, PAC_BOY)])


@functools.lru_cache(maxsize=16)
def _ghost(cell: int) -> np.ndarray:
    """A round head, a straight body with a wavy hem, and two eyes."""
    x, y = _points(cell)
    half, top = 0.35, 0.45
    hem = 0.83 + 0.06 * np.cos((x - 0.5) / half * 3 * np.pi)
    body = (np.abs(x - 0.5) <= half) & (y > top) & (y < hem)
    head = _disc(x, y, (0.5, top), half) & (y <= top)
    layers: list[tuple[np.ndarray, Colour]] = [(body | head, GHOST)]
    for side in (-0.14, 0.14):
        layers += [
            (_disc(x, y, (0.5 + side, 0.44), 0.105), EYE),
            (_disc(x, y, (0.53 + side, 0.46), 0.055), PUPIL),
        ]
    return _sprite(layers)


# ---- numbered states -------------------------------------------------------------------------------------------------
def _states_picture(state: int, states: int, cell: int | None) -> np.ndarray:
    """A circle for each state in rows, the current one filled."""
    columns = min(states, max(16, math.isqrt(states - 1) + 1))
    rows = math.ceil(states / columns)
    cell = cell or _fitting((rows, columns))
    image = np.empty((rows, cell, columns, cell, 3), np.uint8)
    image[:] = FLOOR
    for s in range(states):
        _lay(image[s // columns, :, s % columns], _state(cell, s == state))
    return image.reshape(rows * cell, columns * cell, 3)


@functools.lru_cache(maxsize=32)
def _state(cell: int, current: bool) -> np.ndarray:
    x, y = _points(cell)
    inside = _disc(x, y, (0.5, 0.5), 0.33)
    return _sprite([(_disc(x, y, (0.5, 0.5), 0.41), EDGE), (inside, PAC_BOY if current else FLOOR)])
