"""`diagnose`: what each term of the reward does to a policy, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from multiadvisor.analysis.stuck import resting
from multiadvisor.core.interrupt import AtOnce, deferred_interrupt
from multiadvisor.core.intervals import Estimate, estimate
from multiadvisor.core.progress import LearningBar
from multiadvisor.diagnosis.branches import Brancher, Branches, branch, horizon_of
from multiadvisor.diagnosis.findings import Finding, findings, percent
from multiadvisor.diagnosis.policies import as_policy, checked, tried
from multiadvisor.diagnosis.sample import RewardTerms, Sample, Watch, gather
from multiadvisor.diagnosis.simulator import Simulator, simulator_of
from multiadvisor.diagnosis.term_values import Calibration, TermValues, calibrate, fit, numbers
from multiadvisor.errors import BadInput
from multiadvisor.settings import number_between, whole_number
from multiadvisor.task import Advisor, Task

AGREEMENT = 0.5
"""The correlation of two halves of the draws below which nothing is said from branches."""
SHORT = 100
"""Steps of a branch that values of the state close, where these are calibrated."""
DECISIVE = 5
"""As many steps are named in which most was at stake."""
_SHOWN_PAIRS = 40  # terms up to which every pair is compared by branches
_ASKED = 19  # observations of which the policy is asked twice: prime, so that no short cycle looks like a constant
_CELLS = 10  # of each number of an observation: places, for finding out whether the policy is stuck


@dataclass(frozen=True)
class Evidence:
    """What findings are made of."""

    names: tuple[str, ...]  # [K]
    paid: np.ndarray  # [T, K] by weighted terms, step by step
    reward: np.ndarray  # [T] the environment's own
    push: list[Estimate] | None  # [K]
    conflicts: dict[tuple[int, int], Estimate]
    stuck: dict[str, Any] | None

    @property
    def sizes(self) -> np.ndarray:
        """What a term pays or takes in a step, on average [K]."""
        return np.asarray(np.abs(self.paid).mean(axis=0))

    @property
    def shares(self) -> np.ndarray:
        """Each term's share of all that is paid and taken [K]."""
        total = self.sizes.sum()
        return np.asarray(self.sizes / total if total else self.sizes)


@dataclass(frozen=True)
class Term:
    """One term of the reward."""

    name: str
    weight: float
    returned: Estimate
    """The return of an episode by this term, with its weight."""
    share: float
    """Of all that is paid and taken, step by step."""
    calibration: Calibration | None
    """How far values of this term forecast returns; None where they were not fitted."""
    push: Estimate | None
    """Its share of what another action changes; None without branches, or where their halves disagree."""
    agreement: float | None
    """The correlation of two halves of the branches, and ..."""
    rank_agreement: float | None
    """... that of their ranks."""
    with_the_rest: Estimate | None
    """The cosine between its effects and those of all others together."""


@dataclass(frozen=True)
class DecisiveStep:
    """A step in which another action would have changed much."""

    episode: int
    step: int
    effects: dict[str, float]


@dataclass(frozen=True)
class Diagnosis:
    """What the terms of a reward do to a policy; print it, or take `as_dict` for JSON.

    >>> import gymnasium, multiadvisor as mad
    >>> upright = mad.Advisor("upright", reward=lambda t: 1.0)
    >>> found = mad.diagnose(gymnasium.make("CartPole-v1"), lambda seen: int(seen[2] > 0), [upright], steps=300,
    ...                      branches=5, progress=False)
    >>> found.terms[0].share, found.branches, found.as_dict()["steps"]
    (1.0, 5, 300)
    """

    environment: str
    gamma: float
    steps: int
    episodes: int
    length: float
    terms: tuple[Term, ...]
    findings: tuple[Finding, ...]
    decisive: tuple[DecisiveStep, ...]
    branches: int
    branch_length: int
    method: str
    """How states are gone back to, or why they cannot be."""
    notes: tuple[str, ...]
    """What was left out, and why."""
    random_policy: bool
    interrupted: bool
    sample: Sample = field(repr=False, compare=False)
    effects: Branches | None = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the episodes and single branches, as plain data."""
        return {
            "environment": self.environment, "gamma": self.gamma, "steps": self.steps, "episodes": self.episodes,
            "length": self.length, "branches": self.branches, "branch_length": self.branch_length,
            "method": self.method, "random_policy": self.random_policy, "interrupted": self.interrupted,
            "notes": list(self.notes),
            "terms": [_term_data(one) for one in self.terms],
            "findings": [vars(one) | {"terms": list(one.terms)} for one in self.findings],
            "decisive": [vars(one) for one in self.decisive],
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [
            f"{self.episodes} episodes of {self.length:.0f} steps; gamma {self.gamma:g}; {self.branches} branches",
            _row("term", "return", "share", "forecast", "push", "with the rest"),
            *(_term_row(one) for one in sorted(self.terms, key=lambda term: -term.share)),
        ]
        lines += [f"- {one.sentence}" for one in self.findings] or ["- nothing stands out"]
        lines += [f"({note})" for note in self.notes]
        return "\n".join(lines)


def _row(*cells: str) -> str:
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, (20, 28, 12, 10, 37, 24), strict=True)).rstrip()


def _term_row(term: Term) -> str:
    low, high = term.returned.interval
    known = term.calibration
    forecast = "-" if known is None or not np.isfinite(known.correlation) else f"{known.correlation:.2f}"
    push = "-" if term.push is None else "{} [{}, {}]".format(*map(percent, (term.push.value, *term.push.interval)))
    rest = term.with_the_rest
    beside = "-" if rest is None else f"{rest.value:+.2f} [{rest.low:+.2f}, {rest.high:+.2f}]"
    paid = f"{term.returned.value:.1f} [{low:.1f}, {high:.1f}]"
    return _row(term.name, paid, percent(term.share), forecast, push, beside)


def _term_data(term: Term) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, Estimate | Calibration):
            return {name: plain(part) for name, part in vars(value).items()}
        return None if isinstance(value, float) and not np.isfinite(value) else value

    return {name: plain(value) for name, value in vars(term).items()}


# ---- making one ------------------------------------------------------------------------------------------------------
def diagnose(
    env: Any, policy: Any, advisors: str | Sequence[Advisor] | None = None, *, gamma: float = 0.99,
    steps: int = 20_000, branches: int = 200, seed: int = 0, progress: bool | None = None,
) -> Diagnosis:  # fmt: skip
    """What each term of a reward does to a policy: yours, of this package, of Stable-Baselines3 or SBX.

    `env` is a Gymnasium or MO-Gymnasium environment, its id, or a Task made of one; `policy` a function of the
    observation, a model with `predict`, or a MultiAdvisor. `advisors` are the terms: "info:reward_*" for those that a
    step's info has, or a list of `Advisor`; by default the components of a vector reward. The policy plays `steps`
    steps; from `branches` of the states that it met, other actions are tried. Ctrl-C keeps what is there. The same
    seed gives the same report.

    >>> import multiadvisor as mad
    >>> cost = mad.Advisor("torque", reward=lambda t: -float(t.action[0]) ** 2)
    >>> swing = lambda seen: [2.0 if seen[2] > 0 else -2.0]
    >>> [found.kind for found in mad.diagnose("Pendulum-v1", swing, [cost], steps=400, branches=0).findings]
    ['does not add up']
    """
    gamma, steps = number_between("gamma", gamma, 0.0, 1.0), whole_number("steps", steps, 1)
    branches, seed = whole_number("branches", branches), whole_number("seed", seed)
    task = env if isinstance(env, Task) else Task.from_gymnasium(env, advisors=advisors)
    if task.adapter is None:
        raise BadInput(
            f"{task.name!r} is a compiled world: give its Gymnasium environment, such as multiadvisor/PacBoy-v0"
        )
    terms, env = RewardTerms(task.advisors), task.adapter.env
    act = checked(as_policy(policy), env.action_space)
    found: list[Diagnosis] = []
    with suppress(KeyboardInterrupt), deferred_interrupt() as stop:
        found.append(_diagnosed(task.name, env, act, terms, gamma, steps, branches, seed, progress, stop))
    if not found:
        raise AtOnce
    return found[0]


def _diagnosed(
    name: str, env: Any, act: Callable[[Any], Any], terms: RewardTerms, gamma: float, steps: int, count: int, seed: int,
    progress: bool | None, stop: Any,
) -> Diagnosis:  # fmt: skip
    simulator, method = simulator_of(env, act, seed)
    with LearningBar(steps, progress, "playing") as bar:
        watch = Watch(lambda done: bar.advance(done, None), lambda: stop.requested)
        sample = gather(simulator or Simulator(env), act, terms, steps, seed, watch)
    notes = [] if simulator is not None else [method]
    policy = tried(act, sample.episodes[0].observations[:_ASKED], seed)
    observed = [numbers(one.observations, env.observation_space) for one in sample.episodes]
    values, calibrations = _values(sample, observed, gamma, seed)
    if calibrations is not None and not any(one.steps for one in calibrations):
        notes.append(f"no episode is long enough to know its returns at gamma {gamma:g}: values are not calibrated")
    if values is None:
        notes.append("observations are not numbers, or there is one episode only: no values were fitted")
    effects = None
    if simulator is not None and count and not stop.requested:
        close = _closing(values, calibrations, env.observation_space)
        longest = max(len(one.actions) for one in sample.episodes)
        horizon = min(horizon_of(gamma, longest), SHORT if close is not None else longest)
        brancher = Brancher(simulator, policy, terms, gamma, horizon, close)
        with LearningBar(count, progress, "branching") as bar:
            watch = Watch(lambda done: bar.advance(done, None), lambda: stop.requested)
            effects = branch(brancher, sample, count, seed, watch)
    return _report(name, gamma, sample, calibrations, effects, method, notes, policy.random, bool(stop.requested))


def _values(
    sample: Sample, observed: Sequence[np.ndarray | None], gamma: float, seed: int
) -> tuple[TermValues | None, list[Calibration] | None]:
    """Values by term and their calibration, where the observations are numbers and there are episodes to hold out."""
    rows = [one for one in observed if one is not None]
    if len(rows) < max(len(observed), 2):
        return None, None
    return fit(rows, sample.episodes, gamma, seed), calibrate(sample, rows, gamma, seed)


def _closing(
    values: TermValues | None, calibrations: list[Calibration] | None, space: Any
) -> Callable[[Any], np.ndarray] | None:
    """What closes a short branch: values, where those of every term that varies are calibrated.

    Of a term that does not vary it is a constant: the fit's error would look like an effect.
    """
    if values is None or calibrations is None:
        return None
    if not all(one.holds or not np.isfinite(one.correlation) for one in calibrations):
        return None

    varies = np.isfinite([one.correlation for one in calibrations])

    def close(observation: Any) -> np.ndarray:
        seen = numbers([observation], space)
        assert seen is not None
        return np.where(varies, values(seen)[0], values.level)

    return close


def _report(
    name: str, gamma: float, sample: Sample, calibrations: list[Calibration] | None, effects: Branches | None,
    method: str, notes: list[str], random: bool, interrupted: bool,
) -> Diagnosis:  # fmt: skip
    terms, weights = sample.terms, sample.terms.weights
    count = len(terms.advisors)
    agreement = ranks = np.full(count, np.nan)
    push: list[Estimate] | None = None
    conflicts: dict[tuple[int, int], Estimate] = {}
    beside: list[Estimate | None] = [None] * count
    told = np.zeros(count, bool)
    if effects is not None and len(effects.episode) >= 2:
        agreement, ranks = effects.agreement()
        sizes = np.abs(effects.mean).mean(axis=0)
        told = (agreement >= AGREEMENT) | (sizes < 1e-3 * sizes.max(initial=0.0))
        if told.all() and sizes.any():
            push = effects.push()
            pairs = combinations(range(count), 2) if count <= _SHOWN_PAIRS else ()
            conflicts = {pair: effects.conflict(*pair) for pair in pairs if sizes[list(pair)].all()}
            beside = [effects.with_the_rest(k) if 0 < sizes[k] < sizes.sum() else None for k in range(count)]
        elif sizes.any():
            lost = ", ".join(one for one, good in zip(terms.names, told, strict=True) if not good)
            notes.append(f"two halves of the branches disagree on {lost}: push and conflict are withheld")
        else:
            notes.append("no branch changed anything")
    paid = np.concatenate([one.terms for one in sample.episodes]) * weights
    reward = np.concatenate([one.reward for one in sample.episodes])
    seen = Evidence(terms.names, paid, reward, push, conflicts, _stuck(sample))
    returns = sample.returns * weights
    reports = tuple(
        Term(
            one.name, float(one.weight), estimate(returns[:, k]), float(seen.shares[k]),
            None if calibrations is None else calibrations[k], None if push is None else push[k],
            _finite(agreement[k]), _finite(ranks[k]), beside[k],
        )
        for k, one in enumerate(terms.advisors)
    )  # fmt: skip
    return Diagnosis(
        environment=name, gamma=gamma, steps=sample.steps, episodes=len(sample.episodes),
        length=float(np.mean([len(one.actions) for one in sample.episodes])), terms=reports, findings=findings(seen),
        decisive=_decisive(terms.names, effects, agreement, ranks),
        branches=0 if effects is None else len(effects.episode),
        branch_length=0 if effects is None else effects.horizon, method=method, notes=tuple(notes),
        random_policy=random, interrupted=interrupted, sample=sample, effects=effects,
    )  # fmt: skip


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _decisive(
    names: tuple[str, ...], effects: Branches | None, agreement: np.ndarray, ranks: np.ndarray
) -> tuple[DecisiveStep, ...]:
    """The branched steps with the largest effects, where two halves of the draws agree on which these are."""
    if effects is None or not len(effects.episode):
        return ()
    leading = int(np.abs(effects.mean).mean(axis=0).argmax())
    if not (agreement[leading] >= AGREEMENT and ranks[leading] >= AGREEMENT):
        return ()
    order = np.argsort(-np.abs(effects.mean.sum(axis=1)), kind="stable")[:DECISIVE]
    return tuple(
        DecisiveStep(
            int(effects.episode[b]), int(effects.place[b]), dict(zip(names, effects.mean[b].tolist(), strict=True))
        )
        for b in order
    )


def _stuck(sample: Sample) -> dict[str, Any] | None:
    """In how many episodes the policy stays in the same few places without being paid, and the first of them."""
    gains = [episode.terms @ sample.terms.weights for episode in sample.episodes]
    low, high = min(one.min() for one in gains), max(one.max() for one in gains)
    found = []
    for number, (episode, gain) in enumerate(zip(sample.episodes, gains, strict=True)):
        walk, moves = _cells(episode.observations), _cells(episode.actions)
        if walk is None or moves is None:
            return None
        rest = resting(walk, moves, gain, episode.terminated)
        if rest is None or rest.until < len(episode.actions):
            continue
        cheap = high <= 0 and low < high and gain[rest.since :].mean() > (low + high) / 2
        if not cheap:  # where there are only costs, the place that costs least is where one should be
            found.append((number, rest))
    if not found:
        return None
    number, rest = found[0]
    return {"share": len(found) / len(sample.episodes), "episode": number, "since": rest.since, "kind": rest.kind}


def _cells(given: Sequence[Any]) -> np.ndarray | None:
    """Observations or actions as numbers of cells [T]; None where they are not numbers."""
    try:
        rows = np.array([np.ravel(one) for one in given], float)
    except (TypeError, ValueError):
        return None
    low, width = rows.min(axis=0), np.ptp(rows, axis=0)
    cells = np.floor((rows - low) / np.where(width > 1e-9, width, 1.0) * _CELLS)
    return np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)
