"""Advisors, and linear Q-learning, whose values are learned on mapped scales (`mappings`).

The same loop as the advisors' (`kernel.play`), with these functions instead of theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.core.aggregator import learned_beside
from multiadvisor.core.compiling import inside
from multiadvisor.core.mappings import Mapping, forward, inverse, mapping_named, moved
from multiadvisor.errors import BadInput
from multiadvisor.learners.tabular.kernel import TINY, aggregate, larger, look_ahead, shares_changed_row
from multiadvisor.learners.tabular.rules.linear import EXPECTED, FEATURES, INCOME
from multiadvisor.settings import Settings
from multiadvisor.task import Task

CODE, LEAST, BETA = range(3)  # columns of `Committee.mapping`


@inside
def td_update_mapped(table, row, action, alpha, target, mapping):
    """`td_update`, on the scale of the advisor."""
    code, least = mapping[CODE], mapping[LEAST]
    stored = forward(code, least, table[row, action])
    new = inverse(code, least, moved(code, least, mapping[BETA], stored, alpha, target))
    table[row, action] = new if abs(new) > TINY else 0.0


@inside
def update_terminal_mapped(table, slots, rows, m, committee, action, decay, run, first, terminated, voice):
    """`settle_advisors`, on mapped scales."""
    if not (first < m or terminated):
        return m
    stay = 0
    for i in range(m):
        j = np.uintp(slots.advisors[i])
        if terminated or slots.ended[i] != 0:
            if run.learning:
                alpha = committee.alpha[j] * decay
                td_update_mapped(table, np.uintp(rows[i]), action, alpha, slots.reward[i], committee.mapping[j])
        else:
            slots.advisors[stay], rows[stay] = slots.advisors[i], rows[i]
            slots.reward[stay], slots.voice[stay] = slots.reward[i], slots.voice[i]
            stay += 1
    return stay


@inside
def update_bootstrap_mapped(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):  # fmt: skip
    """`advance_advisors`, on mapped scales."""
    aggregate(combine, table, seen, slots, committee, voice)
    if run.learning and m > 0:
        look_ahead(expect, table, counts, slots, nexts, committee, m, now, run, voice, clock)
        same = False
        for i in range(m):
            j = np.uintp(slots.advisors[i])
            target, alpha = slots.reward[i] + committee.gamma[j] * slots.value[i], committee.alpha[j] * decay
            td_update_mapped(table, np.uintp(rows[i]), action, alpha, target, committee.mapping[j])
            same |= rows[i] == nexts[i]
        if same or seen.size != m or shares_changed_row(slots.advisors, rows, nexts, m, run.shared):
            aggregate(combine, table, seen, slots, committee, voice)


@inside
def update_bootstrap_mapped_features(
    combine, expect, table, counts, slots, rows, nexts, m, seen, committee, action, decay, now, run, voice, clock
):  # fmt: skip
    """`advance_features`, where the features sum up to the mapped value: the greedy action is the same."""
    aggregate(combine, table, seen, slots, committee, voice)
    if not run.learning:
        return
    best, features, mapping = 0.0, int(voice.note[FEATURES]), committee.mapping[0]
    code, least = mapping[CODE], mapping[LEAST]
    if m > 0:
        best = voice.total[0]
        for a in range(1, voice.total.shape[0]):
            best = larger(best, voice.total[a])
        best = inverse(code, least, best)
    stored = voice.note[EXPECTED]
    target = voice.note[INCOME] + committee.gamma[0] * best
    error = moved(code, least, mapping[BETA], stored, committee.alpha[0] * decay, target) - stored
    for i in range(features):
        at = np.uintp(rows[i])
        new = table[at, action] + error / features
        table[at, action] = new if abs(new) > TINY else 0.0
    aggregate(combine, table, seen, slots, committee, voice)


# ---- who has one -----------------------------------------------------------------------------------------------------
def is_mapped(task: Task) -> bool:
    """Whether any advisor has a scale of its own."""
    return any(advisor.mapping is not None for advisor in task.advisors)


def mappings_of(task: Task, settings: Settings) -> np.ndarray:
    """[n, 3] code, least and step size for each advisor; next to nothing where none is mapped."""
    if not is_mapped(task):
        return np.zeros((1, 3))
    found, bounds = [], task.reward_bounds
    for j, (advisor, gamma) in enumerate(zip(task.advisors, task.gammas(settings.gamma), strict=True)):
        if advisor.mapping is None:
            found.append(Mapping(alpha=advisor.mapped_alpha))
            continue
        if bounds is not None and bounds[j, 0] < 0:
            raise BadInput(
                f"advisor {advisor.name!r} may lose, and its mapping {advisor.mapping!r} is for rewards of at least "
                f"0: give "
                "losses a separate advisor, with the sign reversed and a negative weight"
            )
        found.append(mapping_named(advisor.mapping, float(gamma), advisor.mapped_alpha))
    if settings.learner_settings.name == "linear" and len(set(found)) > 1:
        raise BadInput("linear Q-learning has one mapping for everything: give all advisors the same")
    return np.array(found, float)


def ways_of_mapped(settings: Settings) -> dict[str, Any]:
    """What `kernel` leaves open, for mapped values."""
    from multiadvisor.learners.tabular.rules.linear import update_terminal_features

    if settings.learner_settings.name == "linear":
        return {
            "find_preferences": aggregate,
            "update_terminal": update_terminal_features,
            "update_bootstrap": update_bootstrap_mapped_features,
        }
    if learned_beside(settings.aggregation):
        raise BadInput(f"the aggregation {settings.aggregation!r} learns on plain values: leave mappings out")
    return {
        "find_preferences": aggregate,
        "update_terminal": update_terminal_mapped,
        "update_bootstrap": update_bootstrap_mapped,
    }
