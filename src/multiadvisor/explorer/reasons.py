"""Why each step of an episode was taken, as the page shows it: the library's sentence, who decides and who leads.

The page has no sentences of its own: those of the recorded steps come with the episode, and others, under changed
weights or against another action, are asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.attractors import leaves
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.trace_file import Trace
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.explain.explanation import NOTHING_KNOWN, Explanation, explain_advised
from multiadvisor.explain.sentences import explored_sentence
from multiadvisor.learners.registry import own_settings
from multiadvisor.runs.trace import explain_numbers_of


class Reasons:
    """The reasons of one recorded episode."""

    def __init__(self, agent: Any, trace: Trace, episode: int) -> None:
        self._agent, self._trace, self._episode = agent, trace, episode
        self._place = {one["name"]: j for j, one in enumerate(trace.header["wishes"])}
        self._leaves = None if trace.x is None else _leaving(agent, trace.states(episode))

    def explain(self, step: int, weights: list[float] | None = None, against: int | None = None) -> Explanation:
        """Explain one step, with these weights of all advisors [n] and against the action of this number."""
        agent, seen = self._agent, self._trace.step(self._episode, step)
        if seen.action is None:
            raise BadInput(f"the episode has {step} steps, and so nothing is done in step {step}")
        names, advice = (seen.names, seen.advice) if seen.names is not None else agent.advice(seen.state)
        assert names is not None
        heard = seen.weights if weights is None else self._reweighted(names, seen.weights, weights)
        if self._trace.taken is not None:
            return explain_numbers_of(agent, self._trace, seen._replace(weights=heard), against)
        here = NOTHING_KNOWN if self._leaves is None else NOTHING_KNOWN._replace(leaves=self._leaves[step])
        other = None if against is None else agent.task.first_action + against
        return explain_advised(agent, names, advice, int(seen.action), other, here, seen.state, heard)

    def _reweighted(self, names: Any, heard: np.ndarray | None, weights: list[float]) -> np.ndarray:
        """[m] the weights of those who are active; who points at a goal keeps being louder or softer than its own."""
        own = np.array([one["weight"] for one in self._trace.header["wishes"]], float)
        advisors = getattr(self._agent, "advisors", self._agent.task.advisors)
        if len(weights) != len(advisors):
            raise BadInput(f"{len(weights)} weights were given for {len(advisors)} advisors")
        given = np.append(weights, own[len(weights) :])  # the entropy keeps its own
        place = [self._place[name] for name in names]
        factor = np.ones(len(place))
        if heard is not None:
            factor = np.divide(heard, own[place], out=factor, where=own[place] != 0)
        return given[place] * factor

    def one(self, step: int, weights: list[float] | None = None, against: int | None = None) -> dict[str, Any]:
        """The reason of one step, and what each active advisor contributes [m], in the order of the advisors."""
        why = self.explain(step, weights, against)
        return {**self._shown(step, why), "differences": self._ordered(why).tolist()}

    def _ordered(self, why: Explanation) -> np.ndarray:
        """[m] what each contributes, in the order of the advisors."""
        return why.difference[np.argsort([self._place[name] for name in why.names])]

    def all(self) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
        """The reasons of all steps; unless advisors are summed also the preferences [T, A], and what each active
        advisor contributes, one step behind the other: the page may not know how to."""
        found = [self.explain(step) for step in range(int(self._trace.length[self._episode]))]
        arrays = {}
        if not all(why.aggregator.plain for why in found):
            arrays["preferences"] = np.array([why.totals for why in found])
            arrays["difference"] = np.concatenate([self._ordered(why) for why in found])
        return [self._shown(step, why) for step, why in enumerate(found)], arrays

    def _shown(self, step: int, why: Explanation) -> dict[str, Any]:
        at = self._trace.span(self._episode).start + step
        explored = bool(self._trace.explored[at])
        lead, place = why.lead, [self._place[name] for name in why.names]
        return {
            "sentence": explored_sentence(why.actions, why.chosen) if explored else why.sentence,
            "other": -1 if why.other is None else why.other,
            "plus": [place[j] for j in why.shortest.plus.tolist()],
            "minus": [place[j] for j in why.shortest.minus.tolist()],
            "lead": lead and {
                "at": place[lead.advisor], "action": lead.action, "value": lead.value,
                "next": -1 if lead.next is None else place[lead.next], "nextAction": lead.next_action,
                "nextValue": lead.next_value,
            },
        }  # fmt: skip


def _leaving(agent: MultiAdvisor, states: np.ndarray) -> np.ndarray | None:
    """[T + 1, A] bool: the actions that do not go into a wall; None where nobody says so."""
    world, own = agent.task.world, own_settings(agent.settings)
    if agent.task.actions != tuple(DIRECTIONS) or not (own.per_advisor or own.summed):
        return None
    moves: np.ndarray
    if (maze := maze_of(agent.task)) is not None:
        fruits = states[:, 1 + len(maze.ghost_start) :].any(axis=1, keepdims=True)
        moves = (maze.neighbour[states[:, 0]] != states[:, :1]) | ~fruits
        return moves
    if world is not None and world.listing is not None:
        moves = leaves(enumerate_task(agent.task))[states[:, 0]]
        return moves
    return None
