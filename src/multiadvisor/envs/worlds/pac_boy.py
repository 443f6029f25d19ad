"""Pac-Boy, fruit grids and the fruit gadgets of the theory: tasks in a maze."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from multiadvisor.envs.registry import Between, register_task
from multiadvisor.envs.worlds.board import DIRECTIONS, Board, parse_maze, read_maze
from multiadvisor.errors import BadInput, short
from multiadvisor.task import Advisor, Task

Rules = Literal["paper", "hra"]
TOUCH = -10.0  # the reward
PAC_BOY = """\
....#.#....
.##.#.#.##.
...........
.#.##.##.#.
.#.##.##.#.
G#..G....#.
.###.#.###.
...........
###.###.###
....###....
.##.....##P"""

THREE_FRUITS = """\
__F__
_____
F_P_F"""

FOUR_FRUITS = """\
__F__
_____
F_P_F
_____
__F__"""


def maze_task(
    name: str, board: Board, *, options: dict[str, Any] | None = None, rules: Rules = "paper", ghosts: bool = True,
    limit: int = 300, fruits: int = -1,
) -> Task:  # fmt: skip
    """A task in a maze: ghosts first, then the places that may hold fruit."""
    from multiadvisor.envs.worlds import maze

    cells = len(board.place)
    free = np.zeros((cells, 4), np.int64)
    degree = np.zeros(cells, np.int64)
    for cell, row in enumerate(board.neighbour):
        others = [to for to in row if to != cell]
        degree[cell] = len(others)
        free[cell, : len(others)] = others
    ghost_start = board.ghosts if ghosts else board.ghosts[:0]
    fruit_at = np.full(cells, -1, np.int64)
    fruit_at[board.fruit] = np.arange(len(board.fruit))
    if board.fixed:
        fruits = len(board.fruit)
    constants = maze.MazeConstants(
        neighbour=board.neighbour, free=free, degree=degree, start=board.start, ghost_start=ghost_start,
        fruit_cell=board.fruit, fruit_at=fruit_at, fruits=fruits, probability=0.5,
        ghosts_always_move=rules == "hra", fruit_reward=1.0, touch_reward=TOUCH,
    )  # fmt: skip
    g = len(ghost_start)
    advisors = [
        Advisor(f"ghost {i + 1}", state=f"cell, ghost {i + 1}", states=cells * cells, table="ghosts", group="ghosts")
        for i in range(g)
    ]
    advisors += [Advisor(f"fruit {board.name(c)}", state="cell", states=cells, group="fruits") for c in board.fruit]

    def touches(returns: np.ndarray) -> dict[str, np.ndarray]:
        return {"touches": np.rint(returns[:, :g].sum(axis=1) / TOUCH)}

    return Task(
        name=name, actions=tuple(DIRECTIONS), advisors=tuple(advisors), world=maze.world_of(constants), limit=limit,
        options=options or {}, board=maze.grid_of(constants, board), metrics=touches if g else None,
    )  # fmt: skip


@register_task("pac-boy")
def pac_boy(rules: Rules = "paper", maze: str | None = None, ghosts: bool = True, limit: int = 300) -> Task:
    """The paper's fruit collection task: an 11 x 11 maze, 75 fruit places, two ghosts, 77 advisors.

    rules: "paper", or "hra": ghosts always move, and swapping places with one is a touch.
    maze: a text file with a maze of your own, or its text.
    ghosts: without them the task is pure navigation.
    limit: episodes are cut off after this many steps.
    """
    board = parse_maze(PAC_BOY) if maze is None else parse_maze(read_maze(maze), f"the maze {short(maze)!r}")
    # the text and not the file's name: a file may be moved, or edited
    text = None if maze is None else f"{board.text}\n"
    return maze_task("pac-boy", board, options={"maze": text}, rules=rules, ghosts=ghosts, limit=limit)


@register_task("fruit-grid")
def fruit_grid(
    width: Annotated[int, Between(1, 1000)] = 5, height: Annotated[int, Between(1, 1000)] = 5, fruits: int = 5,
    limit: int = 300,
) -> Task:  # fmt: skip
    """An open grid without ghosts: Pac-Boy starts anywhere, `fruits` fruits lie anywhere else.

    width, height: the size of the grid.
    fruits: how many of them, on other cells in every episode.
    limit: episodes are cut off after this many steps.
    """
    if not 1 <= fruits < width * height:
        raise BadInput(f"{fruits} fruits do not fit on {width} x {height} cells beside Pac-Boy: choose 1 or more")
    board = parse_maze("\n".join(["." * width] * height), "the grid", random_start=True)
    return maze_task("fruit-grid", board, limit=limit, fruits=fruits)


@register_task("three-fruits")
def three_fruits() -> Task:
    """The paper's three-fruit attractor: above gamma = 1/2 egocentric advisors send Pac-Boy South, into the wall."""
    return maze_task("three-fruits", parse_maze(THREE_FRUITS), limit=50)


@register_task("four-fruits")
def four_fruits() -> Task:
    """Four fruits around Pac-Boy: an attractor for egocentric advisors above gamma = 1/3."""
    return maze_task("four-fruits", parse_maze(FOUR_FRUITS), limit=50)
