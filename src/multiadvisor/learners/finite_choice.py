"""A learner of a finite choice of actions that plays and is evaluated step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
from multiadvisor.envs.step import Step
from multiadvisor.learners.protocol import EpisodeReturns, Learner


class FiniteChoice(Learner):
    """A learner that chooses one of the task's actions; the methods that are abstract in `Learner` are left to it."""

    def play(self, episode: int, seed: int, epsilon: float = 0.0) -> Iterator[Step]:
        """One episode of an evaluation, step by step, without learning.

        It has random numbers of its own, as the settings have to say (`own_draws`), so that it is the same whichever
        others are played; the run goes on afterwards as if nothing had happened.
        """
        with nullcontext() if self.task.adapter is None else self.task.adapter.lock:
            source = EvaluationEpisodes(self.task, self.settings.seed, seed, apart=True)
            yield from rollout(source, episode, lambda x, bits: self.decide(x, bits, epsilon, values=False).action)

    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Play greedily without learning, one episode after the other."""
        played = EpisodeReturns.zeros(episodes, self.task.n)
        for episode in range(episodes):
            for step in self.play(episode, seed):
                played.score[episode] += step.gain
                played.length[episode] += 1
                played.returns[episode] += step.reward
                played.terminated[episode] = int(step.terminated)
        return played
