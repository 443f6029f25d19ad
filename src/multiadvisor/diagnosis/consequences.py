"""What follows from one action rather than another, by term: asked of the environment, in tens of milliseconds.

Paired branches of a few steps, closed by values of the policy that were fitted to its own episodes. What can be
believed of them is measured beforehand on trial states: whether two halves of the draws agree, whether short branches
agree with whole ones, and which differences are strong. Only these are told.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.progress import LearningBar
from multiadvisor.diagnosis.branches import (
    AGREEMENT,
    JITTER,
    Brancher,
    agreement,
    another,
    correlations,
    half_ranges,
    horizon_of,
    lanes_for,
    spread_over,
    states,
)
from multiadvisor.diagnosis.playground import Playground, playground
from multiadvisor.diagnosis.policies import tried
from multiadvisor.diagnosis.sample import KEPT, RewardTerms, Sample, SampledEpisode, Watch, gather
from multiadvisor.diagnosis.simulator import SavedState, Simulator, Worlds, simulator_of, step
from multiadvisor.diagnosis.term_values import Closing, fit, forecasting, rows_of_numbers
from multiadvisor.errors import BadInput
from multiadvisor.settings import number_between, whole_number

LENGTHS, DRAWS, TRIALS, STEPS = (25, 50, 100, 200), 4, 40, 10_000
GOOD = 0.7
"""From this correlation of short branches with whole ones on, by every term that can be known, they are long enough."""
STRONG = 0.75
"""The quantile of the trial states' differences from which on one is strong."""
_SHAKEN = 0.05  # of the steps that values are fitted to are random, so that they know where branches lead
_CLOSES, _KNOWN = 0.3, 50  # the correlation of values with this many returns below which they close no branch
_APART = 1_000_000  # by which seeds of these episodes differ
_SURE = 2.0  # standard errors


@dataclass(frozen=True)
class Precision:
    """How far differences by one term can be believed, from trial states."""

    agreement: float
    """The correlation of two halves of the draws, and ..."""
    ranks: float
    """... that of their ranks."""
    truth: float | None
    """The correlation of short branches with whole ones, divided by what two halves of the whole ones allow; None
    where the short ones are whole."""
    strong: float
    """The size from which on a difference is strong."""

    @property
    def holds(self) -> bool:
        """Whether strong differences by this term may be told."""
        return self.agreement >= AGREEMENT and (self.truth is None or self.truth >= AGREEMENT)

    def as_dict(self) -> dict[str, float | None]:
        """For JSON."""
        return {name: None if value is None or not np.isfinite(value) else value for name, value in vars(self).items()}

    def written(self) -> dict[str, str | None]:
        """For a file: not every one is a number."""
        return {name: None if value is None else str(value) for name, value in vars(self).items()}

    @classmethod
    def read(cls, given: dict[str, str | None]) -> Precision:
        """What `written` gave."""
        figures: dict[str, Any] = {name: None if value is None else float(value) for name, value in given.items()}
        return cls(**figures)


@dataclass(frozen=True)
class Consequence:
    """What an action brings, by term, that another would not: discounted, with weights."""

    names: tuple[str, ...]
    action: Any
    against: Any
    difference: np.ndarray
    """[K] the mean over the draws."""
    error: np.ndarray
    """[K] its standard error."""
    precision: tuple[Precision, ...]
    length: int
    """Steps of a branch."""
    steps: int
    """That were played to know it."""
    seconds: float
    pairs: int = 0
    """Of branches that it was taught by; 0: it was tried out."""

    @property
    def told(self) -> tuple[int, ...]:
        """The terms whose difference is strong and can be believed, the strongest first; of the others nothing is
        said."""
        sure = np.abs(self.difference) > _SURE * self.error
        strong = np.abs(self.difference) >= [one.strong for one in self.precision]
        found = np.flatnonzero(sure & strong & [one.holds for one in self.precision])
        return tuple(found[np.argsort(-np.abs(self.difference[found]), kind="stable")].tolist())

    @property
    def sentence(self) -> str:
        """One plain sentence."""
        told = [f"{self.names[k]} {self.difference[k]:+.3g} ({self._known(k)})" for k in self.told]
        rest = [name for k, name in enumerate(self.names) if k not in self.told]
        how = f"as taught by {self.pairs:,} pairs of {self.length} steps" if self.pairs else "tried out"
        if not told:
            every = f"{how}, every" if self.pairs else "every"
            return f"whether it was better cannot be told: {every} difference by {', '.join(rest)} is weak or uncertain"
        tail = f"; {', '.join(rest)}: too weak or uncertain to tell" if rest else ""
        return f"{how}, it brings {', '.join(told)}{tail}"

    def _known(self, k: int) -> str:
        """How far a difference is known."""
        taught = f", agrees with whole branches at r {self.precision[k].agreement:.2f}" if self.pairs else ""
        return f"error {self.error[k]:.1g}{taught}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        terms = {
            name: {
                "difference": float(self.difference[k]), "error": float(self.error[k]), "told": k in self.told,
                **self.precision[k].as_dict(),
            }
            for k, name in enumerate(self.names)
        }  # fmt: skip
        whole = {"sentence": self.sentence, "terms": terms, "length": self.length, "steps": self.steps}
        return {**whole, "pairs": self.pairs}


@dataclass(frozen=True)
class Consequences:
    """Answers what follows from an action in a state of an environment, for one policy; `consequences` makes one.

    >>> import multiadvisor as mad
    >>> alive = mad.Advisor("alive", reward=lambda t: 1.0)
    >>> upright = lambda seen: int(seen[2] + seen[3] > 0)
    >>> asked = consequences("CartPole-v1", upright, [alive], steps=400, trials=8, progress=False)
    >>> state = asked.at(seed=0, actions=[1, 1, 1, 1])
    >>> bool(asked.compare(state, action=0, against=1).difference[0] > 0)  # it leans to the left
    True
    """

    place: Playground
    brancher: Brancher
    precision: tuple[Precision, ...]
    method: str
    """How states are gone back to."""
    longest: int
    """Steps of the longest episode that was met."""
    steps: int
    """That were played to prepare it."""
    seconds: float
    """CPU time that it took to prepare."""
    rival: Callable[[Any, Any, np.random.Generator], Any]
    """The action to compare with, by default, from an observation and the action taken."""

    def at(self, seed: int, actions: Any = (), x: np.ndarray | None = None) -> SavedState:
        """The state of an episode with this seed after these actions; or the state x of a compiled world."""
        with self.place.held():
            if x is not None and isinstance(self.brancher.simulator, Worlds):
                return self.brancher.simulator.at(np.asarray(x, np.int64))
            simulator = self.brancher.simulator
            seen = simulator.begin(seed)
            for played, action in enumerate(actions, 1):
                now = step(simulator.env, seen, action)
                seen = now.next_observation
                if now.terminated or now.truncated:
                    raise BadInput(f"the episode with seed {seed} is over after {played} steps: name an earlier one")
            return SavedState(seed, tuple(actions), seen, simulator.save())

    def compare(self, moment: SavedState, action: Any = None, against: Any = None, *, seed: int = 0) -> Consequence:
        """What the action (default: the policy's) brings in a state that `against` (default: the usual other) does
        not."""
        start, chance = time.process_time(), np.random.default_rng([seed, 11])
        with self.place.held():
            if action is None:
                action = self.brancher.policy.act(moment.observation)
            if against is None:
                against = self.rival(moment.observation, action, chance)
            pair = _pair(self.place.env.action_space, action, against, chance)
            found, steps = self.brancher.differences(moment, pair, chance)
        weighted = found * self.brancher.terms.weights
        return Consequence(
            self.brancher.terms.names, action, against, weighted.mean(axis=0),
            weighted.std(axis=0, ddof=1) / np.sqrt(len(weighted)), self.precision, self.brancher.horizon, steps,
            time.process_time() - start,
        )  # fmt: skip

    def __str__(self) -> str:
        lines = [f"prepared with {self.steps:,} steps in {self.seconds:.1f} s of CPU time; {self.method}"]
        for name, one in zip(self.brancher.terms.names, self.precision, strict=True):
            truth = "" if one.truth is None else f", and {one.truth:.2f} with branches to the end of the episode"
            lines.append(
                f"{name}: two halves of the branches correlate by {one.agreement:.2f} (ranks {one.ranks:.2f}){truth}; "
                f"a difference is strong from {one.strong:.3g} on{'' if one.holds else ': withheld'}"
            )
        return "\n".join(lines)


def _pair(space: Any, action: Any, against: Any, chance: np.random.Generator) -> Callable[[int], tuple[Any, Any]]:
    """The two actions of each draw: finite ones as they are, both continuous ones shifted by the same small noise."""
    if not hasattr(space, "low"):
        return lambda draw: (action, against)
    half = half_ranges(space)

    def shifted(draw: int) -> tuple[Any, Any]:
        noise = JITTER * half * chance.normal(size=space.shape)
        one, other = (np.clip(np.asarray(each) + noise, space.low, space.high) for each in (action, against))
        return one.astype(space.dtype), other.astype(space.dtype)

    return shifted


# ---- making one ------------------------------------------------------------------------------------------------------
def consequences(
    env: Any, policy: Any, advisors: Any = None, *, gamma: float | None = None, length: int | None = None,
    draws: int = DRAWS, steps: int = STEPS, trials: int = TRIALS, seed: int = 0, progress: bool | None = None,
) -> Consequences:  # fmt: skip
    """Prepare answers to "what does this action bring, by term, that another would not?", for anyone's policy.

    `env`, `policy` and `advisors` are as in `diagnose`; of an agent its own task, of a compiled world too. The policy
    plays `steps` steps, to which its values are fitted; then `trials` states show how far the answers can be believed.
    An answer plays `draws` pairs of branches of `length` steps; by default the shortest of 25, 50, 100, 200 that agree
    with whole branches, or these. `gamma` is by default the agent's, or 0.99.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("two-goal"), gamma=0.9, seed=0).learn(2_000, progress=False)
    >>> asked = consequences(agent.task, agent, steps=500, trials=5, progress=False)
    >>> found = asked.compare(asked.at(0), action=1, against=0)  # with 0 it waits, and takes 1 a step later
    >>> dict(zip(found.names, found.difference.round(2).tolist()))
    {'goal 1': 0.1, 'goal 2': 0.0}
    """
    if gamma is None:
        gamma = policy.settings.gamma if isinstance(policy, MultiAdvisor) else 0.99
    gamma = number_between("gamma", gamma, 0.0, 1.0)
    lengths = LENGTHS if length is None else (whole_number("length", length, 1),)
    draws = whole_number("draws", draws, 2)
    steps, trials, seed = whole_number("steps", steps, 1), whole_number("trials", trials, 4), whole_number("seed", seed)
    start, place = time.process_time(), playground(env, advisors)
    known = place.policy(policy)
    with place.held():
        simulator, method = simulator_of(place.env, known.act, seed)
        if simulator is None:
            raise BadInput(method)
        place = replace(place, env=simulator.env)
        with LearningBar(steps, progress, "playing") as bar:
            watch = Watch(bar.advance)
            own = max(steps // 4, 1)  # the trial is in other episodes than the values are fitted to: these flatter them
            sample = gather(simulator, known.act, place.terms, own, seed, watch)
            fitted = _shaken(simulator, known.act, place.terms, max(steps - own, 1), seed, watch)
        known = tried(known, sample.episodes[0].observations[:KEPT], seed)
        longest = max(len(one.actions) for one in sample.episodes)
        whole = horizon_of(gamma, longest)
        rival = rival_of(policy, place)
        lanes = lanes_for(known, simulator, seed, 2 * draws)
        brancher = Brancher(lanes, known, place.terms, gamma, whole, None, draws)
        with LearningBar(trials, progress, "trying") as bar:
            trial = tried_out(brancher, sample, rival, trials, seed, Watch(bar.advance))
        if lengths[0] < whole:
            close = _closing(fitted, sample, gamma, seed)
            shorter = [one for one in lengths if one < whole]
            brancher, precision, more = _short_enough(brancher, close, trial, shorter, length is not None)
        else:
            precision, more = _precision(trial.effects, None), 0
    played = steps + trial.steps + more
    seconds = time.process_time() - start
    return Consequences(place, brancher, precision, method, longest, played, seconds, rival)


def rival_of(policy: Any, place: Playground) -> Callable[[Any, Any, np.random.Generator], Any]:
    """What an action is compared with: the centre of the box, an agent's next best, or any other one."""
    space = place.env.action_space
    if hasattr(space, "low"):
        low, high = np.nan_to_num(space.low, neginf=-1.0), np.nan_to_num(space.high, posinf=1.0)
        return lambda seen, action, chance: ((low + high) / 2).astype(space.dtype)
    if isinstance(policy, MultiAdvisor) and not space.shape:
        first = policy.task.first_action

        def next_best(seen: Any, action: Any, chance: np.random.Generator) -> Any:
            preferences = np.array(policy.preferences(place.state(seen)), float)
            preferences[int(action) - first] = -np.inf
            return first + int(preferences.argmax())

        return next_best
    return lambda seen, action, chance: another(space, action, chance)


def _shaken(
    simulator: Simulator, act: Callable[[Any], Any], terms: RewardTerms, steps: int, seed: int, watch: Watch
) -> Sample:
    """Episodes of the policy with a random action now and then, cut where these are: each part is of the policy."""
    space, chance = copy.deepcopy(simulator.env.action_space), np.random.default_rng([seed, 13])
    space.seed(seed)
    random: list[bool] = []

    def acting(observation: Any) -> Any:
        random.append(bool(chance.random() < _SHAKEN))
        return space.sample() if random[-1] else act(observation)

    sample = gather(simulator, acting, terms, steps, seed + _APART, watch)
    parts, start = [], 0
    for episode in sample.episodes:
        length = len(episode.actions)
        cuts = [-1, *np.flatnonzero(random[start : start + length]).tolist(), length]
        start += length
        for before, end in pairwise(cuts):
            if end - before > 1:
                parts.append(_part(episode, before + 1, end))
    return Sample(terms, tuple(parts), sample.space)


def _part(episode: SampledEpisode, begin: int, end: int) -> SampledEpisode:
    """Some steps of an episode; where it went on behind them, they are cut off."""
    last = end == len(episode.actions)
    return episode._replace(
        observations=episode.observations[begin : end + 1], actions=episode.actions[begin:end],
        terms=episode.terms[begin:end], reward=episode.reward[begin:end],
        terminated=episode.terminated and last, complete=episode.complete and last,
    )  # fmt: skip


def _closing(fitted: Sample, sample: Sample, gamma: float, seed: int) -> Closing | None:
    """Values by term that close a branch, fitted to one sample: known where they forecast the other one; a term varies
    that does not always pay the same, and each one where something ends."""
    rows, seen = rows_of_numbers(fitted), rows_of_numbers(sample, least=1)
    if rows is None or seen is None:
        return None
    values = fit(rows, fitted.episodes, gamma, seed)
    known = forecasting(values, sample, seen, gamma)
    closes = np.array([not (one.steps >= _KNOWN and one.correlation < _CLOSES) for one in known])
    ends = any(one.terminated for one in fitted.episodes)
    varies = ends | (np.ptp(np.concatenate([one.terms for one in fitted.episodes]), axis=0) > 0)
    return Closing(values, sample.space, varies, closes)


class Trial(NamedTuple):
    """Questions in states of the sample, answered by whole branches."""

    moments: list[SavedState]  # [B]
    pairs: list[Callable[[int], tuple[Any, Any]]]  # [B]
    compared: list[tuple[Any, Any]]  # [B]
    effects: np.ndarray  # [B, D, K]
    seed: int
    steps: int


def tried_out(
    whole: Brancher, sample: Sample, rival: Callable[[Any, Any, np.random.Generator], Any], trials: int, seed: int,
    watch: Watch,
) -> Trial:  # fmt: skip
    """Compare the action taken with the usual other one in states that are spread over the sample."""
    space, where, compared, pairs = whole.simulator.env.action_space, [], [], []
    for number, place, moment in states(whole.simulator, sample, spread_over(sample, trials, seed + 1)):
        chance = np.random.default_rng([seed, number, place, 5])
        action = sample.episodes[number].actions[place]
        where.append(moment)
        compared.append((action, rival(moment.observation, action, chance)))
        pairs.append(_pair(space, *compared[-1], chance))
    effects, steps = _answered(whole, where, pairs, seed, watch)
    return Trial(where, pairs, compared, effects, seed, steps)


def _answered(
    brancher: Brancher, where: list[SavedState], pairs: list[Callable[[int], tuple[Any, Any]]], seed: int, watch: Watch
) -> tuple[np.ndarray, int]:
    """The weighted differences [B, D, K] in these states, and the steps played."""
    found, played = [], 0
    wide = max(len(brancher.lanes) // (2 * brancher.draws), 1)  # as many questions as there is room for at a time
    for some in np.split(np.arange(len(where)), range(wide, len(where), wide)):
        chances = [np.random.default_rng([seed, number, brancher.horizon]) for number in some]
        begun = [brancher.begun(where[k], pairs[k], chance) for k, chance in zip(some, chances, strict=True)]
        effects, steps = brancher.paired([one for question in begun for one in question])
        found.append(effects.reshape(len(some), brancher.draws, -1) * brancher.terms.weights)
        played += steps
        watch.advance(len(some))
    return np.concatenate(found), played


def ceiling(effects: np.ndarray) -> np.ndarray:
    """The correlation with the mean of these [B, D, K] that can be reached [K], as two halves of the draws agree."""
    half = agreement(effects)[0]
    return np.asarray(np.sqrt(np.clip(2 * half / (1 + half), 0.01, 1.0)))


def _short_enough(
    whole: Brancher, close: Closing | None, trial: Trial, lengths: list[int], fixed: bool
) -> tuple[Brancher, tuple[Precision, ...], int]:
    """The shortest branches that agree with whole ones, or the whole ones; how good they are, and the steps played."""
    knowable, played = agreement(trial.effects)[0] >= AGREEMENT, 0
    for length in lengths:
        short = replace(whole, horizon=length, close=close)
        effects, steps = _answered(short, trial.moments, trial.pairs, trial.seed, Watch())
        played += steps
        truth = correlations(effects.mean(axis=1), trial.effects.mean(axis=1))[0] / ceiling(trial.effects)
        if fixed or not knowable.any() or (truth[knowable] >= GOOD).all():
            return short, _precision(effects, np.where(knowable, truth, 0.0)), played
    return whole, _precision(trial.effects, None), played


def _precision(effects: np.ndarray, truth: np.ndarray | None) -> tuple[Precision, ...]:
    """How far differences like these [B, D, K] can be believed, by term."""
    halves, ranks = agreement(effects)
    strong = np.quantile(np.abs(effects.mean(axis=1)), STRONG, axis=0)
    return tuple(
        Precision(float(halves[k]), float(ranks[k]), None if truth is None else float(truth[k]), float(strong[k]))
        for k in range(effects.shape[2])
    )
