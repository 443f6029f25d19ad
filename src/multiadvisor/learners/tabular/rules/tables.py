"""The update rule of the paper's advisors: a table for each, and everybody bootstraps by its own planning."""

from __future__ import annotations

from multiadvisor.core.compiling import inside
from multiadvisor.learners.tabular.kernel import td_update


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
