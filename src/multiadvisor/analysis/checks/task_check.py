"""`check_task`: does a task keep the promises that learning relies on?

A task under check is played with random actions while everything it returns is looked at; its first episodes are then
played again, to see whether seeds are honoured. Each defect has a stable name, listed with its meaning in `DEFECTS`.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from multiadvisor.analysis.checks.term_check import TermTotals
from multiadvisor.analysis.episodes import play
from multiadvisor.analysis.stuck import find_stuck
from multiadvisor.analysis.theory.attractors import stuck_states
from multiadvisor.analysis.theory.bounds import among
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.environment_model import has_table
from multiadvisor.analysis.theory.solver import solve
from multiadvisor.core import rng
from multiadvisor.core.aggregator import aggregator_of, doubtful
from multiadvisor.core.learned import TABLES
from multiadvisor.envs.registry import make
from multiadvisor.errors import BadInput
from multiadvisor.settings import whole_number
from multiadvisor.task import Task

if TYPE_CHECKING:
    import gymnasium

    from multiadvisor.agent import MultiAdvisor

DEFECTS: dict[str, str] = {
    # seeds and episodes
    "reset-not-seeded": "the same seed gives another first state",
    "reset-forgets-seed": "a reset without a seed does not draw from the generator that the last seed set",
    "unseeded-randomness": "the same seed and actions give another course of the episode",
    "leaks-between-episodes": "an episode depends on the one that was played before it",
    "never-ends": "no episode ends or is cut off, so that none can be evaluated",
    "endless-task-ends": "the task is declared endless, but an episode ended",
    # the environment
    "reset-raises": "reset raises an exception",
    "reset-protocol": "reset does not return (observation, info)",
    "step-raises": "step raises an exception",
    "step-protocol": "step does not return (observation, reward, terminated, truncated, info)",
    "flag-not-boolean": "terminated or truncated is neither true nor false",
    "observation-outside-space": "an observation is not in the declared observation space",
    "reused-observation": "step overwrites the observation that was handed out before",
    "vector-reward-shape": "the environment's reward has another shape than its reward space",
    # rewards
    "nan-reward": "a reward is NaN",
    "infinite-reward": "a reward is infinite",
    "reward-out-of-bounds": "a reward is outside the bounds that its compiled world gives",
    "reward-not-a-number": "a reward is not a single number",
    "reward-not-repeatable": "a reward function gives another value for the same transition",
    "reward-raises": "a reward function raises an exception",
    "fear-under-a-maximum": "an advisor under a maximum or a p-norm is paid less than 0, times its weight",
    "rewards-do-not-sum": "the advisors' weighted rewards do not add up to the environment's reward",
    "inactive-advisor-paid": "an advisor gets reward in a state where it is inactive, and it is lost",
    "ended-advisor-paid": "an advisor gets reward after its own part has ended, and it is lost",
    # local states
    "state-raises": "the function that gives the local state raises an exception",
    "states-not-given": "an advisor of a compiled world does not say how many local states it has",
    "local-state-out-of-range": "a local state is not among those that the advisor declares",
    "local-state-not-whole": "a local state is not an integer, though their number is declared",
    "local-state-not-hashable": "a local state cannot be counted, because it is not hashable",
    "local-state-not-repeatable": "the same state gives another local state when asked again",
    "local-states-differ": "local_state and local_states of a compiled world give different local states",
    "local-state-not-saveable": "a local state is of a type that no checkpoint can keep",
    # who has a say
    "never-active": "an advisor was not active in any state that was met",
    "activity-not-boolean": "whether an advisor is active is answered with neither true nor false",
    "activity-not-repeatable": "the same state gives other active advisors when asked again",
    "activity-raises": "the function that says who is active raises an exception",
    "activity-changes-silently": "advisors of a compiled world join in mid-episode, or leave without ending",
    "advisors-not-rising": "begin does not write the active advisors in rising order, each once",
    "end-not-boolean": "whether an advisor's part has ended is answered with neither true nor false",
    "end-not-repeatable": "the same transition sometimes ends an advisor's part and sometimes does not",
    "end-raises": "the function that says whether an advisor's part has ended raises an exception",
    "ended-advisor-stays-active": "an advisor is active in the state in which its own part has just ended",
    # what a function may not change
    "mutated-observation": "a state or activity function changes the observation",
    "mutated-transition": "a reward or end function changes the transition",
    "mutated-state": "begin or local_states of a compiled world changes the state x",
    "mutated-constants": "a compiled world changes its constants",
    "mutated-advisors": "step or local_states of a compiled world changes the list of active advisors",
    "writes-past-active": "step of a compiled world writes a reward or an end beyond the active advisors",
    "index-out-of-bounds": "a function of a compiled world reaches beyond an array",
    "not-compiled": "a function of a compiled world is not compiled",
    "outcome-not-listed": "what happened is not among the outcomes that its compiled world gives",
    # a trained agent
    "stuck": "episodes of the trained agent go on and on in the same few places and earn nothing",
}

_GAMMA = 0.9  # at which it is asked whether egocentric advisors get stuck
_DEALS = 64  # further episodes that are dealt where some advisor was not yet active
_PATIENCE = 20  # times `steps`: how long the end of an episode is awaited


@dataclass(frozen=True)
class Defect:
    """One defect, where it was met first, and what to do about it."""

    defect: str
    """Its name in `DEFECTS`."""
    advisor: str | None
    """Whose advisor it is; None: the task's own."""
    message: str

    def __str__(self) -> str:
        return f"{self.defect}{f' ({self.advisor})' if self.advisor is not None else ''}: {self.message}"


@dataclass(frozen=True)
class CheckReport:
    """What `check_task` found; each defect is named once for each advisor."""

    task: str
    findings: tuple[Defect, ...]
    episodes: int
    steps: int
    remarks: tuple[Defect, ...] = ()
    """What is no defect but worth knowing, by the names in `term_check.REMARKS`."""

    @property
    def ok(self) -> bool:
        """Whether no defect was found."""
        return not self.findings

    @property
    def defects(self) -> tuple[str, ...]:
        """The names of the defects, each once, in the order they were met."""
        return tuple(dict.fromkeys(finding.defect for finding in self.findings))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"ok": self.ok, **dataclasses.asdict(self)}

    def __str__(self) -> str:
        played = f"task {self.task!r} ({self.steps} steps in {self.episodes} episode{'s' * (self.episodes != 1)})"
        lines = [f"{len(self.findings)} found in {played}", *(f"  {finding}" for finding in self.findings)]
        lines = [f"no defect found in {played}"] if self.ok else lines
        return "\n".join([*lines, *(f"  worth knowing: {remark}" for remark in self.remarks)])


class Broken(Exception):
    """The task cannot be played any further; the reason is among the findings."""


class Subject(abc.ABC):
    """A task under check, played step by step; each defect is noted once for each advisor, where it is met first."""

    checking = True
    """Off while an episode is merely played again."""
    must_end = True
    """Whether an episode has to end by itself."""
    unseeded_resets = False
    """Whether episodes may also be dealt without a seed of their own, from what the last seed left."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed = task, seed
        self.found: dict[tuple[str, str | None], Defect] = {}
        self.aggregator = aggregator_of(task, "sum")
        self.terms = TermTotals(task)
        self.episode = self.steps = 0
        self.first_active: dict[int, int] = {}  # the episode in which an advisor was first seen active

    @abc.abstractmethod
    def deal(self, episode: int, *, seeded: bool = True) -> Any:
        """Start an episode: a print of its first state. Raises Broken."""

    @abc.abstractmethod
    def step(self, action: int) -> tuple[bool, Any]:
        """One step: whether the episode is over, and a print of what happened. Raises Broken."""

    @abc.abstractmethod
    def where(self) -> str:
        """The episode and step, for a message."""

    def spoilt(self) -> bool:
        """Whether the task has changed under our hands, so that playing episodes again would say nothing new."""
        return False

    @abc.abstractmethod
    def leave(self) -> None:
        """Put the task back into a state in which it can be used."""

    def note(self, defect: str, message: str, advisor: str | None = None) -> None:
        """Note a defect, unless it was met before."""
        assert defect in DEFECTS, defect
        self.found.setdefault((defect, advisor), Defect(defect, advisor, message))

    def blame(self, defect: str, what: str, mend: str, advisor: str | None = None) -> None:
        """Note a defect: what happened, here and now, and how to mend it."""
        self.note(defect, f"{what} {self.where()}: {mend}", advisor)

    def broken(self, defect: str, what: str, mend: str) -> NoReturn:
        """Note a defect after which the task cannot be played any further."""
        self.blame(defect, what, mend)
        raise Broken

    def present(self, advisors: Iterable[int]) -> None:
        """Note who is active."""
        for j in advisors:
            self.first_active.setdefault(j, self.episode)

    def judge_rewards(self, advisors: Sequence[int], rewards: Sequence[float | None]) -> None:
        """Note what everybody is paid, and who is afraid under an aggregation of wishes."""
        self.terms.hear(advisors, rewards)
        for j, reward in zip(advisors, rewards, strict=True):
            if reward is not None and self.aggregator.wishing[j] and self.task.advisors[j].weight * reward < 0:
                lowest = np.zeros(self.task.n)
                lowest[j] = -1.0
                mend = str(doubtful(self.task, self.aggregator, lowest))
                self.blame("fear-under-a-maximum", f"the reward is {reward:g}", mend, self.task.names[j])

    def judge_number(self, value: float, advisor: str | None, whose: str) -> bool:
        """Whether a reward is finite."""
        if math.isnan(value):
            self.blame("nan-reward", f"{whose} is NaN", "look for 0 / 0 or a missing value", advisor)
        elif math.isinf(value):
            self.blame("infinite-reward", f"{whose} is {value}", "give finite numbers", advisor)
        return math.isfinite(value)


@dataclass
class _Record:
    """An episode, or the beginning of one."""

    episode: int
    actions: list[Any] = field(default_factory=list)
    trace: list[Any] = field(default_factory=list)
    over: bool = False


def check_task(
    task: Task | gymnasium.Env | str, *, episodes: int = 8, steps: int = 2000, seed: int = 0, aggregation: str = "sum",
    agent: MultiAdvisor | None = None,
) -> CheckReport:  # fmt: skip
    """Play a task, or an environment or its id, with random actions and name what would spoil learning on it.

    `DEFECTS` lists the names.

    `aggregation` is the one to learn with: some do not suit every reward. A trained `agent` plays as well, and the
    report says where it is stuck.

    At least `episodes` episodes are started (none lasts for more than its share of the `steps`), and the first
    `episodes` of them are played again, a few times. Nothing that the task does makes the check itself fail, and the
    task can be used as before: an agent in the middle of an episode continues it.

    >>> import multiadvisor as mad
    >>> mad.check_task(mad.make("two-goal"), steps=200).ok
    True
    """
    episodes, steps = whole_number("episodes", episodes, 1), whole_number("steps", steps, 1)
    task = make(task)
    aggregator, records = aggregator_of(task, aggregation, TABLES), list[_Record]()
    subject = _subject(task, seed)
    subject.aggregator = aggregator
    with contextlib.suppress(Broken):
        _play_episodes(subject, records, episodes, steps)
        subject.checking = False
        if not subject.spoilt() and _repeat_episodes(subject, records[:episodes]) and subject.unseeded_resets:
            _repeat_pairs(subject, records[:episodes])
        _seek_end(subject, records, steps)
        _seek_absent(subject, len(records))
    subject.leave()
    if agent is not None:
        _watch(agent, episodes, subject)
    remarks = tuple(Defect(name, whose, message) for name, whose, message in subject.terms.remarks()) + _outlook(task)
    played = sum(len(record.actions) for record in records)
    return CheckReport(task.name, tuple(subject.found.values()), len(records), played, remarks)


def _watch(agent: MultiAdvisor, episodes: int, subject: Subject) -> None:
    """Let a trained agent play: where is it stuck, and who is paid at last?"""
    seen = play(agent, episodes, subject.seed)
    subject.terms.paid |= (seen.reward != 0).any(axis=0)
    if stuck := find_stuck(seen):
        first = f"the first is episode {stuck[0].episode}: {stuck[0]}"
        subject.note("stuck", f"in {len(stuck)} of {episodes} episodes of the agent, {first}")


def _outlook(task: Task) -> tuple[Defect, ...]:
    """Where several egocentric advisors would be stuck, of an environment that lists its transitions."""
    if task.n < 2 or not has_table(task):
        return ()
    try:
        mdp = enumerate_task(task, sample=0)
        held = mdp.labelled(stuck_states(solve(mdp, "egocentric", _GAMMA)))
    except BadInput:  # what is amiss is among the findings
        return ()
    if not held:
        return ()
    where = f"greedy play never earns from {among(held)} (by {mdp.known})"
    what = f"with egocentric planning at gamma = {_GAMMA:g} {where}"
    return (Defect("may-get-stuck", None, f"{what}: multiadvisor solve says from which gamma on, and what to do"),)


def _subject(task: Task, seed: int) -> Subject:
    if task.own_score:
        raise BadInput(f"task {task.name!r} has a bank of general value functions, which this check does not know yet")
    if task.adapter is not None:
        from multiadvisor.analysis.checks.environment_check import EnvironmentSubject

        return EnvironmentSubject(task, seed)
    from multiadvisor.analysis.checks.world_check import WorldSubject

    return WorldSubject(task, seed)


# ---- the plan of a check ---------------------------------------------------------------------------------------------
def _wander(subject: Subject, episode: int) -> Iterator[Any]:
    """Random actions, half of them repeated: this gets further than a walk that steps at every step."""
    generator = np.random.default_rng(int(rng.stream_key(subject.seed, rng.TRAINING, episode)))
    action: Any = 0
    for step in itertools.count():
        if step == 0 or generator.random() < 0.5:
            count, adapter = len(subject.task.actions), subject.task.adapter
            real = adapter is not None and adapter.box is not None
            action = generator.uniform(-1, 1, count) if real else int(generator.integers(count))
        yield action


def _play(
    subject: Subject, record: _Record, actions: Iterable[Any], steps: int, *, keep: bool = True, seeded: bool = True
) -> None:
    """Play an episode to its end, or for so many steps."""
    first = subject.deal(record.episode, seeded=seeded)
    record.trace.append(first)
    for action in itertools.islice(actions, steps):
        record.actions.append(action)
        record.over, happened = subject.step(action)
        if keep:
            record.trace.append(happened)
        if record.over:
            break


def _play_episodes(subject: Subject, records: list[_Record], episodes: int, steps: int) -> None:
    share, left = max(steps // episodes, 1), steps
    while left > 0:
        record = _Record(len(records))
        records.append(record)
        _play(subject, record, _wander(subject, record.episode), min(share, left), keep=len(records) <= episodes)
        left -= len(record.actions)


def _difference(one: list[Any], other: list[Any]) -> int | None:
    """The first step in which two courses of an episode differ (0: the first state), or None."""
    for step, (a, b) in enumerate(itertools.zip_longest(one, other)):
        if a != b:
            return step
    return None


def _repeat_episodes(subject: Subject, records: list[_Record]) -> bool:
    """Play episodes again: what differs although the same episode went before is random, what else differs is a leak.

    Returns whether all was the same.
    """
    leak, random = "", False
    for record in records:
        once, twice, thrice = (_again(subject, record) for _ in range(3))
        step, episode = _difference(twice, thrice), f"episode {record.episode}"
        random = random or step is not None
        if step == 0:
            what = f"{episode} began twice with the same seed and its first states differ"
            subject.note("reset-not-seeded", f"{what}: draw them from the generator that the seed sets")
        elif step is not None:
            what = f"{episode} was played twice with the same seed and actions and differs in step {step}"
            mend = "draw all chance from what the seed sets (env.np_random, or the key of a compiled world)"
            subject.note("unseeded-randomness", f"{what}: {mend}")
        elif not leak and not record.trace == once == twice:
            leak = f"{episode} with the same seed and actions went another way after another episode"
    if leak and not random:
        subject.note("leaks-between-episodes", f"{leak}: let reset set everything again")
    return not (leak or random)


def _repeat_pairs(subject: Subject, records: list[_Record]) -> None:
    """Learning seeds an environment now and then, not for every episode: the episodes after a seeded one follow from
    it."""
    for record in records:
        once, twice = (_again(subject, record) + _again(subject, record, seeded=False) for _ in range(2))
        if once != twice:
            what = f"reset() without a seed led to two different episodes after episode {record.episode}, played twice"
            mend = "make a new generator only where a seed is given, as gymnasium.Env.reset does with self.np_random"
            subject.note("reset-forgets-seed", f"{what}: {mend}")


def _again(subject: Subject, record: _Record, *, seeded: bool = True) -> list[Any]:
    copy = _Record(record.episode)
    _play(subject, copy, record.actions, len(record.actions), seeded=seeded)
    return copy.trace


def _seek_end(subject: Subject, records: list[_Record], steps: int) -> None:
    """Random actions may need long to end an episode: one more, with patience, before the end is missed."""
    if not subject.must_end or any(record.over for record in records):
        return
    last = _Record(len(records))
    _play(subject, last, _wander(subject, last.episode), _PATIENCE * steps, keep=False)
    if not last.over:
        what = f"no episode ended or was cut off, one of them in {_PATIENCE * steps} steps"
        mend = "terminate somewhere, or set a limit (gymnasium.wrappers.TimeLimit, or `limit` of a compiled task)"
        subject.note("never-ends", f"{what}: {mend}")


def _seek_absent(subject: Subject, dealt: int) -> None:
    """Advisors that never were active; where others still turn up late, the absent ones may just be rare."""
    n = subject.task.n
    subject.checking = True
    for episode in range(dealt, dealt + _DEALS):
        if len(subject.first_active) == n:
            return
        subject.deal(episode)
    if all(2 * first < dealt + _DEALS for first in subject.first_active.values()):
        for j in sorted(set(range(n)) - set(subject.first_active)):
            what = f"it had no say in any state of {dealt + _DEALS} episodes"
            mend = "correct when it is active, or check with more steps"
            subject.note("never-active", f"{what}: {mend}", subject.task.names[j])


# ---- looking at values of any kind -----------------------------------------------------------------------------------
def snapshot(value: Any) -> Any:
    """A print of a value that equals another one where the contents do, and does not change with the value."""
    try:
        return _print(value, 0)
    except Exception:  # an object that cannot even be looked at
        return type(value).__name__


def _print(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, str | bytes | bool | int):
        return value
    if isinstance(value, float):
        return value if value == value else "nan"
    if isinstance(value, np.generic):
        return _print(value.item(), depth + 1) if not isinstance(value, np.void) else value.tobytes()
    if depth > 20:  # a structure that contains itself
        return type(value).__name__
    if isinstance(value, dict):
        return "dict", tuple(sorted(((repr(key), _print(part, depth + 1)) for key, part in value.items()), key=repr))
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple(_print(part, depth + 1) for part in value)
    if isinstance(value, set | frozenset):
        return "set", frozenset(_print(part, depth + 1) for part in value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, hashlib.blake2b(np.ascontiguousarray(value).tobytes()).digest()
    if isinstance(value, np.ndarray):
        return _print(value.tolist(), depth + 1)
    return _print_of_object(value, depth)


def _print_of_object(value: Any, depth: int) -> Any:
    if hasattr(value, "__array__"):
        return _print(np.asarray(value), depth + 1)
    if hasattr(value, "__dict__"):
        return type(value).__name__, _print(vars(value), depth + 1)
    # the inherited repr is an address, which a copy does not share
    own = getattr(type(value), "__repr__", None) is not object.__repr__
    return repr(value) if own else type(value).__name__


def scalar(value: Any) -> Any:
    """What an array without axes holds; other values as they are."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value


def as_number(value: Any) -> float | None:
    """A real number, or None for what is not one."""
    value = scalar(value)
    try:
        return float(value) if isinstance(value, bool | int | float) else None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_flag(value: Any) -> bool | None:
    """True or false (1 and 0 will do), or None for what is neither."""
    value = scalar(value)
    return bool(value) if isinstance(value, bool | int) and value in (0, 1) else None


def shown(value: Any) -> str:
    """A value in a message; objects are free to fail at this, too."""
    try:
        return f"{value!r:.60}"
    except Exception:
        return f"a {type(value).__name__}"


def attempt(call: Callable[[], Any], failed: Callable[[Exception], None] = lambda error: None) -> Any:
    """What a call gives, or NOTHING where it raised."""
    try:
        return call()
    except Exception as error:
        failed(error)
        return NOTHING


NOTHING: Any = object()
