"""The compiled learner: what `reference.py` says in NumPy, without an allocation or a Python object inside the turn.

The active advisors stand in slots 0 .. m - 1, in rising order. `whole` [6, n] and `real` [2, n] hold what belongs to a
slot, one row per quantity, so that a Python environment passes two arrays and not seven; `layout` [2, n] and `focus`
[2, n] hold what belongs to an advisor. There is one learning step, `learn_turn`; `play` runs it inside a compiled
world, `adapter_turn` once per step of a Python environment.
"""

from __future__ import annotations

import numpy as np

from multiadvisor.compiling import cached, compiled
from multiadvisor.draws import CHOICE, FORESIGHT, GAME, NOISE, below, draw, high_half, normal, turn_key

PLANNING_CODES = {"egocentric": 0, "agnostic": 1, "empathic": 2}
ESTIMATE = 4  # empathic, on each advisor's own estimate of what the aggregator does
LINEAR = 3  # in the place of a planning: one Q-function, linear in the features "advisor j is in local state s"

# Rows of `whole` and `real`: by slot.
ADVISOR, LOCAL, ROW, NEXT, ENDED, FEATURE = range(6)
REWARD, VALUE = range(2)
# Rows of `layout` and `focus`: by advisor.
OFFSET, STRIDE = range(2)
WEIGHT, GAMMA = range(2)
# Entries of `clock` and `tally`, which a checkpoint keeps.
TURN, GAMES, GAME_TURN, FRESH = range(4)
GAME_SCORE, SCORE_SUM = range(2)

TINY = 1e-200  # smaller values are set to 0: denormals would slow every later turn a hundredfold


def reset(constants, x, key):
    """Bound to the world's function before compiling, as are the three below."""


def begin(constants, x, advisors):
    """See `reset`."""


def local_states(constants, x, advisors, m, local):
    """See `reset`."""


def step(constants, x, action, key, advisors, m, reward, ended):
    """See `reset`."""


@compiled
def sum_column(table, advisors, rows, weight, m, action):
    """Q_Sigma of one action."""
    total = 0.0
    for i in range(m):
        total += weight[np.uintp(advisors[i])] * table[np.uintp(rows[i]), action]
    return total


@compiled
def larger(a, b):
    """Of two values; `max` would also look for NaN."""
    return a if a > b else b


@compiled
def look(table, advisors, offset, stride, local, rows, weight, m, total, value, planning):
    """The advice at the local states: rows [m], Q_Sigma into total [A], and what needs no aggregator into value [m].

    That is the largest value (egocentric) or the sum (agnostic). Four columns at a time: four sums stay in registers.
    """
    actions = table.shape[1]
    a = 0
    while a + 4 <= actions:
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for i in range(m):
            j = np.uintp(advisors[i])
            at = offset[j] + stride[j] * local[i]
            rows[i] = at
            row, w = np.uintp(at), weight[j]
            q0, q1, q2, q3 = table[row, a], table[row, a + 1], table[row, a + 2], table[row, a + 3]
            t0 += w * q0
            t1 += w * q1
            t2 += w * q2
            t3 += w * q3
            if planning == 0:
                best = larger(larger(q0, q1), larger(q2, q3))
                value[i] = best if a == 0 else larger(best, value[i])
            elif planning == 1:
                value[i] = ((((0.0 if a == 0 else value[i]) + q0) + q1) + q2) + q3
        total[a], total[a + 1], total[a + 2], total[a + 3] = t0, t1, t2, t3
        a += 4
    while a < actions:
        t0 = 0.0
        for i in range(m):
            j = np.uintp(advisors[i])
            at = offset[j] + stride[j] * local[i]
            rows[i] = at
            q0 = table[np.uintp(at), a]
            t0 += weight[j] * q0
            if planning == 0:
                value[i] = q0 if a == 0 else larger(q0, value[i])
            elif planning == 1:
                value[i] = (0.0 if a == 0 else value[i]) + q0
        total[a] = t0
        a += 1


@compiled
def consult(table, advisors, offset, stride, local, rows, weight, m, total, value, planning):
    """`look`, one copy for each planning, without the others' branches."""
    if planning == 0:
        look(table, advisors, offset, stride, local, rows, weight, m, total, value, 0)
    elif planning == 1:
        look(table, advisors, offset, stride, local, rows, weight, m, total, value, 1)
    else:
        look(table, advisors, offset, stride, local, rows, weight, m, total, value, 2)


def ask(constants, x, table, total, slots, layout, weight):
    """Who is active in x, on which rows, and Q_Sigma(x, .) into total [A]: m; `slots` are the rows ADVISOR to ROW."""
    advisors, local = slots[ADVISOR], slots[LOCAL]
    m = begin(constants, x, advisors)
    local_states(constants, x, advisors, m, local)
    # no planning is asked for, so that nothing is written in the place of `value`
    look(table, advisors, layout[OFFSET], layout[STRIDE], local, slots[ROW], weight, m, total, total, LINEAR)
    return m


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
def step_size(alpha, half, turn):
    """alpha, halved after `half` turns, a third after twice as many, and so on; constant where half is 0."""
    return alpha * half / (half + turn) if half > 0 else alpha


@compiled
def choose(total, epsilon, word):
    """Epsilon-greedy."""
    if high_half(word) < epsilon:
        return below(word, total.shape[0])
    return greedy(total, word)


@compiled
def nudge(table, row, action, alpha, target):
    """q += alpha * error."""
    old = table[row, action]
    new = old + alpha * (target - old)
    table[row, action] = new if abs(new) > TINY else 0.0


@compiled
def learn_turn(table, advisors, rows, nexts, gamma, reward, value, m, total, action, planning, alpha, key):
    """Learn from one transition of the m active advisors, none of which has ended; `total` is Q_Sigma(x', .).

    Returns whether some row was both left and arrived at, so that Q_Sigma(x', action) has changed.
    """
    if planning == 2:
        ahead = greedy(total, draw(key, FORESIGHT))
        for i in range(m):
            value[i] = table[np.uintp(nexts[i]), ahead]
    if planning == 1:
        for i in range(m):
            value[i] /= table.shape[1]
    same = False
    for i in range(m):
        nudge(table, np.uintp(rows[i]), action, alpha, reward[i] + gamma[np.uintp(advisors[i])] * value[i])
        same |= rows[i] == nexts[i]
    return same


@compiled
def foresee(table, counts, nexts, value, m, total, key):
    """What advisors expect who estimate the aggregator: counted in their next rows, then values weighed by counts."""
    ahead = greedy(total, draw(key, FORESIGHT))
    for i in range(m):
        counts[np.uintp(nexts[i]), ahead] += 1.0
    for i in range(m):
        row = np.uintp(nexts[i])
        worth, times = 0.0, 0.0
        for a in range(table.shape[1]):
            worth += counts[row, a] * table[row, a]
            times += counts[row, a]
        value[i] = worth / times


@compiled
def learn_linear(table, features, count, action, alpha, error):
    """Q-learning with one weight for each feature and action: all that were present share the aggregator's error."""
    for i in range(count):
        at = np.uintp(features[i])
        new = table[at, action] + alpha / count * error  # a step of alpha for the sum, however many features there are
        table[at, action] = new if abs(new) > TINY else 0.0


@compiled
def own_value(table, row, planning):
    """The largest value or the sum of one row, as `look` leaves them."""
    best, total = table[row, 0], table[row, 0]
    for a in range(1, table.shape[1]):
        best = larger(best, table[row, a])
        total += table[row, a]
    return best if planning == 0 else total


@compiled
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


@compiled
def settle(table, advisors, rows, reward, ended, m, action, alpha, learning, everyone):
    """Advisors that ended learn their last reward and leave their slots; how many stay."""
    stay = 0
    for i in range(m):
        if everyone or ended[i] != 0:
            if learning:
                nudge(table, np.uintp(rows[i]), action, alpha, reward[i])
        else:
            slot = np.uintp(stay)
            advisors[slot], rows[slot], reward[slot] = advisors[i], rows[i], reward[i]
            stay += 1
    return stay


def play(
    constants, x, table, counts, total, whole, real, layout, focus, clock, tally, key, planning, alpha0, half, epsilon,
    sigma, limit, shared, learning, turns, scores, lengths, finished, returns,
):  # fmt: skip
    """Play and learn for `turns` turns in a compiled world, or, where `scores` has room, until it is full of games."""
    advisors, local, rows, nexts, ended = whole[ADVISOR], whole[LOCAL], whole[ROW], whole[NEXT], whole[ENDED]
    reward, value = real[REWARD], real[VALUE]
    offset, stride, weight, gamma = layout[OFFSET], layout[STRIDE], focus[WEIGHT], focus[GAMMA]
    features = whole[FEATURE]
    games, game = scores.shape[0], 0
    m = 0
    entering = True
    played = 0
    while played < turns and (games == 0 or game < games):
        key_now = turn_key(key, clock[TURN])
        if clock[FRESH] == 1:
            reset(constants, x, draw(key_now, GAME))
            clock[FRESH], clock[GAME_TURN], tally[GAME_SCORE] = 0, 0, 0.0
            entering = True
        if entering:
            m = begin(constants, x, advisors)
            for i in range(m):
                reward[i], ended[i] = 0.0, 0
            local_states(constants, x, advisors, m, local)
            consult(table, advisors, offset, stride, local, rows, weight, m, total, value, planning)
            entering = False

        alpha = step_size(alpha0, half, clock[TURN])
        action = choose(total, epsilon, draw(key_now, CHOICE))
        slots = m
        terminated = step(constants, x, action, key_now, advisors, m, reward, ended)
        paid, leaving = False, terminated
        for i in range(m):
            paid |= reward[i] != 0.0
            leaving |= ended[i] != 0
        if paid:
            for i in range(m):
                if reward[i] != 0.0:
                    tally[GAME_SCORE] += weight[advisors[i]] * reward[i]
                    if game < returns.shape[0]:
                        returns[game, advisors[i]] += reward[i]
        if sigma > 0.0:
            for i in range(m):
                reward[i] += sigma * normal(draw(key_now, NOISE + advisors[i]))
        expected, income = total[action], 0.0
        if planning == LINEAR:
            for i in range(m):
                features[i] = rows[i]
                income += weight[advisors[i]] * reward[i]
        if leaving:
            own = learning and planning != LINEAR
            m = settle(table, advisors, rows, reward, ended, m, action, alpha, own, terminated)

        local_states(constants, x, advisors, m, local)
        consult(table, advisors, offset, stride, local, nexts, weight, m, total, value, planning)
        if learning and planning == LINEAR:
            best = 0.0
            if not terminated:
                best = total[0]
                for a in range(1, total.shape[0]):
                    best = larger(best, total[a])
            learn_linear(table, features, slots, action, alpha, income + gamma[0] * best - expected)
            total[action] = sum_column(table, advisors, nexts, weight, m, action)
        elif learning:
            if planning == ESTIMATE:
                foresee(table, counts, nexts, value, m, total, key_now)
            same = learn_turn(
                table, advisors, rows, nexts, gamma, reward, value, m, total, action, planning, alpha, key_now
            )
            if same or crossed(advisors, rows, nexts, m, shared):
                total[action] = sum_column(table, advisors, nexts, weight, m, action)
        if paid or leaving or sigma > 0.0:
            for i in range(slots):
                reward[i], ended[i] = 0.0, 0
        rows, nexts = nexts, rows

        played += 1
        clock[TURN] += 1
        clock[GAME_TURN] += 1
        if terminated or clock[GAME_TURN] == limit:
            if game < games:
                scores[game] = tally[GAME_SCORE]
                lengths[game] = clock[GAME_TURN]
                finished[game] = 1 if terminated else 0
            game += 1
            clock[GAMES] += 1
            clock[FRESH] = 1
            tally[SCORE_SUM] += tally[GAME_SCORE]
    return played


# ---- the same learning step, once per step of a Python environment ---------------------------------------------------
# Each array passed from Python costs some 30 ns, so that all there is fits into eight: the rows of the adapter's
# `whole` and `real` go on after those above, and `clock` and `tally` hold the settings as well.
DEAL, STEP, TERMINATED, TRUNCATED, RETURN = range(5)  # what the environment has just done
ARRIVED, ARRIVED_ROW, POSITION, ONE, VIEW, SOURCE, NOW_ACTIVE, HAS_ENDED = range(6, 14)
WEIGHT_OF, GAMMA_OF, RETURNS = range(2, 5)
ACTION, ACTIVE, PLANNING, SHARED, LEARNING, KEY, HALF = range(4, 11)
ALPHA, EPSILON, SIGMA = range(2, 5)


@cached
def adapter_turn(table, total, whole, real, firsts, signals, clock, tally, event):
    """Learn from the step just made, then choose the next action; -1 - j where advisor j's reward is not finite.

    firsts [views] are the first rows of the local states arrived in, signals the rewards; the rows NOW_ACTIVE and
    HAS_ENDED of `whole` say who is active there and whose own part ended.
    """
    advisors, local, rows, nexts, ended = whole[ADVISOR], whole[LOCAL], whole[ROW], whole[NEXT], whole[ENDED]
    arrived, arrived_row, offset, stride = whole[ARRIVED], whole[ARRIVED_ROW], whole[POSITION], whole[ONE]
    reward, value, weight, gamma = real[REWARD], real[VALUE], real[WEIGHT_OF], real[GAMMA_OF]
    planning, learning = clock[PLANNING], clock[LEARNING] == 1
    alpha = step_size(tally[ALPHA], clock[HALF], clock[TURN])
    key, action = np.uint64(clock[KEY]), clock[ACTION]
    now = turn_key(key, clock[TURN])
    m = 0

    if event == DEAL:
        clock[FRESH], clock[GAME_TURN], tally[GAME_SCORE] = 0, 0, 0.0
    elif event != RETURN:
        m = clock[ACTIVE]
        for i in range(m):
            j = advisors[i]
            reward[i] = signals[whole[SOURCE, j]]
            if not np.isfinite(reward[i]):
                return -1 - j
            ended[i] = 1 if whole[HAS_ENDED, j] == 1 or whole[NOW_ACTIVE, j] == 0 else 0
        leaving = event == TERMINATED
        for i in range(m):
            j = advisors[i]
            tally[GAME_SCORE] += weight[j] * reward[i]
            real[RETURNS, j] += reward[i]
            if tally[SIGMA] > 0.0:
                reward[i] += tally[SIGMA] * normal(draw(now, NOISE + j))
            leaving |= ended[i] != 0
        if leaving:
            m = settle(table, advisors, rows, reward, ended, m, action, alpha, learning, event == TERMINATED)
        clock[TURN] += 1
        clock[GAME_TURN] += 1

    count = 0
    if event != TERMINATED:
        for j in range(whole.shape[1]):
            if whole[NOW_ACTIVE, j] == 1:
                arrived[count] = j
                local[count] = firsts[whole[VIEW, j]]
                count += 1
        consult(table, arrived, offset, stride, local, arrived_row, weight, count, total, value, planning)
        if learning and m > 0:
            if count == m:
                same = learn_turn(table, advisors, rows, arrived_row, gamma, reward, value, m, total, action, planning,
                                  alpha, now)  # fmt: skip
                same = same or crossed(advisors, rows, arrived_row, m, clock[SHARED])
            else:  # others have become active: those who learn look for themselves
                for i in range(m):
                    nexts[i] = firsts[whole[VIEW, advisors[i]]] + offset[advisors[i]]
                    value[i] = own_value(table, np.uintp(nexts[i]), planning)
                learn_turn(table, advisors, rows, nexts, gamma, reward, value, m, total, action, planning, alpha, now)
                same = True
            if same:
                total[action] = sum_column(table, arrived, arrived_row, weight, count, action)

    if event in (TERMINATED, TRUNCATED):
        clock[GAMES] += 1
        clock[FRESH] = 1
        tally[SCORE_SUM] += tally[GAME_SCORE]
        return 0
    for i in range(count):
        advisors[i], rows[i] = arrived[i], arrived_row[i]
    clock[ACTIVE] = count
    action = choose(total, tally[EPSILON], draw(turn_key(key, clock[TURN]), CHOICE))
    clock[ACTION] = action
    return action
