"""The theory lab: exact fixed points, attractors, progressive advisors, gamma bounds, and a verdict in plain words.

>>> import multiadvisor as mad
>>> from multiadvisor import theory
>>> [found.label for found in theory.attractors(mad.make("three-fruits"), gamma=0.6)]
['(2, 2) fruit (0, 2) (2, 0) (2, 4)']
"""

from __future__ import annotations

import numpy as np

from multiadvisor.analysis.theory import attractors as _attractors
from multiadvisor.analysis.theory import counterexamples as counterexamples
from multiadvisor.analysis.theory.attractors import Attractor, critical_gamma, stuck_states
from multiadvisor.analysis.theory.boards import board_solution, exact_agent, local_values, trap_shares
from multiadvisor.analysis.theory.bounds import Bound, Verdict, gamma_bound, progressive, verdict
from multiadvisor.analysis.theory.corrected_values import Correction, correct
from multiadvisor.analysis.theory.earning import (
    chance_bound,
    discounted_earning,
    earning_bound,
    earning_steps,
    fear_margin,
)
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.policy_improvement import Improvement, improve
from multiadvisor.analysis.theory.solver import Solution, evaluate, optimum, solve
from multiadvisor.task import Task

__all__ = [
    "Attractor", "Bound", "Correction", "FiniteMDP", "Improvement", "Solution", "Verdict", "attractors",
    "board_solution", "chance_bound", "correct", "counterexamples", "critical_gamma", "discounted_earning",
    "earning_bound", "earning_steps", "enumerate_task", "evaluate", "exact_agent", "fear_margin", "gamma_bound",
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
