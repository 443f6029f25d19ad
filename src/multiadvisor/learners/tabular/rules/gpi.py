"""Generalised policy improvement, learned (`theory.gpi`): what every advisor's plan is worth to each of its group.

Advisor j's plan is its own greedy action; advisors of a group share their local state, so that everybody can tell what
each of the others would do. Off-policy, with every transition, each advisor k learns Q_k^{pi_j} for the plan of every j
of its group, those whose part is over included. The group is heard as the best over j of sum_k w_k Q_k^{pi_j}(x, a),
and the other groups are added as ever. The same loop as the advisors' (`kernel.play`), with these three functions in
the place of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from multiadvisor.core.aggregations import GPI, Aggregation
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.core.compiling import inside
from multiadvisor.envs.adapter import Adapter
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.kernel import (
    CODES,
    ENDS,
    PARAMETERS,
    TINY,
    aggregate,
    larger,
    learn_advisors,
    look_ahead,
    update_terminal_advisors,
)
from multiadvisor.learners.tabular.records import AggregatorCodes, Plans
from multiadvisor.task import Advisor, Task

MOST_VALUES = 200_000_000  # 1.6 GB


@inside
def row_of(plans, committee, row, advisor, plan):
    """The row of another's plan in the local state in which `advisor` looks at `row`."""
    peer = plans.peers[np.uintp(advisor), plan]
    return np.uintp(row - committee.offset[np.uintp(advisor)] + committee.offset[np.uintp(peer)])


@inside
def aggregate_gpi(combine, table, seen, slots, committee, voice):
    """The preferences of `aggregate`, and for each group with plans those of the best one, action by action."""
    aggregate(combine, table, seen, slots, committee, voice)
    plans = voice.plans
    for group in range(plans.sizes.shape[0]):
        members = 0
        for plan in range(plans.sizes[group]):
            members = 0
            for a in range(table.shape[1]):
                plans.one[a] = 0.0
            for i in range(seen.size):
                k = np.uintp(seen.advisors[i])
                if plans.group[k] == group:
                    row, place = row_of(plans, committee, seen.rows[i], k, plan), np.uintp(plans.place[k])
                    members += 1
                    for a in range(table.shape[1]):
                        plans.one[a] += seen.voice[i] * plans.table[row, place, a]
            for a in range(table.shape[1]):
                plans.best[a] = larger(plans.best[a], plans.one[a]) if plan > 0 else plans.one[a]
        if members > 0:
            for a in range(table.shape[1]):
                voice.total[a] += plans.best[a]


@inside
def td_update_plan(plans, row, place, action, alpha, target):
    """q += alpha * error."""
    old = plans.table[row, place, action]
    new = old + alpha * (target - old)
    plans.table[row, place, action] = new if abs(new) > TINY else 0.0


@inside
def update_terminal_gpi(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """Whoever has ended learns its last reward, whatever the plan; then `settle_advisors`."""
    plans = voice.plans
    if run.learning and (first < m or terminated):
        for i in range(m):
            k = np.uintp(slots.advisors[i])
            if plans.group[k] >= 0 and (terminated or slots.ended[i] != 0):
                alpha, place = committee.alpha[k] * decay, np.uintp(plans.place[k])
                for plan in range(plans.sizes[plans.group[k]]):
                    row = row_of(plans, committee, rows[i], k, plan)
                    td_update_plan(plans, row, place, action, alpha, slots.reward[i])
    return update_terminal_advisors(table, slots, rows, m, committee, action, decay, run, first, terminated, voice)


@inside
def learn_plans(table, slots, rows, nexts, m, committee, action, decay, plans):
    """Those who stay learn what each plan of their group is worth to them; equal best actions share a plan evenly."""
    for group in range(plans.sizes.shape[0]):
        for plan in range(plans.sizes[group]):
            best, ties, choice = 0.0, 0, 0  # what the plan does in the next state, which all of the group see alike
            for i in range(m):
                k = np.uintp(slots.advisors[i])
                if plans.group[k] == group:
                    ahead, place = row_of(plans, committee, nexts[i], k, plan), np.uintp(plans.place[k])
                    if ties == 0:
                        best, choice = table[ahead, 0], 0
                        for a in range(1, table.shape[1]):
                            best = larger(best, table[ahead, a])
                        for a in range(table.shape[1]):
                            choice = a if table[ahead, a] == best else choice
                            ties += 1 if table[ahead, a] == best else 0
                    worth = plans.table[ahead, place, choice]
                    if ties > 1:
                        worth = 0.0
                        for a in range(table.shape[1]):
                            worth += plans.table[ahead, place, a] if table[ahead, a] == best else 0.0
                        worth /= ties
                    row = row_of(plans, committee, rows[i], k, plan)
                    target = slots.reward[i] + committee.gamma[k] * worth
                    td_update_plan(plans, row, place, action, committee.alpha[k] * decay, target)


@inside
def update_bootstrap_gpi(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):  # fmt: skip
    """`advance_advisors`; plans are learned about before the advisors learn, and with it change their plans."""
    aggregate_gpi(combine, table, seen, slots, committee, voice)
    if run.learning and m > 0:
        look_ahead(expect, table, counts, slots, nexts, committee, m, now, run, voice, clock)
        learn_plans(table, slots, rows, nexts, m, committee, action, decay, voice.plans)
        changed = learn_advisors(table, slots, rows, nexts, m, action, decay, run)
        if changed or seen.size != m:
            aggregate_gpi(combine, table, seen, slots, committee, voice)


@inside
def planning_voice(whole, real, aggregator, parts):
    """`plain_voice`, of the room to work in and the plans."""
    room, plans = aggregator
    return AggregatorCodes(
        whole[CODES, :parts], whole[ENDS, :parts], real[PARAMETERS, :parts], room[0], room[1], room[2], room[2], plans
    )


# ---- one state -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class GPIAggregation(Aggregation):
    """`gpi` in one state: what the plans are worth there is known, and the advice is not asked for."""

    worth: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    """[m, J, A] Q_k^{pi_j}(x, a), of the m members of the group that are active."""
    planners: tuple[Advisor, ...] = ()
    """[J] whose plans they are, those included whose own part is over."""


def _planned(worth: np.ndarray, planners: tuple[Advisor, ...]) -> GPIAggregation:
    flat = worth.reshape(len(worth), -1)  # [m, J A]

    def prefer(advice: np.ndarray, weights: np.ndarray, parameter: float) -> np.ndarray:
        best: np.ndarray = (weights @ flat).reshape(*weights.shape[:-1], *worth.shape[1:]).max(axis=-2)
        return best

    return GPIAggregation(GPI, prefer, worth=worth, planners=planners)


def aggregator_at(
    members_of: tuple[Advisor, ...],
    aggregator: Aggregator,
    plans: Plans,
    offset: np.ndarray,
    advisors: np.ndarray,
    rows: np.ndarray,
) -> Aggregator:
    """How these advisors [m], who look at these rows [m], are heard by each other's plans; others as ever.

    `offset` [n] tells the rows of advisors apart that are in one local state.
    """
    of, parts = aggregator.of[advisors], list(aggregator.parts)
    for part, (aggregation, _) in enumerate(parts):
        members = np.flatnonzero(of == part)
        if aggregation.name == GPI and len(members):
            who = advisors[members]
            planners = plans.peers[who[0], : plans.sizes[plans.group[who[0]]]]  # [J]
            at = (rows[members] - offset[who])[:, None] + offset[planners]  # [m, J]
            worth = plans.table[at, plans.place[who][:, None]]  # [m, J, A]
            parts[part] = (_planned(worth, tuple(members_of[j] for j in planners)), 0.0)
    return Aggregator(tuple(parts), of)


# ---- groups ----------------------------------------------------------------------------------------------------------
def no_plans(actions: int) -> Plans:
    """Of a committee in which no group has plans."""
    return _plans(0, [], 0, actions)


def plans_of(task: Task, aggregator: Aggregator, rows: int, adapter: Adapter | None = None) -> Plans:
    """Room for what the plans of the groups that are heard by them are worth, in a table of so many rows."""
    actions = len(task.actions)
    parts = [part for part, (aggregation, _) in enumerate(aggregator.parts) if aggregation.name == GPI]
    groups = [np.flatnonzero(aggregator.of == part) for part in parts]
    for members in groups:
        _check_group(task, members, adapter)
    if not groups:
        return no_plans(actions)
    _check_size(task, rows, max(len(members) for members in groups), actions)
    return _plans(rows, groups, task.n, actions)


def grown_plans(task: Task, plans: Plans, rows: int) -> Plans:
    """The same with room for so many rows."""
    before, most, actions = plans.table.shape
    if not most:
        return plans
    _check_size(task, rows, most, actions)
    table = np.zeros((rows, most, actions))
    table[:before] = plans.table
    return plans._replace(table=table)


def _check_size(task: Task, rows: int, most: int, actions: int) -> None:
    if (size := rows * most * actions) > MOST_VALUES:
        raise BadInput(
            f"what all plans are worth to all advisors of task {task.name!r} are {size:.2g} values, more than "
            f"{MOST_VALUES:.2g}: give fewer advisors a group of plans (GROUP=gpi), or choose another aggregation"
        )


def _plans(rows: int, groups: list[np.ndarray], n: int, actions: int) -> Plans:
    most = max((len(members) for members in groups), default=0)
    group, place, peers = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.zeros((n, most), np.int64)
    for g, members in enumerate(groups):
        group[members], place[members] = g, np.arange(len(members))
        peers[members, : len(members)] = members
    sizes = np.array([len(members) for members in groups], np.int64)
    return Plans(np.zeros((rows, most, actions)), group, place, peers, sizes, np.zeros(actions), np.zeros(actions))


def _check_group(task: Task, members: np.ndarray, adapter: Adapter | None) -> None:
    """Refuse advisors that could not tell each other's plans from what they see."""
    first = task.advisors[members[0]]
    for j in members:
        advisor = task.advisors[j]
        same = (
            (advisor.state, advisor.states) == (first.state, first.states)
            if adapter is None
            else adapter.view_of[j] == adapter.view_of[members[0]]
        )
        if advisor.table is not None or not same:
            others = "shares its table" if advisor.table is not None else f"does not see what {first.name!r} sees"
            raise BadInput(
                f"advisor {advisor.name!r} of task {task.name!r} {others}, so gpi cannot use each other's plans: "
                "name groups whose advisors share one local state, as in fruits=gpi"
            )
