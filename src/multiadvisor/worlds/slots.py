"""Finding an advisor among the active ones, for the functions of a compiled world."""

from __future__ import annotations

from multiadvisor.compiling import compiled


@compiled
def slot_of(advisors, m, advisor):
    """The slot in which an active advisor stands (advisors[:m] rise, so this is a search by halves)."""
    low, high = 0, m
    while low < high:
        middle = (low + high) >> 1
        if advisors[middle] < advisor:
            low = middle + 1
        else:
            high = middle
    return low
