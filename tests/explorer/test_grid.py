"""The grid that the page draws is the world's."""

from __future__ import annotations

import numpy as np

import multiadvisor as mad


def test_grids_of_the_descriptor_are_the_worlds() -> None:
    for task in (mad.make("pac-boy"), mad.make("bridge"), mad.make("two-goal"), mad.make("fruit-grid")):
        grid = task.grid
        agent = mad.MultiAdvisor(task)
        x = task.initial_state(3)
        advisors, rows = agent._learner.rows(x)
        local = [sum(x[place] * factor for place, factor in grid.terms[j]) for j in advisors]
        layout = task.layout()
        assert (layout.offset[advisors] + layout.stride[advisors] * np.array(local)).tolist() == rows.tolist()
