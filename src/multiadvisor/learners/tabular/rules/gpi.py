"""Generalised policy improvement, learned (`theory.gpi`): what every advisor's plan is worth to each of its group.

Advisor j's plan is its own greedy action; advisors of a group share their local state, so that everybody can tell what
each of the others would do. Off-policy, with every transition, each advisor k learns Q_k^{pi_j} for the plan of every j
of its group, those whose part is over included. The group's preferences are the best over j of
sum_k w_k Q_k^{pi_j}(x, a), and those of the other groups are added as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from multiadvisor.core.aggregations import PlanAggregation
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.core.compiling import called, inside
from multiadvisor.core.learned import LearnedAggregation
from multiadvisor.envs.adapter import Adapter
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.kernel import aggregate, larger, largest, td_update
from multiadvisor.task import Advisor, Task

MOST_VALUES = 200_000_000  # 1.6 GB


class Plans(NamedTuple):
    """What every advisor's plan is worth to each of its group."""

    table: Any  # [rows, J, A] Q_k^{pi_j}: the row of j's plan in a local state, the place of k in the group
    group: Any  # [n] int64 the group of an advisor, or -1
    place: Any  # [n] int64 its place there
    peers: Any  # [n, J] int64 the advisors of its group
    sizes: Any  # [groups] int64
    one: Any  # [A] scratch
    best: Any  # [A] scratch


@inside
def row_of(work, row, advisor, plan):
    """The row of another's plan in the local state in which `advisor` looks at `row`."""
    offset, peer = work.committee.offset, work.values.extra.peers[np.uintp(advisor), plan]
    return np.uintp(row - offset[np.uintp(advisor)] + offset[np.uintp(peer)])


@inside
def aggregate_plans(rule, work, slots, arrivals):
    """The preferences of `aggregate`, and those of the groups with plans."""
    aggregate(rule, work, slots, arrivals)
    add_best_plans(work, arrivals)


@called
def add_best_plans(work, arrivals):
    """For each group with plans the preferences of the best one, action by action."""
    plans, total = work.values.extra, work.aggregator.total
    for group in range(plans.sizes.shape[0]):
        members = 0
        for plan in range(plans.sizes[group]):
            members = 0
            for a in range(total.shape[0]):
                plans.one[a] = 0.0
            for i in range(arrivals.size):
                k = np.uintp(arrivals.advisors[i])
                if plans.group[k] == group:
                    row, place = row_of(work, arrivals.rows[i], k, plan), np.uintp(plans.place[k])
                    members += 1
                    for a in range(total.shape[0]):
                        plans.one[a] += arrivals.weight[i] * plans.table[row, place, a]
            for a in range(total.shape[0]):
                plans.best[a] = larger(plans.best[a], plans.one[a]) if plan > 0 else plans.one[a]
        if members > 0:
            for a in range(total.shape[0]):
                total[a] += plans.best[a]


@inside
def end_plans(work, slots, m, step):
    """Whoever has ended learns its last reward, whatever the plan."""
    plans = work.values.extra
    if work.run.learning and (step.first < m or step.terminated):
        for i in range(m):
            k = np.uintp(slots.advisors[i])
            if plans.group[k] >= 0 and (step.terminated or slots.ended[i] != 0):
                alpha, place = slots.alpha[i] * step.decay, np.uintp(plans.place[k])
                for plan in range(plans.sizes[plans.group[k]]):
                    row = row_of(work, slots.rows[i], k, plan)
                    td_update(plans.table[row], place, step.action, alpha, slots.reward[i])


@inside
def learn_plans(work, slots, m, arrivals, step, taken):
    """Those who stay learn what each plan of their group is worth to them, before they learn and so change their plans;
    equal best actions share a plan evenly."""
    table, plans = work.values.table, work.values.extra
    for group in range(plans.sizes.shape[0]):
        for plan in range(plans.sizes[group]):
            best, ties, choice = 0.0, 0, 0  # what the plan does in the next state, which all of the group see alike
            for i in range(m):
                k = np.uintp(slots.advisors[i])
                if plans.group[k] == group:
                    ahead, place = row_of(work, slots.next_rows[i], k, plan), np.uintp(plans.place[k])
                    if ties == 0:
                        best = largest(table[ahead])
                        for a in range(table.shape[1]):
                            choice = a if table[ahead, a] == best else choice
                            ties += 1 if table[ahead, a] == best else 0
                    worth = plans.table[ahead, place, choice]
                    if ties > 1:
                        worth = 0.0
                        for a in range(table.shape[1]):
                            worth += plans.table[ahead, place, a] if table[ahead, a] == best else 0.0
                        worth /= ties
                    row, target = row_of(work, slots.rows[i], k, plan), slots.reward[i] + slots.gamma[i] * worth
                    td_update(plans.table[row], place, step.action, slots.alpha[i] * step.decay, target)
    return False


# ---- for Python ------------------------------------------------------------------------------------------------------
class GPI(LearnedAggregation):
    """The best plan of a group."""

    of_all = False
    holds_weights = False
    acts_by = "plans"
    beyond = "what their plans are worth"
    rule: ClassVar[Mapping[str, Any]] = {"prefer": aggregate_plans, "end": end_plans, "target": learn_plans}

    def extra(self, task: Task, aggregator: Aggregator, rows: int, adapter: Adapter | None = None) -> Plans:
        """Room for what the plans of each group are worth, in a table of so many rows."""
        actions, n = len(task.actions), task.n
        groups = [np.flatnonzero(aggregator.of == part) for part in self._parts(aggregator)]
        most = max(len(members) for members in groups)
        group, place, peers = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.zeros((n, most), np.int64)
        for g, members in enumerate(groups):
            _check_group(task, members, adapter)
            group[members], place[members] = g, np.arange(len(members))
            peers[members, : len(members)] = members
        self.check_size(task, rows * most * actions)
        sizes = np.array([len(members) for members in groups], np.int64)
        return Plans(np.zeros((rows, most, actions)), group, place, peers, sizes, np.zeros(actions), np.zeros(actions))

    def check_size(self, task: Task, size: int) -> None:
        """Refuse a table of too many values."""
        if size > MOST_VALUES:
            raise BadInput(
                f"what all plans are worth to all advisors of task {task.name!r} are {size:.2g} values, more than "
                f"{MOST_VALUES:.2g}: give fewer advisors a group of plans (GROUP={self.name}), or choose another "
                "aggregation"
            )

    def at(
        self, aggregator: Aggregator, extra: Plans, team: tuple[Advisor, ...], offset: np.ndarray, advisors: np.ndarray,
        rows: np.ndarray,
    ) -> Aggregator:  # fmt: skip
        """By each other's plans."""
        of, parts = aggregator.of[advisors], list(aggregator.parts)
        for part in self._parts(aggregator):
            members = np.flatnonzero(of == part)
            if len(members):
                who = advisors[members]
                planners = extra.peers[who[0], : extra.sizes[extra.group[who[0]]]]  # [J]
                at = (rows[members] - offset[who])[:, None] + offset[planners]  # [m, J]
                worth = extra.table[at, extra.place[who][:, None]]  # [m, J, A]
                parts[part] = (self._planned(worth, tuple(team[j] for j in planners)), 0.0)
        return aggregator._replace(parts=tuple(parts), of=of)

    def _parts(self, aggregator: Aggregator) -> list[int]:
        """Whose advisors it combines."""
        return [part for part, (aggregation, _) in enumerate(aggregator.parts) if aggregation.name == self.name]

    def _planned(self, worth: np.ndarray, planners: tuple[Advisor, ...]) -> PlanAggregation:
        flat = worth.reshape(len(worth), -1)  # [m, J A]

        def prefer(advice: np.ndarray, weights: np.ndarray, parameter: float) -> np.ndarray:
            best: np.ndarray = (weights @ flat).reshape(*weights.shape[:-1], *worth.shape[1:]).max(axis=-2)
            return best

        return PlanAggregation(self.name, prefer, worth=worth, planners=planners)


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
