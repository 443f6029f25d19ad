"""Mazes as text: reading them, refusing bad ones, and what a picture needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from multiadvisor.errors import BadInput

DIRECTIONS = {"N": (-1, 0), "W": (0, -1), "S": (1, 0), "E": (0, 1)}
SYMBOLS = {
    "#": "wall",
    ".": "free, may hold fruit, unless there is an F",
    "F": "free, always holds fruit at the start",
    "_": "free, never holds fruit",
    "P": "Pac-Boy's start, never holds fruit",
    "G": "a ghost's start, may hold fruit, unless there is an F",
}
LARGEST = 4096  # cells a side: beyond it the text is surely not a maze
MOST_CELLS = 20_000  # free ones: an advisor for each, and a table that grows with their square


@dataclass(frozen=True, eq=False)
class Board:
    """A maze: which places are free, who starts where, and which places may hold fruit."""

    text: str
    walls: np.ndarray  # [height, width] bool
    place: np.ndarray  # [cells, 2] row and column of each free cell
    neighbour: np.ndarray  # [cells, 4] where each action leads
    start: int  # Pac-Boy's cell, or -1 for any
    ghosts: np.ndarray  # [ghosts] cells
    fruit: np.ndarray  # [fruits] cells that may hold fruit
    fixed: bool  # fruit is always on all of them

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.walls.shape[0], self.walls.shape[1]

    def name(self, cell: int) -> str:
        """A cell as people write it: (row, column)."""
        row, column = self.place[cell]
        return f"({row}, {column})"


def read_maze(source: str | Path) -> str:
    """The text of a maze file; what has several lines is the text itself."""
    if isinstance(source, str) and "\n" in source:
        return source
    path = Path(source)
    try:
        if not path.is_file() and path.exists():
            raise BadInput(f"the maze {str(source)!r} is not a file: name a text file")  # a pipe would wait for ever
        if path.stat().st_size > LARGEST * (LARGEST + 2):
            raise BadInput(f"the maze {str(source)!r} is too large: at most {LARGEST} x {LARGEST} is read")
        return path.read_text(encoding="utf-8")
    except BadInput:
        raise
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise BadInput(f"cannot read the maze {str(source)!r}: {reason}") from None


def parse_maze(text: str, what: str = "the maze", random_start: bool = False) -> Board:
    """A board from text, or an error that names the line at fault.

    >>> parse_maze("..#\\n.P.").place.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    """
    lines = text.strip("\r\n").splitlines()
    if not lines or not lines[0]:
        raise BadInput(f"{what} is empty: draw it with {' '.join(SYMBOLS)}")
    width = len(lines[0])
    if len(lines) > LARGEST or width > LARGEST:
        raise BadInput(f"{what} is {len(lines)} x {width}: at most {LARGEST} x {LARGEST} is read")
    for number, line in enumerate(lines, 1):
        if len(line) != width:
            raise BadInput(f"{what} is not rectangular: line {number} has {len(line)} characters, line 1 has {width}")
        for symbol in line:
            if symbol not in SYMBOLS:
                raise BadInput(f"{what} has {symbol!r} in line {number}: draw it with {' '.join(SYMBOLS)}")
    if (cells := sum(width - line.count("#") for line in lines)) > MOST_CELLS:
        raise BadInput(f"{what} has {cells} free cells: at most {MOST_CELLS} can be learned in, make it smaller")
    symbols = np.array([list(line) for line in lines])  # [height, width]
    walls = symbols == "#"
    place = np.argwhere(~walls)
    cell = np.full(walls.shape, -1, np.int64)
    cell[~walls] = np.arange(len(place))
    starts = cell[symbols == "P"]
    if len(starts) > 1:
        raise BadInput(f"{what} has {len(starts)} starts P: keep one")
    if len(starts) == 0 and not random_start:
        raise BadInput(f"{what} has no start: put one P on a free cell")
    fixed = bool((symbols == "F").any())
    fruit = cell[symbols == "F"] if fixed else cell[(symbols == ".") | (symbols == "G")]
    if len(fruit) == 0:
        raise BadInput(f"{what} has no place for fruit: mark one with . or F")
    board = Board(
        text="\n".join(lines), walls=walls, place=place, neighbour=_neighbours(place, cell),
        start=int(starts[0]) if len(starts) else -1, ghosts=cell[symbols == "G"], fruit=fruit, fixed=fixed,
    )  # fmt: skip
    _check_reachable(board, what)
    return board


def _neighbours(place: np.ndarray, cell: np.ndarray) -> np.ndarray:
    row, column = (place[:, None] + 1 + np.array([*DIRECTIONS.values()])).transpose(2, 0, 1)  # [cells, 4] with a rim
    to = np.pad(cell, 1, constant_values=-1)[row, column]
    return np.ascontiguousarray(np.where(to >= 0, to, np.arange(len(place))[:, None]))  # as compiled loops walk it


def _check_reachable(board: Board, what: str) -> None:
    first = board.start if board.start >= 0 else int(board.fruit[0])
    seen, newest = np.zeros(len(board.place), bool), np.array([first])
    while len(newest):
        seen[newest] = True
        newest = np.unique(board.neighbour[newest][~seen[board.neighbour[newest]]])
    cut_off = [int(cell) for cell in board.fruit if not seen[cell]]
    if board.start < 0:
        cut_off += [int(cell) for cell in np.flatnonzero(~seen)]
    if cut_off:
        raise BadInput(f"{what} has fruit out of reach at {board.name(cut_off[0])}: open a way to it, or wall it in")
