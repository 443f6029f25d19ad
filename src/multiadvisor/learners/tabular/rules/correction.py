"""The correction that the aggregator learns: what the sum of the advisors promises too much (`theory.correction`).

    D(x, a) = E[ sum_j w_j gamma_j V_j(x'_j) - gamma max_a' (Q_Sigma(x', a') - D(x', a')) ]

D is one more advisor, of weight -1, whose local state is the whole state or what the task names instead. Its reward is
what the others expect of the next state, its value there minus the best that all together can really get. So
everything but these two lines is the advisors' own: rows of the one table, the sum, ends, checkpoints.
"""

from __future__ import annotations

import numpy as np

from multiadvisor.core.aggregations import CORRECTION
from multiadvisor.core.compiling import inside
from multiadvisor.learners.protocol import refuse_changing_sum
from multiadvisor.learners.tabular.kernel import largest
from multiadvisor.learners.tabular.state_index import extend_task
from multiadvisor.task import Advisor, Task, nothing


# The correction is the last of the active advisors, and active as long as the episode lasts.
@inside
def end_correction(work, slots, m, step):
    """Its own reward has no noise, and at the end of an episode it is 0."""
    slots.reward[m - 1] = 0.0


@inside
def correct(work, slots, m, arrivals, step, taken):
    """The reward and the value of the correction."""
    if m > 0:
        promised = 0.0
        for i in range(m - 1):
            weight = work.committee.weight[np.uintp(slots.advisors[i])]
            promised += weight * slots.gamma[i] * slots.value[i]
        slots.reward[m - 1], slots.value[m - 1] = promised, -largest(work.aggregator.total)
    return False


def with_correction(task: Task) -> Task:
    """The task as its aggregator sees it: with the correction as the last advisor."""
    refuse_changing_sum(task)
    given = task.correction or Advisor(CORRECTION)
    advisor = Advisor(
        CORRECTION, reward=nothing, weight=-1.0, alpha=given.alpha, planning="egocentric", group=CORRECTION
    )
    return extend_task(task, advisor, given.state, given.states)
