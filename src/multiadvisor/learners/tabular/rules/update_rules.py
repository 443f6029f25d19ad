"""The ways to learn with tables: which functions the one loop is bound to, and the task as they see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from multiadvisor.core.aggregations import CORRECTION, GPI, SELECTIONS
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.learners.tabular import kernel
from multiadvisor.learners.tabular.rules import arbitration, correction, gpi, linear, mapped
from multiadvisor.settings import Settings
from multiadvisor.task import Task


def ways_of(task: Task, settings: Settings, aggregator: Aggregator) -> dict[str, Any]:
    """What `kernel` leaves open: how the preferences are found, and how advisors learn."""
    if mapped.is_mapped(task):
        return mapped.ways_of_mapped(settings)
    if any(aggregation.name == GPI for aggregation, _ in aggregator.parts):
        return {
            "find_preferences": gpi.aggregate_gpi,
            "update_terminal": gpi.update_terminal_gpi,
            "update_bootstrap": gpi.update_bootstrap_gpi,
        }
    if settings.learner_settings.name == "linear":
        return {
            "find_preferences": kernel.aggregate,
            "update_terminal": linear.update_terminal_features,
            "update_bootstrap": linear.update_bootstrap_features,
        }
    if settings.aggregation == CORRECTION:
        return {
            "find_preferences": kernel.aggregate,
            "update_terminal": correction.update_terminal_corrected,
            "update_bootstrap": correction.update_bootstrap_corrected,
        }
    if settings.aggregation in SELECTIONS:
        return arbitration.control_ways(task, settings.aggregation)
    return {
        "find_preferences": kernel.aggregate,
        "update_terminal": kernel.update_terminal_advisors,
        "update_bootstrap": kernel.update_bootstrap_advisors,
    }


def as_learned(task: Task, settings: Settings) -> Task:
    """The task as the learner sees it; what it learns beside the task's own advisors comes after them."""
    if (
        settings.learner_settings.name == "linear"
    ):  # a feature of its own for every advisor's local state, as in the paper
        return replace(task, advisors=tuple(replace(advisor, table=None) for advisor in task.advisors))
    if settings.aggregation in SELECTIONS:
        return arbitration.with_claims(task, settings.aggregation)
    return correction.with_correction(task) if settings.aggregation == CORRECTION else task
