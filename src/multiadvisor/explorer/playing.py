"""What if: how the episode goes on after another action, and under other weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.boards import has_tables
from multiadvisor.core.aggregations import CORRECTION, greedy
from multiadvisor.core.intervals import interval
from multiadvisor.core.rng import CHOICE, ENVIRONMENT, draw_python, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.rollout import vector_rollout
from multiadvisor.errors import BadInput
from multiadvisor.task import Task

CONTINUATIONS = 20
MOST_ACTIONS = 4  # tried at once
_EVERY = 10  # steps after which it is said how far it is
_SHOWN = 30  # steps of each continuation whose way is drawn
_LONGEST = 2000  # steps of a continuation of a task without a limit


# ---- other weights ---------------------------------------------------------------------------------------------------
def own_weights(agent: MultiAdvisor, weights: list[float] | None) -> list[float] | None:
    """Weights of the agent's advisors as those of its task's: a network may have learned groups, or all as one."""
    task, advisors = agent.task, getattr(agent, "advisors", agent.task.advisors)
    if weights is None or len(weights) != len(advisors):
        return weights  # and whoever uses them refuses what does not fit
    names = [advisor.name for advisor in advisors if advisor.name != CORRECTION]  # which keeps its own
    own = dict(zip(names, weights, strict=False))
    if names == list(task.names):
        return list(own.values())
    which = [names[0] if len(names) == 1 else advisor.group or advisor.name for advisor in task.advisors]
    return [float(advisor.weight) * own[name] for advisor, name in zip(task.advisors, which, strict=True)]


def reweighted(task: Task, weights: list[float] | None) -> Task:
    """The task with these weights, one for each advisor."""
    if weights is None:
        return task
    if len(weights) != task.n:
        raise BadInput(f"{len(weights)} weights were given for the {task.n} advisors of {task.name!r}")
    advisors = [
        dataclasses.replace(advisor, weight=float(w)) for advisor, w in zip(task.advisors, weights, strict=True)
    ]
    changed = {
        new.name: new.weight for new, old in zip(advisors, task.advisors, strict=True) if new.weight != old.weight
    }
    return dataclasses.replace(task.with_weights(**changed), advisors=tuple(advisors))


class TablePlayer:
    """An agent of a compiled world that acts as if its advisors had these weights [n]."""

    def __init__(self, agent: MultiAdvisor, weights: np.ndarray) -> None:
        self._tables = agent.tables
        self._weights = np.concatenate([weights, self._tables.weights[len(weights) :]])  # a correction keeps its own

    def act(self, x: np.ndarray, draw: float = 0.0) -> int:
        """The greedy action; `draw` in [0, 1) picks among exactly equal ones."""
        advisors, rows = self._tables.rows(x)
        preferences = self._tables.aggregator.prefer(self._tables.table[rows], self._weights[advisors], advisors)
        return int(greedy(preferences, draw))


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
    if not 1 <= len(actions) <= MOST_ACTIONS:
        raise BadInput(f"{len(actions)} actions were named to try: name 1 to {MOST_ACTIONS}")
    if task.world is None:
        raise BadInput(f"task {task.name!r} is a Python environment, which cannot be put back into an earlier state")
    if weights is not None and not has_tables(agent):
        raise BadInput("an agent without tables plays with its own weights only: reset them to try another action")
    for action in actions:
        if not 0 <= action < len(task.actions):
            raise BadInput(f"action {action} is not among the {len(task.actions)} of task {task.name!r}")
    x = task.world.checked(x, task.name)
    player = TablePlayer(agent, reweighted(task, own_weights(agent, weights)).weights) if has_tables(agent) else agent
    limit = (_LONGEST if task.limit is None else task.limit) - step
    keys = np.tile([stream_key(k, ENVIRONMENT, step) for k in range(count)], len(actions))
    env = CompiledEnv(task, keys)
    env.x[:], env.elapsed[:, 1] = x, step
    score, length, finished = np.zeros(len(keys)), np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    ways = [env.x[:, 0].copy()]
    first = np.repeat(np.array(actions, np.int64), count)
    steps = vector_rollout(env, lambda: first if len(ways) == 1 else _greedy(player, env), longest=max(limit, 1))
    for ahead, (now, episode) in enumerate(steps):
        score += now.reward @ task.weights
        length += episode == 0
        finished |= now.terminated
        if ahead < _SHOWN:
            ways.append(now.next_state[:, 0])
        if ahead % _EVERY == 0:
            tell(ahead / max(limit, 1))
    shape = (len(actions), count)
    return {
        "step": step,
        "count": count,
        "actions": [
            {"action": a, "score": s.tolist(), "length": t.tolist(), "terminated": f.tolist(), "mean": float(s.mean()),
             "interval": list(interval(s)), "ways": w.tolist()}
            for a, s, t, f, w in zip(
                actions, score.reshape(shape), length.reshape(shape), finished.reshape(shape),
                np.stack(ways, axis=1).reshape(*shape, -1), strict=True,
            )
        ],
    }  # fmt: skip


def _greedy(player: Any, env: CompiledEnv) -> np.ndarray:
    """The greedy action of each episode, ties broken by the step's own draw."""
    draws = (
        (draw_python(int(key), step, CHOICE) & 0xFFFFFFFF) / (1 << 32)
        for key, step in zip(env.keys, env.elapsed[:, 0].tolist(), strict=True)
    )
    return np.array([player.act(x, one) for x, one in zip(env.x, draws, strict=True)], np.int64)
