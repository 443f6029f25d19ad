"""Branched episodes: what one other action would have changed, by term.

At a state of an episode the action is changed one way and the other, the policy plays on in both branches with the same
random numbers, and half the difference of their discounted returns is the effect of that change, by term. Of a finite
choice the action taken is compared with another one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from multiadvisor.core.intervals import Estimate
from multiadvisor.diagnosis.policies import Policy, seed_everything
from multiadvisor.diagnosis.sample import RewardTerms, Sample, Watch, moments
from multiadvisor.diagnosis.simulator import Moment, Simulator, step
from multiadvisor.errors import BadInput

CHANGE = 0.2
"""How far a continuous action is changed: in half ranges of the action, in a random direction of that length."""
JITTER = 0.02  # by which the changed actions of the two draws of a pair differ, in half ranges
DRAWS = 2  # for the agreement of halves
WEIGHS = 0.01  # of a return: what lies beyond a branch
_RESAMPLES = 1000


@dataclass(frozen=True)
class Branches:
    """B states, each branched in D draws."""

    episode: np.ndarray  # [B] of the sample
    place: np.ndarray  # [B] the step in it
    effects: np.ndarray  # [B, D, K] before weights: half the difference between the branches' discounted returns
    weights: np.ndarray  # [K]
    horizon: int
    steps: int
    """That were played for it."""

    @property
    def mean(self) -> np.ndarray:
        """The weighted effects [B, K], over the draws."""
        return np.asarray(self.effects.mean(axis=1) * self.weights)

    def push(self) -> list[Estimate]:
        """Each term's share of all effects: a ratio of means, so that idle states weigh nothing."""
        return self._resampled(lambda effects: _shares(effects))

    def conflict(self, one: int, other: int) -> Estimate:
        """The cosine between two terms' effects: -1 where every change that helps one hurts the other."""
        return self._resampled(lambda effects: np.array([_cosine(effects[:, one], effects[:, other])]))[0]

    def with_the_rest(self, term: int) -> Estimate:
        """The cosine between a term's effects and those of all others together."""
        return self._resampled(
            lambda effects: np.array([_cosine(effects[:, term], np.delete(effects, term, axis=1).sum(axis=1))])
        )[0]

    def agreement(self) -> tuple[np.ndarray, np.ndarray]:
        """The correlation of two halves of the draws [K], by term, and that of their ranks [K]."""
        half = self.effects.shape[1] // 2
        one, other = self.effects[:, :half].mean(axis=1), self.effects[:, half:].mean(axis=1)
        return _correlations(one, other), _correlations(_ranks(one), _ranks(other))

    def _resampled(self, statistic: Callable[[np.ndarray], np.ndarray]) -> list[Estimate]:
        """A statistic [S] of the effects with its interval, by drawing whole episodes again."""
        effects = self.mean
        groups = [np.flatnonzero(self.episode == number) for number in np.unique(self.episode)]
        generator = np.random.default_rng(0)
        drawn = np.array([
            statistic(effects[np.concatenate([groups[k] for k in generator.integers(len(groups), size=len(groups))])])
            for _ in range(_RESAMPLES if len(groups) > 1 else 1)
        ])  # fmt: skip
        drawn[:, np.isnan(drawn).all(axis=0)] = np.inf  # has no interval
        low, high = np.nanquantile(drawn, [0.025, 0.975], axis=0)
        return [Estimate(*map(float, one)) for one in zip(statistic(effects), low, high, strict=True)]


def _shares(effects: np.ndarray) -> np.ndarray:
    sizes = np.abs(effects).mean(axis=0)
    return sizes / sizes.sum() if sizes.sum() > 0 else np.full(len(sizes), np.nan)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    length = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / length if length > 0 else float("nan")


def _correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.array([_cosine(a - a.mean(), b - b.mean()) for a, b in zip(one.T, other.T, strict=True)])


def _ranks(values: np.ndarray) -> np.ndarray:
    return values.argsort(axis=0).argsort(axis=0).astype(float)


def horizon_of(gamma: float, longest: int) -> int:
    """The steps after which what is left weighs next to nothing, but at most those of the longest episode."""
    return longest if gamma >= 1 else min(longest, int(np.ceil(np.log(WEIGHS) / np.log(gamma))) if gamma > 0 else 1)


@dataclass(frozen=True)
class Brancher:
    """Branches one policy in one environment."""

    simulator: Simulator
    policy: Policy
    terms: RewardTerms
    gamma: float
    horizon: int
    """Steps of a branch, after which it is cut off, or closed by `close`."""
    close: Callable[[Any], np.ndarray] | None = None
    """The values [K] of the state with this observation."""
    draws: int = DRAWS

    def effects(self, moment: Moment, action: Any, seed: tuple[int, ...]) -> tuple[np.ndarray, int]:
        """The effect of changing an action [D, K], and the steps that were played to know it."""
        chance = np.random.default_rng(seed)
        change = _change(self.simulator.env.action_space, action, chance)
        found, steps = [], 0
        for draw in range(self.draws):
            number = int(chance.integers(1 << 31))
            ends = [self._play(moment, one, number) for one in change(draw)]
            found.append((ends[0][0] - ends[1][0]) / 2)
            steps += ends[0][1] + ends[1][1]
        return np.array(found), steps

    def _play(self, moment: Moment, action: Any, seed: int) -> tuple[np.ndarray, int]:
        """The discounted return by term [K] of a branch that begins with this action, and its length."""
        self.simulator.restore(moment)
        self.simulator.reseed(seed)
        seed_everything(seed)
        total, discount, observation = np.zeros(len(self.terms.advisors)), 1.0, moment.observation
        for length in range(1, self.horizon + 1):
            now = step(self.simulator.env, observation, action)
            total += discount * self.terms.paid(now)
            discount *= self.gamma
            observation = now.next_observation
            if now.terminated or now.truncated:
                return total, length
            if length < self.horizon:
                action = self.policy.act(observation)
        if self.close is not None:
            total += discount * self.close(observation)
        return total, self.horizon


def branch(brancher: Brancher, sample: Sample, count: int, seed: int, watch: Watch) -> Branches:
    """Branch so many states of the sample, spread evenly over its steps, unless somebody asks to stop."""
    where, effects, played = [], [], 0
    for number, places in _places(sample, count, seed).items():
        if watch.stopped():
            break
        episode = sample.episodes[number]
        for place, moment in zip(places, moments(brancher.simulator, episode, places), strict=True):
            if watch.stopped():
                break
            found, steps = brancher.effects(moment, episode.actions[place], (seed, number, place))
            where.append((number, place))
            effects.append(found)
            played += steps
            watch.advance(1)
    at = np.array(where, np.int64).reshape(-1, 2)
    whole = np.array(effects).reshape(len(where), brancher.draws, len(sample.terms.advisors))
    return Branches(at[:, 0], at[:, 1], whole, sample.terms.weights, brancher.horizon, played)


def _places(sample: Sample, count: int, seed: int) -> dict[int, list[int]]:
    """Steps of the sample's episodes, by episode, one in each of `count` equal stretches of all steps."""
    lengths = np.array([len(one.actions) for one in sample.episodes])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    total = int(lengths.sum())
    edges = np.linspace(0, total, min(count, total) + 1)
    chance = np.random.default_rng([seed, 3])
    drawn = np.floor(edges[:-1] + chance.random(len(edges) - 1) * np.diff(edges)).astype(int)
    found: dict[int, list[int]] = {}
    for at in sorted(set(drawn.tolist())):
        number = int(np.searchsorted(first, at, side="right")) - 1
        found.setdefault(number, []).append(at - int(first[number]))
    return found


def _change(space: Any, action: Any, chance: np.random.Generator) -> Callable[[int], tuple[Any, Any]]:
    """For each draw two actions to compare: both sides of a continuous one, or the one taken and another one.

    All draws of a state share the direction or the other action; continuous ones differ a little.
    """
    if not hasattr(space, "low"):
        other = _another(space, action, chance)
        return lambda draw: (action, other)
    half = np.where(np.isfinite(space.high - space.low), (space.high - space.low) / 2, 1.0)
    direction = chance.normal(size=space.shape)
    direction *= CHANGE * half / np.linalg.norm(direction)

    def sides(draw: int) -> tuple[Any, Any]:
        middle = action + JITTER * half * chance.normal(size=space.shape)
        one, other = (np.clip(middle + way * direction, space.low, space.high) for way in (1, -1))
        return one.astype(space.dtype), other.astype(space.dtype)

    return sides


def _another(space: Any, action: Any, chance: np.random.Generator) -> Any:
    """Another action of a finite space."""
    choices = copy.deepcopy(space)
    choices.seed(int(chance.integers(1 << 31)))
    for _ in range(1000):
        other = choices.sample()
        if not np.array_equal(other, action):
            return other
    raise BadInput(f"the actions {space} have no other one to compare with: branches need at least two")
