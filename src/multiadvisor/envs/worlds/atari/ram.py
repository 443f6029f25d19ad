"""What the 128 bytes of the Atari 2600 say about Ms. Pac-Man: where everybody is, and what is left to eat.

Positions become cells of 4 by 6 points, half of a pellet's width and height, so that every crossing has a cell of its
own. `read` makes one row of whole numbers of all that, the observation; the names below are its columns.
"""

from __future__ import annotations

import numpy as np

COLUMNS, ROWS = 37, 27
CELLS = COLUMNS * ROWS
DIRECTIONS = 4  # up, right, down, left
MAZES = 4
PELLET_ROWS, PELLET_COLUMNS = 14, 18
PELLETS = PELLET_ROWS * PELLET_COLUMNS
GHOSTS = PILLS = 4
HUNTING, EDIBLE, AWAY = 0, 1, 2  # a ghost that is away is a pair of eyes, or in the house
NOWHERE = -1

# ---- the columns of an observation -----------------------------------------------------------------------------------
MAZE, CELL, DIRECTION, TIMER, FRUIT, FRUIT_POINTS, LIVES = range(7)
GHOST_CELL = slice(7, 11)
GHOST_STATE = slice(11, 15)
GHOST_DIRECTION = slice(15, 19)
PILL = slice(19, 23)  # 1 while it is there
PELLET = slice(23, 23 + PELLETS)  # 1 while its bit is set, row by row; behind walls there are bits as well
SIZE = PELLET.stop

# ---- the bytes -------------------------------------------------------------------------------------------------------
_MAZE, _GHOST_STATES, _GHOST_X, _X, _FRUIT_X = 0, slice(1, 5), slice(6, 10), 10, 11
_GHOST_Y, _Y, _FRUIT_Y, _DIRECTION, _TIMER, _PILLS, _FRUIT = slice(12, 16), 16, 17, 56, 116, 117, 123
MOVING = slice(6, 18)  # all positions: they stand still while the game does
POINTS = (100, 200, 500, 700, 1000, 2000, 5000, 0)  # of a fruit: cherry, strawberry, orange, pretzel, apple, pear, ...


def _pellet_bits() -> tuple[np.ndarray, np.ndarray]:
    """The byte and the bit of each pellet [252]: three bytes a row."""
    byte, bit = np.zeros((2, PELLET_ROWS, PELLET_COLUMNS), np.int64)
    for row in range(PELLET_ROWS):
        start = 59 + 3 * row
        places = {17: (start, 4), 0: (start, 6)}
        for k in range(8):
            places[4 - (k >> 1) if k & 1 else 12 - (k >> 1)] = (start + 1, k)
            places[13 + (k >> 1) if k & 1 else 5 + (k >> 1)] = (start + 2, k)
        for column, place in places.items():
            byte[row, column], bit[row, column] = place
    return byte.ravel(), bit.ravel()


_PELLET_BYTE, _PELLET_BIT = _pellet_bits()
_PILL_BIT = np.arange(2, 6)


def _ghost_states() -> np.ndarray:
    """What each byte says of a ghost [256]: 0x40, 0x60 and 0x70 are eyes, or in the house, or on the way into it."""
    byte = np.arange(256)
    away = np.isin(byte & 0x70, (0x40, 0x60, 0x70))
    return np.where(away, AWAY, np.where(byte & 0x80, EDIBLE, HUNTING))


_STATE_OF = _ghost_states()  # [256]


def _columns() -> np.ndarray:
    """The column of each x [256]: every 4 points, but for 6 on either side of the middle."""
    x = np.arange(256)
    column = np.where(x < 85, (x - 12) // 4, np.where(x < 91, 18, 19 + (x - 92) // 4))
    return np.clip(column, 0, COLUMNS - 1)


COLUMN_OF = _columns()  # [256]
FIRST_OF = np.clip((np.arange(256) + 1) // 6, 0, ROWS - 1) * COLUMNS  # [256] the first cell of the row of each y


def cell_of(x: int, y: int) -> int:
    """The cell of a position of Ms. Pac-Man, of a ghost or of fruit.

    >>> cell_of(14, 2), cell_of(88, 98) == 16 * COLUMNS + 18
    (0, True)
    """
    return int(FIRST_OF[y] + COLUMN_OF[x])


def cell_in(ram: np.ndarray) -> int:
    """Ms. Pac-Man's cell."""
    return int(FIRST_OF[ram[_Y]] + COLUMN_OF[ram[_X]])


def read(ram: np.ndarray, lives: int) -> np.ndarray:
    """The observation [SIZE] int64 of a memory [128] uint8."""
    out = np.empty(SIZE, np.int64)
    fruit = ram[_FRUIT_X] > 0 and ram[_FRUIT_Y] > 0
    out[:7] = (
        min(ram[_MAZE], MAZES - 1), cell_in(ram), ram[_DIRECTION] & 3, ram[_TIMER],
        FIRST_OF[ram[_FRUIT_Y]] + COLUMN_OF[ram[_FRUIT_X]] if fruit else NOWHERE, POINTS[min(ram[_FRUIT] >> 4, 7)],
        lives,
    )  # fmt: skip
    ghosts = ram[_GHOST_STATES]
    out[GHOST_CELL] = FIRST_OF[ram[_GHOST_Y]] + COLUMN_OF[ram[_GHOST_X]]
    out[GHOST_STATE] = _STATE_OF[ghosts]
    out[GHOST_DIRECTION] = ghosts & 3
    out[PILL] = (ram[_PILLS] >> _PILL_BIT) & 1
    out[PELLET] = (ram[_PELLET_BYTE] >> _PELLET_BIT) & 1
    return out


# ---- places on the board ---------------------------------------------------------------------------------------------
def point_of(row: int, column: int) -> tuple[int, int]:
    """The position (x, y) of the pellet in a row and column of pellets."""
    return 18 + 8 * column if column < 9 else 94 + 8 * (column - 9), 2 + 12 * row


PELLET_CELL = np.array([cell_of(*point_of(*divmod(k, PELLET_COLUMNS))) for k in range(PELLETS)], np.int64)  # [252]
PILL_PLACES = {"lower right": (12, 17), "upper right": (1, 17), "lower left": (12, 0), "upper left": (1, 0)}
PILL_CELL = np.array([cell_of(*point_of(*place)) for place in PILL_PLACES.values()], np.int64)  # [4] as their bits


def middle_of(cell: int) -> tuple[int, int]:
    """The position (x, y) of the middle of a cell.

    >>> cell_of(*middle_of(700)) == 700
    True
    """
    row, column = divmod(int(cell), COLUMNS)
    return 14 + 4 * column + (2 if column == 18 else 4 if column > 18 else 0), 2 + 6 * row
