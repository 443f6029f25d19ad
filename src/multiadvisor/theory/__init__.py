"""The theory lab: exact fixed points, attractors, progressive advisors, gamma bounds, and a verdict in plain words.

>>> import multiadvisor as mad
>>> from multiadvisor import theory
>>> [found.label for found in theory.attractors(mad.make("three-fruits"), gamma=0.6)]
['(2, 2) fruit (0, 2) (2, 0) (2, 4)']
"""

from __future__ import annotations

import numpy as np

from multiadvisor.task import Task
from multiadvisor.theory import attractors as _attractors
from multiadvisor.theory import counterexamples as counterexamples
from multiadvisor.theory.attractors import Attractor, critical_gamma, stuck_states
from multiadvisor.theory.boards import board_solution, exact_agent, local_values, trap_shares
from multiadvisor.theory.bounds import Bound, Verdict, gamma_bound, progressive, verdict
from multiadvisor.theory.correction import Correction, correct
from multiadvisor.theory.earning import chance_bound, discounted_earning, earning_bound, earning_turns, fear_margin
from multiadvisor.theory.enumerate import enumerate_task
from multiadvisor.theory.gpi import Improvement, improve
from multiadvisor.theory.mdp import FiniteMDP
from multiadvisor.theory.solver import Solution, evaluate, optimum, solve

__all__ = [
    "Attractor", "Bound", "Correction", "FiniteMDP", "Improvement", "Solution", "Verdict", "attractors",
    "board_solution", "chance_bound", "correct", "counterexamples", "critical_gamma", "discounted_earning",
    "earning_bound", "earning_turns", "enumerate_task", "evaluate", "exact_agent", "fear_margin", "gamma_bound",
    "improve", "local_values", "optimum", "progressive", "solve", "stuck_states", "trap_shares", "verdict",
]  # fmt: skip


def attractors(
    what: Task | FiniteMDP | Solution, gamma: float = 0.9, board: np.ndarray | None = None, aggregation: str = "sum"
) -> list[Attractor]:
    """The attractors of a task, an MDP or a solution under egocentric planning; of one board of a maze where given.

    A solution has its own gamma and aggregation.

    >>> import multiadvisor as mad
    >>> [found.stable for found in attractors(mad.make("four-fruits"), gamma=0.4)]
    [False]
    """
    if isinstance(what, Solution):
        return _attractors.attractors(what)
    if isinstance(what, Task):
        if board is not None:
            return _attractors.attractors(board_solution(what, board, gamma, aggregation=aggregation))
        what = enumerate_task(what)
    return _attractors.attractors(solve(what, "egocentric", gamma, aggregation))
