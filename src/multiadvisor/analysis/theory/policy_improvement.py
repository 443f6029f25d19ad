"""Generalised policy improvement (Barreto and others 2017), exact: what an advisor's plan is worth to every other one.

Advisor j's plan pi_j is its own greedy policy, as if it were in control. With the cross values Q_k^{pi_j} the
aggregator acts by the best over j of sum_k w_k Q_k^{pi_j}(x, a): at least as good as letting any single advisor drive,
for weights of any sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.boards import Maze, exact_agent
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import Solution, evaluate, greedy_policy, solve, solve_local
from multiadvisor.task import Task


@dataclass(frozen=True, eq=False)
class Improvement:
    """The cross values, and what the aggregator makes of them."""

    mdp: FiniteMDP
    gamma: float
    cross: np.ndarray  # [n, n, S, A] Q_k^{pi_j}(x, a), the plan j first
    bound: float
    """No cross value is further from the true one than this."""

    @property
    def plans(self) -> np.ndarray:
        """[n, S, A] what each plan is worth to all together, sum_k w_k Q_k^{pi_j}(x, a)."""
        return np.asarray(np.einsum("k,jksa->jsa", self.mdp.weights, self.cross))

    @property
    def preferences(self) -> np.ndarray:
        """[S, A] the best over the plans."""
        return np.asarray(self.plans.max(axis=0))

    @property
    def policy(self) -> np.ndarray:
        """[S, A] the greedy aggregator's, ties shared evenly."""
        return greedy_policy(self.preferences)


def plans(solution: Solution) -> np.ndarray:
    """[n, S, A] the advisors' own greedy policies, ties shared evenly; whoever is inactive has none: any action."""
    return np.stack([greedy_policy(values) for values in solution.values])


def improve(mdp: FiniteMDP, gamma: float = 0.9) -> Improvement:
    """The cross values of egocentric advisors over the whole states, and the improved preferences.

    >>> import multiadvisor as mad
    >>> from multiadvisor.analysis.theory import enumerate_task
    >>> improve(enumerate_task(mad.make("two-goal")), 0.9).preferences.round(6).tolist()
    [[0.9, 1.0, 1.0]]
    """
    mdp.one_discount(gamma, "plans have no one worth: give them one gamma")
    worth = [evaluate(mdp, plan, gamma) for plan in plans(solve(mdp, "egocentric", gamma))]
    return Improvement(mdp, gamma, np.stack([each.values for each in worth]), max(each.bound for each in worth))


def exact_plans(task: Task, gamma: float = 0.9, seed: int = 0) -> MultiAdvisor:
    """An agent of a maze whose fruits are heard by each other's exact plans, on their own local states; any size.

    A plan goes on once its own fruit is eaten, and stays about the place: nobody else's fruit can tell.

    >>> import multiadvisor as mad
    >>> exact_plans(mad.make("three-fruits"), 0.9).evaluate(episodes=10).terminated
    1.0
    """
    maze = Maze(task)
    agent = exact_agent(task, "egocentric", gamma, seed, aggregation="fruits=gpi")
    worth, layout, gammas = agent.tables.plan_values, task.layout(), task.gammas(gamma)[maze.ghosts :]
    mdps = [maze.fruit_mdp(place) for place in range(len(maze.weights))]
    for place, cell in enumerate(maze.world.fruit_cell):
        j = maze.ghosts + place
        plan = greedy_policy(agent.values(j))
        plan[cell] = 0.25  # there its fruit is eaten, and it has no more to wish
        rows = layout.offset[j] + layout.stride[j] * np.arange(len(plan))
        for k, (local, own) in enumerate(zip(mdps, gammas, strict=True)):
            worth[rows, k] = solve_local(local, float(own), policy=plan)[0]
    return agent
