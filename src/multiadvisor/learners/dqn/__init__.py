"""Networks instead of tables; the only part that imports JAX, and lazily."""

from __future__ import annotations

from typing import Any

__all__ = ["Cohort", "DeepLearner"]


def __getattr__(name: str) -> Any:
    if name == "Cohort":
        from multiadvisor.learners.dqn.cohort import Cohort

        return Cohort
    if name == "DeepLearner":
        from multiadvisor.learners.dqn.dqn_learner import DeepLearner

        return DeepLearner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
