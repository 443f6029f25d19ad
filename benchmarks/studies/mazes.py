"""Mazes that are not the paper's, made by seeded code: the same text on every machine.

Some are for choosing a setting, others for reporting what the choice is worth; no maze is in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from multiadvisor.envs.worlds.pac_boy import PAC_BOY
from multiadvisor.studies.paper.other_mazes import text_of, with_ghosts


def carved(seed: int, side: int, loops: int, ghosts: int) -> str:
    """A walled maze of side x side (odd): a random spanning tree of rooms, with some more walls opened.

    >>> print(carved(0, 5, 0, 1))
    #####
    #P..#
    ###.#
    #..G#
    #####
    """
    generator = np.random.default_rng(seed)
    symbols = np.full((side, side), "#")
    symbols[1::2, 1::2] = "."
    stack, seen = [(1, 1)], {(1, 1)}
    while stack:
        row, column = stack[-1]
        ahead = [(row + 2 * down, column + 2 * right) for down, right in ((-1, 0), (0, -1), (1, 0), (0, 1))]
        ahead = [place for place in ahead if min(place) > 0 and max(place) < side and place not in seen]
        if not ahead:
            stack.pop()
            continue
        to = ahead[int(generator.integers(len(ahead)))]
        symbols[(row + to[0]) // 2, (column + to[1]) // 2] = "."
        seen.add(to)
        stack.append(to)
    between = [(r, c) for r in range(1, side - 1) for c in range(1, side - 1) if (r + c) % 2 and symbols[r, c] == "#"]
    for k in generator.permutation(len(between))[:loops]:
        symbols[between[k]] = "."
    return text_of(with_ghosts(symbols, (1, 1), ghosts))


def opened(side: int, ghosts: int) -> str:
    """A square without walls.

    >>> print(opened(3, 1))
    P..
    ...
    ..G
    """
    return text_of(with_ghosts(np.full((side, side), "."), (0, 0), ghosts))


def corridor(side: int, length: int) -> str:
    """A room with a corridor, fruit in both: Pac-Boy starts in the middle of the room, a ghost in its corner.

    >>> print(corridor(3, 2))
    G..##
    .P...
    ...##
    """
    symbols = np.full((side, side + length), "#")
    symbols[:, :side] = "."
    symbols[side // 2, side:] = "."
    symbols[side // 2, side // 2], symbols[0, 0] = "P", "G"
    return text_of(symbols)


@dataclass(frozen=True)
class Maze:
    """A place to play Pac-Boy in."""

    name: str
    text: str | None
    """None: the paper's."""
    limit: int = 300

    @property
    def holds(self) -> float:
        """The fruits of a board, on average: half of the places that may hold one."""
        text = PAC_BOY if self.text is None else self.text
        return (text.count(".") + text.count("G")) / 2

    @property
    def options(self) -> dict[str, str | int]:
        """Options of the task `pac-boy`."""
        return {"limit": self.limit, **({} if self.text is None else {"maze": f"{self.text}\n"})}


@cache
def report_mazes() -> dict[str, Maze]:
    """Those of the report: the paper's, a large one, a room with a corridor, an open one."""
    found = (
        Maze("Pac-Boy", None), Maze("corridor", corridor(5, 12)), Maze("open", opened(11, 2)),
        Maze("large", carved(1, 21, 5, 2), 600),
    )  # fmt: skip
    return {maze.name: maze for maze in found}


@cache
def choice_mazes() -> dict[str, Maze]:
    """Those that settings are chosen on."""
    found = (
        Maze("small maze", carved(2, 13, 6, 2)), Maze("short corridor", corridor(4, 8)),
        Maze("small open", opened(9, 2)), Maze("medium maze", carved(3, 17, 5, 2), 450),
    )  # fmt: skip
    return {maze.name: maze for maze in found}
