"""Algorithm selection: several learners on one task, and a bandit that chooses who plays the next episode.

ESBAS (Laroche and Feraud 2017): time is cut into epochs of doubling length. During an epoch everybody's policy is
frozen, and UCB1, begun anew, chooses among them episode by episode; at its end everybody learns, off-policy, from all
episodes that were played in it, whoever played them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from multiadvisor.envs.step import finite_reward, one_episode
from multiadvisor.errors import BadInput, Caution, short
from multiadvisor.settings import finite_number, number_between, whole_number

if TYPE_CHECKING:
    import gymnasium


class Member(Protocol):
    """Who can be chosen: a MultiAdvisor with tables or a network, or anything else that acts and observes."""

    def act(self, state: Any) -> int:
        """The greedy action."""

    def observe(
        self, observation: Any, action: int, reward: Any, next_observation: Any, terminated: bool,
        truncated: bool = False, info: dict[str, Any] | None = None, *, next_action: int | None = None,
    ) -> None:  # fmt: skip
        """Learn from a transition that somebody played."""


class ChosenEpisode(NamedTuple):
    """An episode that was played: in which epoch, by which member, and what it returned, discounted."""

    epoch: int
    member: int
    value: float


class UCB1:
    """The bandit of one epoch (Auer and others 2002): optimism in the face of uncertainty.

    >>> bandit = UCB1(2, 0.25)
    >>> for value in (0.0, 1.0, 1.0, 1.0):
    ...     bandit.learn(bandit.choose(), value)
    >>> bandit.times
    [1, 3]
    """

    def __init__(self, arms: int, confidence: float) -> None:
        self.confidence = confidence
        self.times, self.totals = [0] * arms, [0.0] * arms

    def choose(self) -> int:
        """Who was never chosen, then who might be best; of equals the first."""
        if 0 in self.times:
            return self.times.index(0)
        log = math.log(sum(self.times))
        bounds = [
            total / times + math.sqrt(self.confidence * log / times)
            for total, times in zip(self.totals, self.times, strict=True)
        ]
        return bounds.index(max(bounds))

    def learn(self, arm: int, value: float) -> None:
        """What a choice was worth."""
        self.times[arm] += 1
        self.totals[arm] += value


def fading(epoch: int) -> float:
    """The paper's probability of a random action: 0.6 to the power of the epoch."""
    return float(0.6**epoch)


class Portfolio:
    """Members of one task, of whom a bandit chooses one for each episode; all of them learn from all episodes.

    `low` and `high` are what an episode may return, so that the bandit sees numbers between 0 and 1.

    >>> import gymnasium
    >>> import multiadvisor as mad
    >>> task = mad.Task.from_gymnasium("FrozenLake-v1", is_slippery=False)
    >>> members = {f"alpha {a}": mad.MultiAdvisor(task, planning="egocentric", alpha=a) for a in (0.1, 0.5)}
    >>> portfolio = Portfolio(members, seed=0)
    >>> episodes = portfolio.play(gymnasium.make("FrozenLake-v1", is_slippery=False), epochs=7)
    >>> len(episodes), [member.steps == portfolio.steps for member in members.values()]
    (127, [True, True])
    """

    def __init__(
        self, members: Mapping[str, Member], *, seed: int = 0, gamma: float = 0.9, low: float = 0.0, high: float = 1.0,
        confidence: float = 0.25, exploration: Callable[[int], float] = fading, passes: int = 1,
    ) -> None:  # fmt: skip
        if not members:
            raise BadInput("a portfolio needs members: give at least one")
        self.names, self.members = tuple(members), tuple(members.values())
        self.seed, self.gamma = whole_number("seed", seed), number_between("gamma", gamma, 0, 1)
        self.low, self.high = finite_number("low", low), finite_number("high", high)
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            raise BadInput(
                f"episodes return from {low} to {high}: let the first be the smaller one, and the range finite"
            )
        self.confidence = number_between("confidence", confidence, 0, 1e100)
        self.exploration, self.passes = exploration, whole_number("passes", passes, 1)
        self.epoch = self.steps = 0
        self._cautioned = False

    def play(self, env: gymnasium.Env[Any, Any], epochs: int) -> list[ChosenEpisode]:
        """Play so many epochs more, of 1, 2, 4, 8, ... episodes, and learn at the end of each; the episodes."""
        played: list[ChosenEpisode] = []
        for _ in range(whole_number("epochs", epochs)):
            generator = np.random.default_rng([self.seed, self.epoch])
            bandit, seen = UCB1(len(self.members), self.confidence), []
            for _ in range(1 << self.epoch):
                member = bandit.choose()
                value, steps = self._episode(env, member, generator)
                bandit.learn(member, (value - self.low) / (self.high - self.low))
                played.append(ChosenEpisode(self.epoch, member, value))
                seen += steps
            for _ in range(self.passes):
                for step in seen:
                    for each in self.members:
                        each.observe(*step[:-1], next_action=step[-1])
            self.steps += len(seen)
            self.epoch += 1
        return played

    def _episode(self, env: Any, member: int, generator: np.random.Generator) -> tuple[float, list[tuple[Any, ...]]]:
        """Its discounted return, and its transitions with the actions that followed."""
        choice = env.action_space
        if np.ndim(getattr(choice, "start", [])):
            raise BadInput(f"a portfolio plays Discrete actions, and these are {short(str(choice), 60)}: wrap them")
        epsilon, player = number_between("exploration", self.exploration(self.epoch), 0, 1), self.members[member]
        count, first = int(choice.n), int(choice.start)

        def act(observation: Any) -> int:
            if generator.random() < epsilon:
                return first + int(generator.integers(count))
            action = player.act(observation)
            if not choice.contains(action):
                raise BadInput(
                    f"member {self.names[member]!r} gave the action {short(repr(action))}: let it be in {choice}"
                )
            return int(action)

        steps = list(one_episode(env, int(generator.integers(1 << 31)), act))
        value, discount = 0.0, 1.0
        for step in steps:
            value, discount = finite_reward(value + discount * finite_reward(step.reward)), discount * self.gamma
        if not (self._cautioned or self.low <= value <= self.high):
            self._cautioned = True
            warnings.warn(
                f"an episode of the portfolio returned {value:g}, and the bandit counts on {self.low:g} to "
                f"{self.high:g}: "
                "give low and high", Caution, stacklevel=3,
            )  # fmt: skip
        following = [*(step.action for step in steps[1:]), None]
        return value, [(*step, action) for step, action in zip(steps, following, strict=True)]
