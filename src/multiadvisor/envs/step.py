"""What a step brings, and what an environment is: the same for compiled worlds, Python and vector environments."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from multiadvisor.task import Task


class Step(NamedTuple):
    """What one step brought. An environment steps N episodes at once, and has their axis [N] in front of all others."""

    state: Any  # where it began: x [size], or an observation
    action: Any  # counted from 0, or an array from -1 to 1
    advisors: np.ndarray  # [n] bool: who was active there
    reward: np.ndarray  # [n] 0 where an advisor was not active
    ended: np.ndarray  # [n] bool: whose own part it ended
    terminated: Any  # bool
    truncated: Any  # bool
    next_state: Any  # where it led, also where that was the end of an episode
    next_advisors: np.ndarray  # [n] bool: who is active there, where the environment was asked for it
    begun: Any = False  # bool: it was no step at all, only the beginning of an episode
    gain: float = 0.0  # what it adds to the score; filled in by `EvaluationEpisodes`

    @property
    def over(self) -> Any:
        """Whether it was the episode's last."""
        return self.terminated | self.truncated

    def single(self) -> Step:
        """That of the only episode, without its axis."""
        state, action, advisors, reward, ended, terminated, truncated, next_state, next_advisors, _, _ = self
        return Step(
            state[0], action[0], advisors[0], reward[0], ended[0], bool(terminated[0]), bool(truncated[0]),
            next_state[0], next_advisors[0],
        )  # fmt: skip


class Env(Protocol):
    """N episodes of a task, side by side."""

    task: Task
    waits: bool
    """Whether a new episode begins with a step of its own, `begun`."""

    @property
    def state(self) -> Any:
        """[N] where the episodes are."""

    @property
    def active(self) -> np.ndarray:
        """[N, n] bool: who is active there."""

    def reset(self, which: np.ndarray | None = None) -> Any:
        """Begin an episode in every place, or in those of `which` [N] bool: where the episodes are."""

    def step(self, actions: np.ndarray, playing: np.ndarray | None = None) -> Step:
        """A step of every episode; those not in `playing` [N] bool may wait."""

    def encode(self, states: Any) -> np.ndarray:
        """States [N] as a network sees them, [N, F]."""
