"""The ways to learn with tables: which functions the one loop is bound to, and the task as they see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from multiadvisor.aggregations import CORRECTION, GPI, SELECTIONS
from multiadvisor.committee import Voices
from multiadvisor.settings import Settings
from multiadvisor.tabular import correction, kernel, linear, mapped, plans, selection
from multiadvisor.task import Task


def ways_of(task: Task, settings: Settings, voices: Voices) -> dict[str, Any]:
    """What `kernel` leaves open: how the preferences are found, and how advisors learn."""
    if mapped.is_mapped(task):
        return mapped.ways_of_mapped(settings)
    if any(aggregation.name == GPI for aggregation, _ in voices.parts):
        return {"hear": plans.hear_plans, "settle": plans.settle_plans, "advance": plans.advance_plans}
    if settings.learner == "linear":
        return {"hear": kernel.aggregate, "settle": linear.settle_features, "advance": linear.advance_features}
    if settings.aggregation == CORRECTION:
        return {
            "hear": kernel.aggregate,
            "settle": correction.settle_corrected,
            "advance": correction.advance_corrected,
        }
    if settings.aggregation in SELECTIONS:
        return selection.control_ways(task, settings.aggregation)
    return {"hear": kernel.aggregate, "settle": kernel.settle_advisors, "advance": kernel.advance_advisors}


def as_learned(task: Task, settings: Settings) -> Task:
    """The task as the learner sees it; what it learns beside the task's own advisors comes after them."""
    if settings.learner == "linear":  # a feature of its own for every advisor's local state, as in the paper
        return replace(task, foci=tuple(replace(focus, table=None) for focus in task.foci))
    if settings.aggregation in SELECTIONS:
        return selection.with_claims(task, settings.aggregation)
    return correction.with_correction(task) if settings.aggregation == CORRECTION else task
