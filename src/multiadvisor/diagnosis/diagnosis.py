"""`diagnose`: what each term of the reward does to a policy, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any

import numpy as np

from multiadvisor.core.interrupt import AtOnce, deferred_interrupt
from multiadvisor.core.intervals import Estimate, estimate
from multiadvisor.core.progress import LearningBar
from multiadvisor.diagnosis.branches import AGREEMENT, DRAWS, Brancher, Branches, branch, horizon_of, lanes_for
from multiadvisor.diagnosis.branches import agreement as halves_agree
from multiadvisor.diagnosis.findings import Finding, findings, percent
from multiadvisor.diagnosis.idling import lingers, stuck
from multiadvisor.diagnosis.playground import Playground, playground
from multiadvisor.diagnosis.policies import Policy, tried
from multiadvisor.diagnosis.processes import refusal
from multiadvisor.diagnosis.sample import KEPT, Sample, Unfinished, Watch, gather
from multiadvisor.diagnosis.simulator import Simulator, simulator_of
from multiadvisor.diagnosis.term_values import Closing, TermCalibration, TermValues, calibrate, fit, rows_of_numbers
from multiadvisor.errors import BadInput
from multiadvisor.settings import number_between, whole_number
from multiadvisor.task import Advisor

SHORT = 200
"""Steps of a branch that values of the state close, where these are calibrated: their error counts as an effect, of 100
steps so much that the push of a small term was too small."""
DECISIVE = 5
"""As many steps are named in which most was at stake."""
_SHOWN_STEPS = 2
_SHOWN_PAIRS = 40  # terms up to which every pair is compared by branches


@dataclass(frozen=True)
class Measurements:
    """What findings are made of."""

    names: tuple[str, ...]  # [K]
    paid: np.ndarray  # [T, K] by weighted terms, step by step
    reward: np.ndarray  # [T] the environment's own
    push: list[Estimate] | None  # [K]
    conflicts: dict[tuple[int, int], Estimate]
    stuck: dict[str, Any] | None = None
    lingers: dict[str, Any] | None = None

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
    value: float | None
    """What is to come of it, discounted, on average over the states that were met; None where forecasts do not hold."""
    calibration: TermCalibration | None
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
    picture: str = field(default="", repr=False)
    """A data address, where it was drawn."""

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {effect:+.3g}" for name, effect in self.effects.items())
        return f"episode {self.episode}, step {self.step} ({shown})"


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
    notes: tuple[str, ...]
    """What was left out, and why."""
    sample: Sample = field(repr=False, compare=False)
    effects: Branches | None = field(repr=False, compare=False)
    method: str = ""
    """How states are gone back to, or why they cannot be."""
    problem: str = ""
    """What went wrong on the way, so that this is only what was gathered until then; empty if nothing did."""
    random_policy: bool = False
    interrupted: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Everything but the episodes and single branches, as plain data."""
        whole: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self) if one.compare}
        return {name: _plain(value) for name, value in whole.items()}

    def __str__(self) -> str:
        count = f"{self.episodes} episode{'s' * (self.episodes != 1)}"
        lines = [
            f"{count} of {self.length:.0f} steps; gamma {self.gamma:g}; {self.branches} branches",
            _row("term", "return", "share", "value", "forecast", "push", "with the rest"),
            *(_term_row(one) for one in sorted(self.terms, key=lambda term: -term.share)),
            *_halves(self.terms),
        ]
        lines += [f"- {one.sentence}" for one in self.findings] or ["- nothing stands out"]
        if self.decisive:
            lines.append(f"most was at stake in {'; '.join(map(str, self.decisive[:_SHOWN_STEPS]))}")
        lines += [f"({note})" for note in self.notes]
        lines += [f"ended early: {self.problem}"] if self.problem else []
        return "\n".join(lines)


def _row(*cells: str) -> str:
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, (20, 28, 12, 9, 10, 37, 24), strict=True)).rstrip()


def _term_row(term: Term) -> str:
    low, high = term.returned.interval
    known = term.calibration
    forecast = "-" if known is None or not np.isfinite(known.correlation) else f"{known.correlation:.2f}"
    push = "-" if term.push is None else "{} [{}, {}]".format(*map(percent, (term.push.value, *term.push.interval)))
    rest = term.with_the_rest
    value = "-" if term.value is None else f"{term.value:.3g}"
    beside = "-" if rest is None else f"{rest.value:+.2f} [{rest.low:+.2f}, {rest.high:+.2f}]"
    paid = f"{term.returned.value:.1f} [{low:.1f}, {high:.1f}]"
    return _row(term.name, paid, percent(term.share), value, forecast, push, beside)


def _halves(terms: Sequence[Term]) -> list[str]:
    """How far two halves of the branches agree: of the term of which they agree least."""
    known = [one for one in terms if one.agreement is not None]
    if not known:
        return []
    least = min(known, key=lambda one: one.agreement or 0.0)
    ranks = "" if least.rank_agreement is None else f" (ranks {least.rank_agreement:.2f})"
    rest = ", and more on the others" if len(known) > 1 else ""
    return [f"two halves of the branches agree at {least.agreement:.2f}{ranks} on {least.name}{rest}"]


def _plain(value: Any) -> Any:
    """As plain data; None for a number that is none."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Finding):
        return value.as_dict()
    if isinstance(value, Term | DecisiveStep | Estimate | TermCalibration):
        return {name: _plain(part) for name, part in vars(value).items()}
    return None if isinstance(value, float) and not np.isfinite(value) else value


# ---- making one ------------------------------------------------------------------------------------------------------
def diagnose(
    env: Any, policy: Any, advisors: str | Sequence[Advisor] | None = None, *, gamma: float = 0.99,
    steps: int = 20_000, branches: int = 200, seed: int = 0, workers: int = 1, progress: bool | None = None,
) -> Diagnosis:  # fmt: skip
    """What each term of a reward does to a policy: yours, of this package, of Stable-Baselines3 or SBX.

    `env` is a Gymnasium or MO-Gymnasium environment, its id, or a Task made of one; `policy` a function of the
    observation, a model with `predict`, or a MultiAdvisor. `advisors` are the terms: "info:reward_*" for those that a
    step's info has, or a list of `Advisor`; by default the components of a vector reward. The policy plays `steps`
    steps; from `branches` of the states that it met, other actions are tried, in `workers` processes. Ctrl-C keeps
    what is there. The same seed gives the same report. Where the policy or a term fails on the way, the error is an
    `Unfinished`, whose `gathered` is the diagnosis of what there was until then.

    >>> import multiadvisor as mad
    >>> cost = mad.Advisor("torque", reward=lambda t: -float(t.action[0]) ** 2)
    >>> swing = lambda seen: [2.0 if seen[2] > 0 else -2.0]
    >>> [found.kind for found in mad.diagnose("Pendulum-v1", swing, [cost], steps=400, branches=0).findings]
    ['does not add up']
    """
    gamma, steps = number_between("gamma", gamma, 0.0, 1.0), whole_number("steps", steps, 1)
    branches, seed = whole_number("branches", branches), whole_number("seed", seed)
    workers = whole_number("workers", workers, 1)
    place = playground(env, advisors)
    asked = place.policy(policy)
    found: list[Diagnosis] = []
    with suppress(KeyboardInterrupt), deferred_interrupt() as stop, place.held():
        found.append(_diagnosed(place, asked, gamma, steps, branches, seed, workers, progress, stop))
    if not found:
        raise AtOnce
    if found[0].problem:
        raise Unfinished(found[0].problem, found[0])
    return found[0]


def _diagnosed(
    place: Playground, policy: Policy, gamma: float, steps: int, count: int, seed: int, workers: int,
    progress: bool | None, stop: Any,
) -> Diagnosis:  # fmt: skip
    problem, effects = "", None
    simulator, method = simulator_of(place.env, policy.act, seed)
    with LearningBar(steps, progress, "playing") as bar:
        watch = Watch(bar.advance, lambda: stop.requested)
        try:
            sample = gather(simulator or Simulator(place.env), policy.act, place.terms, steps, seed, watch)
        except Unfinished as error:
            sample, problem = error.gathered, str(error)
    rows = rows_of_numbers(sample)
    values = None if rows is None else fit(rows, sample.episodes, gamma, seed)
    calibrations = None if rows is None else calibrate(sample, rows, gamma, seed)
    if not problem and not stop.requested:
        try:
            policy = tried(policy, sample.episodes[0].observations[:KEPT], seed)
            if simulator is not None and count:
                horizon = horizon_of(gamma, max(len(one.actions) for one in sample.episodes))
                close = _closing(values, calibrations, sample.space)
                length = horizon if close is None else min(horizon, SHORT)
                lanes = lanes_for(policy, simulator, seed, 2 * DRAWS)
                brancher = Brancher(lanes, policy, place.terms, gamma, length, close)
                with LearningBar(count, progress, "branching") as bar:
                    watch = Watch(bar.advance, lambda: stop.requested)
                    effects = branch(brancher, sample, count, seed, watch, 1 if refusal() else workers)
        except Unfinished as error:
            effects, problem = error.gathered, str(error)
        except BadInput as error:
            problem = str(error)
    notes = [] if simulator is not None else [method]
    notes += [f"one process only: {refusal()}"] if workers > 1 and refusal() else []
    if calibrations is not None and not any(one.steps for one in calibrations):
        notes.append(f"no episode is long enough to know its returns at gamma {gamma:g}: values are not calibrated")
    if values is None:
        reason = "there is one episode only" if len(sample.episodes) == 1 else "observations are not numbers"
        notes.append(f"{reason}: no values were fitted")
    return report(
        place.task.name, gamma, sample, values, calibrations, effects, method=method, notes=notes,
        random_policy=policy.random, interrupted=bool(stop.requested), problem=problem,
    )  # fmt: skip


def _closing(values: TermValues | None, calibrations: list[TermCalibration] | None, space: Any) -> Closing | None:
    """What closes a short branch: values, where those of every term that varies are calibrated."""
    if values is None or calibrations is None:
        return None
    varies = np.isfinite([one.correlation for one in calibrations])
    if not all(one.holds for one, moves in zip(calibrations, varies, strict=True) if moves):
        return None
    return Closing(values, space, varies, np.ones_like(varies))


def report(
    name: str, gamma: float, sample: Sample, values: TermValues | None = None,
    calibrations: list[TermCalibration] | None = None, effects: Branches | None = None, *, notes: Sequence[str] = (),
    **more: Any,
) -> Diagnosis:  # fmt: skip
    """What a sample says, with its values and its branches where there are any; `more` fields are told as they are."""
    notes = list(notes)
    terms, weights = sample.terms, sample.terms.weights
    count = len(terms.advisors)
    agreement = ranks = np.full(count, np.nan)
    push: list[Estimate] | None = None
    conflicts: dict[tuple[int, int], Estimate] = {}
    beside: list[Estimate | None] = [None] * count
    told = np.zeros(count, bool)
    if effects is not None and len(effects.episode) >= 2:
        agreement, ranks = halves_agree(effects.effects)
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
    seen = Measurements(terms.names, paid, reward, push, conflicts, stuck(sample), lingers(sample))
    returns = sample.returns * weights
    known: Sequence[TermCalibration | None] = calibrations or [None] * count
    reports = tuple(
        Term(
            one.name, float(one.weight), estimate(returns[:, k]), float(seen.shares[k]),
            _quoted(values, known[k], k, weights), known[k],
            None if push is None else push[k], _finite(agreement[k]), _finite(ranks[k]), beside[k],
        )
        for k, one in enumerate(terms.advisors)
    )  # fmt: skip
    return Diagnosis(
        environment=name, gamma=gamma, steps=sample.steps, episodes=len(sample.episodes),
        length=float(np.mean([len(one.actions) for one in sample.episodes])), terms=reports, findings=findings(seen),
        decisive=_decisive(terms.names, effects, agreement, ranks),
        branches=0 if effects is None else len(effects.episode),
        branch_length=0 if effects is None else effects.horizon, notes=tuple(notes), sample=sample, effects=effects,
        **more,
    )  # fmt: skip


def _quoted(values: TermValues | None, known: TermCalibration | None, k: int, weights: np.ndarray) -> float | None:
    """The mean value of a term, where its forecasts hold."""
    return float(values.level[k] * weights[k]) if values and known and known.holds else None


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
    size = np.abs(effects.mean.sum(axis=1))
    order = np.argsort(-size, kind="stable")[: min(DECISIVE, np.count_nonzero(size))]
    return tuple(
        DecisiveStep(
            int(effects.episode[b]), int(effects.place[b]), dict(zip(names, effects.mean[b].tolist(), strict=True))
        )
        for b in order
    )
