"""Whether the episodes that are played in an evaluation get stuck, looked at so seldom that training hardly feels it.

An episode is played again step by step, in Python, which takes as long as learning from many transitions. So steps
that are looked at are paid for with steps that were learned from, and none is looked at before there are enough: how
often does not depend on the machine, and a run that is resumed looks at the same episodes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episodes import play
from multiadvisor.analysis.stuck import Stuck, find_stuck
from multiadvisor.errors import BadInput
from multiadvisor.learners.protocol import EpisodeReturns

_PRICE = {True: 50_000, False: 1_000}
"""Transitions learned from for each step looked at, in a compiled world and in a Python environment: 1% of the time."""
_LONGEST = 2_000  # steps that are looked at together
_NAMED = 3  # so many advisors of either side


class StuckCheck(NamedTuple):
    """One look at the episodes of an evaluation."""

    steps: int
    """That were played again."""
    stuck: Stuck | None

    def as_dict(self) -> dict[str, Any]:
        """For the record of an evaluation: `steps_checked`, and where an episode is stuck `stuck`."""
        if self.stuck is None:
            return {"steps_checked": self.steps}
        found = self.stuck.as_dict()
        few = {name: dict(list(found[name].items())[:_NAMED]) for name in ("held_by", "leaves")}
        return {"steps_checked": self.steps, "stuck": {**found, **few}}


def allowance(agent: MultiAdvisor, evaluations: list[dict[str, Any]]) -> int:
    """How many steps may be looked at now, after what was learned and looked at so far."""
    price = _PRICE[agent.task.world is not None]
    return int(agent.steps) // price - sum(int(evaluation.get("steps_checked", 0)) for evaluation in evaluations)


def look(agent: MultiAdvisor, seed: int, played: EpisodeReturns, most: int = _LONGEST) -> StuckCheck | None:
    """Play the episodes of `agent.evaluate(..., seeds=(seed,))` again, up to the first that did not end by itself.

    None where all of them ended, where that would be more than `most` steps, or where such episodes cannot be told
    about.
    """
    open_ended = np.flatnonzero(played.terminated == 0)
    if not len(open_ended):
        return None
    episode = int(open_ended[0])
    steps = int(played.length[: episode + 1].sum())
    if steps > min(most, _LONGEST):
        return None
    try:
        found = find_stuck(play(agent, episode + 1, seed))
    except BadInput:
        return None  # this agent's episodes are not played step by step
    return StuckCheck(steps, next((one for one in found if one.episode == episode), None))


def is_look(evaluation: dict[str, Any]) -> bool:
    """Whether what an evaluation of a record says of a look is as it should be."""
    checked, stuck = evaluation.get("steps_checked", 0), evaluation.get("stuck")
    if stuck is not None:
        kinds = {"held_by": dict, "leaves": dict, **dict.fromkeys(("kind", "where", "advice"), str)}
        if not isinstance(stuck, dict) or {*stuck} != {field.name for field in dataclasses.fields(Stuck)}:
            return False
        if not all(type(value) is kinds.get(name, int) for name, value in stuck.items()):
            return False
    return type(checked) is int and checked >= 0


def in_words(stuck: dict[str, Any]) -> str:
    """What an evaluation says of being stuck, as a sentence."""
    return f"episode {stuck['episode']} {Stuck(**stuck)}"
