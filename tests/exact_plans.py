"""Generalised policy improvement with exact plans instead of learned ones."""

import numpy as np

from multiadvisor.analysis.theory.boards import Maze, exact_agent
from multiadvisor.analysis.theory.solver import greedy_policy, solve_local


def exact_plans(task, gamma=0.9, seed=0):
    """An agent of a maze whose fruits are heard by each other's exact plans, on their own local states; any size.

    A plan goes on once its own fruit is eaten, and stays about the place: nobody else's fruit can tell.
    """
    maze = Maze(task)
    agent = exact_agent(task, "egocentric", gamma, seed, aggregation="fruits=gpi")
    worth, layout, gammas = agent.tables.extra.table, task.layout(), task.gammas(gamma)[maze.ghosts :]
    mdps = [maze.fruit_mdp(place) for place in range(len(maze.weights))]
    for place, cell in enumerate(maze.world.fruit_cell):
        j = maze.ghosts + place
        plan = greedy_policy(agent.values(j))
        plan[cell] = 0.25  # there its fruit is eaten, and it has no more to wish
        rows = layout.offset[j] + layout.stride[j] * np.arange(len(plan))
        for k, (local, own) in enumerate(zip(mdps, gammas, strict=True)):
            worth[rows, k] = solve_local(local, float(own), policy=plan)[0]
    return agent
