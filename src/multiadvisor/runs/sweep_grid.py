"""A sweep's grid: one small TOML file, data only. Lists are axes, single values are fixed.

>>> grid = parse_grid('task = "two-goal"\\nseeds = 3\\n[settings]\\ngamma = [0.4, 0.9]\\nplanning = "egocentric"')
>>> [(run.labels, run.seed) for run in grid.runs()][:4]
[({'gamma': 0.4}, 0), ({'gamma': 0.4}, 1), ({'gamma': 0.4}, 2), ({'gamma': 0.9}, 0)]
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from multiadvisor.agent import MultiAdvisor
from multiadvisor.envs.names import refuse_numbers_for_names
from multiadvisor.envs.registry import FILES
from multiadvisor.envs.worlds.board import read_maze
from multiadvisor.errors import BadInput, short, unknown
from multiadvisor.learners.kinds import LEARNERS
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.training import RunConfig
from multiadvisor.settings import Schedule, Settings, whole_number
from multiadvisor.storage.files import plainly
from multiadvisor.task import BY_ADVISOR

FORMAT = 1
LEARNER = "learner"
SECTIONS = ("options", "settings", LEARNER, *BY_ADVISOR, "schedule")
_TOP = ("format", "title", "task", "seeds", *SECTIONS)
_LARGEST_FILE = 1 << 20
_MOST_RUNS = 1_000_000


def _fields(section: str) -> list[tuple[type[Any], dataclasses.Field[Any]]]:
    """What may stand in a section, and in which class: settings of several learners may share a name."""
    learners = tuple(kind.settings for kind in LEARNERS.values())
    classes = {"settings": (Settings,), "schedule": (Schedule,), LEARNER: learners}.get(section, ())
    return [(kind, item) for kind in classes for item in dataclasses.fields(kind)]


def _is_list(section: str, name: str) -> bool:
    """Whether its values are lists: several of them are a list of lists."""
    defaults = [item.default for _, item in _fields(section) if item.name == name]
    return any(isinstance(default, tuple) for default in defaults) or (section, name) == ("options", "components")


class Span(NamedTuple):
    """Where a search may look for a value."""

    low: float
    high: float
    log: bool


class Axis(NamedTuple):
    """One name and the values it takes."""

    section: str
    name: str
    values: tuple[Any, ...]
    span: Span | None = None
    """Of a range: where its value is searched; `values` has the lowest."""

    @property
    def label(self) -> str:
        """What people call it."""
        if (self.section, self.name) == (LEARNER, "name"):
            return LEARNER
        return f"{BY_ADVISOR[self.section]} of {self.name}" if self.section in BY_ADVISOR else self.name


class SweepRun(NamedTuple):
    """One cell of the grid with one seed."""

    job: Job
    labels: dict[str, Any]
    """The values of the axes that vary, the seed left out."""
    seed: int

    def __str__(self) -> str:
        labels = {**self.labels, "seed": self.seed}
        return ", ".join(f"{short(name)} {short(str(value))}" for name, value in labels.items())


@dataclass(frozen=True)
class SweepGrid:
    """What a sweep consists of."""

    title: str
    axes: tuple[Axis, ...]
    """Tasks, then the sections in the order of the file, then the ranges."""
    seeds: tuple[int, ...]

    @property
    def ranges(self) -> tuple[Axis, ...]:
        """The axes whose values are searched."""
        return tuple(axis for axis in self.axes if axis.span is not None)

    @property
    def varying(self) -> tuple[Axis, ...]:
        """The axes with more than one value."""
        return tuple(axis for axis in self.axes if len(axis.values) > 1)

    def cells(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Every combination as (labels, config without a seed)."""
        found = []
        for values in itertools.product(*(axis.values for axis in self.axes)):
            config: dict[str, Any] = {"settings": {}}
            pairs = list(zip(self.axes, values, strict=True))
            for axis, value in pairs:
                (config if axis.section == "task" else _section(config, axis.section))[axis.name] = value
            found.append(({axis.label: shown(value) for axis, value in pairs if len(axis.values) > 1}, config))
        return found

    def at_start(self) -> SweepGrid:
        """The grid with the lowest value of each range."""
        return dataclasses.replace(self, axes=tuple(axis._replace(span=None) for axis in self.axes))

    def runs(self) -> list[SweepRun]:
        """Every run, complete and checked; seeds step fastest."""
        if self.ranges:
            raise BadInput(f"{self.ranges[0].name} is a range: add --search optuna, or give values")
        found: dict[str, SweepRun] = {}
        for labels, config in self.cells():
            parsed = RunConfig.parse(config)
            for seed in self.seeds:
                settings = dataclasses.replace(parsed.settings, seed=seed)
                whole = dataclasses.replace(parsed, settings=settings)
                run = SweepRun(Job("train", whole.as_config()), labels, seed)
                if run.job.id in found:
                    raise BadInput(f"the run with {run} appears twice: leave one out")
                found[run.job.id] = run
        return list(found.values())

    def check_tasks(self) -> list[str]:
        """Make every task once: what cannot be made is refused before anything starts. What there is to say of them."""
        seen, notes = set(), []
        for _, config in self.cells():
            run = RunConfig.parse(config)
            settings = run.settings
            key = repr((run.task, run.options, run.own, settings.learner, settings.planning, settings.aggregation))
            if key not in seen:
                seen.add(key)
                task = run.make_task()
                notes += [task.note] if task.note else []
                agent = MultiAdvisor(task, settings)  # what cannot learn this is refused now
                if agent.settings.learner_settings.network:
                    refuse_numbers_for_names(task)
            if task.endless and (task.gammas(settings.gamma) == 1).any():
                raise BadInput(f"gamma is 1 and no episode of {task.name!r} ever ends: choose it below 1")
        return list(dict.fromkeys(notes))

    def as_data(self) -> dict[str, Any]:
        """For the frozen copy: what a file says, as a list, as the order of the axes counts."""
        values = [[axis.section, axis.name, axis.span._asdict() if axis.span else list(axis.values)]
                  for axis in self.axes]  # fmt: skip
        return {"title": self.title, "seeds": list(self.seeds), "values": values}

    @classmethod
    def from_data(cls, data: Any) -> SweepGrid:
        """The grid of a frozen copy."""
        try:
            tables: dict[str, Any] = {key: data[key] for key in ("title", "seeds")}
            for section, name, value in data["values"]:
                tables.setdefault(str(section), {})[str(name)] = value
            return _grid({**tables, "task": tables["task"]["task"]})
        except (KeyError, TypeError, ValueError) as error:
            broken = BadInput("the frozen copy of the sweep lacks a field: restore it from a copy")
            raise error if isinstance(error, BadInput) else broken from None


def _section(config: dict[str, Any], section: str) -> dict[str, Any]:
    """Where a section's values stand in the configuration of a run: those of the learner are a setting too."""
    found: dict[str, Any] = (config["settings"] if section == LEARNER else config).setdefault(section, {})
    return found


def shown(value: Any) -> Any:
    """A value as people read it: 64,64 for the layers of a network, the size and a digest for a maze.

    >>> shown("P..\\n..G\\n")
    '2 x 3 #7c01a1'
    """
    if isinstance(value, str) and "\n" in value:
        lines = value.splitlines()
        return f"{len(lines)} x {len(lines[0])} #{hashlib.sha256(value.encode()).hexdigest()[:6]}"
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else value


# ---- reading ---------------------------------------------------------------------------------------------------------
def read_grid(path: Path) -> SweepGrid:
    """The grid of a file; whatever is wrong is said with the file's name."""
    if path.is_dir():
        raise BadInput(f"{str(path)!r} is a folder: name a TOML file, or give sweep status, results or plot before it")
    with plainly(f"read {str(path)!r}"):
        if path.stat().st_size > _LARGEST_FILE:
            raise BadInput(f"{str(path)!r} is too large for a grid file")
        content = path.read_bytes()
    try:
        return parse_grid(content.decode("utf-8"), path.parent)
    except UnicodeDecodeError:
        raise BadInput(f"{str(path)!r} is not UTF-8 text: a grid is a TOML file") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def parse_grid(text: str, home: Path = Path()) -> SweepGrid:
    """A grid from TOML; files that it names are looked for from `home` on."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"this is not TOML: {' '.join(str(error).split())[:200]}") from None
    return grid_of(data, home)


def grid_of(data: Mapping[str, Any], home: Path = Path()) -> SweepGrid:
    """A grid from what a file would hold, whose runs can be made."""
    grid = _grid(data, home)
    grid.at_start().runs()
    return grid


def _grid(data: Mapping[str, Any], home: Path = Path()) -> SweepGrid:
    """The grid that the tables of a file describe."""
    for key in data:
        if key not in _TOP:
            for section, kind in (("schedule", Schedule), ("settings", Settings)):
                if key in {item.name for item in dataclasses.fields(kind)}:
                    raise BadInput(f"{key!r} is outside of its table: write it below [{section}]")
            raise unknown("key of a sweep", key, _TOP)
    form = whole_number("format", data.get("format", FORMAT), 1)
    if form > FORMAT:
        raise BadInput(f"this grid has format {form}, of a newer multiadvisor: upgrade to use it")
    title = data.get("title", "")
    if not isinstance(title, str) or len(title) > 200 or not title.isprintable():
        raise BadInput("title is no short text of one line: give one, or leave it out")
    if "task" not in data:
        raise BadInput("the sweep has no task: name one, see `multiadvisor tasks`")
    axes, ranges = [_axis("task", "task", data["task"])], []
    for section in SECTIONS:
        table = data.get(section, {})
        if not isinstance(table, dict):
            raise BadInput(f"{section} is {short(repr(table))}: write it as a table, [{section}]")
        if section == LEARNER and section in data and "name" not in table:
            raise BadInput(f'[learner] has no name: write which one, name = "dqn"; there are {", ".join(LEARNERS)}')
        if section == "settings" and LEARNER in table and LEARNER in data:
            raise BadInput("learner is in [settings], and there is a table [learner] as well: leave one out")
        for name, value in table.items():
            if section == "settings" and name == LEARNER and isinstance(value, dict):
                raise BadInput("learner is a table in [settings]: write it as a table of its own, [learner]")
            if section == "settings" and name == "seed":
                raise BadInput("seed is in [settings]: write `seeds = 5`, or a list of seeds, at the top")
            if isinstance(value, dict):
                ranges.append(_range(section, name, value))
            else:
                axes.append(_axis(section, name, value, home))
    grid = SweepGrid(title, (*axes, *ranges), _seeds(data.get("seeds", 1)))
    if (size := math.prod(len(axis.values) for axis in axes) * len(grid.seeds)) > _MOST_RUNS:
        raise BadInput(f"the grid has {size:,} runs: a sweep takes at most {_MOST_RUNS:,}")
    return grid


def _axis(section: str, name: str, value: Any, home: Path = Path()) -> Axis:
    if _is_list(section, name):
        several = isinstance(value, list) and any(isinstance(item, list | tuple) for item in value)
        lists = value if several else [value]
        if not all(isinstance(item, list | tuple) for item in lists):
            raise BadInput(f"{name} is {short(repr(value))}: give a list, or a list of lists")
        if name == "components":
            return Axis(section, name, tuple(tuple(map(str, item)) for item in lists))
        return Axis(section, name, tuple(tuple(whole_number(name, each, 1) for each in item) for item in lists))
    values = [*value] if isinstance(value, list | tuple) else [value]
    if not values:
        raise BadInput(f"{name} is an empty list: give at least one value")
    if section == "options" and name in FILES:  # a run is known by what it reads, wherever that lay
        values = [_text(home, item) if isinstance(item, str) else item for item in values]
    return Axis(section, name, tuple(values))


def _text(home: Path, name: str) -> str:
    """What the file holds; a frozen copy of a grid has the text already."""
    return name if "\n" in name else "\n".join(read_maze(home / name).strip("\r\n").splitlines()) + "\n"


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, list):
        seeds = tuple(whole_number("a seed", seed) for seed in value)
        if not seeds:
            raise BadInput("seeds is an empty list: give at least one, or a count")
        return seeds
    count = whole_number("seeds", value, 1)
    if count > _MOST_RUNS:
        raise BadInput(f"seeds is {count}: a sweep takes at most {_MOST_RUNS:,} runs")
    return tuple(range(count))


def _range(section: str, name: str, given: dict[str, Any]) -> Axis:
    known = [(kind, item) for kind, item in _fields(section) if item.name == name and item.metadata.get("searched")]
    if section not in BY_ADVISOR and not known:
        fields = [item for part in ("settings", LEARNER) for _, item in _fields(part)]
        names = ", ".join(dict.fromkeys(item.name for item in fields if item.metadata.get("searched")))
        raise BadInput(f"{name} cannot be searched: ranges are for {names} and {', '.join(BY_ADVISOR)}")
    for key in given:
        if key not in ("low", "high", "log"):
            raise unknown(f"key of the range {name}", key, ("low", "high", "log"))
    numbers = [given.get("low"), given.get("high")]
    if any(isinstance(n, bool) or not isinstance(n, int | float) or not abs(n) < 1e18 for n in numbers):
        raise BadInput(f"the range {name} is {short(repr(given))}: give it low and high, as finite numbers")
    low, high = float(numbers[0]), float(numbers[1])  # type: ignore[arg-type]
    log = given.get("log", False)
    if not isinstance(log, bool) or not low < high or (log and low <= 0):
        raise BadInput(
            f"the range {name} is {short(repr(given))}: low must be below high, and above 0 where log is true"
        )
    whole = any(field.type in (int, "int") for _, field in known)
    for kind, _ in known:
        for value in (low, high):
            kind(**{name: int(value) if whole else value})  # refuses what no run could have
    return Axis(section, name, (math.ceil(low) if whole else low,), Span(low, high, log))
