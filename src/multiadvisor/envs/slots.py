"""Finding an advisor among the active ones, for the functions of a compiled world."""

from __future__ import annotations

import numpy as np

from multiadvisor.core.compiling import compiled


@compiled
def slot_of(advisors, m, advisor):
    """The slot in which an active advisor stands (advisors[:m] rise, so this is a search by halves)."""
    low, size = 0, m
    while size > 0:  # as many rounds whoever is looked for, and no branch that a processor would guess wrong
        half = (size + 1) >> 1
        low += half & ((advisors[np.uintp(low + half - 1)] - advisor) >> 63)  # all bits set where that is negative
        size -= half
    return low
