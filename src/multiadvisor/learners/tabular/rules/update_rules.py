"""Which update rule a learner with tables has: its compiled functions, what it learns besides, and the task it sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.core.aggregations import ARBI_Q, CORRECTION, GPI, SELECTIONS
from multiadvisor.core.aggregator import Aggregator, learned_beside
from multiadvisor.core.compiling import inside
from multiadvisor.envs.adapter import Adapter
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.kernel import aggregate, td_update
from multiadvisor.learners.tabular.records import Rule
from multiadvisor.learners.tabular.rules import arbitration, correction, gpi, linear, mapped
from multiadvisor.settings import Settings
from multiadvisor.task import Task


# ---- the rule of the paper's advisors: a table for each, and everybody bootstraps by its own planning ----------------
@inside
def everybody(m):
    """All bootstrap."""
    return m


@inside
def move(work, row, action, alpha, target, advisor):
    """In the one table."""
    td_update(work.values.table, row, action, alpha, target)


@inside
def nothing_before_end(work, slots, m, step):
    """An end is learned as any reward."""


@inside
def plain_target(work, slots, m, arrivals, step, taken):
    """Reward plus gamma times what the planning expects, for everybody."""
    return False


PLAIN = (aggregate, everybody, move, nothing_before_end, plain_target)


# ---- all rules -------------------------------------------------------------------------------------------------------
def rule_of(task: Task, settings: Settings, aggregator: Aggregator, combine: Any, expect: Any) -> Rule:
    """The rule of a learner: that of tables, with what is different about it."""
    rule = Rule(combine, expect, *PLAIN)
    if settings.learner_settings.name == "linear":
        target = linear.learn_mapped_features if mapped.is_mapped(task) else linear.learn_features
        return rule._replace(
            expect=linear.expect_nothing, learners=linear.nobody, move=linear.stay, end=linear.note_features,
            target=target,
        )  # fmt: skip
    if mapped.is_mapped(task):
        if learned_beside(settings.aggregation):
            raise BadInput(f"the aggregation {settings.aggregation!r} learns on plain values: leave mappings out")
        return rule._replace(move=mapped.move_mapped)
    if has_plans(aggregator):
        return rule._replace(prefer=gpi.aggregate_plans, end=gpi.end_plans, target=gpi.learn_plans)
    if settings.aggregation == CORRECTION:
        return rule._replace(end=correction.end_correction, target=correction.correct)
    if settings.aggregation == ARBI_Q:
        return rule._replace(
            prefer=arbitration.prefer_arbitrated, learners=arbitration.all_but_arbitrator,
            move=arbitration.move_others, end=arbitration.end_arbitrated, target=arbitration.learn_arbitrated,
        )  # fmt: skip
    if settings.aggregation in SELECTIONS:
        return rule._replace(prefer=arbitration.prefer_w, end=arbitration.end_w, target=arbitration.learn_w)
    return rule


def extra_of(task: Task, settings: Settings, aggregator: Aggregator, rows: int, adapter: Adapter | None = None) -> Any:
    """`Values.extra`: what the rule learns or needs besides the table of so many rows."""
    if settings.learner_settings.name == "linear":
        return linear.new_features(task.n, mapped.mappings_of(task, settings))
    if mapped.is_mapped(task):
        return mapped.mappings_of(task, settings)
    if has_plans(aggregator):
        return gpi.plans_of(task, aggregator, rows, adapter)
    if settings.aggregation in SELECTIONS:
        return arbitration.new_claims(task, settings.aggregation, rows)
    return ()


def has_plans(aggregator: Aggregator) -> bool:
    """Whether some group has the aggregation `gpi`."""
    return any(aggregation.name == GPI for aggregation, _ in aggregator.parts)


def extra_table(extra: Any) -> np.ndarray | None:
    """What is learned besides, by the rows of the table [rows, ...]; a checkpoint keeps it."""
    return extra.table if isinstance(extra, gpi.Plans | arbitration.Claims) else None


def with_extra_table(task: Task, extra: Any, table: np.ndarray) -> Any:
    """The same with this table."""
    if isinstance(extra, gpi.Plans):
        gpi.check_size(task, table.size)
    return extra._replace(table=table)


def as_learned(task: Task, settings: Settings) -> Task:
    """The task as the learner sees it; whom the aggregator has besides the task's own advisors comes after them."""
    if settings.learner_settings.name == "linear":  # a feature for every advisor's local state, as in the paper
        return replace(task, advisors=tuple(replace(advisor, table=None) for advisor in task.advisors))
    if settings.aggregation == ARBI_Q:
        return arbitration.with_arbitrator(task)
    return correction.with_correction(task) if settings.aggregation == CORRECTION else task
