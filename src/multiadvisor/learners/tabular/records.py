"""The records that the compiled loop works on, by name.

Rows of one array are cheaper to pass than as many arrays: from Python an array costs 4 ns, so that an adapter's step
with all of these as separate arrays would take 100 ns more. So what belongs to a slot or to an advisor lies in two
arrays, of integers and of floats, and the `unpack` functions alone know in which row; Python reads and writes through
the same records (`unpack_slots.py_func`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.compiling import inside


class Rule(NamedTuple):
    """An update rule: the compiled functions that `kernel.play` and `kernel.adapter_step` leave open."""

    combine: Any
    """(code, table, rows, weights, m, parameter, preferences): the aggregations that are known, as one switch."""
    expect: Any
    """(kind, values, slots, m, ahead, kinds): fills `slots.value`; the plannings that are known, as one switch."""
    prefer: Any
    """(rule, work, slots, arrivals): leaves the preferences in a state in `work.aggregator.total`."""
    learners: Any
    """m -> how many of the m active advisors bootstrap by their planning, the first ones."""
    move: Any
    """(work, row, action, alpha, target, advisor): q moves towards a target."""
    end: Any
    """(work, slots, m, step): before those who ended learn their last reward and leave their slots."""
    target: Any
    """(work, slots, m, arrivals, step, taken): before the others learn; changes the rewards and values of which their
    targets are made, or learns more rows. Whether the preferences have to be found again in any case."""


class Committee(NamedTuple):
    """What belongs to an advisor."""

    offset: Any  # [n] int64: row = offset + stride * local state
    stride: Any  # [n] int64
    kind: Any  # [n] int64 the code of its planning
    part: Any  # [n] int64 the part of the aggregator to which it belongs
    weight: Any  # [n]
    gamma: Any  # [n]
    alpha: Any  # [n]


class Values(NamedTuple):
    """What is learned."""

    table: Any  # [rows, A]
    counts: Any  # [rows, A] how often each action was the aggregator's, where some planning needs it
    policies: Any  # [rows, A] the policies that are valued, where some planning needs them
    extra: Any  # what else the update rule learns or needs: () for tables, else a record of `rules`


class Slots(NamedTuple):
    """What belongs to an active advisor, one row per quantity."""

    advisors: Any  # [n] int64
    local: Any  # [n] int64 the local state
    rows: Any  # [n] int64 the row it has left
    next_rows: Any  # [n] int64 the row it has arrived at
    ended: Any  # [n] int64 1 where its own part is over
    scratch: Any  # [n] int64
    weight: Any  # [n] 0 where it does not advise
    gamma: Any  # [n] its own, as is the next: side by side they are read faster
    alpha: Any  # [n]
    reward: Any  # [n]
    value: Any  # [n] what it expects of the next state
    part_weight: Any  # [n] scratch: the weights of one part
    reward_bits: Any  # [n] int64 the rewards' bits, which are compared faster


class Arrivals(NamedTuple):
    """Who is active in the state arrived in: those who stay, and those who have joined."""

    advisors: Any  # [n] int64
    rows: Any  # [n] int64
    weight: Any  # [n]
    size: int


class AggregatorParts(NamedTuple):
    """The code and the parameter of each part of the aggregator, and room for preferences."""

    code: Any  # [G] int64
    ends: Any  # [G] int64 the first advisor behind each part; -1 where parts are mixed up
    parameter: Any  # [G]
    total: Any  # [A] the preferences
    one: Any  # [A] scratch: of one part
    behaviour: Any  # [A] scratch: the probabilities of the next action


class RunRecord(NamedTuple):
    """What never changes during a call."""

    key: Any
    half: int  # the learning rate falls as `decay_of` says
    epsilon: float
    cooling: int  # and epsilon
    sigma: float
    limit: int
    shared: int  # how many advisors, the first ones, may share tables; -1: any
    learning: bool
    kind: int  # the code of everybody's planning, or MIXED
    needs: int


class Workspace(NamedTuple):
    """All of it but the slots."""

    values: Values
    committee: Committee
    aggregator: AggregatorParts
    run: RunRecord
    progress: Any  # [1] PROGRESS


class UpdateStep(NamedTuple):
    """The step from which is learned."""

    action: int
    decay: float  # of the learning rate
    first: int  # the first slot that was paid or has ended, or m
    terminated: bool


PROGRESS = np.dtype([
    ("step", np.int64), ("episodes", np.int64), ("episode_step", np.int64),
    ("fresh", np.int64),  # 1 where a new episode is due
    ("held", np.int64),  # the next action plus 1, where an advisor has learned from it
    ("action", np.int64),  # of an adapter: the action chosen last
    ("active", np.int64),  # and how many advisors chose it
    ("episode_score", np.float64), ("score_sum", np.float64),
], align=True)  # fmt: skip
"""How far a run has come; a checkpoint keeps it."""
RUN = np.dtype([
    ("key", np.uint64), ("half", np.int64), ("epsilon", np.float64), ("cooling", np.int64), ("sigma", np.float64),
    ("limit", np.int64), ("shared", np.int64), ("learning", np.int64), ("kind", np.int64), ("needs", np.int64),
    ("parts", np.int64),
], align=True)  # fmt: skip
"""A `Run` as one array, with the number of the aggregator's parts."""


def new_progress() -> np.ndarray:
    """[1] PROGRESS at the start of a run."""
    progress = np.zeros(1, PROGRESS)
    progress["fresh"] = 1
    return progress


# ---- packed ----------------------------------------------------------------------------------------------------------
INTEGERS, REALS = 8, 7  # rows of the two arrays in a compiled world
ADAPTER_INTEGERS, ADAPTER_REALS = 19, 12  # and of an adapter


@inside
def unpack_slots(integers, reals):
    """The slots."""
    return Slots(
        integers[0], integers[1], integers[2], integers[3], integers[4], integers[5],
        reals[0], reals[1], reals[2], reals[3], reals[4], reals[5], reals[3].view(np.int64),
    )  # fmt: skip


@inside
def unpack_arrivals(integers, reals, size):
    """Who has arrived."""
    return Arrivals(integers[6], integers[7], reals[6], size)


@inside
def unpack_committee(integers, reals):
    """The advisors of an adapter; the row of one is the first of its view plus its offset."""
    return Committee(integers[8], integers[9], integers[10], integers[11], reals[7], reals[8], reals[9])


class AdapterEvents(NamedTuple):
    """What the environment tells of each advisor."""

    phi: Any  # [n] int64 which of the views, its local state
    source: Any  # [n] int64 which of the signals is its reward
    active: Any  # [n] int64 1 where it is active now
    advises: Any  # [n] int64 1 where it has a say
    ended: Any  # [n] int64 1 where its own part has ended
    returns: Any  # [n] its sum of rewards


@inside
def unpack_events(integers, reals):
    """What the environment tells."""
    return AdapterEvents(integers[12], integers[13], integers[14], integers[15], integers[16], reals[10])


@inside
def unpack_parts(integers, reals, room, parts):
    """The aggregator of an adapter; `room` [3, A] is what it works in."""
    return AggregatorParts(
        integers[17, :parts], integers[18, :parts], reals[11, :parts], room[0], room[1], room[2]
    )  # fmt: skip


@inside
def unpack_run(run):
    """The settings from one array, which is passed faster than ten numbers."""
    one = run[0]
    return RunRecord(
        one.key, one.half, one.epsilon, one.cooling, one.sigma, one.limit, one.shared, one.learning == 1, one.kind,
        one.needs,
    )  # fmt: skip


class AdapterArrays(NamedTuple):
    """What an adapter's step is given besides the values."""

    integers: Any  # [ADAPTER_INTEGERS, n] int64
    reals: Any  # [ADAPTER_REALS, n]
    room: Any  # [3, A]
    progress: Any  # [1] PROGRESS
    run: Any  # [1] RUN
    firsts: Any  # [views] int64 the first row of the local state in each view
    signals: Any  # [signals] the rewards
