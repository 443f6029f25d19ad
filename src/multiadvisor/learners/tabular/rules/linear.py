"""Linear Q-learning, a baseline of the paper: one Q-function, linear in the features "advisor j is in local state s".

The same loop as the advisors' (`kernel.play`), with these two functions instead of theirs.
"""

from __future__ import annotations

import numpy as np

from multiadvisor.core.compiling import inside
from multiadvisor.learners.tabular.kernel import TINY, aggregate, larger

EXPECTED, INCOME, FEATURES = range(3)  # what `settle_features` notes for `advance_features`


@inside
def update_terminal_features(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """Nobody learns by itself; those that ended leave their slots, and how many stay. `rows` keeps all features."""
    voice.note[EXPECTED], voice.note[INCOME], voice.note[FEATURES] = voice.total[action], 0.0, m
    stay = 0
    for i in range(m):
        voice.note[INCOME] += slots.voice[i] * slots.reward[i]
        if not (terminated or slots.ended[i] != 0):
            slots.advisors[stay], slots.voice[stay] = slots.advisors[i], slots.voice[i]
            stay += 1
    return stay


@inside
def update_bootstrap_features(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):  # fmt: skip
    """All features that were present share the error of the sum equally: a step of alpha for it, however many."""
    aggregate(combine, table, seen, slots, committee, voice)
    if not run.learning:
        return
    best, features = 0.0, int(voice.note[FEATURES])
    if m > 0:
        best = voice.total[0]
        for a in range(1, voice.total.shape[0]):
            best = larger(best, voice.total[a])
    error = voice.note[INCOME] + committee.gamma[0] * best - voice.note[EXPECTED]
    for i in range(features):
        at = np.uintp(rows[i])
        new = table[at, action] + committee.alpha[0] * decay / features * error
        table[at, action] = new if abs(new) > TINY else 0.0
    aggregate(combine, table, seen, slots, committee, voice)
