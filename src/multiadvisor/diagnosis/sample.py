"""Episodes that a policy plays, with what each term of the reward paid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.diagnosis.policies import seed_everything
from multiadvisor.diagnosis.simulator import Moment, Simulator, step
from multiadvisor.envs.info_terms import reward_function
from multiadvisor.errors import BadInput
from multiadvisor.task import REMAINDER, Advisor, Transition

LONGEST = 100_000  # steps of an episode that does not end


class Watch(NamedTuple):
    """Who looks on: hears of what is done, and may ask to stop."""

    advance: Callable[[int], None] = lambda count: None
    stopped: Callable[[], bool] = lambda: False


class Episode(NamedTuple):
    """One episode of T steps."""

    seed: int
    observations: list[Any]  # [T + 1]
    actions: list[Any]  # [T]
    terms: np.ndarray  # [T, K] before weights
    reward: np.ndarray  # [T] the environment's own, where it is one number; else the weighted terms
    terminated: bool
    complete: bool
    """Whether it ended by itself or by its own limit, and not because the sample was full."""


@dataclass(frozen=True)
class RewardTerms:
    """K terms of a reward, and what a transition pays by each."""

    advisors: tuple[Advisor, ...]

    def __post_init__(self) -> None:
        functions = [None if one.reward == REMAINDER else reward_function(one) for one in self.advisors]
        object.__setattr__(self, "_functions", functions)

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called [K]."""
        return tuple(one.name for one in self.advisors)

    @property
    def weights(self) -> np.ndarray:
        """[K]."""
        return np.array([one.weight for one in self.advisors], float)

    def paid(self, transition: Transition) -> np.ndarray:
        """What a transition pays by each term [K]."""
        functions: list[Callable[[Transition], Any] | None] = self._functions  # type: ignore[attr-defined]
        found = np.zeros(len(self.advisors))
        for k, (one, function) in enumerate(zip(self.advisors, functions, strict=True)):
            if function is not None:
                found[k] = function(transition)
            elif isinstance(one.reward, int):
                found[k] = transition.reward[one.reward]
            elif one.reward is None:
                found[k] = transition.reward
        for k, one in enumerate(self.advisors):
            if one.reward == REMAINDER:
                found[k] = transition.reward - np.delete(found, k).sum()
        if not np.isfinite(found).all():
            k = int((~np.isfinite(found)).argmax())
            raise BadInput(f"the term {self.advisors[k].name!r} paid {found[k]}: let it be finite")
        return found


@dataclass(frozen=True)
class Sample:
    """Episodes of one policy."""

    terms: RewardTerms
    episodes: tuple[Episode, ...]

    @property
    def steps(self) -> int:
        """Of all episodes together."""
        return sum(len(one.actions) for one in self.episodes)

    @property
    def returns(self) -> np.ndarray:
        """The undiscounted return by term [episodes, K], before weights, of whole episodes; of all, where none is."""
        whole = [one for one in self.episodes if one.complete] or list(self.episodes)
        return np.array([one.terms.sum(axis=0) for one in whole])


def gather(
    simulator: Simulator, act: Callable[[Any], Any], terms: RewardTerms, steps: int, seed: int, watch: Watch
) -> Sample:
    """Play until there are so many steps, episode after episode, or somebody asks to stop."""
    episodes: list[Episode] = []
    left = steps
    while left > 0 and not (episodes and watch.stopped()):
        number = seed + len(episodes)
        seed_everything(number)
        episodes.append(_played(simulator, act, terms, number, left, watch))
        left -= len(episodes[-1].actions)
    return Sample(terms, tuple(episodes))


def _played(
    simulator: Simulator, act: Callable[[Any], Any], terms: RewardTerms, seed: int, most: int, watch: Watch
) -> Episode:
    """One episode, or as much of it as there is room for."""
    observations, actions, paid, rewards = [simulator.begin(seed)], [], [], []
    now = None
    for _ in range(min(most, LONGEST)):
        now = step(simulator.env, observations[-1], act(observations[-1]))
        paid.append(terms.paid(now))
        rewards.append(float(now.reward) if np.ndim(now.reward) == 0 else float(terms.weights @ paid[-1]))
        actions.append(now.action)
        observations.append(now.next_observation)
        watch.advance(1)
        if now.terminated or now.truncated or watch.stopped():
            break
    assert now is not None
    ended = now.terminated or now.truncated
    return Episode(seed, observations, actions, np.array(paid), np.array(rewards), now.terminated, ended)


def moments(simulator: Simulator, episode: Episode, places: Sequence[int]) -> list[Moment]:
    """The states of an episode at these steps, in ascending order, by playing its actions once more."""
    found = []
    simulator.begin(episode.seed)
    wanted = set(places)
    for place, action in enumerate(episode.actions[: max(wanted) + 1]):
        if place in wanted:
            found.append(
                Moment(episode.seed, tuple(episode.actions[:place]), episode.observations[place], simulator.save())
            )
        simulator.env.step(action)
    return found
