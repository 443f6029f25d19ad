"""One advisor in control, and who it is is learned: W-learning (Humphrys 1996), Arbi-Q (Simpkins and Isbell 2019).

Each advisor j has a claim to control, beside its values:

    w_learning   W_j(x_j), what j loses where another is obeyed:  w_j (max_a Q_j(x_j, a) - (r_j + gamma_j V_j(x'_j)))
    arbi_q       C(z, j), what all earn with j in control, by Sarsa:  r + gamma C(z', the one in control in z')

The one with the largest claim is in control: it advises, and the others do not. W-values lie beside the rows of the
advisors' table. The arbitrator of Arbi-Q is one more advisor, the last, of weight 0: in the row in which it looks at z
it has a claim for every other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from multiadvisor.core.aggregator import Aggregator
from multiadvisor.core.compiling import inside
from multiadvisor.core.learned import LearnedAggregation
from multiadvisor.core.plannings import TAKEN
from multiadvisor.envs.adapter import Adapter
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.kernel import aggregate, td_update
from multiadvisor.learners.tabular.records import Arrivals
from multiadvisor.learners.tabular.state_index import extend_task
from multiadvisor.task import Task, nothing


class Claims(NamedTuple):
    """The claims to control."""

    table: Any  # [rows, 1] W-values, or [rows, n] what all earn with each in control
    leader: Any  # [1] int64 the slot of the one in control, -1: nobody
    wanted: Any  # [n] int64 scratch of a step: who was obeyed (the first entry), or 1 for each that wanted the action
    paid: Any  # [1] scratch of a step: what the arbitrator is paid
    apart: bool  # whether it has a reward of its own
    arbitrated: bool  # whether there is an arbitrator


# ---- in control ------------------------------------------------------------------------------------------------------
@inside
def prefer_leader(rule, work, slots, arrivals):
    """`aggregate`, of the one with the largest claim, among equals the first; it is noted. An arbitrator weighs 0."""
    claims, leader, most = work.values.extra, -1, 0.0
    for i in range(arrivals.size):
        slots.part_weight[i] = 0.0
        if arrivals.weight[i] != 0.0:
            row = arrivals.rows[arrivals.size - 1 if claims.arbitrated else i]
            claim = claims.table[np.uintp(row), arrivals.advisors[i] if claims.arbitrated else 0]
            if leader < 0 or claim > most:
                leader, most = i, claim
    claims.leader[0] = leader
    if leader >= 0:
        slots.part_weight[leader] = arrivals.weight[leader]
    aggregate(rule, work, slots, Arrivals(arrivals.advisors, arrivals.rows, slots.part_weight, arrivals.size))


@inside
def best_wish(table, row, weight):
    """The largest of w Q."""
    best = weight * table[row, 0]
    for a in range(1, table.shape[1]):
        wish = weight * table[row, a]
        best = wish if wish > best else best
    return best


@inside
def wants(table, row, weight, action):
    """Whether the action is a best one for an advisor."""
    return weight * table[row, action] == best_wish(table, row, weight)


# ---- W-learning ------------------------------------------------------------------------------------------------------
@inside
def learn_loss(work, slots, i, target, decay):
    """The W-value of the advisor in slot i moves towards what it would have got less what it gets."""
    row, weight = np.uintp(slots.rows[i]), work.committee.weight[np.uintp(slots.advisors[i])]
    loss = best_wish(work.values.table, row, weight) - weight * target
    td_update(work.values.extra.table, row, 0, slots.alpha[i] * decay, loss)


@inside
def end_w(work, slots, m, step):
    """Note who was obeyed; of the others, whoever has ended learns what it lost."""
    claims, obeyed = work.values.extra, -1
    leader = claims.leader[0]
    if leader >= 0 and wants(work.values.table, np.uintp(slots.rows[leader]), slots.weight[leader], step.action):
        obeyed = slots.advisors[leader]
    claims.wanted[0] = obeyed
    if work.run.learning and obeyed >= 0 and (step.first < m or step.terminated):
        for i in range(m):
            if slots.advisors[i] != obeyed and (step.terminated or slots.ended[i] != 0):
                learn_loss(work, slots, i, slots.reward[i], step.decay)


@inside
def learn_w(work, slots, m, arrivals, step, taken):
    """Those whom another's being obeyed has cost something learn how much."""
    obeyed = work.values.extra.wanted[0]
    for i in range(m):
        if obeyed >= 0 and slots.advisors[i] != obeyed:
            learn_loss(work, slots, i, slots.reward[i] + slots.gamma[i] * slots.value[i], step.decay)
    return True


# ---- Arbi-Q ----------------------------------------------------------------------------------------------------------
# Whoever wanted the action that was taken might as well have been in control: all of them learn from the step.
@inside
def all_but_arbitrator(m):
    """The last one bootstraps by its own rule."""
    return m - 1 if m > 0 else 0


@inside
def move_others(work, row, action, alpha, target, advisor):
    """The arbitrator has no values of its own."""
    if advisor < work.committee.weight.shape[0] - 1:
        td_update(work.values.table, row, action, alpha, target)


@inside
def move_claims(work, row, decay, target):
    """The claims of all that wanted what was done move towards a target."""
    claims = work.values.extra
    for j in range(claims.table.shape[1]):
        if claims.wanted[j] == 1:
            td_update(claims.table, np.uintp(row), j, work.committee.alpha[-1] * decay, target)


@inside
def end_arbitrated(work, slots, m, step):
    """Note who wanted the action, and what the arbitrator is paid: at the end of an episode it learns that."""
    claims, weight = work.values.extra, work.committee.weight
    paid = slots.reward[m - 1] if claims.apart else 0.0
    for j in range(claims.table.shape[1]):
        claims.wanted[j] = 0
    for i in range(m - 1):
        j = np.uintp(slots.advisors[i])
        paid += 0.0 if claims.apart else weight[j] * slots.reward[i]
        claims.wanted[j] = 1 if wants(work.values.table, np.uintp(slots.rows[i]), weight[j], step.action) else 0
    claims.paid[0] = paid
    if step.terminated and work.run.learning:
        move_claims(work, slots.rows[m - 1], step.decay, paid)


@inside
def next_leader(work, arrivals, leader, taken):
    """The slot of who is in control next: of the others one that wants the action taken, where the leader does not."""
    table = work.values.table
    if leader < 0 or taken < 0 or wants(table, np.uintp(arrivals.rows[leader]), arrivals.weight[leader], taken):
        return leader
    for i in range(arrivals.size - 1):
        weight = arrivals.weight[i]
        if weight != 0.0 and wants(table, np.uintp(arrivals.rows[i]), weight, taken):
            return i
    return leader


@inside
def learn_arbitrated(work, slots, m, arrivals, step, taken):
    """The arbitrator learns by Sarsa, of all who wanted what was done."""
    if m > 0:
        claims, worth = work.values.extra, 0.0
        after = next_leader(work, arrivals, claims.leader[0], taken)
        if after >= 0:
            worth = claims.table[np.uintp(arrivals.rows[arrivals.size - 1]), arrivals.advisors[after]]
        move_claims(work, slots.rows[m - 1], step.decay, claims.paid[0] + work.committee.gamma[-1] * worth)
    return True


# ---- for Python ------------------------------------------------------------------------------------------------------
def in_control(claims: Claims, advisors: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[m] bool: the one in control among the m active ones, whose weights [m] are not 0 where they advise."""
    able = np.flatnonzero(weights)
    found = claims.table[rows[-1], advisors[able]] if claims.arbitrated else claims.table[rows[able], 0]
    leader = able[found.argmax()] if len(able) else -1
    leads: np.ndarray = np.arange(len(advisors)) == leader
    return leads


class Selection(LearnedAggregation):
    """One advisor in control."""

    selects = True
    acts_by = "who is in control"
    arbitrated: ClassVar[bool] = False
    """Whether there is an arbitrator."""

    def extra(self, task: Task, aggregator: Aggregator, rows: int, adapter: Adapter | None = None) -> Claims:
        """The claims, in a table of so many rows."""
        apart = task.extra_advisor is not None and task.extra_advisor.reward is not None
        table = np.zeros((rows, task.n - 1 if self.arbitrated else 1))
        return Claims(table, np.full(1, -1), np.zeros(task.n, np.int64), np.zeros(1), apart, self.arbitrated)

    def weigh(self, extra: Claims, advisors: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Nobody but the one in control weighs anything."""
        found: np.ndarray = np.where(in_control(extra, advisors, rows, weights), weights, 0.0)
        return found


class WLearning(Selection):
    """In control is the one that would lose most."""

    rule: ClassVar[Mapping[str, Any]] = {"prefer": prefer_leader, "end": end_w, "target": learn_w}


class ArbiQ(Selection):
    """In control is the one whom the arbitrator chooses."""

    added = "arbitrator"
    arbitrated = True
    needs = (TAKEN,)
    rule: ClassVar[Mapping[str, Any]] = {
        "prefer": prefer_leader, "learners": all_but_arbitrator, "move": move_others, "end": end_arbitrated,
        "target": learn_arbitrated,
    }  # fmt: skip

    def extend(self, task: Task) -> Task:
        """The task with the arbitrator as the last advisor."""
        given = task.extra_advisor
        if given is None:
            return extend_task(task, self.added, 0.0)
        if task.world is not None and given.reward is not None:
            raise BadInput(
                f"the arbitrator of task {task.name!r} has its own reward, and a compiled world pays its advisors "
                "only: leave it out, or make the task from a Gymnasium environment"
            )
        return extend_task(task, self.added, 0.0, nothing if given.reward is None else given.reward, given.gamma)
