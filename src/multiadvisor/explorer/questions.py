"""What the page asks of one step: why it was taken, how else it could go on, and which cells are attractors.

The page has no sentences of its own: those of the recorded steps come with the episode, and others, under changed
weights or against another action, are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.episodes import Episodes
from multiadvisor.analysis.theory.attractors import attractors, leaves
from multiadvisor.analysis.theory.boards import board_solution
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.learned_values import Surroundings
from multiadvisor.analysis.theory.solver import Solution
from multiadvisor.core.aggregations import greedy
from multiadvisor.core.rng import CHOICE, ENVIRONMENT, draw_python, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.rollout import vector_rollout
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.explain.decisions import decider_of
from multiadvisor.explain.explanation import Explanation, explain_recorded
from multiadvisor.explain.sentences import action_word, explored_sentence
from multiadvisor.explorer.answers import applied_under
from multiadvisor.explorer.branching import fan
from multiadvisor.learners.kinds import own_settings
from multiadvisor.task import Advisor, Task

CONTINUATIONS = 20
_EVERY = 10  # steps after which it is said how far it is
_SHOWN = 30  # steps of each continuation whose way is drawn
_LONGEST = 2000  # steps of a continuation of a task without a limit


# ---- other weights ---------------------------------------------------------------------------------------------------
def advisors_of(agent: Any) -> Sequence[Advisor]:
    """Whose weights may be changed: the entropy of an actor, and what is not an advisor of ours, keeps its own."""
    found: Sequence[Advisor] = getattr(agent, "advisors", agent.task.advisors)
    return found


def reweighted(agent: MultiAdvisor, weights: Sequence[float] | None) -> Task:
    """The agent's task, its advisors under these weights: a network may have learned groups, or all as one."""
    task, advisors = agent.task, advisors_of(agent)
    learned = decider_of(agent).combined.learned
    added = "" if learned is None else learned.added  # which keeps its own
    if weights is None:
        return task
    names = [advisor.name for advisor in advisors if advisor.name != added]
    own = dict(zip(names, weights, strict=False))
    given = list(own.values())
    if names != list(task.names):
        which = [names[0] if len(names) == 1 else advisor.group or advisor.name for advisor in task.advisors]
        given = [float(advisor.weight) * own[name] for advisor, name in zip(task.advisors, which, strict=True)]
    pairs = [(one, float(weight)) for one, weight in zip(task.advisors, given, strict=True)]
    changed = task.with_weights(**{one.name: weight for one, weight in pairs if one.weight != weight})
    # a group may have a name of one
    return replace(changed, advisors=tuple(replace(one, weight=weight) for one, weight in pairs))


def _acting(agent: MultiAdvisor, weights: list[float] | None) -> Callable[[np.ndarray, float], int]:
    """What it does in a state x, by a draw in [0, 1); of tables also as if its advisors had these weights [n]."""
    if weights is None:
        return agent.act
    tables, own = agent.tables, reweighted(agent, weights).weights
    applied = np.append(own, tables.weights[len(own) :])  # whom the aggregator has added keeps its own

    def act(x: np.ndarray, draw: float) -> int:
        advisors, rows = tables.rows(x)
        return int(greedy(tables.aggregator.prefer(tables.table[rows], applied[advisors], advisors), draw))

    return act


# ---- another action --------------------------------------------------------------------------------------------------
def what_if(
    agent: MultiAdvisor, x: np.ndarray, step: int, actions: tuple[int, ...], weights: list[float] | None = None,
    count: int = CONTINUATIONS, tell: Callable[[float], None] = lambda share: None,
) -> dict[str, Any]:  # fmt: skip
    """How the episode goes on from x after each of some actions and greedily from then on, `count` times.

    Continuation k of every action has the same random numbers, so that the difference is the action's alone. `tell`
    hears how far it is.
    """
    task = agent.task
    assert task.world is not None
    x = task.world.checked(x, task.name)
    act = _acting(agent, weights)
    limit = (_LONGEST if task.limit is None else task.limit) - step
    keys = np.tile([stream_key(k, ENVIRONMENT, step) for k in range(count)], len(actions))
    env = CompiledEnv(task, keys)
    env.x[:], env.elapsed[:, 1] = x, step
    score, finished = np.zeros(len(keys)), np.zeros(len(keys), bool)
    paid, paths, ways = np.zeros((len(keys), task.n)), [np.zeros(len(keys))], [env.x[:, 0].copy()]
    first = np.repeat(np.array(actions, np.int64), count)
    steps = vector_rollout(env, lambda: first if len(ways) == 1 else _greedy(act, env), longest=max(limit, 1))
    for ahead, (now, _) in enumerate(steps):
        score += now.reward @ task.weights
        paid += now.reward
        paths.append(score.copy())
        finished |= now.terminated
        if ahead < _SHOWN:
            ways.append(now.next_state[:, 0])
        if ahead % _EVERY == 0:
            tell(ahead / max(limit, 1))
    shape = (len(actions), count)
    kinds = [one.group or one.name for one in task.advisors]
    groups = list(dict.fromkeys(kinds))
    members = np.array([[kind == group for kind in kinds] for group in groups], float)  # [groups, n]
    found = fan(
        step, [action_word(task.actions[a]) for a in actions], list(np.stack(paths, axis=1).reshape(*shape, -1)),
        ((paid * task.weights) @ members.T).reshape(*shape, -1), groups, finished.reshape(shape).sum(axis=1).tolist(),
        f"Scores are by the task's own weights. The lines on the board show the first {_SHOWN} steps of the other one.",
    )  # fmt: skip
    return {**found, "ways": np.stack(ways, axis=1).reshape(*shape, -1)[-1].tolist()}


def _greedy(act: Callable[[np.ndarray, float], int], env: CompiledEnv) -> np.ndarray:
    """The greedy action of each episode, ties broken by the step's own draw."""
    draws = (
        (draw_python(int(key), step, CHOICE) & 0xFFFFFFFF) / (1 << 32)
        for key, step in zip(env.keys, env.elapsed[:, 0].tolist(), strict=True)
    )
    return np.array([act(x, one) for x, one in zip(env.x, draws, strict=True)], np.int64)


def attractor_layer(
    agent: MultiAdvisor, x: np.ndarray, weights: list[float] | None = None, learned: bool = True
) -> dict[str, Any]:
    """The attractors of the board x, aggregated as the agent does: of exact egocentric values, and of the learned ones.

    Learned values of another planning have no attractors by definition; without `learned` they are not looked at.
    """
    task = reweighted(agent, weights)
    if (maze := maze_of(task)) is None:
        raise BadInput(
            f"attractors of single boards are for mazes: `multiadvisor solve {task.name}` looks at all states"
        )
    if (more := agent.aggregator.learned) is not None:
        raise BadInput(
            f"attractors are those of the advisors' own values, and this run acts by more ({more.name}): its sentence "
            "says whether the walk from here earns"
        )
    gamma = agent.settings.gamma
    found: dict[str, list[dict[str, Any]] | None] = {"exact": [], "learned": [] if learned else None}
    own = own_settings(agent.settings)
    egocentric = not own.summed and agent.settings.planning == "egocentric"
    if x[1 + len(maze.ghost_start) :].any():
        combined = agent.settings.aggregation if own.per_advisor else "sum"  # a network may have other advisors
        found["exact"] = _listed(board_solution(task, x, gamma, aggregation=combined))
        found["learned"] = _listed(board_solution(task, x, gamma, agent)) if learned and egocentric else None
    # a linear learner has a planning in its settings, and does not use it
    return {"gamma": gamma, "planning": own.name if own.summed else agent.settings.planning, **found}


def _listed(solution: Solution) -> list[dict[str, Any]]:
    return [
        {"cell": one.state, "stable": one.stable, "margin": one.margin, "action": one.action,
         "advisors": list(one.advisors[:5])}
        for one in attractors(solution)
    ]  # fmt: skip


class Reasons:
    """The reasons of one recorded episode."""

    def __init__(self, agent: Any, trace: Episodes, episode: int) -> None:
        self._agent, self._trace, self._episode = agent, trace, episode
        self._place = {one["name"]: j for j, one in enumerate(trace.header["asked"])}
        self._leaves = None if trace.x is None else _leaving(agent, trace.states(episode))

    def explain(self, step: int, weights: list[float] | None = None, against: int | None = None) -> Explanation:
        """Explain one step, with these weights of all advisors [n] and against the action of this number."""
        agent, seen = self._agent, self._trace.step(self._episode, step)
        if seen.action is None:
            raise BadInput(f"the episode has {step} steps, and so nothing is done in step {step}")
        names, advice = (seen.names, seen.advice) if seen.names is not None else agent.advice(seen.state)
        assert names is not None
        applied = seen.weights if weights is None else self._reweighted(names, seen.weights, weights)
        seen = seen._replace(names=tuple(names), advice=advice, weights=applied)
        here = Surroundings(None if self._leaves is None else self._leaves[step])
        other = None if against is None else agent.task.first_action + against
        return explain_recorded(agent, self._trace, seen, other, here)

    def _reweighted(self, names: Any, applied: np.ndarray | None, weights: list[float]) -> np.ndarray:
        """[m] the weights of those who are active."""
        own = np.array([one["weight"] for one in self._trace.header["asked"]], float)
        given = np.append(weights, own[len(weights) :])  # the entropy keeps its own
        place = [self._place[name] for name in names]
        return applied_under(given[place], own[place], own[place] if applied is None else applied)

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
