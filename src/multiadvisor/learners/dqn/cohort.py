"""Several runs that differ in their seeds alone, learning in one program: what a GPU is good at."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from multiadvisor.errors import BadInput
from multiadvisor.learners.dqn.dqn_learner import DeepLearner
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.learners.dqn.replay import FILLED
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.settings import Settings, whole_number
from multiadvisor.task import Task


class Cohort:
    """S runs of one task with the same settings, stacked.

    >>> import multiadvisor as mad
    >>> from multiadvisor.learners.dqn import Cohort
    >>> settings = mad.Settings(learner=mad.DQN(hidden=(8,), learning_starts=32, n_envs=2))
    >>> cohort = Cohort(mad.make("three-fruits"), settings, seeds=(0, 1)).learn(64)
    >>> cohort.steps, len(cohort.evaluate(episodes=2))
    (64, 2)
    """

    def __init__(self, task: Task, settings: Settings, seeds: Sequence[int]) -> None:
        if not isinstance(settings.learner, DQN):
            raise BadInput("a cohort learns with networks: give settings with learner=DQN(...)")
        self.seeds = tuple(whole_number("seed", seed) for seed in seeds)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise BadInput(f"the seeds of a cohort are {list(seeds)}: give each run its own")
        self.task, self.settings = task, settings
        self.learner = DeepLearner(task, settings, self.seeds)

    @property
    def steps(self) -> int:
        """Transitions that each run has learned from."""
        return self.learner.steps

    def learn(self, steps: int) -> Cohort:
        """Learn from this many transitions more in each run; returns self."""
        self.learner.run(whole_number("steps", steps))
        return self

    def evaluate(self, episodes: int = 80, seed: int = 0) -> list[EpisodeReturns]:
        """Greedy episodes of each run, in the order of the seeds."""
        return self.learner.evaluate_all(whole_number("episodes", episodes, 1), whole_number("seed", seed))

    def settings_of(self, run: int) -> Settings:
        """The settings under which this run could have been made alone."""
        return dataclasses.replace(self.settings, seed=self.seeds[run])

    def tensors_of(self, run: int) -> dict[str, np.ndarray]:
        """One run's part of everything, as a learner of that run alone would give it."""
        alone = {}
        episodes = slice(run * self.learner.episodes_each, (run + 1) * self.learner.episodes_each)
        whole = self.learner.tensors()
        if "episodes trail" in whole:
            ends = np.concatenate([[0], np.cumsum(whole["episodes trail_lengths"])])
            whole["episodes trail"] = whole["episodes trail"][ends[episodes.start] : ends[episodes.stop]][None]
        for name, array in whole.items():
            if name == "episodes trail":
                alone[name] = array[0]
            elif name.startswith("network"):
                alone[name] = array[run : run + 1] if array.ndim > 1 else array  # counters are common to all
            elif name == "updates":
                alone[name] = array
            else:
                alone[name] = array[episodes]
        used = int(alone["replay replay_clock"][:, FILLED].max())  # another run's episodes may have taken more rows
        rows = [name for name in alone if name.startswith("replay ") and not name.startswith("replay replay_")]
        return {**alone, **{name: alone[name][:, :used] for name in rows}}
