"""What the page must know of a world on a grid: one descriptor, whatever the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.task import Task
from multiadvisor.worlds.board import DIRECTIONS, Board
from multiadvisor.worlds.maze import MazeConstants


class Sprite(NamedTuple):
    """Something that moves: number `place` of the state x is its cell. The first one is the player."""

    kind: str  # "player" or "ghost"
    place: int


class Item(NamedTuple):
    """Something that lies on a cell while number `place` of the state x is 1; its advisor speaks only then."""

    kind: str  # "fruit"
    place: int
    cell: int
    advisor: int


class Tile(NamedTuple):
    """A place nobody can stand on, or a name for one."""

    kind: str  # "wall", "water" or "goal"
    row: int
    column: int
    label: str = ""


@dataclass(frozen=True, eq=False)
class Grid:
    """A world on a grid, for `Task(board=...)` of a world of one's own as well.

    The cells that can be stood on are numbered; `neighbour` says where each action leads, `vectors` how it is drawn.
    An advisor's local state is a sum of numbers of x, each times a factor: `terms[j]` lists (place in x, factor).
    """

    shape: tuple[int, int]
    cells: np.ndarray  # [cells, 2] row and column
    neighbour: np.ndarray  # [cells, A]
    vectors: tuple[tuple[int, int], ...]  # down and right, for each action
    sprites: tuple[Sprite, ...]
    terms: tuple[tuple[tuple[int, int], ...], ...]
    items: tuple[Item, ...] = ()
    tiles: tuple[Tile, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rows": self.shape[0],
            "columns": self.shape[1],
            "cells": self.cells.tolist(),
            "neighbour": self.neighbour.tolist(),
            "vectors": [list(vector) for vector in self.vectors],
            "sprites": [sprite._asdict() for sprite in self.sprites],
            "items": [item._asdict() for item in self.items],
            "tiles": [tile._asdict() for tile in self.tiles],
            "terms": [[list(term) for term in terms] for terms in self.terms],
        }


def grid_of(task: Task) -> Grid | None:
    """The task's grid, or None where it has none.

    >>> import multiadvisor as mad
    >>> grid_of(mad.make("pac-boy")).shape
    (11, 11)
    >>> grid_of(mad.make("random-mdp")) is None
    True
    """
    if isinstance(task.board, Grid):
        return task.board
    if task.world is not None and isinstance(task.world.constants, MazeConstants) and isinstance(task.board, Board):
        return _maze_grid(task, task.world.constants, task.board)
    drawn = _GADGETS.get(task.name)
    return drawn(task) if drawn is not None else None


def _maze_grid(task: Task, world: MazeConstants, board: Board) -> Grid:
    cells, ghosts = len(board.place), len(world.ghost_start)
    pair = tuple(((0, cells), (1 + g, 1)) for g in range(ghosts))
    return Grid(
        shape=board.shape, cells=board.place, neighbour=world.neighbour, vectors=tuple(DIRECTIONS.values()),
        sprites=(Sprite("player", 0), *(Sprite("ghost", 1 + g) for g in range(ghosts))),
        terms=(*pair, *(((0, 1),) for _ in world.fruit_cell)),
        items=tuple(
            Item("fruit", 1 + ghosts + k, int(cell), ghosts + k) for k, cell in enumerate(world.fruit_cell)
        ),
        tiles=tuple(Tile("wall", int(row), int(column)) for row, column in np.argwhere(board.walls)),
    )  # fmt: skip


def _bridge(task: Task) -> Grid:
    """The bank, then the bridge with water on both sides, then the other side."""
    states = len(task.labels)
    cells = np.array([(1, column) for column in range(states)])
    place = np.arange(states)
    neighbour = np.stack([place, np.maximum(place - 1, 0), place, np.minimum(place + 1, states - 1)], axis=1)
    water = [Tile("water", row, column) for column in range(1, states) for row in (0, 2)]
    banks = [Tile("wall", row, column) for column in (0, states) for row in (0, 2)]
    return Grid(
        (3, states + 1), cells, neighbour, tuple(DIRECTIONS.values()), (Sprite("player", 0),), (((0, 1),), ((0, 1),)),
        tiles=(*water, *banks, Tile("goal", 1, states, "+1")),
    )  # fmt: skip


def _two_goal(task: Task) -> Grid:
    """The state between its two goals."""
    goals = (Tile("goal", 0, 0, f"+{task.options['r1']:g}"), Tile("goal", 0, 2, f"+{task.options['r2']:g}"))
    return Grid(
        (1, 3), np.array([(0, 1)]), np.zeros((1, 3), np.int64), ((0, 0), (0, -1), (0, 1)), (Sprite("player", 0),),
        (((0, 1),), ((0, 1),)), tiles=goals,
    )  # fmt: skip


_GADGETS: dict[str, Callable[[Task], Grid]] = {"bridge": _bridge, "two-goal": _two_goal}
