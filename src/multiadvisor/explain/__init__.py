"""Why an agent does what it does: one action against another, advisor by advisor.

>>> import numpy as np
>>> import multiadvisor as mad
>>> advice, weights = np.array([[1.0, 0.0], [0.2, 0.9]]), np.ones(2)
>>> mad.explain.explain_advice(["near", "far"], advice, weights, ["left", "right"]).action
'left'
"""

from multiadvisor.analysis.theory.learned_values import greedy_stuck
from multiadvisor.explain.ablation import contributions, disagreement, influence
from multiadvisor.explain.explanation import Explanation, explain, explain_advice
from multiadvisor.explain.leads import lead
from multiadvisor.explain.msx import msx

__all__ = [
    "Explanation", "contributions", "disagreement", "explain", "explain_advice", "greedy_stuck", "influence", "lead",
    "msx",
]  # fmt: skip
