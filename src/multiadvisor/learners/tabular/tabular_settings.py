"""The learners with tables, `Tabular` and `Linear`: their settings are those of every agent, alpha among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from multiadvisor.errors import BadInput, short
from multiadvisor.learners.registry import LearnerSettings, named

if TYPE_CHECKING:
    from multiadvisor.core.validation import Shapes
    from multiadvisor.learners.protocol import Learner
    from multiadvisor.settings import Settings
    from multiadvisor.task import Task


@dataclass(frozen=True)
class Tabular(LearnerSettings):
    """A table of values for each advisor.

    >>> import multiadvisor as mad
    >>> mad.Settings(learner=mad.Tabular()) == mad.Settings(learner="tabular")
    True
    """

    name: str = named("tabular")


@dataclass(frozen=True)
class Linear(LearnerSettings):
    """One Q-function, linear in the features "advisor j is in local state s": a baseline of the paper.

    >>> import multiadvisor as mad
    >>> mad.MultiAdvisor(mad.make("two-goal"), learner=mad.Linear()).settings.learner.name
    'linear'
    """

    name: str = named("linear")
    summed: ClassVar[bool] = True

    @property
    def per_advisor(self) -> bool:
        """All of them have one value together."""
        return False

    def check(self, settings: Settings) -> None:
        """It is a sum, and nobody plans."""
        if settings.aggregation != "sum":
            raise BadInput(
                f"aggregation is {short(settings.aggregation)!r}, and linear Q-learning is a sum: leave it out"
            )
        if settings.planning == "estimate":
            raise BadInput(
                "planning is 'estimate', which is for advisors, and linear Q-learning has none: leave it out"
            )


def make_tabular(task: Task, settings: Settings, saved: Shapes | None) -> Learner:
    """Tables in a compiled world, or in a Python environment."""
    from multiadvisor.learners.tabular.adapter_learner import AdapterLearner
    from multiadvisor.learners.tabular.compiled_learner import CompiledLearner

    return CompiledLearner(task, settings) if task.world is not None else AdapterLearner(task, settings)


def make_linear(task: Task, settings: Settings, saved: Shapes | None) -> Learner:
    """Linear Q-learning in a compiled world."""
    from multiadvisor.learners.tabular.compiled_learner import linear_learner

    return linear_learner(task, settings)
