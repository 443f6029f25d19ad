"""Advisors whose values are learned on mapped scales (`mappings`), each on its own."""

from __future__ import annotations

import numpy as np

from multiadvisor.core.compiling import inside
from multiadvisor.core.mappings import MAPPING, Mapping, forward, inverse, mapping_named, moved
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.kernel import TINY
from multiadvisor.settings import Settings
from multiadvisor.task import Task


@inside
def move_mapped(work, row, action, alpha, target, advisor):
    """`td_update`, on the scale of the advisor."""
    table, mapping = work.values.table, work.values.extra[np.uintp(advisor)]
    new = inverse(mapping, moved(mapping, forward(mapping, table[row, action]), alpha, target))
    table[row, action] = new if abs(new) > TINY else 0.0


def is_mapped(task: Task) -> bool:
    """Whether any advisor has a scale of its own."""
    return any(advisor.mapping is not None for advisor in task.advisors)


def mappings_of(task: Task, settings: Settings) -> np.ndarray:
    """[n] MAPPING: the scale of each advisor; empty where none is mapped."""
    if not is_mapped(task):
        return np.zeros(0, MAPPING)
    found, bounds = [], task.reward_bounds
    for j, (advisor, gamma) in enumerate(zip(task.advisors, task.gammas(settings.gamma), strict=True)):
        if advisor.mapping is None:
            found.append(Mapping(alpha=advisor.mapped_alpha))
            continue
        if bounds is not None and bounds[j, 0] < 0:
            raise BadInput(
                f"advisor {advisor.name!r} may lose, and its mapping {advisor.mapping!r} is for rewards of at least "
                "0: give losses a separate advisor, with the sign reversed and a negative weight"
            )
        found.append(mapping_named(advisor.mapping, float(gamma), advisor.mapped_alpha))
    if settings.learner_settings.name == "linear" and len(set(found)) > 1:
        raise BadInput("linear Q-learning has one mapping for everything: give all advisors the same")
    return np.array(found, MAPPING)
