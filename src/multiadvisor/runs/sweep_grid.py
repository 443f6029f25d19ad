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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.optional_dependencies import require
from multiadvisor.envs.components import refuse_numbers_for_names
from multiadvisor.envs.registry import DEFAULTS, FILES
from multiadvisor.envs.worlds.board import read_maze
from multiadvisor.errors import BadInput, short, unknown
from multiadvisor.learners.registry import LEARNERS, kind_of, resolved
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.training import RECORDS, RunConfig
from multiadvisor.settings import Schedule, Settings, whole_number
from multiadvisor.task import BY_ADVISOR, Task

FORMAT = 1
LEARNER = "learner"
SECTIONS = ("options", "settings", LEARNER, *BY_ADVISOR, "schedule")
_TOP = ("format", "title", "task", "seeds", "record", *SECTIONS)
_LARGEST_FILE = 1 << 20
_MOST_RUNS = 1_000_000


def _learners_fields(name: str) -> list[dataclasses.Field[Any]]:
    """The field of this name of every learner that has one."""
    return [kind.options()[name] for kind in LEARNERS.values() if name in kind.options()]


def _is_list(section: str, name: str) -> bool:
    """Whether its values are lists: several of them are a list of lists."""
    if section == LEARNER:
        return any(isinstance(item.default, tuple) for item in _learners_fields(name))
    return (section, name) == ("options", "components")


def _label(section: str, name: str) -> str:
    if (section, name) == (LEARNER, "name"):
        return LEARNER
    return f"{BY_ADVISOR[section]} of {name}" if section in BY_ADVISOR else name


class Axis(NamedTuple):
    """One name and the values it takes."""

    section: str
    name: str
    values: tuple[Any, ...]

    @property
    def label(self) -> str:
        """What people call it."""
        return _label(self.section, self.name)


class Range(NamedTuple):
    """One name and where a search may look for its value."""

    section: str
    name: str
    low: float
    high: float
    log: bool

    @property
    def label(self) -> str:
        """What people call it."""
        return _label(self.section, self.name)


class Run(NamedTuple):
    """One cell of the grid with one seed."""

    job: Job
    labels: dict[str, Any]
    """The values of the axes that vary, the seed left out."""
    seed: int


@dataclass(frozen=True)
class Grid:
    """What a sweep consists of."""

    title: str
    axes: tuple[Axis, ...]
    """Tasks, then the sections in the order of the file."""
    seeds: tuple[int, ...]
    record: str = "last"
    ranges: tuple[Range, ...] = ()

    @property
    def varying(self) -> tuple[Axis, ...]:
        """The axes with more than one value."""
        return tuple(axis for axis in self.axes if len(axis.values) > 1)

    def cells(self, chosen: dict[tuple[str, str], Any] | None = None) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Every combination as (labels, config without a seed); `chosen` has values for the ranges."""
        found = []
        varying = {axis for axis in self.axes if len(axis.values) > 1}
        for values in itertools.product(*(axis.values for axis in self.axes)):
            config: dict[str, Any] = {"record": self.record, "settings": {}}
            labels = {}
            for axis, value in zip(self.axes, values, strict=True):
                if axis.section == "task":
                    config["task"] = value
                else:
                    _section(config, axis.section)[axis.name] = value
                if axis in varying:
                    labels[axis.label] = shown(value)
            for (section, name), value in (chosen or {}).items():
                _section(config, section)[name] = value
            found.append((labels, config))
        return found

    def runs(self, chosen: dict[tuple[str, str], Any] | None = None) -> list[Run]:
        """Every run, complete and checked; seeds step fastest."""
        if self.ranges and chosen is None:
            first = self.ranges[0]
            raise BadInput(f"{first.name} is a range: add --search optuna, or give values")
        found: dict[str, Run] = {}
        for labels, config in self.cells(chosen):
            parsed = RunConfig.parse(config)
            for seed in self.seeds:
                settings = dataclasses.replace(parsed.settings, seed=seed)
                whole = dataclasses.replace(parsed, settings=settings)
                run = Run(Job("train", whole.as_config()), labels, seed)
                if run.job.id in found:
                    raise BadInput(f"the run with {in_words({**labels, 'seed': seed})} appears twice: leave one out")
                found[run.job.id] = run
        return list(found.values())

    def check_tasks(self) -> list[str]:
        """Make every task once: what cannot be made is refused before anything starts. What there is to say of them."""
        seen, notes = set(), []
        for _, config in self.cells({(item.section, item.name): _start(item) for item in self.ranges}):
            run = RunConfig.parse(config)
            settings = run.settings
            key = repr((run.task, run.options, run.own, settings.learner, settings.planning, settings.aggregation))
            if key not in seen:
                seen.add(key)
                task = run.make_task()
                refuse_unaggregated(task, config)
                notes += [task.note] if task.note else []
                own = resolved(task, settings).learner_settings
                if own.network:
                    require(kind_of(own).extra)
                    refuse_numbers_for_names(task)
                MultiAdvisor(task, settings)  # what cannot learn this is refused now
            if task.endless and (task.gammas(settings.gamma) == 1).any():
                raise BadInput(f"gamma is 1 and no episode of {task.name!r} ever ends: choose it below 1")
        return list(dict.fromkeys(notes))

    def as_data(self) -> dict[str, Any]:
        """For the frozen copy; lists keep the order of the axes."""
        return {
            "title": self.title, "axes": [[axis.section, axis.name, list(axis.values)] for axis in self.axes],
            "seeds": list(self.seeds), "record": self.record, "ranges": [list(item) for item in self.ranges],
        }  # fmt: skip

    @classmethod
    def from_data(cls, data: Any) -> Grid:
        """The grid of a frozen copy, whose checksum was right."""
        broken = BadInput("the frozen copy of the sweep lacks a field: restore it from a copy")
        try:
            axes = tuple(_axis(section, name, list(values)) for section, name, values in data["axes"])
            ranges = tuple(
                _range(section, name, {"low": low, "high": high, "log": log})
                for section, name, low, high, log in data["ranges"]
            )
            grid = cls(data["title"], axes, _seeds(list(data["seeds"])), data["record"], ranges)
        except (KeyError, TypeError, ValueError) as error:
            raise error if isinstance(error, BadInput) else broken from None
        names = [isinstance(axis.name, str) and axis.section in ("task", *SECTIONS) for axis in axes]
        if (
            not all(names)
            or not isinstance(grid.title, str)
            or math.prod(map(len, (a.values for a in axes))) > _MOST_RUNS
        ):
            raise broken
        return grid


def refuse_unaggregated(task: Task, config: dict[str, Any]) -> None:
    """Refuse a task with defaults of its own that its registration does not tell: a run's data are made before it."""
    given = {*config.get("settings", {}), *config.get("schedule", {})}
    told = DEFAULTS.get(config["task"], {}).items()
    own = [name for name, value in task.defaults.items() if (name, value) not in told]
    if missing := [name for name in own if name not in given]:
        raise BadInput(
            f"{missing[0]} of task {task.name!r} is {task.defaults[missing[0]]!r} by default, which a sweep would not "
            "know: write it into the grid, or register the task with defaults=..."
        )


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


def in_words(labels: dict[str, Any]) -> str:
    """What a run of a grid is called in messages."""
    return ", ".join(f"{short(name)} {short(str(value))}" for name, value in labels.items())


# ---- reading ---------------------------------------------------------------------------------------------------------
def read_grid(path: Path) -> tuple[Grid, str]:
    """The grid of a file and its text; whatever is wrong is said with the file's name."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise BadInput(f"{str(path)!r} is too large for a grid file")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{str(path)!r} is not UTF-8 text: a grid is a TOML file") from None
    try:
        return parse_grid(text, path.parent), text
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def parse_grid(text: str, home: Path = Path()) -> Grid:
    """A grid from TOML; files that it names are looked for from `home` on."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"this is not TOML: {' '.join(str(error).split())[:200]}") from None
    for key in data:
        if key not in _TOP:
            raise unknown("key of a sweep", key, _TOP)
    form = whole_number("format", data.get("format", FORMAT), 1)
    if form > FORMAT:
        raise BadInput(f"this grid has format {form}, of a newer multiadvisor: upgrade to use it")
    title, record = data.get("title", ""), data.get("record", "last")
    if not isinstance(title, str) or len(title) > 200 or not title.isprintable():
        raise BadInput("title is no short text of one line: give one, or leave it out")
    if not isinstance(record, str) or record not in RECORDS:
        raise unknown("record", record, RECORDS)
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
    grid = Grid(title, tuple(axes), _seeds(data.get("seeds", 1)), record, tuple(ranges))
    if (size := math.prod(len(axis.values) for axis in axes) * len(grid.seeds)) > _MOST_RUNS:
        raise BadInput(f"the grid has {size:,} runs: a sweep takes at most {_MOST_RUNS:,}")
    grid.runs({(item.section, item.name): _start(item) for item in ranges} if ranges else None)
    return grid


def _start(item: Range) -> float | int:
    return math.ceil(item.low) if is_whole(item) else item.low


def is_whole(item: Range) -> bool:
    """Whether a range is one of whole numbers."""
    fields = _learners_fields(item.name) if item.section == LEARNER else []
    fields += [field for kind in (Settings, Schedule) for field in dataclasses.fields(kind) if field.name == item.name]
    return any(field.type in (int, "int") for field in fields)


def _axis(section: str, name: str, value: Any, home: Path = Path()) -> Axis:
    if _is_list(section, name):
        several = isinstance(value, list) and any(isinstance(item, list | tuple) for item in value)
        lists = value if several else [value]
        if not all(isinstance(item, list | tuple) for item in lists):
            raise BadInput(f"{name} is {short(repr(value))}: give a list, or a list of lists")
        if name == "components":
            return Axis(section, name, tuple(tuple(map(str, item)) for item in lists))
        return Axis(section, name, tuple(tuple(whole_number(name, each, 1) for each in item) for item in lists))
    values = value if isinstance(value, list) else [value]
    if not values:
        raise BadInput(f"{name} is an empty list: give at least one value")
    for item in values:
        if not isinstance(item, bool | int | float | str):
            raise BadInput(f"{name} is {short(repr(item))}: give numbers, strings or booleans, or a list of them")
        if isinstance(item, float) and not math.isfinite(item):
            raise BadInput(f"{name} is {item}: give finite numbers")
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
        if len(set(seeds)) < len(seeds):
            twice = next(seed for seed in seeds if seeds.count(seed) > 1)
            raise BadInput(f"seed {twice} appears twice: leave one out")
        return seeds
    count = whole_number("seeds", value, 1)
    if count > _MOST_RUNS:
        raise BadInput(f"seeds is {count}: a sweep takes at most {_MOST_RUNS:,} runs")
    return tuple(range(count))


def _searched() -> dict[str, list[str]]:
    """The settings whose values may be searched, by section."""
    found: dict[str, list[str]] = {"settings": [], LEARNER: []}
    own = [item for kind in LEARNERS.values() for item in kind.options().values()]
    for section, items in (("settings", dataclasses.fields(Settings)), (LEARNER, own)):
        names = [item.name for item in items if item.metadata.get("searched")]
        found[section] = list(dict.fromkeys(names))
    return found


def _range(section: str, name: str, given: dict[str, Any]) -> Range:
    if section not in BY_ADVISOR and name not in _searched().get(section, ()):
        names = ", ".join(name for names in _searched().values() for name in names)
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
    item = Range(section, name, low, high, log)
    kinds: dict[str, list[Any]] = {
        "settings": [Settings],
        LEARNER: [k.settings for k in LEARNERS.values() if name in k.options()],
    }
    for kind in kinds.get(section, ()):
        for value in (low, high):
            kind(**{name: int(value) if is_whole(item) else value})  # refuses what no run could have
    return item
