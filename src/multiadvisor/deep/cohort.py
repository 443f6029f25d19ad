"""Several runs that differ in their seeds alone, learning in one program: what a GPU is good at."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from multiadvisor.deep.learner import DeepLearner
from multiadvisor.deep.replay import FILLED
from multiadvisor.errors import BadInput
from multiadvisor.learner import Played
from multiadvisor.settings import Settings, whole_number
from multiadvisor.task import Task


class Cohort:
    """S runs of one task with the same settings, stacked.

    >>> import multiadvisor as mad
    >>> from multiadvisor.deep import Cohort
    >>> settings = mad.Settings(deep=mad.DeepSettings(hidden=(8,), starts=32, envs=2))
    >>> cohort = Cohort(mad.make("three-fruits"), settings, seeds=(0, 1)).learn(64)
    >>> cohort.turns, len(cohort.evaluate(games=2))
    (64, 2)
    """

    def __init__(self, task: Task, settings: Settings, seeds: Sequence[int]) -> None:
        if settings.deep is None:
            raise BadInput("a cohort learns with networks: give settings with deep=DeepSettings(...)")
        self.seeds = tuple(whole_number("seed", seed) for seed in seeds)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise BadInput(f"the seeds of a cohort are {list(seeds)}: give each run its own")
        self.task, self.settings = task, settings
        self.learner = DeepLearner(task, settings, self.seeds)

    @property
    def turns(self) -> int:
        """Transitions that each run has learned from."""
        return self.learner.turns

    def learn(self, turns: int) -> Cohort:
        """Learn from this many transitions more in each run; returns self."""
        self.learner.run(whole_number("turns", turns))
        return self

    def evaluate(self, games: int = 80, seed: int = 0) -> list[Played]:
        """Greedy games of each run, in the order of the seeds."""
        return self.learner.evaluate_all(whole_number("games", games, 1), whole_number("seed", seed))

    def settings_of(self, run: int) -> Settings:
        """The settings under which this run could have been made alone."""
        return dataclasses.replace(self.settings, seed=self.seeds[run])

    def tensors_of(self, run: int) -> dict[str, np.ndarray]:
        """One run's part of everything, as a learner of that run alone would give it."""
        alone = {}
        games = slice(run * self.learner.games_each, (run + 1) * self.learner.games_each)
        whole = self.learner.tensors()
        if "games trail" in whole:
            ends = np.concatenate([[0], np.cumsum(whole["games trail_lengths"])])
            whole["games trail"] = whole["games trail"][ends[games.start] : ends[games.stop]][None]
        for name, array in whole.items():
            if name == "games trail":
                alone[name] = array[0]
            elif name.startswith("network"):
                alone[name] = array[run : run + 1] if array.ndim > 1 else array  # counters are common to all
            elif name == "updates":
                alone[name] = array
            else:
                alone[name] = array[games]
        used = int(alone["replay replay_clock"][:, FILLED].max())  # another run's games may have taken more rows
        rows = [name for name in alone if name.startswith("replay ") and not name.startswith("replay replay_")]
        return {**alone, **{name: alone[name][:, :used] for name in rows}}
