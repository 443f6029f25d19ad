"""The correction that the aggregator learns: what the sum of the advisors promises too much (`theory.correction`).

    D(x, a) = E[ sum_j w_j gamma_j V_j(x'_j) - gamma max_a' (Q_Sigma(x', a') - D(x', a')) ]

D is one more advisor, of weight -1, whose local state is the whole state or what the task names instead. Its reward is
what the others expect of the next state, its value there minus the best that all together can really get. So
everything but these two lines is the advisors' own: rows of the one table, the sum, ends, checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from multiadvisor.core.compiling import inside
from multiadvisor.core.learned import LearnedAggregation
from multiadvisor.learners.tabular.kernel import largest
from multiadvisor.learners.tabular.state_index import extend_task
from multiadvisor.task import Task


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


class LearnedCorrection(LearnedAggregation):
    """The sum less the correction."""

    added = "correction"
    steady = True
    network = "multiadvisor.learners.dqn.own_output:CORRECTION"
    rule: ClassVar[Mapping[str, Any]] = {"end": end_correction, "target": correct}

    def extend(self, task: Task) -> Task:
        """The task with the correction as the last advisor."""
        or_else = ", or learn with a network (learner='dqn', on the command line --learner dqn)"
        return extend_task(task, self.added, -1.0, or_else=or_else)
