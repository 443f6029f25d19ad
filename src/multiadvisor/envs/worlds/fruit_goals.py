"""The fruit task of van Seijen and others (2017, hybrid reward architecture): ten places, fruit on five of them.

Its advisors are the fruits, there while their fruit is, on Pac-Boy's cell or on the whole state; or a bank of general
value functions, one for each place, which see Pac-Boy's cell, learn from every transition to go there, and speak only
while there is fruit. The state x is the maze's: [Pac-Boy's cell, 1 or 0 for each place].
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from multiadvisor.core.compiling import compiled
from multiadvisor.envs.registry import register_task
from multiadvisor.envs.worlds.board import parse_maze
from multiadvisor.envs.worlds.pac_boy import maze_task
from multiadvisor.task import Task

PLACES = """\
.________.
__._______
__________
______.___
____._____
_______.__
__._______
_______.__
________._
._________"""
ON_BOARD = 5


# ---- a bank of general value functions -------------------------------------------------------------------------------
@compiled
def begin(world, x, advisors):
    """All of them, always."""
    places = world.fruit_cell.shape[0]
    for place in range(places):
        advisors[place] = place
    return places


@compiled
def local_states(world, x, advisors, m, local):
    """Pac-Boy's cell."""
    for i in range(m):
        local[i] = x[0]


@compiled
def advises(world, x, advisors, m, weight):
    """Where there is fruit."""
    for i in range(m):
        if x[1 + advisors[i]] == 0:
            weight[i] = 0.0


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    """Pac-Boy moves; whoever's place is reached ends, and is paid where there is fruit. The last one ends all."""
    x[0] = world.neighbour[x[0], action]
    place = world.fruit_at[x[0]]
    if place < 0:
        return False
    ended[place] = 1
    if x[1 + place] == 0:
        return False
    x[1 + place] = 0
    reward[place] = world.fruit_reward
    left = 0
    for other in range(world.fruit_cell.shape[0]):
        left += x[1 + other]
    return left == 0


@compiled
def pseudo(world, x, action, advisors, m, ended, reward):
    """The place itself is the goal: reaching it is worth as much where there is no fruit."""
    for i in range(m):
        if ended[i] == 1 and reward[i] == 0.0:
            reward[i] = world.fruit_reward


@compiled
def whole_state(world, x, advisors, m, local):
    """The number of the whole state, for advisors that see all of it."""
    whole = x[0]
    for place in range(world.fruit_cell.shape[0]):
        whole = 2 * whole + x[1 + place]
    for i in range(m):
        local[i] = whole


# ---- the task --------------------------------------------------------------------------------------------------------
@register_task("hra-fruits")
def hra_fruits(heads: Literal["goals", "fruits", "whole"] = "goals", limit: int = 300) -> Task:
    """Ten places on an open 10 x 10 grid, fruit on five of them, any start (van Seijen and others 2017).

    heads: "goals", a general value function for each place; "fruits", an advisor while its fruit is there, which sees
        Pac-Boy's cell; "whole", one that sees the whole state.
    limit: episodes are cut off after this many steps.
    """
    board = parse_maze(PLACES, "the grid", random_start=True)
    task = maze_task("hra-fruits", board, limit=limit, fruits=ON_BOARD)
    if heads == "fruits":
        return task
    assert task.world is not None
    if heads == "whole":
        states = math.prod(task.world.sizes or ())
        advisors = tuple(replace(advisor, state="whole", states=states) for advisor in task.advisors)
        world = replace(task.world, local_states=whole_state, local_state=None)
        return replace(task, advisors=advisors, world=world, board=None)
    world = replace(
        task.world, begin=begin, local_states=local_states, step=step, advises=advises, pseudo=pseudo, joins=True,
        outcomes=None, local_state=None,
    )  # fmt: skip
    return replace(task, world=world)
