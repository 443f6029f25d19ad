"""DQN-clipped on Pac-Boy, the paper's baseline: one advisor, an image of four planes, rewards clipped to [-1, 1].

The ingredients are those of Mnih et al. (2015), scaled to an 11 x 11 board: convolutions, replay, a target network, a
Huber loss, one update in four transitions, exploration that falls over the first twentieth of the run. The paper names
no figures; those below are ours.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.errors import BadInput
from multiadvisor.extras import missing
from multiadvisor.runs.jobs import Tell, kind
from multiadvisor.runs.training import Training, begin
from multiadvisor.settings import DeepSettings, Schedule, Settings
from multiadvisor.task import Task
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


# ---- one seed as a job -----------------------------------------------------------------------------------------------
def available() -> bool:
    """Whether networks can be trained here: JAX is an extra."""
    return not missing("deep")


@kind("dqn-clipped", lease=1800.0)
def work(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """Train one seed, resumed from its folder where it was stopped; its epochs, and its first game after the last."""
    from multiadvisor.experiments.watching import recorded

    schedule = Schedule(config["epochs"], config["transitions"], config["games"])
    settings = replace(SETTINGS, seed=config["seed"])
    training = _resumed(make("pac-boy", rules=config["rules"]), settings, schedule, folder)
    training.run(lambda turns, epoch: tell(len(training.epochs) / schedule.epochs))
    return {"epochs": training.epochs, "game": recorded(training.agent, schedule.epochs)}


def _resumed(task: Task, settings: Settings, schedule: Schedule, folder: Path | None) -> Training:
    try:
        return begin(task, settings, schedule, folder, resume=True)
    except BadInput:
        if folder is None or not folder.exists():
            raise
        shutil.rmtree(folder)  # what is left of a crash and cannot be used: the run begins again
        return begin(task, settings, schedule, folder, resume=True)
