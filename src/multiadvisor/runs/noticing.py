"""Whether the games that are played after an epoch get stuck, looked at so seldom that training hardly feels it.

A game is played again turn by turn, in Python, which takes as long as learning from many transitions. So turns that are
looked at are paid for with turns that were learned from, and none is looked at before there are enough: how often does
not depend on the machine, and a run that is resumed looks at the same games.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.errors import BadInput
from multiadvisor.insight.games import play
from multiadvisor.insight.stuck import Stuck, find_stuck
from multiadvisor.learner import Played

_PRICE = {True: 50_000, False: 1_000}
"""Transitions learned from for each turn looked at, in a compiled world and in a Python environment: 1% of the time."""
_LONGEST = 2_000  # turns that are looked at together
_NAMED = 3  # so many advisors of either side


class Look(NamedTuple):
    """One look at the games of an epoch."""

    turns: int
    """That were played again."""
    stuck: Stuck | None

    def as_dict(self) -> dict[str, Any]:
        """For the record of an epoch: `looked`, and where a game is stuck `stuck`."""
        if self.stuck is None:
            return {"looked": self.turns}
        found = self.stuck.as_dict()
        few = {name: dict(list(found[name].items())[:_NAMED]) for name in ("holds", "leaves")}
        return {"looked": self.turns, "stuck": {**found, **few}}


def allowance(agent: MultiAdvisor, epochs: list[dict[str, Any]]) -> int:
    """How many turns may be looked at now, after what was learned and looked at so far."""
    price = _PRICE[agent.task.world is not None]
    return agent.turns // price - sum(epoch.get("looked", 0) for epoch in epochs)


def look(agent: MultiAdvisor, seed: int, played: Played, most: int = _LONGEST) -> Look | None:
    """Play the games of `agent.evaluate(..., seeds=(seed,))` again, up to the first that did not end by itself.

    None where all of them ended, where that would be more than `most` turns, or where such games cannot be told about.
    """
    open_ended = np.flatnonzero(played.finished == 0)
    if not len(open_ended):
        return None
    game = int(open_ended[0])
    turns = int(played.turns[: game + 1].sum())
    if turns > min(most, _LONGEST):
        return None
    try:
        found = find_stuck(play(agent, game + 1, seed))
    except BadInput:
        return None  # this agent's games are not played turn by turn
    return Look(turns, next((one for one in found if one.game == game), None))


def is_look(epoch: dict[str, Any]) -> bool:
    """Whether what an epoch of a record says of a look is as it should be."""
    looked, stuck = epoch.get("looked", 0), epoch.get("stuck")
    if stuck is not None:
        kinds = {"holds": dict, "leaves": dict, **dict.fromkeys(("kind", "where", "advice"), str)}
        if not isinstance(stuck, dict) or {*stuck} != {field.name for field in dataclasses.fields(Stuck)}:
            return False
        if not all(type(value) is kinds.get(name, int) for name, value in stuck.items()):
            return False
    return type(looked) is int and looked >= 0


def in_words(stuck: dict[str, Any]) -> str:
    """What an epoch says of being stuck, as a sentence."""
    return f"game {stuck['game']} {Stuck(**stuck)}"
