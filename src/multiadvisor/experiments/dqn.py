"""The paper's deep baseline as a job: DQN with clipped rewards on the four planes of the board."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from multiadvisor.errors import BadInput
from multiadvisor.runs.jobs import Tell
from multiadvisor.runs.training import Training, begin
from multiadvisor.settings import Schedule
from multiadvisor.task import Task
from multiadvisor.worlds.builtin import make

_HOME = "multiadvisor.experiments.dqn_clipped"


def available() -> bool:
    """Whether this version has the deep learner."""
    return importlib.util.find_spec(_HOME) is not None


def work(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """Train one seed, resumed from its folder where it was stopped; its epochs, and its first game after the last."""
    from multiadvisor.experiments.watching import recorded

    if not available():
        raise BadInput("this version has no deep learner, so that DQN-clipped cannot be run")
    settings = replace(importlib.import_module(_HOME).SETTINGS, seed=config["seed"])
    schedule = Schedule(config["epochs"], config["transitions"], config["games"])
    training = _resumed(make("pac-boy", rules=config["rules"]), settings, schedule, folder)
    training.run(lambda turns, epoch: tell(len(training.epochs) / schedule.epochs))
    return {"epochs": training.epochs, "game": recorded(training.agent, schedule.epochs)}


def _resumed(task: Task, settings: Any, schedule: Schedule, folder: Path | None) -> Training:
    try:
        return begin(task, settings, schedule, folder, resume=True)
    except BadInput:
        if folder is None or not folder.exists():
            raise
        shutil.rmtree(folder)  # what is left of a crash and cannot be used: the run begins again
        return begin(task, settings, schedule, folder, resume=True)
