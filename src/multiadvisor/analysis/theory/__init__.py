"""The theory lab: exact fixed points, attractors, progressive advisors, gamma bounds, and a verdict in plain words.

>>> import multiadvisor as mad
>>> from multiadvisor import theory
>>> [found.label for found in theory.attractors(mad.make("three-fruits"), gamma=0.6)]
['(2, 2) fruit (0, 2) (2, 0) (2, 4)']
"""

from __future__ import annotations

from multiadvisor.analysis.theory import counterexamples as counterexamples
from multiadvisor.analysis.theory.attractors import Attractor, attractors, critical_gamma, stuck_states
from multiadvisor.analysis.theory.better_aggregators import Correction, Improvement, correct, improve
from multiadvisor.analysis.theory.boards import board_solution, exact_agent, local_values, trap_shares
from multiadvisor.analysis.theory.bounds import Bound, Verdict, gamma_bound, progressive, verdict
from multiadvisor.analysis.theory.earning import (
    chance_bound,
    discounted_earning,
    earning_bound,
    earning_steps,
    fear_margin,
)
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import Solution, evaluate, optimum, solve

__all__ = [
    "Attractor", "Bound", "Correction", "FiniteMDP", "Improvement", "Solution", "Verdict", "attractors",
    "board_solution", "chance_bound", "correct", "counterexamples", "critical_gamma", "discounted_earning",
    "earning_bound", "earning_steps", "enumerate_task", "evaluate", "exact_agent", "fear_margin", "gamma_bound",
    "improve", "local_values", "optimum", "progressive", "solve", "stuck_states", "trap_shares", "verdict",
]  # fmt: skip
