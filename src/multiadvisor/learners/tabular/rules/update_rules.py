"""Which update rule a learner with tables has: its compiled functions, what it learns besides, and the task it sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.core.aggregator import Aggregator, aggregator_of
from multiadvisor.core.compiling import inside
from multiadvisor.core.learned import TABLES
from multiadvisor.envs.adapter import Adapter
from multiadvisor.errors import BadInput, unknown
from multiadvisor.learners.tabular.kernel import aggregate, td_update
from multiadvisor.learners.tabular.records import Rule
from multiadvisor.learners.tabular.rules import linear, mapped
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
    learned = aggregator.learned
    if mapped.is_mapped(task):
        if learned is not None:
            raise BadInput(f"the aggregation {settings.aggregation!r} learns on plain values: leave mappings out")
        return rule._replace(move=mapped.move_mapped)
    own = {} if learned is None else learned.rule
    for name in own:
        if name not in Rule._fields:
            raise unknown(f"function of the rule of {settings.aggregation!r}", name, Rule._fields)
    return rule._replace(**own)


def extra_of(task: Task, settings: Settings, aggregator: Aggregator, rows: int, adapter: Adapter | None = None) -> Any:
    """`Values.extra`: what the rule learns or needs besides the table of so many rows."""
    if settings.learner_settings.name == "linear":
        return linear.new_features(task.n, mapped.mappings_of(task, settings))
    if mapped.is_mapped(task):
        return mapped.mappings_of(task, settings)
    return () if aggregator.learned is None else aggregator.learned.extra(task, aggregator, rows, adapter)


def extra_table(extra: Any) -> np.ndarray | None:
    """What is learned besides, by the rows of the table [rows, ...]; a checkpoint keeps it."""
    found: np.ndarray | None = getattr(extra, "table", None)
    return found


def as_learned(task: Task, settings: Settings) -> Task:
    """The task as the learner sees it; whom the aggregator has besides the task's own advisors comes after them."""
    if settings.learner_settings.name == "linear":  # a feature for every advisor's local state, as in the paper
        return replace(task, advisors=tuple(replace(advisor, table=None) for advisor in task.advisors))
    learned = aggregator_of(task, settings.aggregation, TABLES).learned
    if learned is None:
        return task
    learned.check(task)
    return learned.extend(task)
