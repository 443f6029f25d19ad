"""The learners with tables, `Tabular` and `Linear`: their settings are those of every agent, alpha among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from multiadvisor.errors import BadInput, short
from multiadvisor.learners.kinds import LearnerSettings, named

if TYPE_CHECKING:
    from multiadvisor.settings import Settings


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
            raise BadInput("planning 'estimate' is for advisors, and linear Q-learning has none: leave it out")
