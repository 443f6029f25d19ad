"""What an experiment of the report is: jobs that are plain data, results that are plain data, figures made of them.

Each module of this package that has a `PART` is one experiment; nobody lists them by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from multiadvisor.errors import BadInput
from multiadvisor.runs.jobs import Job, experiments
from multiadvisor.settings import Schedule

LAST = 10  # epochs at the end of a run whose mean is its final score
FEW_SEEDS = 3  # of what is beyond the paper, where the full length is not asked for
FULL_EPOCHS = 50  # of the paper's Pac-Boy runs
FULL_VALUE_EPOCHS = 500  # of its value-function networks
MOST = {"seeds": 10_000, "epochs": 100_000}  # beyond that the list of runs alone would fill the memory


def many(count: int, thing: str) -> str:
    """So many of a thing.

    >>> many(1, "seed"), many(20_000, "epoch")
    ('1 seed', '20,000 epochs')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def stretch(which: str, count: int, of: int) -> str:
    """Some epochs of a run in words.

    >>> stretch("last", 10, 50), stretch("last", 2, 2), stretch("first", 1, 1)
    ('the last 10 epochs', 'all 2 epochs', 'the only epoch')
    """
    if of == 1:
        return "the only epoch"
    if count == of:
        return f"all {of} epochs"
    return f"the {which} epoch" if count == 1 else f"the {which} {count} epochs"


@dataclass(frozen=True)
class Plan:
    """How much of everything is run; a report is a function of its plan and the version."""

    what: str = "all"
    """The experiment, or all."""
    full: bool = False
    """Everything at the paper's length."""
    seeds: int = 10
    """Runs of each tabular setting."""
    epochs: int = FULL_EPOCHS
    transitions: int = 20_000
    episodes: int = 80
    rules: str = "paper"
    """Of Pac-Boy; the deviations look at both."""
    value_seeds: int = 8
    """Of the value-function experiment, in the default reading."""
    value_epochs: int = FULL_VALUE_EPOCHS
    literal_seeds: int = 4
    """The same in the literal reading."""
    dqn_seeds: int = 2
    dqn_epochs: int = 12
    boards: int = 2000
    """Random boards looked at by the exact solver."""
    mdps: int = 200
    """Random finite MDPs on which statements of the theory are tried."""

    def __post_init__(self) -> None:
        for name in ("seeds", "dqn_seeds"):
            if getattr(self, name) < 2:
                raise BadInput(f"{name.replace('_', '-')} is {getattr(self, name)}: an interval needs at least 2")
        for name in ("epochs", "transitions", "episodes", "value_seeds", "dqn_epochs", "boards", "mdps"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name.replace('_', '-')} is {getattr(self, name)}: give at least 1")
        for name, most in MOST.items():
            if getattr(self, name) > most:
                raise BadInput(f"{name} is {getattr(self, name)}: give at most {most:,}")

    @classmethod
    def of(cls, what: str, full: bool, seeds: int | None, epochs: int | None, rules: str) -> Plan:
        """What the command's flags ask for; --seeds limits the expensive experiments as well."""
        base = cls(what, full, rules=rules)
        if what == "beyond":  # a report of its own, without the expensive experiments
            count = (base.seeds if full else FEW_SEEDS) if seeds is None else seeds
            return cls(what, full, count, base.epochs if epochs is None else epochs, rules=rules)
        count = base.seeds if seeds is None else seeds
        long = base.epochs if epochs is None else epochs
        if full:
            most = count if seeds is not None else None
            return cls(what, True, most or 20, long, rules=rules, value_seeds=most or 20, literal_seeds=most or 20,
                       dqn_seeds=most or 5, dqn_epochs=long, mdps=500)  # fmt: skip
        return cls(what, False, count, long, rules=rules, value_seeds=min(count, base.value_seeds),
                   literal_seeds=min(count, base.literal_seeds), dqn_seeds=min(count, base.dqn_seeds),
                   dqn_epochs=min(long, base.dqn_epochs))  # fmt: skip

    def schedule(self, epochs: int | None = None) -> dict[str, int]:
        """The schedule of a run: as many evaluations as epochs."""
        steps = (self.epochs if epochs is None else epochs) * self.transitions
        return {"steps": steps, "eval_every": self.transitions, "eval_episodes": self.episodes}

    @property
    def last(self) -> int:
        """How many epochs make a final figure."""
        return min(LAST, self.epochs)

    @property
    def dqn_last(self) -> int:
        """The same for DQN-clipped: a fifth of its epochs, two at least where there are two."""
        return min(max(2, min(LAST, self.dqn_epochs // 5)), self.dqn_epochs)


class MissingResult(LookupError):
    """A result that this plan did not ask for, or that could not be had; the message says why."""


@dataclass(frozen=True)
class Evidence:
    """The results of a plan, found by their job."""

    plan: Plan
    results: dict[str, dict[str, Any]] = field(repr=False)
    """By the jobs' id."""

    def result(self, job: Job) -> dict[str, Any]:
        """What the job gave."""
        try:
            return self.results[job.id]
        except KeyError:
            raise MissingResult(f"needs `multiadvisor reproduce {_home(job, self.plan)}`") from None


def epochs_of_job(job: Job) -> tuple[int, int] | None:
    """How many epochs a job learns for, and how many the paper's runs did; None where nothing is learned so."""
    config = job.config.get("run", job.config)
    if job.kind == "value-function":
        return config["epochs"], FULL_VALUE_EPOCHS
    schedule = config.get("schedule")
    return None if schedule is None else (Schedule(**schedule).evaluations, FULL_EPOCHS)


def _home(job: Job, plan: Plan) -> str:
    """The first experiment whose report has this job; that of value functions has none of its own."""
    few = replace(plan, seeds=2, value_seeds=1, literal_seeds=1, dqn_seeds=2)  # what lacks a setting lacks its seed 0
    homes = (part.name for part in parts() if part.name != "value-function" and job in part.jobs(few))
    return "beyond --full" if job.kind in ("scheme", "tours") else next(homes, "all")


@dataclass(frozen=True)
class Figure:
    """A figure of the report: a name for files, a title, a text made of the numbers, and how to draw it."""

    name: str
    title: str
    text: str
    draw: Callable[[], Any] | None = None
    """Draws it with matplotlib; None where the text, or a table, is all."""
    table: tuple[tuple[str, ...], ...] = ()
    """Rows of text, the head first."""


@dataclass(frozen=True)
class Video:
    """An episode of the report: a name for files, a title, a text made of the numbers, and the recorded episode."""

    name: str
    title: str
    text: str
    trace: dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One experiment of the report."""

    name: str
    title: str
    order: int
    jobs: Callable[[Plan], list[Job]]
    figures: Callable[[Evidence], list[Figure]] = lambda evidence: []
    videos: Callable[[Evidence], list[Video]] = lambda evidence: []
    about: str = ""
    """What it is, in a line, for the command; empty: its title."""
    alone: bool = False
    """It has a report of its own, and is no part of the paper's."""


OWN: dict[str, Part] = {}


def register_part(part: Part) -> Part:
    """An experiment of one's own, for `multiadvisor reproduce NAME --import FILE.py`; "all" leaves it out."""
    taken = {"all", *OWN, *(part.name for part in shipped())}
    if not re.fullmatch(r"[a-z][a-z0-9-]*", part.name) or part.name in taken:
        raise BadInput(
            f"{part.name!r} cannot name an experiment: choose another name, of lower-case letters, digits and hyphens"
        )
    OWN[part.name] = part
    return part


def shipped() -> list[Part]:
    """All experiments of this package, in the report's order."""
    return sorted((m.PART for m in experiments() if hasattr(m, "PART")), key=lambda part: part.order)


def parts(what: str = "all") -> list[Part]:
    """The paper's experiments, or the one of that name, in the report's order."""
    if what in OWN:
        return [OWN[what]]
    return [part for part in shipped() if part.name == what or (what == "all" and not part.alone)]


def unique(jobs: Iterable[Job]) -> list[Job]:
    """Each job once, in the order of first mention: experiments share runs."""
    return list(dict.fromkeys(jobs))
