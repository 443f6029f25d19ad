"""The episodes of a run in a Python environment, so that they can be played again up to where they were.

The environment is seeded again every thousand steps or so, at the start of an episode, and the actions since then are
kept. So a run that was saved, or whose environment was borrowed for an evaluation, resumes exactly where it was: that
segment is played again. (Seeding every episode would cost more than learning where episodes are short.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multiadvisor.core.rng import ENVIRONMENT, environment_seed
from multiadvisor.errors import BadInput

LENGTH = 1000  # steps after which the next episode begins a new segment


class Segment:
    """From the last seed on, in the environment number `place` of a run with this seed."""

    def __init__(self, task: str, seed: int, place: int = 0) -> None:
        self._task, self._seed, self._place = task, seed, place
        self.seeded_at = 0
        """The step at which it began."""
        self.actions: list[Any] = []
        """The actions since then, as the adapter takes them: counted from 0, or arrays."""

    def _first(self) -> int:
        return environment_seed(self._seed, ENVIRONMENT, self.seeded_at + (self._place << 40))

    def next_seed(self, step: int) -> int | None:
        """The seed of the episode that begins at this step; None where it needs none."""
        if self.actions and len(self.actions) < LENGTH:
            return None
        self.begin(step)
        return self._first()

    def begin(self, step: int) -> None:
        """Whatever was going on is given up, and the next episode begins a new segment."""
        self.seeded_at = step
        self.actions.clear()

    def play_again(self, reset: Callable[[int | None], Any], step: Callable[[Any], tuple[bool, bool]]) -> bool:
        """Play it again: whether its last episode is over."""
        reset(self._first())
        over = False
        for steps, action in enumerate(self.actions):
            if over:
                if steps >= LENGTH:  # a new segment would have begun here
                    raise self.not_reproducible()
                reset(None)
            over = any(step(action))
        return over

    def not_reproducible(self) -> BadInput:
        """The complaint about episodes that went another way than before."""
        return BadInput(
            f"task {self._task!r} is not reproducible from the same seed and actions, so its run cannot be resumed: "
            "run check_task on it"
        )
