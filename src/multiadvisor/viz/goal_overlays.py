"""Pictures of an episode in an environment that draws itself, with the strongest wishes and fears of its advisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor, bank_of
from multiadvisor.errors import BadInput

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
    task, bank = agent.task, bank_of(agent)
    assert task.adapter is not None
    assert task.goals is not None
    env, mark = task.adapter.env, task.goals.mark
    if mark is None:
        raise BadInput(f"task {task.name!r} does not say where its goals are in the picture: give Goals(mark=...)")
    best = Film(-1, -np.inf, [])
    agent.prepare()
    for episode in range(episodes):
        score, pictures = 0.0, []
        for step in bank.play(episode, seed):
            picture = np.array(env.render())
            _, advice, weights, goals = bank.pointing(step.next_state)
            draw_wishes(mark, picture, goals, weights * advice[:, step.action])
            pictures.append(np.repeat(np.repeat(picture, scale, axis=0), scale, axis=1))
            score += step.gain
        if score > best.score:
            best = Film(episode, score, pictures)
    return best
