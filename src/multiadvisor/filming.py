"""Pictures of a game in an environment that draws itself, with the strongest wishes and fears of its advisors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor, bank_of
from multiadvisor.errors import BadInput

WISHES, FEARS = 6, 4  # at most so many are drawn in


class Film(NamedTuple):
    """The best of some games."""

    game: int
    score: float
    pictures: list[np.ndarray]  # [turns] of [H, W, 3] uint8


def film(agent: MultiAdvisor, games: int = 1, seed: int = 0, scale: int = 2) -> Film:
    """Play the games of `agent.evaluate(games, seeds=(seed,))` and keep the pictures of the best one."""
    task, bank = agent.task, bank_of(agent)
    assert task.adapter is not None
    assert task.goals is not None
    env, mark = task.adapter.env, task.goals.mark
    if mark is None:
        raise BadInput(f"task {task.name!r} does not say where its goals are in the picture: give Goals(mark=...)")
    best = Film(-1, -np.inf, [])
    score, pictures = 0.0, []
    agent.prepare()
    with task.adapter.stage as stage:
        stage.user = None
        for step in bank.play(games, seed):
            picture = np.array(env.render())
            said = bank.pointed(step.after, step.action)
            for sign, most in ((1, WISHES), (-1, FEARS)):
                chosen = [(place, value) for place, value in said if value * sign > 0][:most]
                for place, value in reversed(chosen):  # the strongest last, on top
                    mark(picture, place, sign * (0.25 + 0.75 * abs(value / chosen[0][1])))
            pictures.append(np.repeat(np.repeat(picture, scale, axis=0), scale, axis=1))
            score += step.reward
            if step.over:
                if score > best.score:
                    best = Film(step.game, score, pictures)
                score, pictures = 0.0, []
    return best
