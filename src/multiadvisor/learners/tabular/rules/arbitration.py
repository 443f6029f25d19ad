"""One advisor in control, and who it is is learned: W-learning (Humphrys 1996), Arbi-Q (Simpkins and Isbell 2019).

Each advisor j has a second one beside it, its claim to control, whose one value stands in the first column of its row:

    w_learning   W_j(x_j), what j loses where another is obeyed:  w_j (max_a Q_j(x_j, a) - (r_j + gamma_j V_j(x'_j)))
    arbi_q       C(z, j), what all earn with j in control, by Sarsa:  r + gamma C(z', the one in control in z')

The one with the largest claim is in control: it speaks, and the others are silent. So everything but the claims is the
advisors' own: rows of the one table, the sum of those who speak, ends, checkpoints, Gymnasium environments.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregations import ARBI_Q
from multiadvisor.core.compiling import compiled, inside
from multiadvisor.core.plannings import TAKEN
from multiadvisor.envs.adapter import Adapter
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.kernel import (
    HELD,
    aggregate,
    everybody_advises,
    larger,
    learn_advisors,
    look_ahead,
    td_update,
    update_terminal_advisors,
)
from multiadvisor.learners.tabular.state_index import StateIndex, of_module, place_of
from multiadvisor.task import Advisor, Task, World, nothing

CLAIMS = "claims"  # the group of the second ones
ARBITRATOR = "arbitrator"


# ---- in control ------------------------------------------------------------------------------------------------------
# Active are first the advisors, then their claims: under W-learning those of the active ones, in the same order, as a
# claim looks where its advisor looks; under Arbi-Q those of all, as the arbitrator looks at the whole state.
@inside
def advisors_among(m, n, whole):
    """How many of the m active ones are advisors, the others being claims."""
    return 0 if m == 0 else m - n if whole else m // 2


@inside
def put_in_control(table, seen, committee, whole):
    """Silence all but the one with the largest claim, among equals the first; its slot, or -1 where nobody speaks."""
    k = advisors_among(seen.size, committee.weight.shape[0] // 2, whole)
    leader, most = -1, 0.0
    for i in range(k):
        if seen.voice[i] != 0.0:
            claim = table[np.uintp(seen.rows[k + (seen.advisors[i] if whole else i)]), 0]
            if leader < 0 or claim > most:
                leader, most = i, claim
    for i in range(k):
        seen.voice[i] = seen.voice[i] if i == leader else 0.0
    return leader


@inside
def aggregate_w(combine, table, seen, slots, committee, voice):
    """`aggregate`, of the one in control."""
    put_in_control(table, seen, committee, False)
    aggregate(combine, table, seen, slots, committee, voice)


@inside
def aggregate_arbitrated(combine, table, seen, slots, committee, voice):
    """`aggregate`, of the one in control."""
    put_in_control(table, seen, committee, True)
    aggregate(combine, table, seen, slots, committee, voice)


@inside
def best_wish(table, row, weight):
    """The largest of w Q."""
    best = weight * table[row, 0]
    for a in range(1, table.shape[1]):
        best = larger(best, weight * table[row, a])
    return best


@inside
def wants(table, row, weight, action):
    """Whether the action is a best one for an advisor."""
    return weight * table[row, action] == best_wish(table, row, weight)


@inside
def leave(slots, rows, m, k, stay, whole):
    """The claims of those who have left leave with them, and close up; how many slots are taken then."""
    last = stay
    for i in range(m - k):
        if whole or slots.ended[i] == 0:
            slots.advisors[last], rows[last] = slots.advisors[k + i], rows[k + i]
            last += 1
    return last


# ---- W-learning ------------------------------------------------------------------------------------------------------
@inside
def update_terminal_w(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """`settle_advisors`; before it, who has ended learns what it lost. Who was obeyed is noted in `scratch`."""
    k = advisors_among(m, committee.weight.shape[0] // 2, False)
    obeyed = -1
    for i in range(k):
        if slots.voice[i] != 0.0 and wants(table, np.uintp(rows[i]), slots.voice[i], action):
            obeyed = slots.advisors[i]
    if run.learning and obeyed >= 0 and (first < m or terminated):
        for i in range(k):
            if slots.advisors[i] != obeyed and (terminated or slots.ended[i] != 0):
                learn_loss(table, rows, i, k, committee, slots.advisors[i], slots.reward[i], decay)
    stay = update_terminal_advisors(
        table, slots, rows, k, committee, action, decay, run, min(first, k), terminated, voice
    )
    slots.scratch[0] = obeyed
    if not (first < m or terminated):
        return m
    return 0 if terminated else leave(slots, rows, m, k, stay, False)


@inside
def learn_loss(table, rows, i, k, committee, advisor, target, decay):
    """The claim of the advisor in slot i moves towards what it would have got less what it gets."""
    weight, claim = committee.weight[advisor], advisor + committee.weight.shape[0] // 2
    loss = best_wish(table, np.uintp(rows[i]), weight) - weight * target
    td_update(table, np.uintp(rows[k + i]), 0, committee.alpha[claim] * decay, loss)


@inside
def update_bootstrap_w(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):  # fmt: skip
    """`advance_advisors`; those whom another's being obeyed has cost something learn how much."""
    k, obeyed = advisors_among(m, committee.weight.shape[0] // 2, False), slots.scratch[0]
    for i in range(seen.size):
        slots.volume[i] = seen.voice[i]
    aggregate_w(combine, table, seen, slots, committee, voice)
    if run.learning and k > 0:
        look_ahead(expect, table, counts, slots, nexts, committee, k, now, run, voice, clock)
        for i in range(k):
            if obeyed >= 0 and slots.advisors[i] != obeyed:
                target = slots.reward[i] + committee.gamma[np.uintp(slots.advisors[i])] * slots.value[i]
                learn_loss(table, rows, i, k, committee, slots.advisors[i], target, decay)
        learn_advisors(table, slots, rows, nexts, k, action, decay, run)
        for i in range(seen.size):
            seen.voice[i] = slots.volume[i]
        aggregate_w(combine, table, seen, slots, committee, voice)


# ---- Arbi-Q ----------------------------------------------------------------------------------------------------------
# Whoever wanted the action that was taken might as well have been in control: all of them learn from the step.
@inside
def update_terminal_paid(table, slots, rows, m, committee, action, decay, run, first, terminated, voice, own):
    """`settle_advisors`; before it, at the end of an episode, the arbitrator learns its last reward."""
    n = committee.weight.shape[0] // 2
    k = advisors_among(m, n, True)
    paid = 0.0
    if own and m > 0:
        paid = slots.reward[k]
    for i in range(k if not own else 0):
        paid += committee.weight[np.uintp(slots.advisors[i])] * slots.reward[i]
    for j in range(n):
        slots.scratch[j] = 0
    for i in range(k):
        j = slots.advisors[i]
        if wants(table, np.uintp(rows[i]), committee.weight[j], action):
            slots.scratch[j] = 1
            if terminated and run.learning:
                td_update(table, np.uintp(rows[k + j]), 0, committee.alpha[n + j] * decay, paid)
    stay = update_terminal_advisors(
        table, slots, rows, k, committee, action, decay, run, min(first, k), terminated, voice
    )
    if terminated:
        return 0
    last = leave(slots, rows, m, k, stay, True) if first < m else m
    slots.reward[last - n] = paid
    return last


@inside
def update_terminal_arbitrated(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """With the advisors' rewards, times their weights."""
    return update_terminal_paid(table, slots, rows, m, committee, action, decay, run, first, terminated, voice, False)


@inside
def update_terminal_arbitrated_apart(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """With a reward of its own."""
    return update_terminal_paid(table, slots, rows, m, committee, action, decay, run, first, terminated, voice, True)


@inside
def following(table, seen, eligible, committee, leader, taken):
    """The slot of who is in control next: of the others one that wants the action taken, where the leader does not."""
    n = committee.weight.shape[0] // 2
    if leader < 0 or taken < 0 or wants(table, np.uintp(seen.rows[leader]), eligible[leader], taken):
        return leader
    for i in range(seen.size - n):
        if eligible[i] != 0.0 and wants(table, np.uintp(seen.rows[i]), eligible[i], taken):
            return i
    return leader


@inside
def update_bootstrap_arbitrated(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):  # fmt: skip
    """`advance_advisors`; the arbitrator learns by Sarsa, of all who wanted what was done."""
    n = committee.weight.shape[0] // 2
    k, paid = advisors_among(m, n, True), slots.reward[m - n] if m > 0 else 0.0
    for i in range(seen.size):
        slots.volume[i] = seen.voice[i]
    leader = put_in_control(table, seen, committee, True)
    aggregate(combine, table, seen, slots, committee, voice)
    if run.learning and m > 0:
        if k > 0:
            look_ahead(expect, table, counts, slots, nexts, committee, k, now, run, voice, clock)
        after = following(table, seen, slots.volume, committee, leader, clock[HELD] - 1)
        worth = 0.0
        if after >= 0:
            worth = table[np.uintp(seen.rows[seen.size - n + seen.advisors[after]]), 0]
        for j in range(n):
            if slots.scratch[j] == 1:
                target = paid + committee.gamma[n + j] * worth
                td_update(table, np.uintp(rows[k + j]), 0, committee.alpha[n + j] * decay, target)
        learn_advisors(table, slots, rows, nexts, k, action, decay, run)
        for i in range(seen.size):
            seen.voice[i] = slots.volume[i]
        aggregate_arbitrated(combine, table, seen, slots, committee, voice)


def control_ways(task: Task, selection: str) -> dict[str, Any]:
    """What the loop is bound to for a task that `with_claims` made."""
    if selection != ARBI_Q:
        return {
            "find_preferences": aggregate_w,
            "update_terminal": update_terminal_w,
            "update_bootstrap": update_bootstrap_w,
        }
    apart = task.arbitrator is not None and task.arbitrator.reward is not None
    update_terminal = update_terminal_arbitrated_apart if apart else update_terminal_arbitrated
    return {
        "find_preferences": aggregate_arbitrated,
        "update_terminal": update_terminal,
        "update_bootstrap": update_bootstrap_arbitrated,
    }


def needs_of(aggregation: str) -> set[str]:
    """What has to be known of the next state for an aggregation, as for a planning."""
    return {TAKEN} if aggregation == ARBI_Q else set()


# ---- the same for Python ---------------------------------------------------------------------------------------------
def in_control(selection: str, table: np.ndarray, advisors: np.ndarray, rows: np.ndarray, heard: np.ndarray,
               n: int) -> int | None:  # fmt: skip
    """The place of the one in control among the m active ones, whose weights [m] are not 0 where they may speak."""
    whole = selection == ARBI_Q
    k = 0 if len(advisors) == 0 else len(advisors) - n if whole else len(advisors) // 2
    able = np.flatnonzero(heard[:k])
    claims = table[rows[k + (advisors[able] if whole else able)], 0]
    return int(able[claims.argmax()]) if len(able) else None


def only_in_control(selection: str, table: np.ndarray, advisors: np.ndarray, rows: np.ndarray, heard: np.ndarray,
                    n: int) -> np.ndarray:  # fmt: skip
    """[m] bool: the one in control, see above."""
    found = np.zeros(len(advisors), bool)
    leader = in_control(selection, table, advisors, rows, heard, n)
    found[[] if leader is None else leader] = True
    return found


# ---- the task with claims --------------------------------------------------------------------------------------------
class ArbitrationConstants(NamedTuple):
    """The constants of a world whose n advisors have claims to control."""

    world: Any
    """The world's own."""
    radix: Any  # [size] int64: as in `Place`
    states: int
    n: int


def with_claims(task: Task, selection: str) -> Task:
    """The task as its aggregator sees it: with a claim for each advisor, after all of them."""
    whole = selection == ARBI_Q
    if task.adapter is not None:
        claims = tuple(_arbitrated(task, advisor, None) if whole else _claim(advisor) for advisor in task.advisors)
        advisors = (*task.advisors, *claims)
        return replace(task, advisors=advisors, adapter=Adapter(task.adapter.env, advisors, task.adapter.discretise))
    assert task.world is not None
    if whole and task.arbitrator is not None and task.arbitrator.reward is not None:
        raise BadInput(
            f"the arbitrator of task {task.name!r} has its own reward, and a compiled world pays its advisors "
            "only: leave it out, or make the task from a Gymnasium environment"
        )
    place = (
        place_of(task, task.world, ARBITRATOR, task.arbitrator) if whole else StateIndex(None, np.zeros(0, np.int64), 0)
    )
    claims = tuple(_arbitrated(task, advisor, place.states) if whole else _claim(advisor) for advisor in task.advisors)
    constants = ArbitrationConstants(task.world.constants, place.radix, place.states, task.n)
    world = _claiming(task.world, constants, place.number)
    return replace(task, advisors=(*task.advisors, *claims), world=world, board=None)


def _claim(advisor: Advisor) -> Advisor:
    """It looks where the advisor looks, and comes and goes with it."""
    return Advisor(
        f"claim of {advisor.name}", reward=nothing, state=advisor.state, states=advisor.states, weight=0.0,
        alpha=advisor.alpha, active=advisor.active, ended=advisor.ended, group=CLAIMS, planning="egocentric",
        table=None if advisor.table is None else f"claims of {advisor.table}",
    )  # fmt: skip


def _arbitrated(task: Task, advisor: Advisor, states: int | None) -> Advisor:
    """It looks where the arbitrator looks, and is there as long as an episode lasts."""
    given = task.arbitrator or Advisor(ARBITRATOR)
    return Advisor(
        f"claim of {advisor.name}", reward=nothing if given.reward is None else given.reward,
        state=given.state if states is None else ARBITRATOR, states=given.states if states is None else states,
        weight=0.0, gamma=given.gamma, alpha=given.alpha, group=CLAIMS, planning="egocentric",
    )  # fmt: skip


def _claiming(world: World, constants: ArbitrationConstants, place: Any) -> World:
    advises = world.advises or everybody_advises
    functions = _compiled(world.reset, world.begin, world.local_states, world.step, advises, place)
    going = None if world.going is None else lambda constants, x: world.going(constants.world, x)  # type: ignore[misc]
    # what it answers besides is about the task itself, which is asked
    besides: dict[str, Any] = {"outcomes": None, "listing": None, "bounds": None}
    return replace(world, constants=constants, going=going, **besides, **functions)


@lru_cache(maxsize=64)
def _compiled(reset: Any, begin: Any, local_states: Any, step: Any, advises: Any, place: Any) -> dict[str, Any]:
    whole = place is not None
    look = place if whole else _nowhere

    @compiled
    def reset_all(constants, x, key):
        reset(constants.world, x, key)

    @compiled
    def begin_all(constants, x, advisors):
        k = begin(constants.world, x, advisors)
        for i in range(constants.n if whole else k):
            advisors[k + i] = constants.n + (i if whole else advisors[i])
        return k + (constants.n if whole else k)

    @compiled
    def local_states_all(constants, x, advisors, m, local):
        k = advisors_among(m, constants.n, whole)
        local_states(constants.world, x, advisors, k, local)
        if whole and m > 0:
            at = look(constants, x)
            if at < 0 or at >= constants.states:
                raise BadInput("the arbitrator looks at a state that is out of range: correct `sizes`, or its function")
            for j in range(constants.n):
                local[k + j] = at
        elif not whole:
            for i in range(k):
                local[k + i] = local[i]

    @compiled
    def step_all(constants, x, action, key, advisors, m, reward, ended):
        k = advisors_among(m, constants.n, whole)
        over = step(constants.world, x, action, key, advisors, k, reward, ended)
        for i in range(0 if whole else k):
            ended[k + i] = ended[i]
        return over

    @compiled
    def advises_all(constants, x, advisors, m, voice):
        advises(constants.world, x, advisors, advisors_among(m, constants.n, whole), voice)

    return {
        "reset": of_module(reset_all, reset),
        "begin": of_module(begin_all, begin),
        "local_states": of_module(local_states_all, local_states, look),
        "step": of_module(step_all, step),
        "advises": of_module(advises_all, advises),
    }


@compiled
def _nowhere(constants, x):
    """Where a claim looks under W-learning: where its advisor does."""
    return 0
