"""What a study is: jobs that are plain data, and the findings and figures made of their results.

Each module of this package that has a `STUDY` is one; nobody lists them by hand. The paper's studies make one report
together, and so do the systems of the literature, a page each; every other study has a report of its own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.core.checkout import beside
from multiadvisor.errors import BadInput, unknown
from multiadvisor.runs.jobs import Job, experiments
from multiadvisor.settings import Schedule, whole_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from multiadvisor.studies.claims import JudgedClaim

ALL, SYSTEMS = "all", "systems"  # reports of several studies: the paper, the literature
LAST = 10  # epochs at the end of a run whose mean is its final score
FULL_EPOCHS = 50  # of the paper's Pac-Boy runs
FULL_VALUE_EPOCHS = 500  # of its value-function networks
FRESH = 1_000  # the first seed that was not used to choose or to try anything
MOST = {"seeds": 10_000, "epochs": 100_000}  # beyond that the list of runs alone would fill the memory
Run = Callable[[int], Job]
"""What is run with a seed."""
Panel = Callable[["Axes"], "Axes"]
"""Draws on one axis, and returns it."""
Table = tuple[tuple[str, ...], ...]
"""Rows of text, the head first."""


def panel(plot: str, *arguments: Any, **style: Any) -> Panel:
    """A panel by the name of its function in `viz.plots` or `viz.paper_plots`; matplotlib waits until it is drawn."""

    def draw(axis: Axes) -> Axes:
        from multiadvisor.viz import paper_plots, plots

        home = plots if hasattr(plots, plot) else paper_plots
        drawn: Axes = getattr(home, plot)(*arguments, axis, **style)
        return drawn

    return draw


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


def unique(jobs: Iterable[Job]) -> list[Job]:
    """Each job once, in the order of first mention: studies share runs."""
    return list(dict.fromkeys(jobs))


# ---- how much is run -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Plan:
    """How much of everything is run; a report is a function of its plan and the version."""

    what: str = ALL
    """The study, or a report of several."""
    full: bool = False
    """Everything at the paper's length."""
    seeds: int = 10
    """Runs of each setting."""
    first_seed: int = 0
    epochs: int = FULL_EPOCHS
    transitions: int = 20_000
    episodes: int = 80
    rules: str = "paper"
    """Of Pac-Boy; the deviations look at both."""
    reading: str = ""
    """Of the value-function experiment; empty: all."""
    value_seeds: int = 8
    """Of the value-function experiment, in the default reading."""
    value_epochs: int = FULL_VALUE_EPOCHS
    literal_seeds: int = 2
    """The same in each of the literal readings."""
    dqn_seeds: int = 16
    """Of new runs of DQN-clipped, which are made with --full only."""
    boards: int = 2000
    """Random boards looked at by the exact solver."""
    mdps: int = 200
    """Random finite MDPs on which statements of the theory are tried."""
    wide_seeds: int = 3
    """Of what is varied widely: mazes, and the settings of linear Q-learning."""
    maze_epochs: int = 20

    @classmethod
    def of(
        cls, what: str, full: bool = False, seeds: int | None = None, epochs: int | None = None, rules: str = "paper",
        first_seed: int | None = None, reading: str | None = None,
    ) -> Plan:  # fmt: skip
        """What the command's flags ask for; --seeds limits the expensive experiments as well."""
        study = chosen(what)[0]
        count = study.seeds[full] if seeds is None else seeds
        long = FULL_EPOCHS if epochs is None else epochs
        start = study.first_seed if first_seed is None else first_seed
        whole_number("seeds", count, study.least_seeds, MOST["seeds"])
        whole_number("epochs", long, 1, MOST["epochs"])
        whole_number("first_seed", start)
        reading = reading or ("default" if "reading" in study.flags else "")
        plan = cls(what, full, count, start, long, rules=rules, reading=reading)
        if full:
            return replace(plan, value_seeds=count, literal_seeds=count, dqn_seeds=cls.dqn_seeds if seeds is None
                           else count, mdps=500, wide_seeds=min(count, cls.wide_seeds), maze_epochs=long)  # fmt: skip
        return replace(plan, value_seeds=min(count, cls.value_seeds), literal_seeds=min(count, cls.literal_seeds),
                       wide_seeds=min(count, cls.wide_seeds), maze_epochs=min(long, cls.maze_epochs))  # fmt: skip

    @property
    def each(self) -> range:
        """The seeds of the runs."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def schedule(self, epochs: int | None = None) -> dict[str, int]:
        """The schedule of a run: as many evaluations as epochs."""
        steps = (self.epochs if epochs is None else epochs) * self.transitions
        return {"steps": steps, "eval_every": self.transitions, "eval_episodes": self.episodes}

    @property
    def last(self) -> int:
        """How many epochs make a final figure."""
        return min(LAST, self.epochs)


# ---- what came out ---------------------------------------------------------------------------------------------------
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

    def over(self, run: Run, key: str) -> np.ndarray:
        """[seeds, ...]: one figure of the result of each seed's job."""
        return np.array([self.result(run(seed))[key] for seed in self.plan.each], float)

    def curve(self, run: Run, measure: str = "score") -> np.ndarray:
        """[seeds, evaluations] of one measure of each seed's run."""
        return np.array([curve_of(self.result(run(seed)), measure) for seed in self.plan.each], float)


def curve_of(result: dict[str, Any], measure: str) -> list[float]:
    """[evaluations] of one measure of a run, which may be one of the world's own metrics."""
    return [one[measure] if measure in one else one["metrics"][measure] for one in result["evaluations"]]


def final_of(result: dict[str, Any], measure: str = "score") -> float:
    """The mean of a run's last epochs."""
    return float(np.mean(curve_of(result, measure)[-LAST:]))


def evaluated_at(schedule: dict[str, int]) -> np.ndarray:
    """After how many steps a run of this schedule is evaluated [evaluations].

    >>> evaluated_at({"steps": 30, "eval_every": 10}).tolist()
    [10, 20, 30]
    """
    plan = Schedule(**schedule)
    return np.array([plan.due(number) for number in range(1, plan.evaluations + 1)])


def epochs_of_job(job: Job) -> tuple[int, int] | None:
    """How many epochs a job learns for, and how many the paper's runs did; None where nothing is learned so."""
    config = job.config.get("run", job.config)
    if job.kind == "value-function":
        return config["epochs"], FULL_VALUE_EPOCHS
    schedule = config.get("schedule")
    return None if schedule is None else (Schedule(**schedule).evaluations, FULL_EPOCHS)


def _home(job: Job, plan: Plan) -> str:
    """What would have this job: the first of the paper's studies, or the full length of one that is alone."""
    if chosen(plan.what)[0].report != ALL:
        return f"{plan.what} --full"
    return next((name for name, jobs in _few_jobs(plan).items() if job in jobs), ALL)


@lru_cache(maxsize=4)
def _few_jobs(plan: Plan) -> dict[str, frozenset[Job]]:
    """By study of the paper, the jobs of a few seeds, which lack the report's seed 0 too where it is missing."""
    few = replace(plan, seeds=2, reading="", value_seeds=1, literal_seeds=1, dqn_seeds=2)
    return {study.name: frozenset(study.jobs(few)) for study in chosen(ALL)}


# ---- a study ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Figure:
    """A figure, a table or an episode: a name for files, a title, a text made of the numbers, and what is shown."""

    name: str
    title: str
    text: str = ""
    panels: tuple[Panel, ...] = ()
    size: tuple[float, float] = (4.8, 3.9)
    """Inches: readable in one column of a phone."""
    across: int = 0
    """At most so many panels in a row; 0: all of them."""
    table: Table = ()
    episode: dict[str, Any] | None = None
    """A recorded episode of Pac-Boy, which becomes a video."""
    svg: str = ""
    """The panels, once they are drawn."""
    gif: bytes = b""
    """The episode, once it is drawn."""


@dataclass(frozen=True)
class Literature:
    """Where a system of the literature comes from, and its row in the map."""

    source: str
    """Authors and year."""
    behaviour: str
    """The behaviour it is known for, in a sentence."""
    advisor: str
    """What its advisors are after."""
    view: str
    planning: str
    aggregator: str
    guarantee: str
    choices: Sequence[str] = ()
    """What its paper leaves open, or does otherwise, and what was chosen here."""


@dataclass(frozen=True)
class Study:
    """One experiment: jobs, findings, figures, a page."""

    name: str
    title: str
    order: int
    jobs: Callable[[Plan], list[Job]]
    figures: Callable[[Evidence], list[Figure]]
    findings: Callable[[Evidence], list[JudgedClaim]] = lambda evidence: []
    """What the runs show; of a part of the report on the paper, all the paper's claims are judged instead."""
    about: str = ""
    """What it is, in a line, for the command; empty: its title."""
    report: str = ""
    """The report of several studies that it is a part of; empty: it has one of its own."""
    summary: Callable[[Evidence], list[str]] = lambda evidence: []
    """The first words of its own page."""
    data: Callable[[Evidence], dict[str, Any]] = lambda evidence: {}
    """What the command's JSON says besides the findings."""
    given: Callable[[Path], dict[str, dict[str, Any]]] | None = None
    """Reads results that were computed elsewhere, by the id of their job (`--from`)."""
    only_given: bool = False
    """Where results are given, nothing more is run."""
    seeds: tuple[int, int] = (10, 20)
    """Of each setting, where nobody asks for another number; the second with --full."""
    first_seed: int = 0
    least_seeds: int = 2
    flags: tuple[str, ...] = ("full", "epochs", "rules")
    """Flags of the command that mean something to it, besides those of all studies."""
    needs: tuple[str, ...] = ("plots",)
    """Optional packages without which nothing can be shown."""
    runs_need: tuple[str, ...] = ()
    """Those without which nothing can be run."""
    literature: Literature | None = None
    papers: bool = False
    """Its claims are judged like the paper's, and its page is a page on the paper."""
    shortened: str = ""
    """What is not run without --full."""


def system(
    name: str, title: str, order: int, runs: Sequence[Run], findings: Callable[[Evidence], list[JudgedClaim]],
    panels: Callable[[Evidence], list[Panel]], size: tuple[float, float] = Figure.size,
    literature: Literature | None = None,
) -> Study:  # fmt: skip
    """A system of the literature as a study: what is run with every seed, what that shows, and the panels of a figure.

    Its seeds are those on which nothing was chosen. What is known of shipped ones stands in systems/literature.toml.
    """
    literature = literature or Literature(**_literature()[name])

    def jobs(plan: Plan) -> list[Job]:
        return unique(run(seed) for run in runs for seed in plan.each)

    def figures(evidence: Evidence) -> list[Figure]:
        return [Figure(name, title, panels=tuple(panels(evidence)), size=size)]

    return Study(name, title, order, jobs, figures, findings, f"{title} ({literature.source})", SYSTEMS,
                 first_seed=FRESH, flags=(), literature=literature)  # fmt: skip


@lru_cache(maxsize=1)
def _literature() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "systems" / "literature.toml").read_text("utf-8"))


OWN: dict[str, Study] = {}


def register_study(study: Study) -> Study:
    """A study of one's own, for `multiadvisor reproduce NAME --import FILE.py`."""
    taken = {ALL, SYSTEMS, *OWN, *(one.name for one in shipped())}
    if not re.fullmatch(r"[a-z][a-z0-9-]*", study.name) or study.name in taken:
        raise BadInput(
            f"{study.name!r} cannot name a study: choose another name, of lower-case letters, digits and hyphens"
        )
    OWN[study.name] = study
    return study


def shipped() -> list[Study]:
    """All studies: the paper's, those alone, which come with a checkout, the systems, each in its order."""
    groups = (ALL, "", SYSTEMS)
    found = [module.STUDY for module in experiments() if hasattr(module, "STUDY")]
    return sorted(found, key=lambda study: (groups.index(study.report), study.order))


def systems() -> dict[str, Study]:
    """The systems of the literature by name, in the order of the map."""
    return {study.name: study for study in shipped() if study.report == SYSTEMS}


def chosen(what: str = ALL) -> list[Study]:
    """The study of that name, or the studies of a report."""
    known = [*shipped(), *OWN.values()]
    found = [study for study in known if what in (study.name, study.report)]
    if not found:
        error = unknown("study", what, (ALL, SYSTEMS, *(study.name for study in known)))
        raise error if beside("studies") else BadInput(f"{error}; more are in the repository: run it from a checkout")
    return found
