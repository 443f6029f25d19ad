"""Pictures of an episode in an environment that draws itself, with the strongest wishes and fears of its advisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf.goal_views import mark_of

WISHES, FEARS = 6, 4  # at most so many are drawn in


class Film(NamedTuple):
    """The best of some episodes."""

    episode: int
    score: float
    pictures: list[np.ndarray]  # [steps] of [H, W, 3] uint8


def draw_wishes(
    mark: Callable[[np.ndarray, int, float], None], picture: np.ndarray, goals: np.ndarray, said: np.ndarray
) -> None:
    """Draw the strongest wishes and fears into a picture, from the goals pointed at [m] and what each adds [m].

    The strongest comes last, on top; places below 0 are none.
    """
    for sign, most in ((1, WISHES), (-1, FEARS)):
        of_kind = np.flatnonzero((goals >= 0) & (said * sign > 0))
        chosen = of_kind[np.argsort(-np.abs(said[of_kind]), kind="stable")][:most]
        for k in chosen[::-1].tolist():
            mark(picture, int(goals[k]), float(sign * (0.25 + 0.75 * abs(said[k] / said[chosen[0]]))))


def film(agent: MultiAdvisor, episodes: int = 1, seed: int = 0, scale: int = 2) -> Film:
    """Play the episodes of `agent.evaluate(episodes, seeds=(seed,))` and keep the pictures of the best one."""
    task, decider, mark = agent.task, agent.decider, mark_of(agent.task)
    if mark is None or task.adapter is None:
        raise BadInput(f"task {task.name!r} does not say where its goals are in the picture: give Goals(mark=...)")
    env, best = task.adapter.env, Film(-1, -np.inf, [])
    agent._prepare()
    for episode in range(episodes):
        score, pictures = 0.0, []
        source = EvaluationEpisodes(task, agent.settings.seed, seed, apart=True)
        for step in rollout(source, episode, lambda state, draw: decider.decide(state, draw, values=False).action):
            picture, told = np.array(env.render()), decider.compare(step.next_state)
            if told.goals is not None:
                draw_wishes(mark, picture, told.goals, told.weights * told.values[:, step.action])
            pictures.append(np.repeat(np.repeat(picture, scale, axis=0), scale, axis=1))
            score += step.gain
        if score > best.score:
            best = Film(episode, score, pictures)
    return best
