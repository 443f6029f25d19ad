"""Episodes that a policy plays, with what each term of the reward paid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.diagnosis.policies import seed_everything
from multiadvisor.diagnosis.simulator import SavedState, Simulator, step
from multiadvisor.envs.info_terms import reward_function
from multiadvisor.envs.step import copied
from multiadvisor.errors import BadInput, in_one_line
from multiadvisor.task import REMAINDER, Advisor, Transition

LONGEST = 100_000  # steps of an episode that does not end
KEPT = 19  # observations of an episode, where they are pictures: prime, so that no short cycle looks like a constant
LARGE = 1_000  # numbers of an observation, from which on it is a picture


class Unfinished(BadInput):
    """Something went wrong on the way; `gathered` is what there was until then."""

    def __init__(self, message: str, gathered: Any) -> None:
        super().__init__(message)
        self.gathered = gathered


class Watch(NamedTuple):
    """Who looks on: hears of what is done, and may ask to stop."""

    advance: Callable[[int], None] = lambda count: None
    stopped: Callable[[], bool] = lambda: False


class SampledEpisode(NamedTuple):
    """One episode of T steps."""

    seed: int
    observations: list[Any]  # [T + 1], or the first of them, where they are pictures
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
                found[k] = _asked(one.name, function, transition)
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


def _asked(name: str, function: Callable[[Transition], Any], transition: Transition) -> float:
    """What a term's own function says."""
    try:
        return float(function(transition))
    except BadInput:
        raise
    except Exception as error:  # whatever a stranger's function may raise
        raise BadInput(f"the term {name!r} raised {in_one_line(error)}") from error


@dataclass(frozen=True)
class Sample:
    """Episodes of one policy."""

    terms: RewardTerms
    episodes: tuple[SampledEpisode, ...]
    space: Any = None
    """Of the observations."""

    @property
    def steps(self) -> int:
        """Of all episodes together."""
        return sum(len(one.actions) for one in self.episodes)

    @property
    def returns(self) -> np.ndarray:
        """The undiscounted return by term [episodes, K], before weights, of whole episodes."""
        return np.array([one.terms.sum(axis=0) for one in self.whole])

    @property
    def whole(self) -> list[SampledEpisode]:
        """The episodes that came to their end; all, where none did."""
        return [one for one in self.episodes if one.complete] or list(self.episodes)


def gather(
    simulator: Simulator, act: Callable[[Any], Any], terms: RewardTerms, steps: int, seed: int, watch: Watch
) -> Sample:
    """Play until there are so many steps, episode after episode, or somebody asks to stop.

    Where the policy or a term fails on the way, `Unfinished` has the episodes until then.
    """
    episodes: list[SampledEpisode] = []
    left = steps
    while left > 0 and not (episodes and watch.stopped()):
        number = seed + len(episodes)
        seed_everything(number)
        try:
            episodes.append(_played(simulator, act, terms, number, left, watch))
        except BadInput as error:
            episodes += [error.gathered] if isinstance(error, Unfinished) else []
            if not episodes:
                raise
            raise Unfinished(str(error), Sample(terms, tuple(episodes), simulator.env.observation_space)) from error
        left -= len(episodes[-1].actions)
    return Sample(terms, tuple(episodes), simulator.env.observation_space)


def _played(
    simulator: Simulator, act: Callable[[Any], Any], terms: RewardTerms, seed: int, most: int, watch: Watch
) -> SampledEpisode:
    """One episode, or as much of it as there is room for."""
    seen = simulator.begin(seed)
    observations, actions = [seen], list[Any]()
    paid, rewards = list[np.ndarray](), list[float]()
    kept = KEPT if picture(seen) else LONGEST
    terminated = ended = False

    def episode() -> SampledEpisode:
        return SampledEpisode(seed, observations, actions, np.array(paid), np.array(rewards), terminated, ended)

    for _ in range(min(most, LONGEST)):
        try:
            now = step(simulator.env, seen, act(seen))
            paid.append(terms.paid(now))
        except BadInput as error:
            if not actions:
                raise
            raise Unfinished(str(error), episode()) from error
        rewards.append(float(now.reward) if np.ndim(now.reward) == 0 else float(terms.weights @ paid[-1]))
        actions.append(now.action)
        seen = now.next_observation
        if len(observations) <= kept:
            observations.append(seen)
        watch.advance(1)
        terminated, ended = now.terminated, now.terminated or now.truncated
        if ended or watch.stopped():
            break
    return episode()


def picture(observation: Any) -> bool:
    """Whether it has more numbers than are worth keeping of every step."""
    parts = observation.values() if isinstance(observation, dict) else observation
    nested = isinstance(observation, dict | tuple)
    return any(map(picture, parts)) if nested else np.size(observation) > LARGE


def moments(simulator: Simulator, episode: SampledEpisode, places: Sequence[int]) -> list[SavedState]:
    """The states of an episode at these steps, in ascending order, by playing its actions once more."""
    found = []
    observation = simulator.begin(episode.seed)
    wanted = set(places)
    for place, action in enumerate(episode.actions[: max(wanted) + 1]):
        if place in wanted:
            found.append(SavedState(episode.seed, tuple(episode.actions[:place]), observation, simulator.save()))
        observation = copied(simulator.env.step(action)[0])
    return found
