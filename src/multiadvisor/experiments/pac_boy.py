"""The paper's Pac-Boy experiment: linear Q-learning, four multi-advisor settings, and noise on the rewards."""

from __future__ import annotations

import json
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.draws import EVALUATION, stream_key
from multiadvisor.progress import LearningBar
from multiadvisor.runs.files import check_writable, write_atomically
from multiadvisor.runs.training import Training
from multiadvisor.settings import Schedule
from multiadvisor.statistics import interval
from multiadvisor.task import Task
from multiadvisor.version import VERSION
from multiadvisor.worlds.builtin import make
from multiadvisor.worlds.game import Games


@dataclass(frozen=True)
class Setting:
    """One line of the figure."""

    planning: str
    gamma: float
    noise: float = 0.0
    learner: str = "advisors"

    @property
    def name(self) -> str:
        """As in the paper's legend."""
        if self.learner == "linear":
            return "linear Q-learning"
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{self.planning} {self.gamma:g}{noise}"


SETTINGS = (
    Setting("egocentric", 0.9, learner="linear"),
    Setting("egocentric", 0.4),
    Setting("egocentric", 0.9),
    Setting("agnostic", 0.9),
    Setting("empathic", 0.9),
    Setting("egocentric", 0.4, 0.01),
    Setting("egocentric", 0.4, 0.1),
    Setting("empathic", 0.9, 0.01),
    Setting("empathic", 0.9, 0.1),
)
LAST = 10  # epochs averaged for the table


def run(setting: Setting, task: Task, seed: int, schedule: Schedule, bar: LearningBar) -> Training:
    """Train one setting with one seed."""
    how = {"planning": setting.planning, "learner": setting.learner, "gamma": setting.gamma, "noise": setting.noise}
    agent = MultiAdvisor(task, **how, seed=seed)  # type: ignore[arg-type]
    return Training(agent, schedule).run(lambda turns, epoch: bar.advance(turns, epoch["score"] if epoch else None))


def score(setting: str, runs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """One row of the table: means of the last epochs, with an interval over seeds."""
    last = {
        key: np.array([np.mean([epoch[key] for epoch in epochs[-LAST:]]) for epochs in runs])  # [seeds]
        for key in ("score", "turns", "finished", "touches")
    }
    row = {"setting": setting, **{key: float(values.mean()) for key, values in last.items()}}
    return {**row, "score_interval": interval(last["score"]), "seeds": len(runs)}


def random_player(task: Task, games: int) -> dict[str, Any]:
    """The score of uniformly random actions, one game on each of so many boards."""
    batch = Games(task, [stream_key(seed, EVALUATION, 1 << 30) for seed in range(games)])
    generator = np.random.default_rng(0)
    batch.step(np.zeros(games, np.int64))
    going, length = np.ones(games, bool), np.zeros(games)
    returns = np.zeros((games, task.n))
    finished = np.zeros(games)
    while going.any():
        batch.step(generator.integers(len(task.actions), size=games))
        slot = np.arange(task.n) < batch.active[:, None]  # [games, n]
        game, place = np.nonzero(slot & going[:, None])
        np.add.at(returns, (game, batch.advisors[game, place]), batch.reward[game, place])
        length += going
        finished[going & batch.terminated] = 1
        going &= ~batch.over
    touches = task.measures(returns)["touches"].mean() if task.measures else 0.0
    scores = returns @ task.weights
    return {
        "setting": "random player", "score": float(scores.mean()), "turns": float(length.mean()),
        "finished": float(finished.mean()), "touches": float(touches), "score_interval": interval(scores),
        "seeds": games,
    }  # fmt: skip


def reproduce(seeds: int, epochs: int, rules: str, out: Path) -> dict[str, Any]:
    """Everything: runs, table, figure, and a file with the raw results."""
    from multiadvisor import plots  # first of all: without matplotlib nothing should start

    check_writable(out)
    task, schedule = make("pac-boy", rules=rules), Schedule(epochs=epochs)
    curves: dict[str, list[list[dict[str, Any]]]] = {}
    seconds = 0.0
    start = time.perf_counter()
    total = len(SETTINGS) * seeds * epochs * schedule.transitions
    with LearningBar(total, title="Pac-Boy") as bar:
        for setting in SETTINGS:
            runs = [run(setting, task, seed, schedule, bar) for seed in range(seeds)]
            curves[setting.name] = [training.epochs for training in runs]
            seconds += sum(training.seconds for training in runs)
    result = {
        "version": VERSION, "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "rules": rules, "epochs": epochs, "transitions_per_epoch": schedule.transitions,
        "games_per_epoch": schedule.games,
        "table": [random_player(task, 1000), *(score(name, runs) for name, runs in curves.items())],
        "transitions_per_second": total / seconds, "seconds": time.perf_counter() - start,
    }  # fmt: skip
    write_atomically(out / "pac-boy.json", json.dumps({**result, "curves": curves}, indent=1).encode())
    plots.save(plots.pac_boy(curves, schedule.transitions), out / "pac-boy")
    return result
