"""Planning in the model of a bank: how long one can be sure not to be caught, whatever the others do.

The others go the ways that were observed, and get to a place after so many steps at the earliest. Whoever is in a place
that is lost by then counts as caught; for some steps before, it is in doubt: the share of them that is left is the
probability of getting on. The best way out is found by going back from the last step that is looked at, and an action
is worth the mean over what followed it. So this is a general value function as well, of the steps that are left, only
that it is made for a single observation and not kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiadvisor.core.compiling import cached

FOLLOWERS = 12  # different next states that are kept of a pair


class Layers(NamedTuple):
    """What can be reached in each step that is looked ahead."""

    states: np.ndarray  # [T + 1, S] int32 the states of a step, in the order they are found
    length: np.ndarray  # [T + 1] int64
    left: np.ndarray  # [T + 1, S] steps that are left there, -1: not reached
    worth: np.ndarray  # [A] of the actions in one state


def layers(ahead: int, states: int, actions: int) -> Layers:
    """Empty ones."""
    shape = (ahead + 1, states)
    return Layers(np.zeros(shape, np.int32), np.zeros(ahead + 1, np.int64), np.full(shape, -1.0), np.zeros(actions))


@cached
def steps_from(start, heading, headings, model, place, layer, found):
    """Write the fewest steps from some states [k] to each place [places], without turning back, into `found`."""
    follower, seen = model.follower, model.seen
    queue, known = layer.states[0], layer.left[0]
    first = last = 0
    for state in start:
        known[state], queue[last] = 0.0, state
        last += 1
    steps = 0.0
    while first < last:
        end = last
        while first < end:
            state = queue[first]
            first += 1
            if place[state] >= 0 and steps < found[place[state]]:
                found[place[state]] = steps
            for action in range(follower.shape[1]):
                for k in range(FOLLOWERS):
                    if seen[state, action, k] == 0:
                        break
                    after = follower[state, action, k]
                    back = headings > 1 and 2 * (heading[after] - heading[state]) % (2 * headings) == headings
                    if known[after] < 0.0 and not back:
                        known[after], queue[last] = 0.0, after
                        last += 1
        steps += 1.0
    for i in range(last):
        known[queue[i]] = -1.0


@cached
def survive(start, ahead, threat, model, place, layer, out):
    """Write into `out` [A] the share of the steps ahead that each action is sure of, if the best follows.

    What was never tried is worth as much as the best of what was: nobody knows.
    """
    states, length, left, worth = layer
    closed, haven, follower, seen = threat.closed, threat.haven, model.follower, model.seen
    actions = follower.shape[1]
    states[0, 0], length[0], left[0, start] = start, 1, 0.0
    for step in range(ahead):
        length[step + 1] = 0
        for i in range(length[step]):
            state = states[step, i]
            at = place[state]
            if step > 0 and at >= 0 and (closed[at] <= step or haven[at]):
                continue
            for action in range(actions):
                for k in range(FOLLOWERS):
                    if seen[state, action, k] == 0:
                        break
                    after = follower[state, action, k]
                    if left[step + 1, after] < 0.0:
                        left[step + 1, after] = 0.0
                        states[step + 1, length[step + 1]] = after
                        length[step + 1] += 1
    for step in range(ahead, -1, -1):
        for i in range(length[step]):
            state = states[step, i]
            at = place[state]
            sure = 1.0
            if step > 0 and at >= 0:
                sure = min(max((closed[at] - step) / threat.doubt, 0.0), 1.0)
            if sure == 0.0 or step == ahead or (step > 0 and at >= 0 and haven[at]):
                left[step, state] = sure * (ahead - step + 1.0)
                continue
            best = -1.0
            for action in range(actions):
                total, sum_ = 0, 0.0
                for k in range(FOLLOWERS):
                    if seen[state, action, k] == 0:
                        break
                    total += seen[state, action, k]
                    sum_ += seen[state, action, k] * left[step + 1, follower[state, action, k]]
                worth[action] = sum_ / total if total > 0 else -1.0
                best = max(best, worth[action])
            if best < 0.0:  # nothing was tried there
                best = float(ahead - step)
            left[step, state] = sure * (1.0 + best)
            if step == 0:
                for action in range(actions):
                    out[action] = (best if worth[action] < 0.0 else worth[action]) / ahead
    for step in range(ahead + 1):
        for i in range(length[step]):
            left[step, states[step, i]] = -1.0
