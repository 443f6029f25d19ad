"""The settings of the learner with general value functions: `GVF`; what they are of is in the task's goals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from multiadvisor.learners.registry import LearnerSettings, named

if TYPE_CHECKING:
    from multiadvisor.task import Task


@dataclass(frozen=True)
class GVF(LearnerSettings):
    """A bank of general value functions, for tasks with goals.

    >>> import multiadvisor as mad
    >>> mad.Settings(learner=mad.GVF()).learner.name
    'gvf'
    """

    name: str = named("gvf")
    points: ClassVar[bool] = True

    def own_draws(self, task: Task) -> bool:
        """Every episode can be played by itself."""
        return True
