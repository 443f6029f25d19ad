"""A search over declared ranges with Optuna: its trials are jobs like others. The only module with Optuna.

Optuna keeps no memory of its own here. Its sampler starts from a seed, trials are asked for in batches of a fixed size,
and told in order: so the same search asks for the same trials, finds the finished ones in the folder, and goes on where
it stopped. The number of workers changes nothing but the time.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.core.optional_dependencies import lacking
from multiadvisor.errors import BadInput
from multiadvisor.runs.driver import Results, drive
from multiadvisor.runs.engines.engine import Crew
from multiadvisor.runs.grid_sweep import SweepRecord, check_place, final, freeze, opened, read_frozen, searched_runs
from multiadvisor.runs.sweep_grid import Grid, Run, is_whole

SEARCHES = ("optuna",)
BATCH = 8  # trials between two looks at what came out
_CREW = Crew()


def search(
    folder: Path, grid: Grid, source: str, crew: Crew = _CREW, *, trials: int = 32, seed: int = 0, resume: bool = False
) -> dict[str, Any]:
    """Look for the values with the highest score, the mean over the grid's seeds; lists in the grid are choices."""
    optuna = _import_optuna()
    if not grid.ranges:
        raise BadInput(
            "there is nothing to search: give a range in the grid, for example gamma = {low = 0.1, high = 0.9}"
        )
    for note in grid.check_tasks():
        print(note, file=sys.stderr)
    how = {"engine": "optuna", "seed": seed, "batch": BATCH}
    with opened(folder, lambda: check_place(folder, grid, resume, how)) as ledger:
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        table: list[dict[str, Any]] = []
        asked: list[dict[str, Any]] = []
        while len(table) < trials:
            batch = [study.ask() for _ in range(BATCH)]
            cells = [_cell(grid, trial) for trial in batch][: trials - len(table)]
            runs = [cell.runs(chosen) for cell, chosen in cells]
            jobs = [run.job for many in runs for run in many]
            asked += [job.config for job in jobs]
            freeze(folder, SweepRecord(grid, source, how, _union(asked, folder)))
            results = drive(ledger, jobs, crew, f"trials {len(table) + 1} to {len(table) + len(runs)}")
            for trial, many in zip(batch, runs, strict=False):
                score = _score(results, many)
                if score is None:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    study.tell(trial, score)
                [run] = searched_runs(grid, [many[0].job.config])
                table.append({"trial": len(table), **run.labels, "score": score})
    found = [row for row in table if row["score"] is not None]
    best = max(found, key=lambda row: row["score"]) if found else None
    return {"folder": str(folder), "trials": table, "best": best, "failed": len(table) - len(found)}


def _union(asked: list[dict[str, Any]], folder: Path) -> tuple[dict[str, Any], ...]:
    """What was asked for now, and what an earlier and longer search of this folder had asked for beyond that."""
    before = read_frozen(folder).asked if (folder / "sweep.json").exists() else ()
    return (*asked, *before[len(asked) :])


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise lacking("search", error) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", module="optuna")
    return optuna


def _cell(grid: Grid, trial: Any) -> tuple[Grid, dict[tuple[str, str], Any]]:
    """The grid with one value for each choice, and the values chosen for the ranges."""
    axes = []
    for axis in grid.axes:
        place = trial.suggest_categorical(axis.label, list(range(len(axis.values)))) if len(axis.values) > 1 else 0
        axes.append(axis._replace(values=(axis.values[place],)))
    chosen: dict[tuple[str, str], Any] = {}
    for item in grid.ranges:
        if is_whole(item):
            value = trial.suggest_int(item.label, int(item.low), int(item.high), log=item.log)
        else:
            value = trial.suggest_float(item.label, item.low, item.high, log=item.log)
            value = min(max(float(f"{value:.6g}"), item.low), item.high)  # what people read is what is run
        chosen[item.section, item.name] = value
    return Grid(grid.title, tuple(axes), grid.seeds, grid.record, grid.ranges), chosen


def _score(results: Results, runs: list[Run]) -> float | None:
    scores = [final(results[run.job]) if run.job.id in results else None for run in runs]
    return None if None in scores else float(np.mean(scores))  # type: ignore[arg-type]
