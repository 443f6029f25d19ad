"""DQN-clipped on Pac-Boy, the paper's baseline: one advisor, an image of four planes, rewards clipped to [-1, 1].

The ingredients are those of Mnih et al. (2015), scaled to an 11 x 11 board: convolutions, replay, a target network, a
Huber loss, one update in four transitions, exploration that falls over the first twentieth of the run. The paper names
no figures; those below are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiadvisor.settings import DeepSettings, Schedule, Settings
from multiadvisor.worlds.builtin import make

SETTINGS = Settings(
    gamma=0.85,
    epsilon=0.05,
    deep=DeepSettings(
        split="none", clip_rewards=True, convolutions=(32, 64), strides=(1, 2), hidden=(256,), learning_rate=1e-4,
        batch=32, replay=100_000, starts=1_000, update_every=4, updates_at_once=8, target_every=500, double=False,
        loss="huber", epsilon_start=1.0, epsilon_turns=50_000, envs=32,
    ),
)  # fmt: skip


def train(
    seeds: Sequence[int], schedule: Schedule, settings: Settings = SETTINGS, rules: str = "paper",
    tell: Callable[[int, int, float], None] = lambda turns, epoch, score: None,
) -> list[list[dict[str, Any]]]:  # fmt: skip
    """All seeds in one program: for each, its epochs. `tell` hears of every epoch's turns, number and mean score."""
    from multiadvisor.deep.cohort import Cohort

    task = make("pac-boy", rules=rules)
    cohort = Cohort(task, settings, seeds)
    curves: list[list[dict[str, Any]]] = [[] for _ in seeds]
    for epoch in range(1, schedule.epochs + 1):
        before = cohort.turns
        cohort.learn(max(epoch * schedule.transitions - before, 0))
        played = cohort.evaluate(schedule.games, epoch)
        for curve, games in zip(curves, played, strict=True):
            assert task.measures is not None
            curve.append({
                "epoch": epoch, "score": float(games.score.mean()), "turns": float(games.turns.mean()),
                "finished": float(games.finished.mean()),
                "touches": float(task.measures(games.returns)["touches"].mean()),
            })  # fmt: skip
        tell(cohort.turns - before, epoch, float(np.mean([curve[-1]["score"] for curve in curves])))
    return curves
