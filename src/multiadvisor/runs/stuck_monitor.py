"""Whether the episodes that are played in an evaluation get stuck, looked at so seldom that training hardly feels it.

An episode is played again step by step, in Python, which takes as long as learning from many transitions. So steps
that are looked at are paid for with steps that were learned from, and none is looked at before there are enough: how
often does not depend on the machine, and a run that is resumed looks at the same episodes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episodes import play
from multiadvisor.analysis.stuck import Stuck, find_stuck
from multiadvisor.errors import BadInput
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.storage.sealed import NUMBER

_PRICE = {True: 50_000, False: 1_000}
"""Transitions learned from for each step looked at, in a compiled world and in a Python environment: 1% of the time."""
_TYPES: dict[str, Any] = {"held_by": {str: NUMBER}, "leaves": {str: NUMBER}, "kind": str, "where": str, "advice": str}
STUCK = {field.name: _TYPES.get(field.name, int) for field in dataclasses.fields(Stuck)}
"""The shape of what the record of an evaluation says of being stuck."""
_LONGEST = 2_000  # steps that are looked at together
_NAMED = 3  # so many advisors of either side


def allowance(agent: MultiAdvisor, evaluations: list[dict[str, Any]]) -> int:
    """How many steps may be looked at now, after what was learned and looked at so far."""
    price = _PRICE[agent.task.world is not None]
    return int(agent.steps) // price - sum(int(evaluation.get("steps_checked", 0)) for evaluation in evaluations)


def look(agent: MultiAdvisor, seed: int, played: EpisodeReturns, most: int = _LONGEST) -> dict[str, Any]:
    """Play the episodes of `agent.evaluate(..., seeds=(seed,))` again, up to the first that did not end by itself.

    For the record of the evaluation: `steps_checked`, and where that episode is stuck `stuck`. Empty where all of them
    ended, where that would be more than `most` steps, or where such episodes cannot be told about.
    """
    open_ended = np.flatnonzero(played.terminated == 0)
    if not len(open_ended):
        return {}
    episode = int(open_ended[0])
    steps = int(played.length[: episode + 1].sum())
    if steps > min(most, _LONGEST):
        return {}
    try:
        found = find_stuck(play(agent, episode + 1, seed))
    except BadInput:
        return {}  # this agent's episodes are not played step by step
    for one in found:
        if one.episode == episode:
            held_by, leaves = (dict(list(each.items())[:_NAMED]) for each in (one.held_by, one.leaves))
            stuck = dataclasses.replace(one, held_by=held_by, leaves=leaves)
            return {"steps_checked": steps, "stuck": stuck.as_dict()}
    return {"steps_checked": steps}


def in_words(stuck: dict[str, Any]) -> str:
    """What an evaluation says of being stuck, as a sentence."""
    return f"episode {stuck['episode']} {Stuck(**stuck)}"
