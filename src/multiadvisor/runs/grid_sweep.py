"""A sweep's folder: the frozen grid, its jobs, and what came out of them.

sweep.json     the grid as it was started or extended, under a checksum
jobs.log       what happened so far; results/ and scratch/ beside it, see `ledger`
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.core.intervals import interval
from multiadvisor.errors import BadInput, short
from multiadvisor.runs.driver import Results, describe_failures, drive
from multiadvisor.runs.engines.engine import Crew, engine_class
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.ledger import (
    History,
    Ledger,
    driver_of,
    finished_ids,
    open_ledger,
    read_log,
    read_result,
    read_running,
)  # fmt: skip
from multiadvisor.runs.logs import MEASURES, are_evaluations
from multiadvisor.runs.sweep_grid import LEARNER, SweepGrid, SweepRun, grid_of, read_grid, shown
from multiadvisor.runs.tensorboard import tensorboard_log
from multiadvisor.settings import whole_number
from multiadvisor.storage.files import check_writable, plainly, write_atomically
from multiadvisor.storage.sealed import read_sealed, seal

FORMAT = 1
LAST = 10  # evaluations averaged for tables, as in the paper's
_KIND = "multiadvisor sweep"


@dataclass(frozen=True)
class SweepRecord:
    """What `sweep.json` says."""

    grid: SweepGrid
    search: dict[str, Any] | None = None
    """Of a search: the sampler's seed, and what was looked for."""
    asked: tuple[dict[str, Any], ...] = ()
    """Of a search: the configurations of the runs so far, in the order of the trials."""

    def runs(self) -> list[SweepRun]:
        """All runs: those of the grid, or those that a search has asked for."""
        return self.grid.runs() if self.search is None else searched_runs(self.grid, self.asked)


def read_frozen(folder: Path) -> SweepRecord:
    """The frozen copy in a folder."""
    path = folder / "sweep.json"
    if not path.exists():
        raise BadInput(f"no sweep in {str(folder)!r}: there is no sweep.json in it")
    body = read_sealed(path, _KIND, FORMAT, "restore it from a copy")
    asked = body.get("asked", [])
    if not isinstance(asked, list) or not all(isinstance(config, dict) for config in asked):
        raise BadInput(f"{str(path)!r} names no runs of the search: restore it from a copy")
    return SweepRecord(SweepGrid.from_data(body.get("grid")), body.get("search"), tuple(asked))


def freeze(folder: Path, frozen: SweepRecord) -> None:
    """Write the frozen copy; called with the folder's ledger open."""
    body: dict[str, Any] = {"grid": frozen.grid.as_data(), "search": frozen.search}
    body |= {} if frozen.search is None else {"asked": list(frozen.asked)}
    write_atomically(folder / "sweep.json", seal(_KIND, FORMAT, body))


def _check_place(folder: Path, grid: SweepGrid, resume: bool, search: dict[str, Any] | None) -> None:
    """Refuse the folder of another sweep; one that has only fewer runs will be extended."""
    check_writable(folder)
    if not (folder / "sweep.json").exists():
        if finished_ids(folder) or read_log(folder):
            raise BadInput(f"{str(folder)!r} holds jobs of something else than a sweep: name another folder")
        return
    if not resume:
        raise BadInput(f"{str(folder)!r} holds a sweep already: add --resume to continue it, or name another folder")
    frozen = read_frozen(folder)
    if frozen.search != search or (search is not None and frozen.grid != grid):
        raise BadInput(f"{str(folder)!r} holds another search or sweep: name another folder")
    if search is None:
        here = {run.job.id for run in grid.runs()}
        gone = [run for run in frozen.grid.runs() if run.job.id not in here]
        if gone:
            raise BadInput(
                f"{str(folder)!r} holds another sweep: its run with {gone[0]} is not in the grid; name another folder"
            )


def run_sweep(folder: Path, grid: SweepGrid, crew: Crew, *, resume: bool = False) -> Results:
    """Run what the folder lacks; failures are in the results."""
    jobs = [run.job for run in grid.runs()]
    with sweep_ledger(folder, grid, resume) as ledger:
        freeze(folder, SweepRecord(grid))
        return drive(ledger, jobs, crew, grid.title or folder.name)


def sweep(
    grid: Mapping[str, Any] | str | Path, out: str | Path, *, workers: int | None = None, engine: str = "local",
    address: str | None = None, resume: bool = False,
) -> list[RunResult]:  # fmt: skip
    """Run a grid of training runs, and return what came out of each: `multiadvisor sweep` in Python.

    The grid is what its file would hold, or that file; lists are axes. What fails is refused once all others are done;
    these lie in the folder, and `resume` goes on there. With `workers=0` all runs are made in this process.

    >>> import tempfile
    >>> grid = {"task": "two-goal", "seeds": 2, "settings": {"gamma": [0.4, 0.9], "planning": "egocentric"},
    ...         "schedule": {"steps": 4000, "eval_every": 4000, "eval_episodes": 5}}
    >>> found = sweep(grid, tempfile.mkdtemp(), workers=0)
    >>> [(one.run.labels, one.run.seed, one.result["evaluations"][-1]["score"]) for one in found[::2]]
    [({'gamma': 0.4}, 0, 1.0), ({'gamma': 0.9}, 0, 0.0)]
    """
    for name, value, kinds in (("grid", grid, (Mapping, str, Path)), ("out", out, (str, Path))):
        if not isinstance(value, kinds):
            way = "a dictionary, or a file" if name == "grid" else "a folder"
            raise BadInput(f"{name} of a sweep is {short(repr(value))}: give {way}")
    crew = Crew(None if workers is None else whole_number("workers", workers), engine, address)
    engine_class(crew)
    asked = grid_of(grid) if isinstance(grid, Mapping) else read_grid(Path(grid))
    results = run_sweep(Path(out), asked, crew, resume=resume)
    if results.failed:
        raise BadInput(describe_failures(results))
    return finished(Path(out))


@contextmanager
def sweep_ledger(folder: Path, grid: SweepGrid, resume: bool, search: dict[str, Any] | None = None) -> Iterator[Ledger]:
    """The ledger of a sweep whose tasks can all be made.

    The folder is looked at first so that a wrong one is left as it is, and again when nobody else can change it.
    """
    for note in grid.check_tasks():
        print(note, file=sys.stderr)
    _check_place(folder, grid, resume, search)
    with open_ledger(folder) as ledger:
        _check_place(folder, grid, resume, search)
        yield ledger


# ---- looking ---------------------------------------------------------------------------------------------------------
def status(folder: Path) -> dict[str, Any]:
    """How far a sweep is."""
    frozen = read_frozen(folder)
    past, done, running, driver = read_log(folder), finished_ids(folder), read_running(folder), driver_of(folder)
    states: dict[str, list[dict[str, Any]]] = {name: [] for name in ("waiting", "running", "done", "failed")}
    seconds = 0.0
    for run in frozen.runs():
        name, log = run.job.id, past.get(run.job.id, History())
        row = {"id": name, **run.labels, "seed": run.seed, "fraction": running.get(name, 0.0)}
        if name in done:
            seconds += log.seconds
        elif log.error:
            row |= {"tries": log.tries, "error": log.error}
        rest = "failed" if log.error else "waiting"
        states["done" if name in done else "running" if name in running else rest].append(row)
    return {
        "folder": str(folder), "title": frozen.grid.title, "runs": sum(map(len, states.values())),
        **{state: len(rows) for state, rows in states.items()}, "driver": driver, "seconds": seconds,
        "now": states["running"], "failures": states["failed"],
    }  # fmt: skip


@dataclass(frozen=True)
class RunResult:
    """A run with its result."""

    run: SweepRun
    result: dict[str, Any]
    seconds: float


def finished(folder: Path) -> list[RunResult]:
    """The runs of a sweep that are done, in the grid's order, each result checked."""
    past, done = read_log(folder), finished_ids(folder)
    return [
        RunResult(run, _checked(read_result(folder, run.job.id), run), past.get(run.job.id, History()).seconds)
        for run in read_frozen(folder).runs()
        if run.job.id in done
    ]


def searched_runs(grid: SweepGrid, configs: Iterable[dict[str, Any]]) -> list[SweepRun]:
    """The runs of a search, with what was chosen for each."""
    runs = []
    for config in configs:
        labels = {axis.label: shown(_value(config, axis.section, axis.name)) for axis in grid.varying}
        labels |= {item.label: _value(config, item.section, item.name) for item in grid.ranges}
        runs.append(SweepRun(Job("train", config), labels, int(_value(config, "settings", "seed"))))
    return runs


def _value(config: dict[str, Any], section: str, name: str) -> Any:
    try:
        inner = config["settings"] if section == LEARNER else config
        part = config if section == "task" else inner[section]
        return part[name]
    except (KeyError, TypeError):
        raise BadInput(f"a run of the search has no {name}: its sweep.json is not a search's") from None


def _checked(result: dict[str, Any], run: SweepRun) -> dict[str, Any]:
    """A result has the shape of a training run's, or is refused."""
    found = result.get("evaluations")
    if not (isinstance(result.get("task"), str) and found and are_evaluations(found)):
        raise BadInput(f"the result {run.job.id} is no training run's: remove its file and run again")
    return result


def final(result: dict[str, Any], figure: str = "score") -> float | None:
    """A run's figure: the mean of its last evaluations; scores by the task's own weights, comparable."""
    return mean([figure_of(one, figure) for one in result["evaluations"][-LAST:]])


def mean(values: list[float | None]) -> float | None:
    """Their mean; None where one of them is missing."""
    return None if None in values else float(np.mean(values))  # type: ignore[arg-type]


def figure_of(evaluation: dict[str, Any], figure: str) -> float | None:
    """A measure of an evaluation, or one of its metrics; None where it has none. The score by the task's own weights.

    >>> one = {"score": 1.0, "reward": 2.0, "length": 3.0, "metrics": {"falls": 4.0}}
    >>> [figure_of(one, name) for name in ("score", "length", "falls", "cats")]
    [2.0, 3.0, 4.0, None]
    """
    if figure == "score" and "reward" in evaluation:
        return float(evaluation["reward"])
    found: float | None = (evaluation if figure in MEASURES else evaluation.get("metrics", {})).get(figure)
    return found


def metrics_of(done: list[RunResult]) -> tuple[str, ...]:
    """What the metrics of runs are called."""
    return tuple(dict.fromkeys(name for item in done for one in item.result["evaluations"] for name in one["metrics"]))


def groups(done: list[RunResult]) -> dict[str, list[RunResult]]:
    """Runs that differ in their seeds only, by what they have in common."""
    found: dict[str, list[RunResult]] = {}
    for item in done:
        found.setdefault(name_of(item.run.labels), []).append(item)
    return found


def name_of(labels: dict[str, Any]) -> str:
    """What a legend says.

    >>> name_of({"planning": "empathic", "gamma": 0.9, "hidden": "64,64"})
    'empathic, gamma 0.9, hidden 64,64'
    """
    words = (v if isinstance(v, str) and not v[:1].isdigit() else f"{k} {v}" for k, v in labels.items())
    return ", ".join(words) or "all runs"


def summary(done: list[RunResult]) -> list[dict[str, Any]]:
    """One row for each group: means of the last evaluations, with a bootstrap interval over seeds for the score."""
    table = []
    for items in groups(done).values():
        row: dict[str, Any] = {**items[0].run.labels, "seeds": len(items)}
        scores = [final(item.result) for item in items]
        row |= {name: mean([final(item.result, name) for item in items]) for name in MEASURES}
        row["score_interval"] = None if None in scores else list(interval(np.array(scores, float)))
        row["metrics"] = {name: mean([final(item.result, name) for item in items]) for name in metrics_of(items)}
        table.append(row)
    return table


def tidy(done: list[RunResult]) -> dict[str, list[Any]]:
    """Columns, a row for each evaluation of each run: what CSV and Parquet hold."""
    labels = list(dict.fromkeys(name for item in done for name in item.run.labels))
    weighted = any("reward" in one for item in done for one in item.result["evaluations"])
    figures = (*MEASURES, *(("reward",) if weighted else ()))  # the score by the task's own weights
    metrics = [f"metrics/{name}" for name in metrics_of(done)]
    columns: dict[str, list[Any]] = {name: [] for name in ("id", "task", *labels, "seed", "steps", *figures, *metrics)}
    for item in done:
        for one in item.result["evaluations"]:
            whole = {**item.run.labels, **{key: one[key] for key in ("steps", *MEASURES)}}
            whole |= {f"metrics/{name}": value for name, value in one["metrics"].items()}
            whole["reward"] = one.get("reward", one["score"])
            whole |= {"id": item.run.job.id, "task": item.result["task"], "seed": item.run.seed}
            for name, column in columns.items():
                column.append(whole.get(name))
    return columns


def write_tensorboard(folder: Path, done: list[RunResult]) -> None:
    """A folder under `tensorboard/` for each run that has none yet.

    The figures of every evaluation, and the advisors' returns in the last by name.
    """
    home = folder / "tensorboard"
    for item in done:
        words = re.sub(r"[^\w.,= -]", "_", f"{name_of(item.run.labels)}, seed {item.run.seed}")[:120]
        place = home / f"{words} {item.run.job.id[:8]}"
        if place.exists():
            continue
        with plainly(f"write {str(home)!r}"):
            home.mkdir(exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=home))
            try:
                *others, last = item.result["evaluations"]
                last = {**last, "advisors": item.result["advisors"]}
                with tensorboard_log(part, [*others, last], resume=False):
                    pass
                part.chmod(0o755)
                part.rename(place)
            finally:
                shutil.rmtree(part, ignore_errors=True)
