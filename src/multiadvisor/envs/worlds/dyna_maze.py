"""Sutton's Dyna maze as a finite task whose advisors all see the whole of it: a place for ensembles of learners."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from multiadvisor.core.board_layout import Grid, Sprite, Tile
from multiadvisor.envs.registry import Between, register_task
from multiadvisor.envs.worlds.board import DIRECTIONS, parse_maze
from multiadvisor.envs.worlds.gadgets import finite_task
from multiadvisor.task import Task

MAZE = """\
_______#F
__#____#_
P_#____#_
__#______
_____#___
_________"""
GOAL, BUMP, STEP = 100.0, -2.0, -0.1
LEARNERS = {  # each on the whole task, and how it plans
    "Q-learning": "egocentric", "Sarsa": "sarsa", "expected Sarsa": "expected_sarsa", "soft Q-learning": "tempered",
}  # fmt: skip


@register_task("dyna-maze")
def dyna_maze(slip: Annotated[float, Between(0, 1)] = 0.2, limit: int = 1000) -> Task:
    """Sutton's 9 x 6 maze, where moves may slip: several learners, each of which has the whole task before it.

    slip: the probability that a move goes anywhere.
    limit: episodes are cut off after this many steps.
    """
    board = parse_maze(MAZE)
    cells, goal = len(board.place), int(board.fruit[0])
    successor = np.repeat(board.neighbour[:, None, :], 4, axis=1)  # [S, A, K] where move k leads, whatever was meant
    probability = np.broadcast_to((1.0 - slip) * np.eye(4) + slip / 4, (cells, 4, 4))
    reward = np.where(successor == np.arange(cells)[:, None, None], BUMP, STEP)
    final = successor == goal
    reward = np.where(final, GOAL, reward)
    grid = Grid(
        board.shape, board.place, board.neighbour, tuple(DIRECTIONS.values()), (Sprite("player", 0),),
        (((0, 1),),) * len(LEARNERS),
        tiles=(*(Tile("wall", int(row), int(column)) for row, column in np.argwhere(board.walls)),
               Tile("goal", int(board.place[goal, 0]), int(board.place[goal, 1]), "G")),
    )  # fmt: skip
    task = finite_task(
        "dyna-maze", tuple(DIRECTIONS), tuple(LEARNERS), np.eye(cells)[board.start], probability, successor,
        np.repeat(reward[..., None], len(LEARNERS), axis=3), final, limit=limit, board=grid,
        labels=tuple(board.name(cell) for cell in range(cells)),
    )  # fmt: skip
    planned = (
        replace(advisor, planning=planning) for advisor, planning in zip(task.advisors, LEARNERS.values(), strict=True)
    )
    return replace(task, advisors=tuple(planned))
