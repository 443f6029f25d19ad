"""The records that the compiled loop works on, by name."""

from __future__ import annotations

from typing import Any, NamedTuple


class Committee(NamedTuple):
    """What belongs to an advisor."""

    offset: Any  # [n] int64: row = offset + stride * local state
    stride: Any  # [n] int64
    kind: Any  # [n] int64 the code of its planning
    part: Any  # [n] int64 the part of the aggregator that hears it
    weight: Any  # [n]
    gamma: Any  # [n]
    alpha: Any  # [n]
    target: Any  # [rows, A] the policies that are valued, where some planning needs them
    mapping: Any  # [n, 3] the scales on which values are moved (`mapped.py`), where some advisor has one


class Slots(NamedTuple):
    """What belongs to an active advisor, one row per quantity."""

    advisors: Any  # [n] int64
    local: Any  # [n] int64 the local state
    rows: Any  # [n] int64 the row it has left
    nexts: Any  # [n] int64 the row it has arrived at
    ended: Any  # [n] int64 1 where its own part is over
    scratch: Any  # [n] int64
    voice: Any  # [n] its weight, or 0 where it is silent
    gamma: Any  # [n] its own, as is the next: side by side they are read faster
    alpha: Any  # [n]
    reward: Any  # [n]
    value: Any  # [n] what it expects of the next state
    volume: Any  # [n] scratch: the weights of one part
    bits: Any = None  # [n] int64 the rewards' bits, which are compared faster


WHOLE_SLOTS, REAL_SLOTS = 6, 6
WORLD_WHOLE, WORLD_REAL = WHOLE_SLOTS + 2, REAL_SLOTS + 1  # with who has arrived, where advisors join


class NextSlots(NamedTuple):
    """Who is active in the state arrived in: those who stay and, in a Python environment, those who have joined."""

    advisors: Any  # [n] int64
    rows: Any  # [n] int64
    voice: Any  # [n]
    size: int


class AggregatorCodes(NamedTuple):
    """How the aggregator hears: the code and the parameter of each part, and room for one part's preferences."""

    code: Any  # [G] int64
    ends: Any  # [G] int64 the first advisor behind each part; -1 where parts are mixed up
    parameter: Any  # [G]
    total: Any  # [A] the preferences
    one: Any  # [A] scratch
    behaviour: Any  # [A] scratch
    note: Any  # [3] scratch of linear Q-learning
    plans: Any  # what the plans of its groups are worth


class Plans(NamedTuple):
    """What every advisor's plan is worth to each of its group (`plans.py`); empty where no group is heard so."""

    table: Any  # [rows, J, A] Q_k^{pi_j}: the row of j's plan in a local state, the place of k in the group
    group: Any  # [n] int64 the group of an advisor, or -1
    place: Any  # [n] int64 its place there
    peers: Any  # [n, J] int64 the advisors of its group
    sizes: Any  # [groups] int64
    one: Any  # [A] scratch
    best: Any  # [A] scratch


class Run(NamedTuple):
    """What never changes during a call."""

    key: Any
    half: int
    epsilon: float
    sigma: float
    limit: int
    shared: int
    learning: bool
    kind: int  # the code of everybody's planning, or MIXED
    needs: int
    cooling: int  # epsilon falls as `decay_of` says
