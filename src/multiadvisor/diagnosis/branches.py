"""Branched episodes: what one other action would have changed, by term.

At a state of an episode the action is changed one way and the other, the policy plays on in both branches with the same
random numbers, and half the difference of their discounted returns is the effect of that change, by term. Of a finite
choice the action taken is compared with another one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from statistics import NormalDist
from typing import Any

import numpy as np

from multiadvisor.core.intervals import Estimate
from multiadvisor.diagnosis.policies import Policy, seed_everything
from multiadvisor.diagnosis.processes import rows_of
from multiadvisor.diagnosis.sample import RewardTerms, Sample, Unfinished, Watch, moments
from multiadvisor.diagnosis.simulator import SavedState, Simulator, beside, step
from multiadvisor.diagnosis.term_values import Closing
from multiadvisor.errors import BadInput

CHANGE = 0.2
"""How far a continuous action is changed: in half ranges of the action, in a random direction of that length."""
AGREEMENT = 0.5
"""The correlation below which nothing is said: of two halves of the draws, and of short branches with whole ones."""
JITTER = 0.02  # by which the changed actions of the two draws of a pair differ, in half ranges
DRAWS = 2  # for the agreement of halves
WEIGHS = 0.01  # of a return: what lies beyond a branch
_RESAMPLES = 1000
_HELD = 20  # states of an episode that are held at a time


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
        return self._resampled(np.abs(self.mean), lambda sums: sums / sums.sum(axis=-1, keepdims=True))

    def conflict(self, one: int, other: int) -> Estimate:
        """The cosine between two terms' effects: -1 where every change that helps one hurts the other."""
        return self._cosine(self.mean[:, one], self.mean[:, other])

    def with_the_rest(self, term: int) -> Estimate:
        """The cosine between a term's effects and those of all others together."""
        return self._cosine(self.mean[:, term], np.delete(self.mean, term, axis=1).sum(axis=1))

    def _cosine(self, one: np.ndarray, other: np.ndarray) -> Estimate:
        products = np.stack([one * other, one * one, other * other], axis=1)
        found = self._resampled(products, lambda sums: sums[..., :1] / np.sqrt(sums[..., 1:2] * sums[..., 2:]))
        return found[0]

    def _resampled(self, parts: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]) -> list[Estimate]:
        """A statistic of the sums of `parts` [B, S], with its interval, by drawing whole episodes again."""
        of_episodes = np.array([parts[self.episode == number].sum(axis=0) for number in np.unique(self.episode)])
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn, value = statistic(self._drawn @ of_episodes), statistic(of_episodes.sum(axis=0))
        drawn[:, np.isnan(drawn).all(axis=0)] = np.inf  # has no interval
        tail = _tail(len(of_episodes))
        low, high = np.nanquantile(drawn, [tail, 1 - tail], axis=0)
        return [Estimate(*map(float, one)) for one in zip(value, low, high, strict=True)]

    @cached_property
    def _drawn(self) -> np.ndarray:
        """How often each episode is drawn [R, E], in each of R times."""
        count = len(np.unique(self.episode))
        return np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), _RESAMPLES if count > 1 else 1)


def _tail(count: int) -> float:
    """The quantile at which a 95% interval of so many resampled episodes ends: of few it is further out than 2.5%, as
    Student's t is, and as a resample varies less than its population (Hesterberg, 2015)."""
    free, z = max(count - 1, 1), NormalDist().inv_cdf(0.975)
    student = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return NormalDist().cdf(-student * float(np.sqrt(1 + 1 / free)))


def agreement(effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of effects [B, D, K], the correlation of two halves of the draws [K], and that of their ranks [K]."""
    half = effects.shape[1] // 2
    return correlations(effects[:, :half].mean(axis=1), effects[:, half:].mean(axis=1))


def correlations(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Between two tables [B, K], column by column: of the values [K] and of their ranks [K]; NaN of a constant.

    Equal columns correlate at 1, also where they are constant.

    >>> pearson, ranked = correlations(np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [1.0], [9.0]]))
    >>> pearson.round(2).tolist(), ranked.tolist()
    ([0.91], [1.0])
    """
    return _columns(one, other), _columns(_ranks(one), _ranks(other))


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    length = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / length if length > 0 else float("nan")


def _columns(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    pairs = zip(one.T, other.T, strict=True)
    return np.array([1.0 if np.array_equal(a, b) else _cosine(a - a.mean(), b - b.mean()) for a, b in pairs])


def _ranks(values: np.ndarray) -> np.ndarray:
    """[B, K] of each column; those that are equal share theirs."""
    found = np.empty(values.shape)
    for column, into in zip(values.T, found.T, strict=True):
        _, place, count = np.unique(column, return_inverse=True, return_counts=True)
        into[:] = (np.cumsum(count) - (count - 1) / 2)[place]
    return found


def horizon_of(gamma: float, longest: int) -> int:
    """The steps after which what is left weighs next to nothing; without a discount ten times the longest episode."""
    return 10 * longest if gamma >= 1 else int(np.ceil(np.log(WEIGHS) / np.log(gamma))) if gamma > 0 else 1


def lanes_for(policy: Policy, simulator: Simulator, seed: int, count: int) -> tuple[Simulator, ...]:
    """As many lanes as branches are played at a time, where the policy is asked of many observations at once."""
    return (simulator,) if policy.batch is None else beside(simulator, policy.act, seed, count)


@dataclass(frozen=True)
class Brancher:
    """Branches one policy in one environment."""

    lanes: tuple[Simulator, ...]
    """One or more that play on side by side."""
    policy: Policy
    terms: RewardTerms
    gamma: float
    horizon: int
    """Steps of a branch, after which it is cut off, or closed by `close`."""
    close: Closing | None = None
    """The values [K] of the state with this observation."""
    draws: int = DRAWS

    @property
    def simulator(self) -> Simulator:
        """The one that moments are saved in."""
        return self.lanes[0]

    def effects(self, moment: SavedState, action: Any, seed: tuple[int, ...]) -> tuple[np.ndarray, int]:
        """The effect of changing an action [D, K], and the steps that were played to know it."""
        chance = np.random.default_rng(seed)
        change = _change(self.simulator.env.action_space, action, chance)
        found, steps = self.differences(moment, change, chance)
        return found / 2, steps

    def differences(
        self, moment: SavedState, pair: Callable[[int], tuple[Any, Any]], chance: np.random.Generator
    ) -> tuple[np.ndarray, int]:
        """What the first of two actions brings and the second does not [D, K], and the steps played to know it.

        `pair` gives the two actions of each draw; both branches of a draw have the same random numbers.
        """
        return self.paired(self.begun(moment, pair, chance))

    def begun(
        self, moment: SavedState, pair: Callable[[int], tuple[Any, Any]], chance: np.random.Generator
    ) -> list[tuple[SavedState, Any, int]]:
        """How the branches of all draws begin: where, with which action, and with which seed."""
        found = list[tuple[SavedState, Any, int]]()
        for draw in range(self.draws):
            seed = int(chance.integers(1 << 31))
            found += [(moment, one, seed) for one in pair(draw)]
        return found

    def paired(self, begun: Sequence[tuple[SavedState, Any, int]]) -> tuple[np.ndarray, int]:
        """What the first of each two of these branches brings and the second does not [., K], and the steps played."""
        wide = len(self.lanes)
        played = [self._play(begun[first : first + wide]) for first in range(0, len(begun), wide)]
        ends = np.concatenate([totals for totals, _ in played])
        return ends[::2] - ends[1::2], sum(steps for _, steps in played)

    def _play(self, begun: Sequence[tuple[SavedState, Any, int]]) -> tuple[np.ndarray, int]:
        """The discounted returns by term [L, K] of branches, one in each lane, and the steps played."""
        lanes = self.lanes[: len(begun)]
        for lane, (moment, _, seed) in zip(lanes, begun, strict=True):
            lane.restore(moment)
            lane.reseed(seed)
        seed_everything(begun[0][2])  # a policy that draws from these has one lane
        totals, discount, steps = np.zeros((len(begun), len(self.terms.advisors))), 1.0, 0
        seen, actions = [moment.observation for moment, _, _ in begun], [action for _, action, _ in begun]
        going = list(range(len(begun)))
        for length in range(1, self.horizon + 1):
            steps, over = steps + len(going), []
            for k in going:
                now = step(lanes[k].env, seen[k], actions[k])
                totals[k] += discount * self.terms.paid(now)
                seen[k] = now.next_observation
                over += [k] if now.terminated or now.truncated else []
            discount *= self.gamma
            going = [k for k in going if k not in over]
            if going and length < self.horizon:
                for k, action in zip(going, self.policy.actions([seen[k] for k in going]), strict=True):
                    actions[k] = action
        if self.close is not None:
            for k in going:
                totals[k] += discount * self.close(seen[k])
        return totals, steps


def branch(brancher: Brancher, sample: Sample, count: int, seed: int, watch: Watch, workers: int = 1) -> Branches:
    """Branch so many states of the sample, spread evenly over its steps, unless somebody asks to stop.

    Where the policy or a term fails on the way, `Unfinished` has the branches until then.
    """

    def rows(asked: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        for number, place, moment in states(brancher.simulator, sample, asked):
            action = sample.episodes[number].actions[place]
            found, steps = brancher.effects(moment, action, (seed, number, place))
            yield np.array([number, place, steps, *found.ravel()])

    done: list[np.ndarray] = []

    def branches() -> Branches:
        ordered = sorted(done, key=lambda row: (row[0], row[1]))
        table = np.array(ordered).reshape(len(done), 3 + brancher.draws * len(sample.terms.advisors))
        effects = table[:, 3:].reshape(len(done), brancher.draws, len(sample.terms.advisors))
        number, place, steps = table[:, :3].astype(np.int64).T
        return Branches(number, place, effects, sample.terms.weights, brancher.horizon, int(steps.sum()))

    try:
        for row in rows_of(rows, spread_over(sample, count, seed), workers, watch.stopped):
            done.append(row)
            watch.advance(1)
    except BadInput as error:
        raise Unfinished(str(error), branches()) from error
    return branches()


def spread_over(sample: Sample, count: int, seed: int) -> list[tuple[int, int]]:
    """Steps of the sample's episodes, each with its episode's number before it, one in each of `count` equal stretches
    of all steps."""
    lengths = np.array([len(one.actions) for one in sample.episodes])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    total = int(lengths.sum())
    edges = np.linspace(0, total, min(count, total) + 1)
    chance = np.random.default_rng([seed, 3])
    drawn = np.floor(edges[:-1] + chance.random(len(edges) - 1) * np.diff(edges)).astype(int)
    at = np.unique(drawn)
    number = np.searchsorted(first, at, side="right") - 1
    return list(zip(number.tolist(), (at - first[number]).tolist(), strict=True))


def states(
    simulator: Simulator, sample: Sample, asked: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, SavedState]]:
    """The states of these steps, each with its episode's number and its step; few of an episode are held at a time."""
    for number, group in groupby(asked, key=lambda one: one[0]):
        places = [place for _, place in group]
        for some in (places[first : first + _HELD] for first in range(0, len(places), _HELD)):
            for place, moment in zip(some, moments(simulator, sample.episodes[number], some), strict=True):
                yield number, place, moment


def _change(space: Any, action: Any, chance: np.random.Generator) -> Callable[[int], tuple[Any, Any]]:
    """For each draw two actions to compare: both sides of a continuous one, or the one taken and another one.

    All draws of a state share the direction or the other action; continuous ones differ a little.
    """
    if not hasattr(space, "low"):
        other = another(space, action, chance)
        return lambda draw: (action, other)
    half = half_ranges(space)
    direction = chance.normal(size=space.shape)
    direction *= CHANGE * half / np.linalg.norm(direction)

    def sides(draw: int) -> tuple[Any, Any]:
        middle = action + JITTER * half * chance.normal(size=space.shape)
        one, other = (np.clip(middle + way * direction, space.low, space.high) for way in (1, -1))
        return one.astype(space.dtype), other.astype(space.dtype)

    return sides


def half_ranges(space: Any) -> np.ndarray:
    """Half the range of each number of a continuous action; 1 of those without bounds."""
    width = space.high - space.low
    return np.where(np.isfinite(width), width / 2, 1.0)


def another(space: Any, action: Any, chance: np.random.Generator) -> Any:
    """Another action of a finite space."""
    choices = copy.deepcopy(space)
    choices.seed(int(chance.integers(1 << 31)))
    for _ in range(1000):
        other = choices.sample()
        if not np.array_equal(other, action):
            return other
    raise BadInput(f"the actions {space} have no other one to compare with: branches need at least two")
