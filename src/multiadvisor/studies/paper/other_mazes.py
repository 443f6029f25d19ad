"""Random mazes with as many free cells as the paper's, made by seeded code: the same text on every machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

SIDE, CELLS = 11, 76


@cache
def grown(shape: str, seed: int) -> str:
    """A random maze of 11 x 11 with the paper's 76 free cells and two ghosts: one of `SHAPES`.

    >>> print(grown("open", 0))
    ###########
    ###########
    #.G....#...
    #........P.
    #...#......
    #..#.......
    #..........
    #..........
    #..........
    #G.......#.
    ###########
    """
    generator = np.random.default_rng((seed, list(SHAPES).index(shape)))
    symbols = SHAPES[shape](generator)
    free = np.argwhere(symbols == ".")
    row, column = free[int(generator.integers(len(free)))].tolist()
    return text_of(with_ghosts(symbols, (row, column), 2))


def _ways(symbols: np.ndarray, cell: tuple[int, int]) -> list[tuple[int, int]]:
    """The free neighbours of a cell."""
    row, column = cell
    ahead = [(row - 1, column), (row, column - 1), (row + 1, column), (row, column + 1)]
    return [(r, c) for r, c in ahead if 0 <= r < len(symbols) and 0 <= c < len(symbols) and symbols[r, c] != "#"]


def _connected(symbols: np.ndarray) -> bool:
    """Whether all free cells can be reached from each other."""
    free = [(int(r), int(c)) for r, c in np.argwhere(symbols != "#")]
    seen, stack = {free[0]}, [free[0]]
    while stack:
        found = [cell for cell in _ways(symbols, stack.pop()) if cell not in seen]
        seen.update(found)
        stack += found
    return len(seen) == len(free)


def _tree(generator: np.random.Generator, at_ends: bool) -> np.ndarray:
    """Corridors: a random spanning tree of 6 x 6 rooms, and walls opened, at dead ends only or elsewhere only."""
    symbols = np.full((SIDE, SIDE), "#")
    symbols[::2, ::2] = "."
    between = [(r, c) for r in range(SIDE) for c in range(SIDE) if (r + c) % 2]
    group = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)  # cells that are connected have the same number
    for k in generator.permutation(len(between)):
        one, other = (group[room] for room in _ways(symbols, between[k])[:2])
        if one != other:
            symbols[between[k]] = "."
            group[group == other] = one
    while (symbols == ".").sum() < CELLS:
        closed = [cell for cell in between if symbols[cell] == "#"]
        ends = [any(len(_ways(symbols, room)) == 1 for room in _ways(symbols, cell)) for cell in closed]
        fitting = [cell for cell, end in zip(closed, ends, strict=True) if end == at_ends] or closed
        symbols[fitting[int(generator.integers(len(fitting)))]] = "."
    return symbols


def _room(generator: np.random.Generator) -> np.ndarray:
    """A room of 8 x 10, with pillars."""
    symbols = np.full((SIDE, SIDE), "#")
    symbols[2:10, 1:11] = "."
    return _filled(symbols, generator)


def _filled(symbols: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Random cells become walls until there are as few as there should be; what is left stays connected."""
    while (symbols == ".").sum() > CELLS:
        free = np.argwhere(symbols == ".")
        cell = tuple(free[int(generator.integers(len(free)))].tolist())
        symbols[cell] = "#"
        if not _connected(symbols):
            symbols[cell] = "."
    return symbols


SHAPES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "corridors": partial(_tree, at_ends=True), "dead ends": partial(_tree, at_ends=False), "open": _room,
    "scattered walls": lambda generator: _filled(np.full((SIDE, SIDE), "."), generator),
}  # fmt: skip


def with_ghosts(symbols: np.ndarray, start: tuple[int, int], ghosts: int) -> np.ndarray:
    """Pac-Boy, and each ghost on the free cell that is farthest from him and from the ghosts before it."""
    symbols[start] = "P"
    taken = [start]
    for _ in range(ghosts):
        free = np.argwhere(symbols == ".")
        apart = np.abs(free[:, None] - np.array(taken)).sum(axis=-1).min(axis=1)
        row, column = free[int(apart.argmax())].tolist()
        symbols[row, column] = "G"
        taken.append((row, column))
    return symbols


def text_of(symbols: np.ndarray) -> str:
    """A maze as its file has it."""
    return "\n".join("".join(row) for row in symbols)
