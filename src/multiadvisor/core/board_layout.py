"""A world on a grid: what stands where, and how it is drawn, as text, as a picture, as planes and on the page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.errors import BadInput


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
    """A world on a grid, for `Task(board=...)`.

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
    tiles: tuple[Tile, ...] = ()

    @cached_property
    def cell(self) -> np.ndarray:
        """[height, width]: the number of the cell, or -1."""
        numbers = np.full(self.shape, -1, np.int64)
        numbers[tuple(self.cells.T)] = np.arange(len(self.cells))
        return numbers

    @cached_property
    def walls(self) -> np.ndarray:
        """[height, width] bool."""
        walls = np.zeros(self.shape, bool)
        for tile in self.tiles:
            walls[tile.row, tile.column] |= tile.kind == "wall"
        return walls

    @cached_property
    def item_cells(self) -> np.ndarray:
        """[items]: where each of them lies."""
        return np.array([item.cell for item in self.items], np.int64)

    @cached_property
    def _places(self) -> set[int]:
        """The numbers of x that are drawn."""
        return {sprite.place for sprite in self.sprites} | {item.place for item in self.items}

    def name(self, cell: int) -> str:
        """A cell as people write it: (row, column)."""
        row, column = self.cells[cell]
        return f"({row}, {column})"

    def movers(self, x: np.ndarray) -> np.ndarray:
        """The cells of the sprites, the player's first, in the states x [..., size]."""
        return x[..., [sprite.place for sprite in self.sprites]]

    def lying(self, x: np.ndarray) -> np.ndarray:
        """Which of the items lie there in the states x [..., size], bool."""
        lying: np.ndarray = x[..., np.array([item.place for item in self.items], np.int64)] == 1
        return lying

    def planes(self, x: np.ndarray) -> np.ndarray:
        """States x [B, size] as images [B, 4, height, width] uint8: walls, others who move, what lies about, the
        player."""
        batch, (row, column) = np.arange(len(x)), self.cells.T
        player, *others = self.movers(x).T
        image = np.zeros((len(x), 4, *self.shape), np.uint8)
        image[:, 0] = self.walls
        for cell in others:
            image[batch, 1, row[cell], column[cell]] = 1
        image[:, 2, row[self.item_cells], column[self.item_cells]] = self.lying(x)
        image[batch, 3, row[player], column[player]] = 1
        return image

    def label(self, x: np.ndarray) -> str:
        """A state as people would say it: the player's cell, the others, what lies about, then what is not drawn."""
        player, *others = self.movers(x).tolist()
        text = self.name(player)
        for kind in dict.fromkeys(sprite.kind for sprite in self.sprites[1:]):
            cells = (cell for cell, sprite in zip(others, self.sprites[1:], strict=True) if sprite.kind == kind)
            text += f" {kind}s " + " ".join(map(self.name, cells))
        there = self.lying(x)
        for kind in dict.fromkeys(item.kind for item in self.items):
            left = [self.name(item.cell) for item, lies in zip(self.items, there, strict=True)
                    if lies and item.kind == kind]  # fmt: skip
            text += f" {kind} " + " ".join(left) if len(left) <= 6 else f" {len(left)} {kind}s"
        return " ".join([text, *(str(value) for place, value in enumerate(x) if place not in self._places)])

    def check(self, task: str, advisors: int, actions: int, size: int | None) -> None:
        """Refuse a grid that does not fit its task; `size` is that of the state."""
        for what, found, wanted in (
            ("terms", len(self.terms), advisors), ("vectors", len(self.vectors), actions),
            ("columns of `neighbour`", self.neighbour.shape[-1], actions),
            ("rows of `neighbour`", len(self.neighbour), len(self.cells)),
        ):  # fmt: skip
            if found != wanted:
                raise BadInput(f"the board of task {task!r} has {found} {what}: give {wanted}")
        seen, moving = {place for terms in self.terms for place, _ in terms}, {sprite.place for sprite in self.sprites}
        if not seen <= moving:
            raise BadInput(f"the terms of the board of task {task!r} name place {min(seen - moving)} of x, no sprite's")
        if not self.sprites or (size is not None and not all(0 <= place < size for place in self._places)):
            raise BadInput(f"the board of task {task!r} needs a player, and places from 0 to {(size or 1) - 1} of x")

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
