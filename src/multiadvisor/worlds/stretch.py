"""The games of a run in a Python environment, so that they can be played again up to where they were.

The environment is seeded anew every thousand turns or so, at the start of a game, and the actions since then are
remembered. So a run that was saved, or whose environment was borrowed for an evaluation, goes on exactly where it was:
that stretch is played again. (Seeding every game would cost more than learning where games are short.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multiadvisor.draws import ENVIRONMENT, STRETCH, environment_seed
from multiadvisor.errors import BadInput


class Stretch:
    """From the last seed on, in the environment number `place` of a run with this seed."""

    def __init__(self, task: str, seed: int, place: int = 0) -> None:
        self._task, self._seed, self._place = task, seed, place
        self.seeded_at = 0
        """The turn at which it began."""
        self.trail: list[Any] = []
        """The actions since then, as the adapter takes them: counted from 0, or arrays."""

    def _first(self) -> int:
        return environment_seed(self._seed, ENVIRONMENT, self.seeded_at + (self._place << 40))

    def deal(self, turn: int) -> int | None:
        """The seed of the game that begins at this turn; None where it needs none."""
        if self.trail and len(self.trail) < STRETCH:
            return None
        self.begin(turn)
        return self._first()

    def begin(self, turn: int) -> None:
        """Whatever was going on is given up, and the next game begins a new stretch."""
        self.seeded_at = turn
        self.trail.clear()

    def again(self, reset: Callable[[int | None], Any], step: Callable[[Any], tuple[bool, bool]]) -> bool:
        """Play it again: whether its last game is over."""
        reset(self._first())
        over = False
        for turns, action in enumerate(self.trail):
            if over:
                if turns >= STRETCH:  # a new stretch would have begun here
                    raise self.strayed()
                reset(None)
            over = any(step(action))
        return over

    def strayed(self) -> BadInput:
        """The complaint about games that went another way than before."""
        return BadInput(
            f"task {self._task!r} is not reproducible from the same seed and actions, so its run cannot be resumed: "
            "run check_task on it"
        )
