"""The compiled learner: no allocation and no Python object inside a step.

The active advisors stand in slots 0 .. m - 1, in rising order (`records.py` names all there is). A step is
`next_action`, the world's step, `update_terminal` and `update_bootstrap`: who has ended learns its last reward and
leaves, the others look where they have arrived, and learn. This skeleton is the same for every update rule (`rules`),
which supplies what `Rule` names. `play` does so inside a compiled world, `adapter_step` once per step of a Python
environment.
"""

from __future__ import annotations

import numpy as np

from multiadvisor.core.compiling import compiled, inside
from multiadvisor.core.plannings import Ahead
from multiadvisor.core.rng import CHOICE, EPISODE, NEXT_CHOICE, NOISE, below, draw, high_half, normal, step_key
from multiadvisor.envs.slots import slot_of
from multiadvisor.learners.tabular.records import (
    Arrivals,
    Slots,
    UpdateStep,
    Workspace,
    unpack_arrivals,
    unpack_committee,
    unpack_events,
    unpack_parts,
    unpack_run,
    unpack_slots,
)

# What some planning has to know of the next state, as bits.
NEEDS = {"greedy": 1, "taken": 2, "behaviour": 4, "counts": 8, "target": 16}
MIXED = -1  # instead of one planning's code: advisors plan differently

TINY = 1e-200  # smaller values are set to 0: denormals would slow every later step a hundredfold


# ---- bound before compiling ------------------------------------------------------------------------------------------
# The functions of a `World`; `everybody_advises` and `nothing_besides` where it has no `advises` and no `pseudo`.
reset = begin = local_states = step = advises = pseudo = None
RULE = None  # a `Rule`
# whether the world has an `advises` and a `pseudo` of its own, and whether advisors may join during an episode
ADVISES = PSEUDO = JOINS = False


@inside
def everybody_advises(constants, x, advisors, m, weight):
    """Where a world says nothing about who does not advise."""


@inside
def nothing_besides(constants, x, action, advisors, m, ended, reward):
    """Where a world has no pseudo-rewards."""


# ---- choosing --------------------------------------------------------------------------------------------------------
@compiled
def larger(a, b):
    """Of two values; `max` would also look for NaN."""
    return a if a > b else b


@inside
def largest(values):
    """Of an array [A]."""
    best = values[0]
    for a in range(1, values.shape[0]):
        best = larger(best, values[a])
    return best


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
    actions, best, ties = total.shape[0], largest(total), 0
    for a in range(actions):
        ties += 1 if total[a] == best else 0
    for a in range(actions):
        behaviour[a] = epsilon / actions + ((1.0 - epsilon) / ties if total[a] == best else 0.0)


@inside
def decay_of(half, step):
    """1, then 1/2 after `half` steps, 1/3 after twice as many, and so on; always 1 where half is 0."""
    return half / (half + step) if half > 0 else 1.0


@inside
def next_action(work):
    """The action that was held, or a new choice."""
    progress, run = work.progress[0], work.run
    if progress.held > 0:
        held = progress.held - 1
        progress.held = 0
        return held
    epsilon = run.epsilon * decay_of(run.cooling, progress.step)
    return choose(work.aggregator.total, epsilon, draw(step_key(run.key, progress.step), CHOICE))


# ---- slots -----------------------------------------------------------------------------------------------------------
@inside
def init_slots(slots, committee, m):
    """What is an advisor's own beside it; nobody was paid yet, and nobody has ended."""
    for i in range(m):
        j = np.uintp(slots.advisors[i])
        slots.gamma[i], slots.alpha[i] = committee.gamma[j], committee.alpha[j]
        slots.reward[i], slots.ended[i] = 0.0, 0


@inside
def give_weights(advisors, weight, committee, m):
    """Everybody advises with its weight."""
    for i in range(m):
        weight[i] = committee.weight[np.uintp(advisors[i])]


@inside
def find_rows(advisors, local, committee, rows, m):
    """The rows of the local states."""
    for i in range(m):
        j = np.uintp(advisors[i])
        rows[i] = committee.offset[j] + committee.stride[j] * local[i]


@inside
def swapped(slots):
    """The slots, in which the rows arrived at are the rows to leave."""
    return Slots(
        slots.advisors, slots.local, slots.next_rows, slots.rows, slots.ended, slots.scratch, slots.weight,
        slots.gamma, slots.alpha, slots.reward, slots.value, slots.part_weight, slots.reward_bits,
    )  # fmt: skip


@inside
def aggregate(rule, work, slots, arrivals):
    """The preferences in a state, from those who are active in it: those of each part, added."""
    table, aggregator = work.values.table, work.aggregator
    parts, total = aggregator.code.shape[0], aggregator.total
    rows, weights, members, preferences = arrivals.rows, arrivals.weight, arrivals.size, total
    if parts > 1:
        preferences = aggregator.one
        for a in range(total.shape[0]):
            total[a] = 0.0
    start = 0
    for part in range(parts):
        if parts > 1 and aggregator.ends[0] >= 0:  # advisors of a part stand side by side
            last = part == parts - 1
            end = arrivals.size if last else slot_of(arrivals.advisors, arrivals.size, aggregator.ends[part])
            rows, weights, members = arrivals.rows[start:end], arrivals.weight[start:end], end - start
            start = end
        elif parts > 1:
            rows, weights, members = slots.scratch, slots.part_weight, 0
            for i in range(arrivals.size):
                if work.committee.part[np.uintp(arrivals.advisors[i])] == part:
                    rows[members], weights[members] = arrivals.rows[i], arrivals.weight[i]
                    members += 1
        rule.combine(aggregator.code[part], table, rows, weights, members, aggregator.parameter[part], preferences)
        if parts > 1:
            for a in range(total.shape[0]):
                total[a] += preferences[a]


# ---- learning --------------------------------------------------------------------------------------------------------
@inside
def td_update(table, row, action, alpha, target):
    """q += alpha * error."""
    old = table[row, action]
    new = old + alpha * (target - old)
    table[row, action] = new if abs(new) > TINY else 0.0


@inside
def accumulate_returns(slots, m, committee, progress, returns):
    """Count the rewards; the first slot that was paid or has ended, or m."""
    something, first = 0, m
    for i in range(m):
        something |= slots.reward_bits[i] | slots.ended[i]
    if something != 0:
        first = 0
        while slots.reward_bits[first] | slots.ended[first] == 0:
            first += 1
        for i in range(first, m):
            if slots.reward[i] != 0.0:
                j = slots.advisors[i]
                progress[0].episode_score += committee.weight[j] * slots.reward[i]
                returns[j] += slots.reward[i]
    return first


@inside
def add_noise(slots, m, key, sigma):
    """Add the noise of a step to the rewards."""
    if sigma > 0.0:
        for i in range(m):
            slots.reward[i] += sigma * normal(draw(key, NOISE + slots.advisors[i]))


@inside
def update_terminal(rule, work, slots, m, step):
    """Advisors that ended learn their last reward and leave their slots; how many stay."""
    rule.end(work, slots, m, step)
    stay = 0 if step.terminated else step.first
    for i in range(stay, m):
        if step.terminated or slots.ended[i] != 0:
            if work.run.learning:
                alpha, row = slots.alpha[i] * step.decay, np.uintp(slots.rows[i])
                rule.move(work, row, step.action, alpha, slots.reward[i], slots.advisors[i])
        else:
            slot = np.uintp(stay)
            slots.advisors[slot], slots.rows[slot] = slots.advisors[i], slots.rows[i]
            slots.reward[slot], slots.weight[slot] = slots.reward[i], slots.weight[i]
            slots.gamma[slot], slots.alpha[slot] = slots.gamma[i], slots.alpha[i]
            stay += 1
    return stay


@inside
def next_actions(work):
    """What follows in the next state, as far as some planning needs it: the greedy action, the one that is really
    taken, or -1, and the behaviour."""
    aggregator, run, progress = work.aggregator, work.run, work.progress[0]
    ahead, taken = 0, -1
    epsilon = run.epsilon * decay_of(run.cooling, progress.step + 1)
    if run.needs & 1:
        ahead = greedy(aggregator.total, draw(step_key(run.key, progress.step), NEXT_CHOICE))
    if run.needs & 2:  # chosen now, unless it is known already, and held until it is taken
        if progress.held == 0:
            word = draw(step_key(run.key, progress.step + 1), CHOICE)
            progress.held = 1 + choose(aggregator.total, epsilon, word)
        taken = progress.held - 1
    if run.needs & 4:
        behave(aggregator.total, epsilon, aggregator.behaviour)
    return ahead, taken


@inside
def look_ahead(rule, work, slots, m):
    """What m advisors expect of the next state; the action that is really taken there, if some planning needs it."""
    values, aggregator, run = work.values, work.aggregator, work.run
    ahead, taken = next_actions(work)
    if run.needs & 8:
        for i in range(m):
            values.counts[np.uintp(slots.next_rows[i]), ahead] += 1.0
    known = Ahead(ahead, taken, aggregator.behaviour, aggregator.behaviour, values.policies)
    rule.expect(run.kind, values, slots, m, known, work.committee.kind)
    return taken


@inside
def shares_changed_row(slots, m, shared):
    """Whether an advisor arrived at a row that another one, with which it shares a table, has changed."""
    if shared < 0:
        return True
    i = 0
    while i < m and slots.advisors[i] < shared:
        k = 0
        while k < m and slots.advisors[k] < shared:
            if slots.rows[i] == slots.next_rows[k]:
                return True
            k += 1
        i += 1
    return False


@inside
def learn_targets(rule, work, slots, m, step):
    """m advisors learn from the transition; whether the preferences in the next state have changed."""
    for i in range(m):
        target = slots.reward[i] + slots.gamma[i] * slots.value[i]
        alpha, row = slots.alpha[i] * step.decay, np.uintp(slots.rows[i])
        rule.move(work, row, step.action, alpha, target, slots.advisors[i])
    same = False
    for i in range(m):
        same |= slots.rows[i] == slots.next_rows[i]
    return same or shares_changed_row(slots, m, work.run.shared)


@inside
def update_bootstrap(rule, work, slots, m, arrivals, step):
    """Those who stay look where they have arrived, and learn; the preferences there are left in the aggregator."""
    rule.prefer(rule, work, slots, arrivals)
    if work.run.learning:
        learners, taken = rule.learners(m), -1
        if learners > 0:
            taken = look_ahead(rule, work, slots, learners)
        changed = rule.target(work, slots, m, arrivals, step, taken)
        changed |= learn_targets(rule, work, slots, learners, step)
        if changed or 0 < m != arrivals.size:
            rule.prefer(rule, work, slots, arrivals)


@inside
def end_step(work, terminated, truncated):
    """Count the step and, where the episode is over, the episode."""
    progress = work.progress[0]
    progress.step += 1
    progress.episode_step += 1
    if terminated or truncated or progress.episode_step == work.run.limit:
        progress.episodes += 1
        progress.fresh, progress.held = 1, 0
        progress.score_sum += progress.episode_score
        return True
    return False


# ---- a compiled world ------------------------------------------------------------------------------------------------
def play(constants, x, work, integers, reals, steps, episodes):
    """Play and learn for `steps` steps in a compiled world, or until `episodes`, `EpisodeReturns`, is full where it
    has room."""
    slots, progress, run, committee = unpack_slots(integers, reals), work.progress[0], work.run, work.committee
    room, episode, m, played, entering = episodes.score.shape[0], 0, 0, 0, True
    while played < steps and (room == 0 or episode < room):
        key = step_key(run.key, progress.step)
        if progress.fresh == 1:
            reset(constants, x, draw(key, EPISODE))
            progress.fresh, progress.episode_step, progress.episode_score = 0, 0, 0.0
            entering = True
        if entering:
            m = begin(constants, x, slots.advisors)
            init_slots(slots, committee, m)
            give_weights(slots.advisors, slots.weight, committee, m)
            advises(constants, x, slots.advisors, m, slots.weight)
            local_states(constants, x, slots.advisors, m, slots.local)
            find_rows(slots.advisors, slots.local, committee, slots.rows, m)
            RULE.prefer(RULE, work, slots, Arrivals(slots.advisors, slots.rows, slots.weight, m))
            entering = False
        action, before = next_action(work), m
        terminated = step(constants, x, action, key, slots.advisors, m, slots.reward, slots.ended)
        returns = episodes.returns[min(episode, episodes.returns.shape[0] - 1)]
        first = accumulate_returns(slots, m, committee, work.progress, returns)
        if PSEUDO:
            pseudo(constants, x, action, slots.advisors, m, slots.ended, slots.reward)
        add_noise(slots, m, key, run.sigma)
        now = UpdateStep(action, decay_of(run.half, progress.step), first, terminated)
        m = update_terminal(RULE, work, slots, m, now)
        if ADVISES:
            give_weights(slots.advisors, slots.weight, committee, m)
            advises(constants, x, slots.advisors, m, slots.weight)
        local_states(constants, x, slots.advisors, m, slots.local)
        find_rows(slots.advisors, slots.local, committee, slots.next_rows, m)
        arrivals = Arrivals(slots.advisors, slots.next_rows, slots.weight, m)
        if JOINS and not terminated:  # whoever is active now, those whose part has restarted among them
            arrivals = unpack_arrivals(integers, reals, begin(constants, x, integers[6]))
            give_weights(arrivals.advisors, arrivals.weight, committee, arrivals.size)
            advises(constants, x, arrivals.advisors, arrivals.size, arrivals.weight)
            local_states(constants, x, arrivals.advisors, arrivals.size, slots.local)
            find_rows(arrivals.advisors, slots.local, committee, arrivals.rows, arrivals.size)
        update_bootstrap(RULE, work, slots, m, arrivals, now)
        if PSEUDO or first < before or run.sigma > 0.0:
            for i in range(before):
                slots.reward[i], slots.ended[i] = 0.0, 0
        if JOINS:
            m = arrivals.size
            for i in range(m):
                slots.advisors[i], slots.next_rows[i] = arrivals.advisors[i], arrivals.rows[i]
                slots.weight[i] = arrivals.weight[i]
            init_slots(slots, committee, m)
        slots = swapped(slots)
        played += 1
        if end_step(work, terminated, False):
            if episode < room:
                episodes.score[episode], episodes.length[episode] = progress.episode_score, progress.episode_step
                episodes.terminated[episode] = int(terminated)
            episode += 1
    return played


def ask(constants, x, work, integers, reals):
    """Who is active in x, on which rows, with which weights, and the preferences there: how many there are."""
    slots = unpack_slots(integers, reals)
    m = begin(constants, x, slots.advisors)
    give_weights(slots.advisors, slots.weight, work.committee, m)
    advises(constants, x, slots.advisors, m, slots.weight)
    local_states(constants, x, slots.advisors, m, slots.local)
    find_rows(slots.advisors, slots.local, work.committee, slots.rows, m)
    RULE.prefer(RULE, work, slots, Arrivals(slots.advisors, slots.rows, slots.weight, m))
    return m


# ---- a Python environment, one step at a time ------------------------------------------------------------------------
RESET, CONTINUED, TERMINATED, TRUNCATED, RETURN = range(5)  # what the environment has just done


@inside
def receive_rewards(slots, m, events, signals):
    """The rewards and ends of the m active advisors; the first whose reward is not finite, or -1."""
    for i in range(m):
        j = slots.advisors[i]
        slots.reward[i] = signals[events.source[j]]
        if not np.isfinite(slots.reward[i]):
            return j
        slots.ended[i] = 1 if events.ended[j] == 1 or events.active[j] == 0 else 0
    return -1


@inside
def arrive(events, firsts, committee, arrivals):
    """Write down who is active in the state arrived in; how many."""
    size = 0
    for j in range(events.active.shape[0]):
        if events.active[j] == 1:
            arrivals.advisors[size], arrivals.rows[size] = j, firsts[events.phi[j]] + committee.offset[j]
            arrivals.weight[size] = committee.weight[j] if events.advises[j] == 1 else 0.0
            size += 1
    return size


def adapter_step(values, arrays, event):
    """Learn from the step just made, then choose the next action; -1 - j where advisor j's reward is not finite."""
    integers, reals, firsts = arrays.integers, arrays.reals, arrays.firsts
    slots, events = unpack_slots(integers, reals), unpack_events(integers, reals)
    committee = unpack_committee(integers, reals)
    aggregator = unpack_parts(integers, reals, arrays.room, arrays.run[0].parts)
    work = Workspace(values, committee, aggregator, unpack_run(arrays.run), arrays.progress)
    progress, run = arrays.progress[0], work.run
    stepped = event != RESET and event != RETURN
    m, now = 0, UpdateStep(progress.action, decay_of(run.half, progress.step), 0, event == TERMINATED)
    if event == RESET:
        progress.fresh, progress.episode_step, progress.episode_score = 0, 0, 0.0
    elif stepped:
        m = progress.active
        wrong = receive_rewards(slots, m, events, arrays.signals)
        if wrong >= 0:
            return -1 - wrong
        first = accumulate_returns(slots, m, committee, arrays.progress, events.returns)
        add_noise(slots, m, step_key(run.key, progress.step), run.sigma)
        now = UpdateStep(now.action, now.decay, first, now.terminated)
        m = update_terminal(RULE, work, slots, m, now)
    size = 0
    if event != TERMINATED:
        size = arrive(events, firsts, committee, unpack_arrivals(integers, reals, 0))
        for i in range(m):
            slots.next_rows[i] = firsts[events.phi[slots.advisors[i]]] + committee.offset[slots.advisors[i]]
        arrivals = unpack_arrivals(integers, reals, size)
        update_bootstrap(RULE, work, slots, m, arrivals, now)
    if stepped and end_step(work, event == TERMINATED, event == TRUNCATED):
        return 0
    arrivals = unpack_arrivals(integers, reals, size)
    for i in range(size):
        slots.advisors[i], slots.rows[i] = arrivals.advisors[i], arrivals.rows[i]
        slots.weight[i] = arrivals.weight[i]
    init_slots(slots, committee, size)
    progress.active = size
    if event != RETURN:  # then the action was chosen before
        progress.action = next_action(work)
    return progress.action
