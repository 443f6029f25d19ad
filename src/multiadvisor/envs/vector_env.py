"""A user's vector environment as an environment of a task.

A saved run that is resumed begins new episodes in it: nothing is known of how such an environment is seeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multiadvisor.core.rng import ENVIRONMENT, environment_seed
from multiadvisor.core.validation import Arrays, whole
from multiadvisor.envs.observation_encoder import ObservationEncoder
from multiadvisor.envs.step import Step, begin_episode, five
from multiadvisor.errors import BadInput
from multiadvisor.task import Task


class VectorEnv:
    """The episodes of a vector environment, which begins them again itself."""

    def __init__(self, task: Task, seed: int, encoder: ObservationEncoder) -> None:
        from gymnasium.vector import AutoresetMode
        from gymnasium.vector.utils import iterate

        assert task.adapter is not None
        self.task, self.seed, self.encoder, self._iterate = task, seed, encoder, iterate
        self.adapter, self.env = task.adapter, task.adapter.env
        mode = self.env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise BadInput("the vector environment does not reset itself: choose another autoreset mode")
        self.waits = mode == AutoresetMode.NEXT_STEP
        if any(callable(advisor.reward) or advisor.ended is not None for advisor in task.advisors):
            raise BadInput(
                "in a vector environment advisors take components of the reward or terms in info: an advisor with a "
                "function of the transition needs an environment of single episodes"
            )
        self.opened = 0
        """How often all episodes were begun."""
        self.state: list[Any] = []
        """[N] where the episodes are."""
        self.active = self._who([None] * self.env.num_envs) if not self.adapter.varies else np.zeros((0, 0), bool)
        """[N, n] who is active there."""
        self.steps, self._over = np.zeros(self.env.num_envs, np.int64), np.zeros(self.env.num_envs, bool)

    def _arrive(self, observations: Any) -> None:
        """Where the episodes are now, also where observations are dictionaries or tuples of arrays."""
        self.state = list(self._iterate(self.env.observation_space, observations))
        self.active = self._who(self.state)

    def _who(self, observations: Sequence[Any]) -> np.ndarray:
        if not self.adapter.varies:
            return np.ones((len(observations), self.task.n), bool)
        return np.stack([self.active_in(each) for each in observations])

    def active_in(self, state: Any) -> np.ndarray:
        """[n] who is active in one state."""
        return self.adapter.active_in(state)

    def reset(self, which: np.ndarray | None = None) -> list[Any]:
        """Begin every episode; single ones begin again by themselves."""
        if which is None:
            seen = begin_episode(self.env, environment_seed(self.seed, ENVIRONMENT, self.opened))
            self.opened += 1
            self._arrive(seen)
            self._over = np.zeros(self.env.num_envs, bool)
        return self.state

    def step(self, actions: np.ndarray, playing: np.ndarray | None = None) -> Step:
        """A step of every episode; where one was over, the next one begins."""
        count = self.env.num_envs
        state, before = self.state, self.active
        begun = self._over if self.waits else np.zeros(count, bool)
        self.steps += ~begun  # first: where the step fails, nobody knows where the episodes are
        seen, rewards, terminated, truncated, infos = five(self.env.step(self.adapter.played(actions)))
        terminated, truncated = np.asarray(terminated), np.asarray(truncated)
        over = terminated | truncated
        self.adapter.check_reward(rewards[0])
        paid = self._paid(np.asarray(rewards, float).reshape(count, -1), infos, over, begun)
        self._arrive(seen)
        following, after = self.state, self.active
        if over.any() and not self.waits:
            following = [infos["final_obs"][i] if over[i] else each for i, each in enumerate(self.state)]
            after = self._who(following)
        self._over = over
        ended = before & (terminated[:, None] | ~after)
        return Step(
            state, actions, before, np.where(before, paid, 0.0), ended, terminated, truncated, following, after, begun
        )

    def _paid(self, rewards: np.ndarray, infos: Any, over: np.ndarray, begun: np.ndarray) -> np.ndarray:
        """[N, n] from the rewards [N, d]; the terms of an episode's last step are elsewhere if the next begins with
        it."""
        terms, source = self.adapter.terms, self.adapter.source
        if not terms.any:
            return rewards[:, source]
        paid = np.zeros((len(rewards), self.task.n))
        signals = np.zeros(max(rewards.shape[1], 1) + self.task.n)
        for i in np.flatnonzero(~begun).tolist():  # an episode that was only begun has no terms
            last = over[i] and not self.waits
            signals[: rewards.shape[1]] = rewards[i]
            terms.fill(signals, terms.of_episode(infos.get("final_info", {}) if last else infos, i))
            paid[i] = signals[source]
        return paid

    def encode(self, states: Sequence[Any]) -> np.ndarray:
        """Observations [N] as a network sees them [N, F]."""
        return self.encoder.rows(states)

    def forget(self, steps: np.ndarray) -> None:
        """The episodes are given up, after `steps` [N]: new ones can be begun."""
        self.steps[...] = steps

    def tensors(self) -> Arrays:
        """How often the episodes were begun."""
        return {"opened": np.array([self.opened], np.int64)}

    def restore(self, tensors: Arrays, steps: np.ndarray) -> bool:
        """Begin new episodes, and say so."""
        self.opened = int(whole(tensors, "opened", (1,))[0])
        self.forget(steps)
        self.reset()
        return False
