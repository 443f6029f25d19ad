"""The compiled learner: what `reference.py` says in NumPy, without an allocation or a Python object inside the step.

The active advisors stand in slots 0 .. m - 1, in rising order; `Slots` has what belongs to a slot, `Committee` what
belongs to an advisor, `Run` what never changes. A step is `next_action`, the world's step, `update_terminal` and
`update_bootstrap`: who has ended learns its last reward and leaves, the others look where they have arrived, and
learn. `play` does so inside a compiled world, `adapter_step` once per step of a Python environment. Plannings and
aggregations come in as functions, made in `switch.py`.
"""

from __future__ import annotations

import numpy as np

from multiadvisor.core.compiling import compiled, inside
from multiadvisor.core.plannings import Ahead
from multiadvisor.core.rng import CHOICE, EPISODE, NEXT_CHOICE, NOISE, below, draw, high_half, normal, step_key
from multiadvisor.envs.slots import slot_of
from multiadvisor.learners.tabular.records import (
    REAL_SLOTS,
    WHOLE_SLOTS,
    AggregatorCodes,
    Committee,
    NextSlots,
    Run,
    Slots,
)

# Entries of `clock` and `tally`, which a checkpoint keeps.
# HELD: the next action plus 1, where an advisor has learned from it.
STEP, EPISODES, EPISODE_STEP, FRESH, HELD = range(5)
EPISODE_SCORE, SCORE_SUM = range(2)
# What some planning has to know of the next state, as bits.
NEEDS = {"greedy": 1, "taken": 2, "behaviour": 4, "counts": 8, "target": 16}
MIXED = -1  # instead of one planning's code: advisors plan differently

TINY = 1e-200  # smaller values are set to 0: denormals would slow every later step a hundredfold


# ---- bound before compiling ------------------------------------------------------------------------------------------
def reset(constants, x, key):
    """The world's own, as are the four below."""


def begin(constants, x, advisors):
    """See `reset`."""


def local_states(constants, x, advisors, m, local):
    """See `reset`."""


def step(constants, x, action, key, advisors, m, reward, ended):
    """See `reset`."""


def advises(constants, x, advisors, m, voice):
    """See `reset`; a world without it lets everybody speak."""


def pseudo(constants, x, action, advisors, m, ended, reward):
    """See `reset`; a world without it lets everybody learn from what it is paid."""


def combine(code, table, rows, weights, m, parameter, preferences):
    """The aggregations that are known here, as one switch."""


def expect(kind, table, counts, nexts, m, ahead, value, advisors, kinds):
    """The plannings that are known here, as one switch."""


def find_preferences(combine, table, seen, slots, committee, voice):
    """How the preferences in a state are found: `aggregate`, or that of `plans`."""


def update_terminal(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """How advisors that ended learn: `settle_advisors`, or that of `linear`, `correction` or `plans`."""


def update_bootstrap(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):
    """How those who stay learn: `advance_advisors`, or that of `linear`, `correction` or `plans`."""


# ---- choosing --------------------------------------------------------------------------------------------------------
@compiled
def larger(a, b):
    """Of two values; `max` would also look for NaN."""
    return a if a > b else b


@compiled
def greedy(total, word):
    """The best action, ties broken by the word's low half; without branches that a processor would guess wrong."""
    actions = total.shape[0]
    best = total[0]
    for a in range(1, actions):
        best = larger(best, total[a])
    choice, ties = 0, 0
    for a in range(actions):
        tied = total[a] == best
        choice = a if tied else choice
        ties += 1 if tied else 0
    if ties > 1:
        rank = below(word, ties)
        for a in range(actions):
            if total[a] == best:
                if rank == 0:
                    return a
                rank -= 1
    return choice


@compiled
def choose(total, epsilon, word):
    """Epsilon-greedy."""
    if high_half(word) < epsilon:
        return below(word, total.shape[0])
    return greedy(total, word)


@inside
def behave(total, epsilon, behaviour):
    """The probabilities with which `choose` takes each action."""
    actions, best, ties = total.shape[0], total[0], 0
    for a in range(1, actions):
        best = larger(best, total[a])
    for a in range(actions):
        ties += 1 if total[a] == best else 0
    for a in range(actions):
        behaviour[a] = epsilon / actions + ((1.0 - epsilon) / ties if total[a] == best else 0.0)


# ---- slots -----------------------------------------------------------------------------------------------------------
@inside
def unpack(whole, real):
    """The slots from the two arrays that hold them."""
    return Slots(
        whole[0], whole[1], whole[2], whole[3], whole[4], whole[5],
        real[0], real[1], real[2], real[3], real[4], real[5], real[3].view(np.int64),
    )  # fmt: skip


@inside
def seat(slots, committee, m):
    """What is an advisor's own beside it; nobody was paid yet, and nobody has ended."""
    for i in range(m):
        j = np.uintp(slots.advisors[i])
        slots.gamma[i], slots.alpha[i] = committee.gamma[j], committee.alpha[j]
        slots.reward[i], slots.ended[i] = 0.0, 0


@inside
def give_weight(slots, committee, m):
    """Everybody speaks with its weight."""
    for i in range(m):
        slots.voice[i] = committee.weight[np.uintp(slots.advisors[i])]


@inside
def place(slots, committee, rows, m):
    """The rows of the local states."""
    for i in range(m):
        j = np.uintp(slots.advisors[i])
        rows[i] = committee.offset[j] + committee.stride[j] * slots.local[i]


@inside
def aggregate(combine, table, seen, slots, committee, voice):
    """The preferences in a state, from those who are active in it: those of each part, added."""
    parts = voice.code.shape[0]
    rows, aggregator, members, preferences = seen.rows, seen.voice, seen.size, voice.total
    if parts > 1:
        preferences = voice.one
        for a in range(voice.total.shape[0]):
            voice.total[a] = 0.0
    start = 0
    for part in range(parts):
        if parts > 1 and voice.ends[0] >= 0:  # advisors of a part stand side by side
            last = part == parts - 1
            end = seen.size if last else slot_of(seen.advisors, seen.size, voice.ends[part])
            rows, aggregator, members = seen.rows[start:end], seen.voice[start:end], end - start
            start = end
        elif parts > 1:
            rows, aggregator, members = slots.scratch, slots.volume, 0
            for i in range(seen.size):
                if committee.part[np.uintp(seen.advisors[i])] == part:
                    rows[members], aggregator[members] = seen.rows[i], seen.voice[i]
                    members += 1
        combine(voice.code[part], table, rows, aggregator, members, voice.parameter[part], preferences)
        if parts > 1:
            for a in range(voice.total.shape[0]):
                voice.total[a] += preferences[a]


# ---- learning --------------------------------------------------------------------------------------------------------
@inside
def decay_of(half, step):
    """1, then 1/2 after `half` steps, 1/3 after twice as many, and so on; always 1 where half is 0."""
    return half / (half + step) if half > 0 else 1.0


@inside
def td_update(table, row, action, alpha, target):
    """q += alpha * error."""
    old = table[row, action]
    new = old + alpha * (target - old)
    table[row, action] = new if abs(new) > TINY else 0.0


@inside
def pay(slots, m, committee, tally, returns):
    """Count the rewards; the first slot that was paid or has ended, or m."""
    something, first = 0, m
    for i in range(m):
        something |= slots.bits[i] | slots.ended[i]
    if something != 0:
        first = 0
        while slots.bits[first] | slots.ended[first] == 0:
            first += 1
        for i in range(first, m):
            if slots.reward[i] != 0.0:
                j = slots.advisors[i]
                tally[EPISODE_SCORE] += committee.weight[j] * slots.reward[i]
                returns[j] += slots.reward[i]
    return first


@inside
def add_noise(slots, m, now, run):
    """Add the noise."""
    if run.sigma > 0.0:
        for i in range(m):
            slots.reward[i] += run.sigma * normal(draw(now, NOISE + slots.advisors[i]))


@inside
def update_terminal_advisors(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """Advisors that ended learn their last reward and leave their slots; how many stay."""
    stay = 0 if terminated else first
    for i in range(stay, m):
        if terminated or slots.ended[i] != 0:
            if run.learning:
                td_update(table, np.uintp(rows[i]), action, slots.alpha[i] * decay, slots.reward[i])
        else:
            slot = np.uintp(stay)
            slots.advisors[slot], rows[slot], slots.reward[slot] = slots.advisors[i], rows[i], slots.reward[i]
            slots.voice[slot], slots.gamma[slot], slots.alpha[slot] = slots.voice[i], slots.gamma[i], slots.alpha[i]
            stay += 1
    return stay


@inside
def shares_changed_row(advisors, rows, nexts, m, shared):
    """Whether an advisor arrived at a row that another one, with which it shares a table, has changed."""
    if shared < 0:
        return True
    i = 0
    while i < m and advisors[i] < shared:
        k = 0
        while k < m and advisors[k] < shared:
            if rows[i] == nexts[k]:
                return True
            k += 1
        i += 1
    return False


@inside
def next_action_info(counts, nexts, m, now, run, voice, clock):
    """What follows in the next state, as far as some planning needs it."""
    ahead = taken = 0
    epsilon = run.epsilon * decay_of(run.cooling, clock[STEP] + 1)
    if run.needs & 1:
        ahead = greedy(voice.total, draw(now, NEXT_CHOICE))
    if run.needs & 2:  # chosen now, unless it is known already, and held until it is taken
        if clock[HELD] == 0:
            clock[HELD] = 1 + choose(voice.total, epsilon, draw(step_key(run.key, clock[STEP] + 1), CHOICE))
        taken = clock[HELD] - 1
    if run.needs & 4:
        behave(voice.total, epsilon, voice.behaviour)
    if run.needs & 8:
        for i in range(m):
            counts[np.uintp(nexts[i]), ahead] += 1.0
    return ahead, taken


@inside
def look_ahead(expect, table, counts, slots, nexts, committee, m, now, run, voice, clock):
    """What the m advisors that stay expect of the next state."""
    action, taken = next_action_info(counts, nexts, m, now, run, voice, clock)
    ahead = Ahead(action, taken, voice.behaviour, voice.behaviour, committee.target)
    expect(run.kind, table, counts, nexts, m, ahead, slots.value, slots.advisors, committee.kind)


@inside
def learn_advisors(table, slots, rows, nexts, m, action, decay, run):
    """They learn from the transition; whether the preferences in the next state have changed."""
    for i in range(m):
        target = slots.reward[i] + slots.gamma[i] * slots.value[i]
        td_update(table, np.uintp(rows[i]), action, slots.alpha[i] * decay, target)
    same = False
    for i in range(m):
        same |= rows[i] == nexts[i]
    return same or shares_changed_row(slots.advisors, rows, nexts, m, run.shared)


@inside
def update_bootstrap_advisors(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):  # fmt: skip
    """Those who stay look where they have arrived, and learn; the preferences there are left in `voice.total`."""
    aggregate(combine, table, seen, slots, committee, voice)
    if run.learning and m > 0:
        look_ahead(expect, table, counts, slots, nexts, committee, m, now, run, voice, clock)
        changed = learn_advisors(table, slots, rows, nexts, m, action, decay, run)
        if changed or seen.size != m:
            aggregate(combine, table, seen, slots, committee, voice)


@inside
def end_step(clock, tally, run, terminated, truncated):
    """Count the step and, where the episode is over, the episode."""
    clock[STEP] += 1
    clock[EPISODE_STEP] += 1
    if terminated or truncated or clock[EPISODE_STEP] == run.limit:
        clock[EPISODES] += 1
        clock[FRESH], clock[HELD] = 1, 0
        tally[SCORE_SUM] += tally[EPISODE_SCORE]
        return True
    return False


@inside
def next_action(total, clock, run):
    """The action that was held, or a new choice."""
    if clock[HELD] > 0:
        held = clock[HELD] - 1
        clock[HELD] = 0
        return held
    epsilon = run.epsilon * decay_of(run.cooling, clock[STEP])
    return choose(total, epsilon, draw(step_key(run.key, clock[STEP]), CHOICE))


# ---- a compiled world ------------------------------------------------------------------------------------------------
def play(
    constants, x, table, counts, whole, real, committee, voice, clock, tally, run, steps, scores, lengths, finished,
    returns,
):  # fmt: skip
    """Play and learn for `steps` steps in a compiled world, or, where `scores` has room, until it is full of
    episodes."""
    slots = unpack(whole, real)
    rows, nexts = slots.rows, slots.nexts
    episodes, episode, m, played, entering = scores.shape[0], 0, 0, 0, True
    while played < steps and (episodes == 0 or episode < episodes):
        now = step_key(run.key, clock[STEP])
        if clock[FRESH] == 1:
            reset(constants, x, draw(now, EPISODE))
            clock[FRESH], clock[EPISODE_STEP], tally[EPISODE_SCORE] = 0, 0, 0.0
            entering = True
        if entering:
            m = begin(constants, x, slots.advisors)
            seat(slots, committee, m)
            give_weight(slots, committee, m)
            advises(constants, x, slots.advisors, m, slots.voice)
            local_states(constants, x, slots.advisors, m, slots.local)
            place(slots, committee, rows, m)
            find_preferences(combine, table, NextSlots(slots.advisors, rows, slots.voice, m), slots, committee, voice)
            entering = False
        action, before = next_action(voice.total, clock, run), m
        terminated = step(constants, x, action, now, slots.advisors, m, slots.reward, slots.ended)
        first = pay(slots, m, committee, tally, returns[min(episode, returns.shape[0] - 1)])
        if PSEUDO:
            pseudo(constants, x, action, slots.advisors, m, slots.ended, slots.reward)
        add_noise(slots, m, now, run)
        decay = decay_of(run.half, clock[STEP])
        m = update_terminal(table, slots, rows, m, committee, action, decay, run, first, terminated, voice)
        if ADVISES:
            give_weight(slots, committee, m)
            advises(constants, x, slots.advisors, m, slots.voice)
        local_states(constants, x, slots.advisors, m, slots.local)
        place(slots, committee, nexts, m)
        seen = NextSlots(slots.advisors, nexts, slots.voice, m)
        if JOINS and not terminated:  # whoever is active now, those whose part has begun anew among them
            joined = Slots(
                whole[ARRIVED], slots.local, whole[ARRIVED_ROW], nexts, slots.ended, slots.scratch, real[ARRIVED_VOICE],
                slots.gamma, slots.alpha, slots.reward, slots.value, slots.volume,
            )  # fmt: skip
            size = begin(constants, x, joined.advisors)
            give_weight(joined, committee, size)
            advises(constants, x, joined.advisors, size, joined.voice)
            local_states(constants, x, joined.advisors, size, joined.local)
            place(joined, committee, joined.rows, size)
            seen = NextSlots(joined.advisors, joined.rows, joined.voice, size)
        update_bootstrap(
            combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice,
            clock,
        )  # fmt: skip
        if PSEUDO or first < before or run.sigma > 0.0:
            for i in range(before):
                slots.reward[i], slots.ended[i] = 0.0, 0
        if JOINS:
            m = seen.size
            for i in range(m):
                slots.advisors[i], nexts[i], slots.voice[i] = seen.advisors[i], seen.rows[i], seen.voice[i]
            seat(slots, committee, m)
        rows, nexts = nexts, rows
        played += 1
        if end_step(clock, tally, run, terminated, False):
            if episode < episodes:
                scores[episode], lengths[episode], finished[episode] = (
                    tally[EPISODE_SCORE],
                    clock[EPISODE_STEP],
                    int(terminated),
                )
            episode += 1
    return played


def ask(constants, x, table, whole, real, committee, voice):
    """Who is active in x, on which rows, with which voice, and the preferences there: how many there are."""
    slots = unpack(whole, real)
    m = begin(constants, x, slots.advisors)
    give_weight(slots, committee, m)
    advises(constants, x, slots.advisors, m, slots.voice)
    local_states(constants, x, slots.advisors, m, slots.local)
    place(slots, committee, slots.rows, m)
    find_preferences(combine, table, NextSlots(slots.advisors, slots.rows, slots.voice, m), slots, committee, voice)
    return m


# bound: whether the world has a `advises` and a `pseudo` of its own, and whether advisors may join during an episode
ADVISES = PSEUDO = JOINS = False


@inside
def everybody_advises(constants, x, advisors, m, voice):
    """Where a world says nothing about who is silent."""


@inside
def nothing_besides(constants, x, action, advisors, m, ended, reward):
    """Where a world has no pseudo-rewards."""


# ---- a Python environment, one step at a time ------------------------------------------------------------------------
# Each array passed from Python costs some 30 ns, so that all there is fits into nine: the rows of the adapter's `whole`
# and `real` go on after the slots, and `clock` and `tally` hold the settings as well.
DEAL, WENT_ON, TERMINATED, TRUNCATED, RETURN = range(5)  # what the environment has just done
(
    ARRIVED,
    ARRIVED_ROW,
    KIND_OF,
    PART_OF,
    POSITION,
    ONE,
    VIEW,
    SOURCE,
    NOW_ACTIVE,
    NOW_ADVISES,
    HAS_ENDED,
    CODES,
    ENDS,
) = range(WHOLE_SLOTS, WHOLE_SLOTS + 13)
ARRIVED_VOICE, WEIGHT_OF, GAMMA_OF, ALPHA_OF, PARAMETERS, RETURNS = range(REAL_SLOTS, REAL_SLOTS + 6)
ADAPTER_WHOLE, ADAPTER_REAL = WHOLE_SLOTS + 13, REAL_SLOTS + 6
ACTION, ACTIVE, SHARED, LEARNING, KEY, HALF, KIND, NEEDED, PARTS, COOLING = range(5, 15)  # of `clock`
EPSILON, SIGMA = range(2, 4)  # of `tally`


def voice_of(whole, real, aggregator, parts):
    """How the aggregator hears: `plain_voice`, or that of `plans`."""


@inside
def plain_voice(whole, real, aggregator, parts):
    """`aggregator` [3, A] is room to work in."""
    return AggregatorCodes(
        whole[CODES, :parts],
        whole[ENDS, :parts],
        real[PARAMETERS, :parts],
        aggregator[0],
        aggregator[1],
        aggregator[2],
        aggregator[2],
        0,
    )


def adapter_step(table, counts, whole, real, aggregator, firsts, signals, clock, tally, event):
    """Learn from the step just made, then choose the next action; -1 - j where advisor j's reward is not finite.

    firsts [views] are the first rows of the local states arrived in, signals the rewards; NOW_ACTIVE, NOW_SPEAKS and
    HAS_ENDED of `whole` say who is active there, who has a say, and whose own part ended.
    """
    slots = unpack(whole, real)
    committee = Committee(
        whole[POSITION], whole[ONE], whole[KIND_OF], whole[PART_OF], real[WEIGHT_OF], real[GAMMA_OF], real[ALPHA_OF],
        counts, counts,
    )  # fmt: skip
    voice = voice_of(whole, real, aggregator, clock[PARTS])
    run = Run(
        np.uint64(clock[KEY]), clock[HALF], tally[EPSILON], tally[SIGMA], -1, clock[SHARED], clock[LEARNING] == 1,
        clock[KIND], clock[NEEDED], clock[COOLING],
    )  # fmt: skip
    rows, nexts = slots.rows, slots.nexts
    now, decay, action = step_key(run.key, clock[STEP]), decay_of(run.half, clock[STEP]), clock[ACTION]
    stepped = event != DEAL and event != RETURN
    m = 0
    if event == DEAL:
        clock[FRESH], clock[EPISODE_STEP], tally[EPISODE_SCORE] = 0, 0, 0.0
    elif stepped:
        m = clock[ACTIVE]
        for i in range(m):
            j = slots.advisors[i]
            slots.reward[i] = signals[whole[SOURCE, j]]
            if not np.isfinite(slots.reward[i]):
                return -1 - j
            slots.ended[i] = 1 if whole[HAS_ENDED, j] == 1 or whole[NOW_ACTIVE, j] == 0 else 0
        first = pay(slots, m, committee, tally, real[RETURNS])
        add_noise(slots, m, now, run)
        m = update_terminal(table, slots, rows, m, committee, action, decay, run, first, event == TERMINATED, voice)
    count = 0
    if event != TERMINATED:
        for j in range(whole.shape[1]):
            if whole[NOW_ACTIVE, j] == 1:
                whole[ARRIVED, count], whole[ARRIVED_ROW, count] = j, firsts[whole[VIEW, j]] + whole[POSITION, j]
                real[ARRIVED_VOICE, count] = committee.weight[j] if whole[NOW_ADVISES, j] == 1 else 0.0
                count += 1
        for i in range(m):
            nexts[i] = firsts[whole[VIEW, slots.advisors[i]]] + whole[POSITION, slots.advisors[i]]
        seen = NextSlots(whole[ARRIVED], whole[ARRIVED_ROW], real[ARRIVED_VOICE], count)
        update_bootstrap(
            combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice,
            clock,
        )  # fmt: skip
    if stepped and end_step(clock, tally, run, event == TERMINATED, event == TRUNCATED):
        return 0
    for i in range(count):
        slots.advisors[i], rows[i], slots.voice[i] = whole[ARRIVED, i], whole[ARRIVED_ROW, i], real[ARRIVED_VOICE, i]
    seat(slots, committee, count)
    clock[ACTIVE] = count
    if event != RETURN:  # then the action was chosen before
        clock[ACTION] = next_action(voice.total, clock, run)
    return clock[ACTION]
