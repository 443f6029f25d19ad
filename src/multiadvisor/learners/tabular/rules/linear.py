"""Linear Q-learning, a baseline of the paper: one Q-function, linear in the features "advisor j is in local state s".

Nobody bootstraps by itself: all features that were present share the error of the sum equally, a step of alpha for it,
however many there are. Where values are mapped (`mapped.py`) the features sum up to the mapped value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.compiling import inside
from multiadvisor.core.mappings import MAPPING, inverse, moved
from multiadvisor.learners.tabular.kernel import TINY, largest

_SUM = np.dtype([("expected", np.float64), ("income", np.float64), ("features", np.int64)])


class LinearFeatures(NamedTuple):
    """What `note_features` notes for `learn_features`."""

    rows: Any  # [n] int64 of the features that were present
    sum: Any  # [1] what they promised, what was earned, and how many they are
    mapping: Any  # [1] MAPPING the scale of their sum


def new_features(n: int, mapping: np.ndarray) -> LinearFeatures:
    """Room for those of n advisors; `mapping` [n or fewer] MAPPING."""
    one = mapping[:1] if len(mapping) else np.array([(0.0, 1.0, 1.0)], MAPPING)
    return LinearFeatures(np.zeros(n, np.int64), np.zeros(1, _SUM), one)


@inside
def nobody(m):
    """None bootstraps by itself."""
    return 0


@inside
def expect_nothing(kind, values, slots, m, ahead, kinds):
    """So that no planning is asked."""


@inside
def stay(work, row, action, alpha, target, advisor):
    """Nor learns its last reward."""


@inside
def note_features(work, slots, m, step):
    """Write down what was there, before those who ended leave."""
    features = work.values.extra
    found = features.sum[0]
    income = 0.0
    for i in range(m):
        features.rows[i] = slots.rows[i]
        income += slots.weight[i] * slots.reward[i]
    found.expected, found.income, found.features = work.aggregator.total[step.action], income, m


@inside
def share_error(work, action, error):
    """Every feature that was present moves by its share."""
    table, features = work.values.table, work.values.extra
    for i in range(features.sum[0].features):
        row = np.uintp(features.rows[i])
        new = table[row, action] + error
        table[row, action] = new if abs(new) > TINY else 0.0


@inside
def learn_features(work, slots, m, arrivals, step, taken):
    """Q-learning on the sum."""
    committee, found = work.committee, work.values.extra.sum[0]
    best = largest(work.aggregator.total) if m > 0 else 0.0
    error = found.income + committee.gamma[0] * best - found.expected
    share_error(work, step.action, committee.alpha[0] * step.decay / found.features * error)
    return True


@inside
def learn_mapped_features(work, slots, m, arrivals, step, taken):
    """The same, where the features sum up to the mapped value: the greedy action is the same."""
    committee, found, mapping = work.committee, work.values.extra.sum[0], work.values.extra.mapping[0]
    best = inverse(mapping, largest(work.aggregator.total)) if m > 0 else 0.0
    target, alpha = found.income + committee.gamma[0] * best, committee.alpha[0] * step.decay
    error = moved(mapping, found.expected, alpha, target) - found.expected
    share_error(work, step.action, error / found.features)
    return True
