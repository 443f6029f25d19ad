"""One run played by several threads: what a GPU does with a run that one thread alone would play too slowly.

The loop of `kernel.play`, as phases: in each, every thread of the group does its share of the active advisors, or the
first thread does what only one can do (the world, the choice), and between two phases all wait for each other (`sync`).
A phase is a loop over the threads, `for thread in range(first, end, by)`: on a GPU a thread goes through it once, for
itself; on a processor one thread goes through it for all of the group, so that the same function runs there too, and is
tested there. What the threads tell each other lies in a `GroupMemory`.

Every sum is made in the order in which `kernel.play` makes it, a column by one thread, so that a run is the same to the
last bit whatever the number of its threads.

On a GPU 32 threads are in step (a warp), those of several runs. So a phase without work is passed, not left out: `sync`
and `anybody` stand where all 32 come by, never under a condition that differs between runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.compiling import inside, specialise
from multiadvisor.core.plannings import Ahead
from multiadvisor.core.rng import EPISODE, NOISE, draw, normal, step_key
from multiadvisor.learners.tabular import kernel, records, switch
from multiadvisor.learners.tabular.compiled_learner import CompiledLearner
from multiadvisor.learners.tabular.kernel import decay_of, end_step, next_action, next_actions, td_update
from multiadvisor.learners.tabular.lanes import workspace_of
from multiadvisor.learners.tabular.rules import update_rules

WARP = 32  # threads of a GPU that are in step
MOST_MEMORY = 48 * 1024  # bytes that the runs of a warp may share
MOST_ROWS, MOST_ADVISORS = 1 << 31, 1 << 15
SUM = 0  # the code of the aggregation `sum`, which every loop knows first


# ---- bound before compiling ------------------------------------------------------------------------------------------
class Bindings(NamedTuple):
    """The functions of a `World`, the learner's, and how many threads a run has."""

    reset: Any
    begin: Any
    local_states: Any
    step: Any
    advises: Any
    pseudo: Any
    local_state: Any
    each: bool  # whether there is a `local_state`; otherwise `local_states` is asked by one thread for all
    rule: Any  # a `Rule`
    value: Any  # what an advisor expects of its values, by the code of its planning
    threads: int
    actions: int


OWN: Any = None
PLAY: Any = None  # of `play_groups`: a loop that is bound already
ADVISES = COUNTS = False  # whether the world has an `advises` of its own, and some planning counts


@inside
def sync():
    """Wait until all threads are here; one alone need not."""


@inside
def anybody(flag):
    """Whether the flag of any run in the warp is set."""
    return flag


@inside
def copy_row(own, table, row, advice, i):
    """A row of the table; a GPU copies 16 bytes at a time."""
    for a in range(own.actions):
        advice[i, a] = table[row, a]


# ---- what the threads of a run share ---------------------------------------------------------------------------------
STATUS = np.dtype([(name, np.int32) for name in (
    "live",  # 1 until the run has been played as far as it should be
    "played",  # steps
    "entering",  # 1 where the active advisors have to be found
    "stepped",  # 1 where the world has made a step, 0 where an episode was only begun
    "action", "terminated",
    "before",  # how many advisors were active before the step
    "active",  # and how many are after it
    "paid",  # 1 where somebody was paid or has ended
    "stale",  # 1 where since then an advisor has learned in a row that it has arrived at
    "ahead", "taken",  # as in `Ahead`
)], align=True)  # fmt: skip
"""Where a run is in its step; the first thread writes it."""


class GroupMemory(NamedTuple):
    """What the threads of a run share: on a GPU it lies in the fast memory of a multiprocessor."""

    x: Any  # [size] the world's state, in integers as narrow as its `sizes` allow
    advisors: Any  # [n] int16 the active ones
    rows: Any  # [2, n] int32 the row each has left, and the row it has arrived at, which take turns
    ended: Any  # [n] int16
    reward: Any  # [n]
    weight: Any  # [n] 0 where it does not advise
    advice: Any  # [n, A] the values of the rows arrived at
    preferences: Any  # [3, A] as in `AggregatorParts`
    progress: Any  # [1] PROGRESS
    status: Any  # [1] STATUS


def memory_of(learner: CompiledLearner, dtype: Any) -> GroupMemory:
    """The memory of one run on a processor; on a GPU the arrays have the same shapes and types."""
    n, actions, world = learner.task.n, learner.table.shape[1], learner.task.world
    assert world is not None
    most = max(world.sizes) if world.sizes else 1 << 63
    return GroupMemory(
        np.zeros(learner.x.size, np.int16 if most < 1 << 15 else np.int32 if most < 1 << 31 else np.int64),
        np.zeros(n, np.int16), np.zeros((2, n), np.int32), np.zeros(n, np.int16), np.zeros(n), np.zeros(n),
        np.zeros((n, actions), dtype), np.zeros((3, actions)), records.new_progress(), np.zeros(1, STATUS),
    )  # fmt: skip


# ---- which runs, and how many threads --------------------------------------------------------------------------------
def group_loop(learner: CompiledLearner, threads: int, dtype: Any = np.float64) -> Any:
    """The loop for runs such as this one with so many threads each; None where one thread must play: the world has
    advisors that join, the rule is not that of plain tables, or a memory would be too large."""
    world, made, rule = learner.task.world, learner.made, learner.made.rule
    assert world is not None
    plain = (rule.prefer, rule.learners, rule.move, rule.end, rule.target) == update_rules.PLAIN
    small = learner.task.n < MOST_ADVISORS and len(learner.table) < MOST_ROWS and fits(learner, threads, dtype)
    if world.joins or not plain or not small:
        return None
    own = Bindings(
        world.reset, world.begin, world.local_states, world.step, world.advises or kernel.everybody_advises,
        world.pseudo or kernel.nothing_besides, world.local_state or nowhere, world.local_state is not None, rule,
        switch.value_switch(made.plannings), threads, learner.table.shape[1],
    )  # fmt: skip
    return specialise(play_group, OWN=own, ADVISES=world.advises is not None, COUNTS=made.counting)


def fits(learner: CompiledLearner, threads: int, dtype: Any) -> bool:
    """Whether the rooms of a warp do."""
    return bool(sum(array.nbytes for array in memory_of(learner, dtype)) * (WARP // threads) <= MOST_MEMORY)


def threads_for(runs: int, learner: CompiledLearner, dtype: Any = np.float64) -> int:
    """How many threads each of so many runs gets: as many as fill a GPU, not more than there is work for.

    A prototype was fastest with 32 for 2,112 runs of Pac-Boy, 16 for 8,448 and 8 for 33,792.
    """
    work = max(learner.task.n, learner.table.shape[1])
    threads = 1
    while threads < WARP and threads < work and (threads < 8 or threads * runs < WARP * 4224):
        threads *= 2
    while threads < WARP and not fits(learner, threads, dtype):
        threads *= 2
    return threads


@inside
def nowhere(constants, x, advisor):
    """Where a world answers for all advisors at once only."""
    return 0


# ---- the first thread ------------------------------------------------------------------------------------------------
@inside
def finish_step(work, memory, play, run):
    """Count the step that was made, and write down the episode where it is over."""
    status, progress, episodes = memory.status[0], memory.progress[0], play.score.shape[1]
    if status.stepped == 1:
        status.played += 1
        if end_step(work, status.terminated == 1, False):
            episode = progress.episodes - 1
            if episode < episodes:
                play.score[run, episode], play.length[run, episode] = progress.episode_score, progress.episode_step
                play.terminated[run, episode] = status.terminated


@inside
def begin_step(own, constants, work, memory, steps, episodes):
    """Begin an episode, or let the world make a step."""
    status, progress = memory.status[0], memory.progress[0]
    status.stepped, status.paid, status.stale = 0, 0, 0
    status.terminated, status.ahead, status.taken = 0, 0, -1
    if status.played >= steps or (episodes > 0 and progress.episodes >= episodes):
        status.live = 0
    if status.live == 0:
        status.before, status.active = 0, 0
        return
    key = step_key(work.run.key, progress.step)
    if progress.fresh == 1:
        own.reset(constants, memory.x, draw(key, EPISODE))
        progress.fresh, progress.episode_step, progress.episode_score = 0, 0, 0.0
        status.entering = 1
    if status.entering == 1:
        status.entering, status.before = 0, 0
        status.active = own.begin(constants, memory.x, memory.advisors)
        return
    action = next_action(work)
    over = own.step(constants, memory.x, action, key, memory.advisors, status.active, memory.reward, memory.ended)
    status.stepped, status.before, status.action, status.terminated = 1, status.active, action, 1 if over else 0


@inside
def noisy(work, reward, advisor):
    """A reward with the noise of the step."""
    if work.run.sigma > 0.0:
        key = step_key(work.run.key, work.progress[0].step)
        reward += work.run.sigma * normal(draw(key, NOISE + advisor))
    return reward


@inside
def pay(own, constants, work, memory, rows, returns, decay):
    """Count the rewards; whoever has ended learns its last one and leaves its slot."""
    status, progress = memory.status[0], memory.progress[0]
    before, over = status.before, status.terminated == 1
    if status.paid == 1:
        for i in range(before):
            if memory.reward[i] != 0.0:
                j = np.uintp(memory.advisors[i])
                progress.episode_score += work.committee.weight[j] * memory.reward[i]
                returns[j] += memory.reward[i]
    if status.stepped == 1:
        own.pseudo(constants, memory.x, status.action, memory.advisors, before, memory.ended, memory.reward)
    if over or status.paid == 1:
        stay = 0
        for i in range(before):
            advisor, row, reward, ended = memory.advisors[i], rows[i], memory.reward[i], memory.ended[i]
            memory.reward[i], memory.ended[i] = 0.0, 0
            if not over and ended == 0:
                memory.advisors[stay], rows[stay], memory.reward[stay] = advisor, row, reward
                stay += 1
            elif work.run.learning:
                alpha, target = work.committee.alpha[np.uintp(advisor)] * decay, noisy(work, reward, advisor)
                td_update(work.values.table, np.uintp(row), status.action, alpha, target)
        status.active = stay


# ---- all threads -----------------------------------------------------------------------------------------------------
@inside
def note_paid(own, memory, thread):
    """Whether somebody was paid or has ended."""
    for i in range(thread, memory.status[0].before, own.threads):
        if memory.reward[np.uintp(i)] != 0.0 or memory.ended[np.uintp(i)] != 0:
            memory.status[0].paid = 1


@inside
def arrive(own, copy, constants, work, memory, rows, thread):
    """The rows arrived at, what they hold, and the weights."""
    committee, table = work.committee, work.values.table
    for i in range(thread, memory.status[0].active, own.threads):
        slot = np.uintp(i)
        j = np.uintp(memory.advisors[slot])
        local = own.local_state(constants, memory.x, memory.advisors[slot]) if own.each else np.int64(rows[slot])
        row = committee.offset[j] + committee.stride[j] * local
        rows[slot] = row
        memory.weight[slot] = committee.weight[j]
        copy(own, table, np.uintp(row), memory.advice, slot)


@inside
def prefer(own, work, memory, slots, thread, first, end):
    """The preferences among the actions `first` to `end`, from the advice: a sum column by column, each by one thread,
    in the order of the advisors; anything else by the first thread."""
    size, aggregator = memory.status[0].active, work.aggregator
    if aggregator.code.shape[0] == 1 and aggregator.code[0] == SUM:
        for a in range(first + thread, end, own.threads):
            total, column = 0.0, np.uintp(a)
            for i in range(size):
                total += memory.weight[np.uintp(i)] * memory.advice[np.uintp(i), column]
            aggregator.total[column] = total
    elif thread == 0 and first < end:
        values = records.Values(memory.advice, work.values.counts, work.values.policies, ())
        advised = records.Workspace(values, work.committee, aggregator, work.run, work.progress)
        own.rule.prefer(own.rule, advised, slots, records.Arrivals(memory.advisors, slots.rows, memory.weight, size))


@inside
def shares(memory, shared, i):
    """Whether the advisor in slot i may share its table with another one."""
    return shared < 0 or memory.advisors[i] < shared


@inside
def first_sharer(memory, rows, shared, i):
    """The first slot whose advisor may share this one's row; the others leave it to that one's thread."""
    if shares(memory, shared, i):
        for k in range(i):
            if shares(memory, shared, k) and rows[k] == rows[i]:
                return k
    return i


@inside
def count(own, work, memory, rows, thread):
    """Note in the rows arrived at what the aggregator would do there."""
    status, shared = memory.status[0], work.run.shared
    for i in range(thread, status.active if work.run.learning and status.stepped == 1 else 0, own.threads):
        if i == first_sharer(memory, rows, shared, i):
            for k in range(i, status.active if shares(memory, shared, i) else i + 1):
                if rows[k] == rows[i]:
                    work.values.counts[np.uintp(rows[k]), status.ahead] += 1.0


@inside
def expected(own, work, memory, row, i):
    """What the advisor in slot i expects of the row that it has arrived at."""
    status, values, run = memory.status[0], work.values, work.run
    counted = np.uintp(row if values.counts.shape[0] > 1 else 0)
    valued = np.uintp(row if values.policies.shape[0] > 1 else 0)
    behaviour = work.aggregator.behaviour
    ahead = Ahead(status.ahead, status.taken, behaviour, values.counts[counted], values.policies[valued])
    kind = run.kind if run.kind >= 0 else work.committee.kind[np.uintp(memory.advisors[i])]
    return own.value(kind, memory.advice[i], ahead)


@inside
def learn(own, work, memory, rows, next_rows, thread, decay):
    """Those who stay learn; of those that share a row the thread of the first does so for all, one after the other."""
    status, shared, table, committee = memory.status[0], work.run.shared, work.values.table, work.committee
    action = np.uintp(status.action)
    for i in range(thread, status.active if status.stepped == 1 else 0, own.threads):
        slot = np.uintp(i)
        if not work.run.learning:
            memory.reward[slot] = 0.0
        elif i == first_sharer(memory, rows, shared, i):
            row, sharer = np.uintp(rows[slot]), shares(memory, shared, slot)
            for k in range(i, status.active if sharer else i + 1):
                other = np.uintp(k)
                if rows[other] == rows[slot]:
                    j, reward = (
                        np.uintp(memory.advisors[other]),
                        noisy(work, memory.reward[other], memory.advisors[other]),
                    )
                    target = reward + committee.gamma[j] * expected(own, work, memory, next_rows[other], other)
                    td_update(table, row, action, committee.alpha[j] * decay, target)
                    memory.reward[other] = 0.0
            if not sharer and rows[slot] == next_rows[slot]:
                memory.advice[slot, action] = table[row, action]
                status.stale = 1


@inside
def look_again(own, work, memory, next_rows, thread):
    """Another one may have learned in the row that a sharer has arrived at."""
    status = memory.status[0]
    if work.run.shared != 0 and work.run.learning and status.stepped == 1:
        for i in range(thread, status.active, own.threads):
            if shares(memory, work.run.shared, i):
                now = work.values.table[np.uintp(next_rows[i]), status.action]
                if now != memory.advice[i, status.action]:
                    status.stale = 1
                memory.advice[i, status.action] = now


# ---- the loop --------------------------------------------------------------------------------------------------------
def play_group(constants, lanes, play, steps, run, live, memory, first, end, by):
    """Play and learn for `steps` steps, or until there is no more room for episodes; the threads `first` to `end`."""
    work = workspace_of(lanes, play, run, memory.preferences, memory.progress)
    slots, left = records.unpack_slots(play.integers[run], play.reals[run]), np.uintp(0)
    actions, learning, episodes = work.values.table.shape[1], work.run.learning, play.score.shape[1]
    for thread in range(first, end, by):
        for i in range(thread, memory.x.shape[0], OWN.threads):
            memory.x[i] = play.x[run, i]
        for i in range(thread, memory.reward.shape[0], OWN.threads):
            memory.reward[i], memory.ended[i], slots.rows[i] = 0.0, 0, i
        if thread == 0:
            memory.progress[0], status = play.progress[run], memory.status[0]
            status.live, status.played, status.entering, status.stepped = 1 if live else 0, 0, 1, 0
    sync()
    while True:
        for thread in range(first, end, by):
            if thread == 0:
                finish_step(work, memory, play, run)
                begin_step(OWN, constants, work, memory, steps, episodes)
        sync()
        if not anybody(memory.status[0].live == 1):
            break
        for thread in range(first, end, by):
            note_paid(OWN, memory, thread)
        sync()
        decay, arrived = decay_of(work.run.half, memory.progress[0].step), np.uintp(1) - left
        rows, next_rows = memory.rows[left], memory.rows[arrived]
        for thread in range(first, end, by):
            if thread == 0:
                episode = min(memory.progress[0].episodes if episodes > 0 else 0, play.returns.shape[1] - 1)
                pay(OWN, constants, work, memory, rows, play.returns[run, episode], decay)
                if not OWN.each:
                    OWN.local_states(constants, memory.x, memory.advisors, memory.status[0].active, next_rows)
        sync()
        for thread in range(first, end, by):
            arrive(OWN, copy_row, constants, work, memory, next_rows, thread)
        sync()
        if ADVISES:
            for thread in range(first, end, by):
                if thread == 0:
                    OWN.advises(constants, memory.x, memory.advisors, memory.status[0].active, memory.weight)
            sync()
        needed = learning and work.run.needs != 0 and memory.status[0].stepped == 1 and memory.status[0].active > 0
        for thread in range(first, end, by):
            if needed:
                prefer(OWN, work, memory, slots, thread, 0, actions)
        sync()
        for thread in range(first, end, by):
            if needed and thread == 0:
                memory.status[0].ahead, memory.status[0].taken = next_actions(work)
        sync()
        if COUNTS:
            for thread in range(first, end, by):
                count(OWN, work, memory, next_rows, thread)
            sync()
        for thread in range(first, end, by):
            learn(OWN, work, memory, rows, next_rows, thread, decay)
        sync()
        for thread in range(first, end, by):
            look_again(OWN, work, memory, next_rows, thread)
        sync()
        low = memory.status[0].action if needed else 0  # then only what was learned can have changed
        high = low + memory.status[0].stale if needed else actions
        for thread in range(first, end, by):
            prefer(OWN, work, memory, slots, thread, low, high)
        sync()
        left = arrived
    for thread in range(first, end, by):
        if live:
            for i in range(thread, memory.x.shape[0], OWN.threads):
                play.x[run, i] = memory.x[i]
            if thread == 0:
                play.progress[run] = memory.progress[0]


def play_groups(constants, lanes, play, steps, first, end, memory, start, stop, by):
    """The runs from `first` to `end` on a processor, one after the other, in one memory."""
    for run in range(first, end):
        PLAY(constants, lanes, play, steps, run, True, memory, start, stop, by)
