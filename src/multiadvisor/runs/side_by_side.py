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

from multiadvisor.agent import MultiAdvisor, load
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.errors import BadInput
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job, Tell


@lru_cache(maxsize=1)
def _loaded(folder: str, named: str | None) -> MultiAdvisor:
    agent = load(folder, named)
    agent._prepare()
    return agent


def play_episode(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """One episode of a saved run."""
    agent = _loaded(config["run"], config["named"])
    episode, decider = config["episode"], agent.decider
    source = EvaluationEpisodes(agent.task, agent.settings.seed, config["seed"], apart=True)
    steps = list(rollout(source, episode, lambda state, draw: decider.decide(state, draw, values=False).action))
    returns = np.sum([step.reward for step in steps], axis=0)
    score, ended = sum(step.gain for step in steps), int(steps[-1].terminated)
    return {"score": float(score), "length": len(steps), "terminated": ended, "returns": returns.tolist()}


def evaluate(run: Path, episodes: int, seed: int, workers: int | None, named: str | None = None) -> EpisodeReturns:
    """The episodes of `agent.evaluate(episodes, seeds=(seed,))` of a saved run; `workers` as in `run_jobs`."""
    place = str(run.resolve())
    _loaded.cache_clear()  # a folder may have been written again
    agent = _loaded(place, named)  # what is wrong is said here, once
    own = agent.settings.learner_settings
    if own.network or not own.own_draws(agent.task):
        raise BadInput(
            f"--workers is for learners whose episodes are each played by themselves, such as gvf, and {own.name} "
            "plays them one after the other: leave it out"
        )
    jobs = [
        Job("episode", {"run": place, "named": named, "seed": seed, "episode": episode}) for episode in range(episodes)
    ]
    with tempfile.TemporaryDirectory() as folder:
        results = run_jobs(Path(folder), jobs, workers=workers, title="episodes")
        found = [results[job] for job in jobs]
    return EpisodeReturns(*(np.array([one[what] for one in found]) for what in EpisodeReturns._fields))
