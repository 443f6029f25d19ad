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

from multiadvisor.core.optional_dependencies import missing
from multiadvisor.envs.builtin import make
from multiadvisor.errors import BadInput
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.runs.jobs import Tell, kind
from multiadvisor.runs.training import Training, begin
from multiadvisor.settings import Schedule, Settings
from multiadvisor.task import Task

SETTINGS = Settings(
    gamma=0.85,
    epsilon=0.05,
    learner=DQN(
        split="none",
        clip_rewards=True,
        convolutions=(32, 64),
        strides=(1, 2),
        hidden=(256,),
        learning_rate=1e-4,
        batch_size=32,
        buffer_size=100_000,
        learning_starts=1_000,
        train_freq=4,
        updates_at_once=8,
        target_update_interval=500,
        double=False,
        loss="huber",
        epsilon_start=1.0,
        epsilon_steps=50_000,
        n_envs=32,
    ),
)


def train(
    seeds: Sequence[int], schedule: Schedule, settings: Settings = SETTINGS, rules: str = "paper",
    tell: Callable[[int, int, float], None] = lambda steps, epoch, score: None,
) -> list[list[dict[str, Any]]]:  # fmt: skip
    """All seeds in one program: for each, its evaluations, one after every epoch.

    `tell` hears of every epoch's steps, number and mean score.
    """
    from multiadvisor.learners.dqn.cohort import Cohort

    task = make("pac-boy", rules=rules)
    cohort = Cohort(task, settings, seeds)
    curves: list[list[dict[str, Any]]] = [[] for _ in seeds]
    for epoch in range(1, schedule.evaluations + 1):
        before = cohort.steps
        cohort.learn(max(schedule.due(epoch) - before, 0))
        played = cohort.evaluate(schedule.eval_episodes, epoch)
        for curve, episodes in zip(curves, played, strict=True):
            assert task.metrics is not None
            curve.append({
                "steps": cohort.steps, "score": float(episodes.score.mean()), "length": float(episodes.length.mean()),
                "terminated": float(episodes.terminated.mean()),
                "metrics": {"touches": float(task.metrics(episodes.returns)["touches"].mean())},
            })  # fmt: skip
        tell(cohort.steps - before, epoch, float(np.mean([curve[-1]["score"] for curve in curves])))
    return curves


# ---- one seed as a job -----------------------------------------------------------------------------------------------
def available() -> bool:
    """Whether networks can be trained here: JAX is an extra."""
    return not missing("deep")


@kind("dqn-clipped", lease=1800.0)
def work(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """Train one seed, resumed from its folder where it was stopped; its evaluations, and the first episode of the
    last one."""
    from multiadvisor.studies.paper.episode_study import recorded

    schedule = Schedule(**config["schedule"])
    settings = replace(SETTINGS, seed=config["seed"])
    training = _resumed(make("pac-boy", rules=config["rules"]), settings, schedule, folder)
    training.run(lambda steps, evaluation: tell(len(training.evaluations) / schedule.evaluations))
    return {"evaluations": training.evaluations, "episode": recorded(training.agent, schedule.evaluations)}


def _resumed(task: Task, settings: Settings, schedule: Schedule, folder: Path | None) -> Training:
    try:
        return begin(task, settings, schedule, folder, resume=True)
    except BadInput:
        if folder is None or not folder.exists():
            raise
        shutil.rmtree(folder)  # what is left of a crash and cannot be used: the run begins again
        return begin(task, settings, schedule, folder, resume=True)
