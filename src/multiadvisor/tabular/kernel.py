"""The compiled learner: what `reference.py` says in NumPy, without an allocation or a Python object inside the turn.

The active advisors stand in slots 0 .. m - 1, in rising order; `Slots` has what belongs to a slot, `Committee` what
belongs to an advisor, `Run` what never changes. A turn is `next_action`, the world's step, `settle` and `advance`: who
has ended learns its last reward and leaves, the others look where they have arrived, and learn. `play` does so inside a
compiled world, `adapter_turn` once per step of a Python environment. Plannings and aggregations come in as functions,
made in `switch.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.compiling import compiled, inside
from multiadvisor.draws import CHOICE, FORESIGHT, GAME, NOISE, below, draw, high_half, normal, turn_key
from multiadvisor.plannings import Ahead
from multiadvisor.worlds.slots import slot_of

# Entries of `clock` and `tally`, which a checkpoint keeps.
TURN, GAMES, GAME_TURN, FRESH, HELD = range(5)  # HELD: the next action plus 1, where an advisor has learned from it
GAME_SCORE, SCORE_SUM = range(2)
# What some planning has to know of the next state, as bits.
NEEDS = {"greedy": 1, "taken": 2, "behaviour": 4, "counts": 8, "target": 16}
MIXED = -1  # instead of one planning's code: advisors plan differently

TINY = 1e-200  # smaller values are set to 0: denormals would slow every later turn a hundredfold


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
    volume: Any  # [n] scratch: the voices of one part
    bits: Any = None  # [n] int64 the rewards' bits, which are compared faster


WHOLE_SLOTS, REAL_SLOTS = 6, 6
WORLD_WHOLE, WORLD_REAL = WHOLE_SLOTS + 2, REAL_SLOTS + 1  # with who has arrived, where advisors join


class Seen(NamedTuple):
    """Who is active in the state arrived in: those who stay and, in a Python environment, those who have joined."""

    advisors: Any  # [n] int64
    rows: Any  # [n] int64
    voice: Any  # [n]
    size: int


class Voice(NamedTuple):
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


# ---- bound before compiling ------------------------------------------------------------------------------------------
def reset(constants, x, key):
    """The world's own, as are the four below."""


def begin(constants, x, advisors):
    """See `reset`."""


def local_states(constants, x, advisors, m, local):
    """See `reset`."""


def step(constants, x, action, key, advisors, m, reward, ended):
    """See `reset`."""


def speaks(constants, x, advisors, m, voice):
    """See `reset`; a world without it lets everybody speak."""


def pseudo(constants, x, action, advisors, m, ended, reward):
    """See `reset`; a world without it lets everybody learn from what it is paid."""


def combine(code, table, rows, weights, m, parameter, preferences):
    """The aggregations that are known here, as one switch."""


def expect(kind, table, counts, nexts, m, ahead, value, advisors, kinds):
    """The plannings that are known here, as one switch."""


def hear(combine, table, seen, slots, committee, voice):
    """How the preferences in a state are found: `aggregate`, or that of `plans`."""


def settle(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """How advisors that ended learn: `settle_advisors`, or that of `linear`, `correction` or `plans`."""


def advance(
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
def give_voice(slots, committee, m):
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
    rows, voices, members, preferences = seen.rows, seen.voice, seen.size, voice.total
    if parts > 1:
        preferences = voice.one
        for a in range(voice.total.shape[0]):
            voice.total[a] = 0.0
    start = 0
    for part in range(parts):
        if parts > 1 and voice.ends[0] >= 0:  # advisors of a part stand side by side
            last = part == parts - 1
            end = seen.size if last else slot_of(seen.advisors, seen.size, voice.ends[part])
            rows, voices, members = seen.rows[start:end], seen.voice[start:end], end - start
            start = end
        elif parts > 1:
            rows, voices, members = slots.scratch, slots.volume, 0
            for i in range(seen.size):
                if committee.part[np.uintp(seen.advisors[i])] == part:
                    rows[members], voices[members] = seen.rows[i], seen.voice[i]
                    members += 1
        combine(voice.code[part], table, rows, voices, members, voice.parameter[part], preferences)
        if parts > 1:
            for a in range(voice.total.shape[0]):
                voice.total[a] += preferences[a]


# ---- learning --------------------------------------------------------------------------------------------------------
@inside
def decay_of(half, turn):
    """1, then 1/2 after `half` turns, 1/3 after twice as many, and so on; always 1 where half is 0."""
    return half / (half + turn) if half > 0 else 1.0


@inside
def nudge(table, row, action, alpha, target):
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
                tally[GAME_SCORE] += committee.weight[j] * slots.reward[i]
                returns[j] += slots.reward[i]
    return first


@inside
def perceive(slots, m, now, run):
    """Add the noise."""
    if run.sigma > 0.0:
        for i in range(m):
            slots.reward[i] += run.sigma * normal(draw(now, NOISE + slots.advisors[i]))


@inside
def settle_advisors(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """Advisors that ended learn their last reward and leave their slots; how many stay."""
    stay = 0 if terminated else first
    for i in range(stay, m):
        if terminated or slots.ended[i] != 0:
            if run.learning:
                nudge(table, np.uintp(rows[i]), action, slots.alpha[i] * decay, slots.reward[i])
        else:
            slot = np.uintp(stay)
            slots.advisors[slot], rows[slot], slots.reward[slot] = slots.advisors[i], rows[i], slots.reward[i]
            slots.voice[slot], slots.gamma[slot], slots.alpha[slot] = slots.voice[i], slots.gamma[i], slots.alpha[i]
            stay += 1
    return stay


@inside
def crossed(advisors, rows, nexts, m, shared):
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
def foresee(counts, nexts, m, now, run, voice, clock):
    """What follows in the next state, as far as some planning needs it."""
    ahead = taken = 0
    epsilon = run.epsilon * decay_of(run.cooling, clock[TURN] + 1)
    if run.needs & 1:
        ahead = greedy(voice.total, draw(now, FORESIGHT))
    if run.needs & 2:  # chosen now, unless it is known already, and held until it is taken
        if clock[HELD] == 0:
            clock[HELD] = 1 + choose(voice.total, epsilon, draw(turn_key(run.key, clock[TURN] + 1), CHOICE))
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
    action, taken = foresee(counts, nexts, m, now, run, voice, clock)
    ahead = Ahead(action, taken, voice.behaviour, voice.behaviour, committee.target)
    expect(run.kind, table, counts, nexts, m, ahead, slots.value, slots.advisors, committee.kind)


@inside
def learn_advisors(table, slots, rows, nexts, m, action, decay, run):
    """They learn from the transition; whether the preferences in the next state have changed."""
    for i in range(m):
        target = slots.reward[i] + slots.gamma[i] * slots.value[i]
        nudge(table, np.uintp(rows[i]), action, slots.alpha[i] * decay, target)
    same = False
    for i in range(m):
        same |= rows[i] == nexts[i]
    return same or crossed(slots.advisors, rows, nexts, m, run.shared)


@inside
def advance_advisors(
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
def end_turn(clock, tally, run, terminated, truncated):
    """Count the turn and, where the game is over, the game."""
    clock[TURN] += 1
    clock[GAME_TURN] += 1
    if terminated or truncated or clock[GAME_TURN] == run.limit:
        clock[GAMES] += 1
        clock[FRESH], clock[HELD] = 1, 0
        tally[SCORE_SUM] += tally[GAME_SCORE]
        return True
    return False


@inside
def next_action(total, clock, run):
    """The action that was held, or a new choice."""
    if clock[HELD] > 0:
        held = clock[HELD] - 1
        clock[HELD] = 0
        return held
    epsilon = run.epsilon * decay_of(run.cooling, clock[TURN])
    return choose(total, epsilon, draw(turn_key(run.key, clock[TURN]), CHOICE))


# ---- a compiled world ------------------------------------------------------------------------------------------------
def play(
    constants, x, table, counts, whole, real, committee, voice, clock, tally, run, turns, scores, lengths, finished,
    returns,
):  # fmt: skip
    """Play and learn for `turns` turns in a compiled world, or, where `scores` has room, until it is full of games."""
    slots = unpack(whole, real)
    rows, nexts = slots.rows, slots.nexts
    games, game, m, played, entering = scores.shape[0], 0, 0, 0, True
    while played < turns and (games == 0 or game < games):
        now = turn_key(run.key, clock[TURN])
        if clock[FRESH] == 1:
            reset(constants, x, draw(now, GAME))
            clock[FRESH], clock[GAME_TURN], tally[GAME_SCORE] = 0, 0, 0.0
            entering = True
        if entering:
            m = begin(constants, x, slots.advisors)
            seat(slots, committee, m)
            give_voice(slots, committee, m)
            speaks(constants, x, slots.advisors, m, slots.voice)
            local_states(constants, x, slots.advisors, m, slots.local)
            place(slots, committee, rows, m)
            hear(combine, table, Seen(slots.advisors, rows, slots.voice, m), slots, committee, voice)
            entering = False
        action, before = next_action(voice.total, clock, run), m
        terminated = step(constants, x, action, now, slots.advisors, m, slots.reward, slots.ended)
        first = pay(slots, m, committee, tally, returns[min(game, returns.shape[0] - 1)])
        if PSEUDO:
            pseudo(constants, x, action, slots.advisors, m, slots.ended, slots.reward)
        perceive(slots, m, now, run)
        decay = decay_of(run.half, clock[TURN])
        m = settle(table, slots, rows, m, committee, action, decay, run, first, terminated, voice)
        if SPEAKS:
            give_voice(slots, committee, m)
            speaks(constants, x, slots.advisors, m, slots.voice)
        local_states(constants, x, slots.advisors, m, slots.local)
        place(slots, committee, nexts, m)
        seen = Seen(slots.advisors, nexts, slots.voice, m)
        if JOINS and not terminated:  # whoever is active now, those whose part has begun anew among them
            joined = Slots(
                whole[ARRIVED], slots.local, whole[ARRIVED_ROW], nexts, slots.ended, slots.scratch, real[ARRIVED_VOICE],
                slots.gamma, slots.alpha, slots.reward, slots.value, slots.volume,
            )  # fmt: skip
            size = begin(constants, x, joined.advisors)
            give_voice(joined, committee, size)
            speaks(constants, x, joined.advisors, size, joined.voice)
            local_states(constants, x, joined.advisors, size, joined.local)
            place(joined, committee, joined.rows, size)
            seen = Seen(joined.advisors, joined.rows, joined.voice, size)
        advance(
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
        if end_turn(clock, tally, run, terminated, False):
            if game < games:
                scores[game], lengths[game], finished[game] = tally[GAME_SCORE], clock[GAME_TURN], int(terminated)
            game += 1
    return played


def ask(constants, x, table, whole, real, committee, voice):
    """Who is active in x, on which rows, with which voice, and the preferences there: how many there are."""
    slots = unpack(whole, real)
    m = begin(constants, x, slots.advisors)
    give_voice(slots, committee, m)
    speaks(constants, x, slots.advisors, m, slots.voice)
    local_states(constants, x, slots.advisors, m, slots.local)
    place(slots, committee, slots.rows, m)
    hear(combine, table, Seen(slots.advisors, slots.rows, slots.voice, m), slots, committee, voice)
    return m


# bound: whether the world has a `speaks` and a `pseudo` of its own, and whether advisors may join during a game
SPEAKS = PSEUDO = JOINS = False


@inside
def everybody_speaks(constants, x, advisors, m, voice):
    """Where a world says nothing about who is silent."""


@inside
def nothing_besides(constants, x, action, advisors, m, ended, reward):
    """Where a world has no pseudo-rewards."""


# ---- a Python environment, one step at a time ------------------------------------------------------------------------
# Each array passed from Python costs some 30 ns, so that all there is fits into nine: the rows of the adapter's `whole`
# and `real` go on after the slots, and `clock` and `tally` hold the settings as well.
DEAL, STEP, TERMINATED, TRUNCATED, RETURN = range(5)  # what the environment has just done
(
    ARRIVED, ARRIVED_ROW, KIND_OF, PART_OF, POSITION, ONE, VIEW, SOURCE, NOW_ACTIVE, NOW_SPEAKS, HAS_ENDED, CODES, ENDS,
) = range(WHOLE_SLOTS, WHOLE_SLOTS + 13)  # fmt: skip
ARRIVED_VOICE, WEIGHT_OF, GAMMA_OF, ALPHA_OF, PARAMETERS, RETURNS = range(REAL_SLOTS, REAL_SLOTS + 6)
ADAPTER_WHOLE, ADAPTER_REAL = WHOLE_SLOTS + 13, REAL_SLOTS + 6
ACTION, ACTIVE, SHARED, LEARNING, KEY, HALF, KIND, NEEDED, PARTS, COOLING = range(5, 15)  # of `clock`
EPSILON, SIGMA = range(2, 4)  # of `tally`


def voice_of(whole, real, voices, parts):
    """How the aggregator hears: `plain_voice`, or that of `plans`."""


@inside
def plain_voice(whole, real, voices, parts):
    """`voices` [3, A] is room to work in."""
    return Voice(
        whole[CODES, :parts], whole[ENDS, :parts], real[PARAMETERS, :parts], voices[0], voices[1], voices[2], voices[2],
        0,
    )  # fmt: skip


def adapter_turn(table, counts, whole, real, voices, firsts, signals, clock, tally, event):
    """Learn from the step just made, then choose the next action; -1 - j where advisor j's reward is not finite.

    firsts [views] are the first rows of the local states arrived in, signals the rewards; NOW_ACTIVE, NOW_SPEAKS and
    HAS_ENDED of `whole` say who is active there, who has a say, and whose own part ended.
    """
    slots = unpack(whole, real)
    committee = Committee(
        whole[POSITION], whole[ONE], whole[KIND_OF], whole[PART_OF], real[WEIGHT_OF], real[GAMMA_OF], real[ALPHA_OF],
        counts, counts,
    )  # fmt: skip
    voice = voice_of(whole, real, voices, clock[PARTS])
    run = Run(
        np.uint64(clock[KEY]), clock[HALF], tally[EPSILON], tally[SIGMA], -1, clock[SHARED], clock[LEARNING] == 1,
        clock[KIND], clock[NEEDED], clock[COOLING],
    )  # fmt: skip
    rows, nexts = slots.rows, slots.nexts
    now, decay, action = turn_key(run.key, clock[TURN]), decay_of(run.half, clock[TURN]), clock[ACTION]
    stepped = event != DEAL and event != RETURN
    m = 0
    if event == DEAL:
        clock[FRESH], clock[GAME_TURN], tally[GAME_SCORE] = 0, 0, 0.0
    elif stepped:
        m = clock[ACTIVE]
        for i in range(m):
            j = slots.advisors[i]
            slots.reward[i] = signals[whole[SOURCE, j]]
            if not np.isfinite(slots.reward[i]):
                return -1 - j
            slots.ended[i] = 1 if whole[HAS_ENDED, j] == 1 or whole[NOW_ACTIVE, j] == 0 else 0
        first = pay(slots, m, committee, tally, real[RETURNS])
        perceive(slots, m, now, run)
        m = settle(table, slots, rows, m, committee, action, decay, run, first, event == TERMINATED, voice)
    count = 0
    if event != TERMINATED:
        for j in range(whole.shape[1]):
            if whole[NOW_ACTIVE, j] == 1:
                whole[ARRIVED, count], whole[ARRIVED_ROW, count] = j, firsts[whole[VIEW, j]] + whole[POSITION, j]
                real[ARRIVED_VOICE, count] = committee.weight[j] if whole[NOW_SPEAKS, j] == 1 else 0.0
                count += 1
        for i in range(m):
            nexts[i] = firsts[whole[VIEW, slots.advisors[i]]] + whole[POSITION, slots.advisors[i]]
        seen = Seen(whole[ARRIVED], whole[ARRIVED_ROW], real[ARRIVED_VOICE], count)
        advance(
            combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice,
            clock,
        )  # fmt: skip
    if stepped and end_turn(clock, tally, run, event == TERMINATED, event == TRUNCATED):
        return 0
    for i in range(count):
        slots.advisors[i], rows[i], slots.voice[i] = whole[ARRIVED, i], whole[ARRIVED_ROW, i], real[ARRIVED_VOICE, i]
    seat(slots, committee, count)
    clock[ACTIVE] = count
    if event != RETURN:  # then the action was chosen before
        clock[ACTION] = next_action(voice.total, clock, run)
    return clock[ACTION]
