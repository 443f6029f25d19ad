"""The fruit task of van Seijen and others (2017, hybrid reward architecture): ten places, fruit on five of them.

Its advisors are the fruits, there while their fruit is, on Pac-Boy's cell or on the whole state; or a bank of general
value functions, one for each place, which see Pac-Boy's cell, learn from every transition to go there, and speak only
while there is fruit. The state x is the maze's: [Pac-Boy's cell, 1 or 0 for each place].
"""

from __future__ import annotations

import math
from dataclasses import replace

from multiadvisor.core.compiling import compiled
from multiadvisor.envs.registry import register_task
from multiadvisor.envs.worlds.board import parse_maze
from multiadvisor.envs.worlds.pac_boy import maze_task
from multiadvisor.errors import unknown
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
GOALS, FRUITS, WHOLE = HEADS = ("goals", "fruits", "whole")
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
def advises(world, x, advisors, m, voice):
    """Where there is fruit."""
    for i in range(m):
        if x[1 + advisors[i]] == 0:
            voice[i] = 0.0


@compiled
def eat(world, x, action):
    """Pac-Boy moves; the place of the fruit that it eats, or -1."""
    cell = world.neighbour[x[0], action]
    x[0] = cell
    place = world.fruit_at[cell]
    if place < 0 or x[1 + place] == 0:
        return -1
    x[1 + place] = 0
    return place


@compiled
def is_bare(world, x):
    """Whether no fruit is left."""
    left = 0
    for place in range(world.fruit_cell.shape[0]):
        left += x[1 + place]
    return left == 0


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    """Whoever's place is reached ends, and is paid where there is fruit."""
    eaten = eat(world, x, action)
    if world.fruit_at[x[0]] >= 0:
        ended[world.fruit_at[x[0]]] = 1
    if eaten >= 0:
        reward[eaten] = world.fruit_reward
    return eaten >= 0 and is_bare(world, x)


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
def hra_fruits(heads: str = "goals", limit: int = 300) -> Task:
    """Ten places on an open 10 x 10 grid, fruit on five of them, any start (van Seijen and others 2017).

    heads: "goals", a general value function for each place; "fruits", an advisor while its fruit is there, which sees
        Pac-Boy's cell; "whole", one that sees the whole state.
    limit: episodes are cut off after this many steps.
    """
    if heads not in HEADS:
        raise unknown("heads", heads, HEADS)
    board = parse_maze(PLACES, "the grid", random_start=True)
    task = maze_task("hra-fruits", board, limit=limit, fruits=ON_BOARD)
    if heads == FRUITS:
        return task
    assert task.world is not None
    if heads == WHOLE:
        states = math.prod(task.world.sizes or ())
        advisors = tuple(replace(advisor, state="whole", states=states) for advisor in task.advisors)
        return replace(task, advisors=advisors, world=replace(task.world, local_states=whole_state), board=None)
    world = replace(
        task.world, begin=begin, local_states=local_states, step=step, advises=advises, pseudo=pseudo, joins=True,
        outcomes=None,
    )  # fmt: skip
    return replace(task, world=world)
