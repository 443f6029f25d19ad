"""The episodes of an evaluation side by side, in several processes; they are the same however many there are.

That holds where every episode has draws of its own, as with a bank of general value functions. Each process loads the
saved run once.
"""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor, bank_of, load
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job, Tell


@lru_cache(maxsize=1)
def _loaded(folder: str, named: str | None) -> MultiAdvisor:
    agent = load(folder, named)
    agent.prepare()
    return agent


def play_episode(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """One episode of a saved run."""
    bank = bank_of(_loaded(config["run"], config["named"]))
    seen = bank.evaluate_from(config["episode"], 1, config["seed"])
    return {what: part[0].tolist() for what, part in seen._asdict().items()}


def evaluate(run: Path, episodes: int, seed: int, workers: int | None, named: str | None = None) -> EpisodeReturns:
    """The episodes of `agent.evaluate(episodes, seeds=(seed,))` of a saved run; `workers` as in `run_jobs`."""
    place = str(run.resolve())
    _loaded.cache_clear()  # a folder may have been written again
    bank_of(_loaded(place, named))  # what is wrong is said here, once
    jobs = [
        Job("episode", {"run": place, "named": named, "seed": seed, "episode": episode}) for episode in range(episodes)
    ]
    with tempfile.TemporaryDirectory() as folder:
        results = run_jobs(Path(folder), jobs, workers=workers, title="episodes")
        found = [results[job] for job in jobs]
    return EpisodeReturns(*(np.array([one[what] for one in found]) for what in EpisodeReturns._fields))
