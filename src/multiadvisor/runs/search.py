"""A search over declared ranges with Optuna: its trials are jobs like others. The only module with Optuna.

Optuna keeps no memory of its own here. Its sampler starts from a seed, trials are asked for in batches of a fixed size,
and told in order: so the same search asks for the same trials, finds the finished ones in the folder, and goes on where
it stopped. The number of workers changes nothing but the time.
"""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

from multiadvisor.core.optional_dependencies import needed
from multiadvisor.errors import BadInput
from multiadvisor.runs.driver import drive
from multiadvisor.runs.engines.engine import Crew
from multiadvisor.runs.grid_sweep import SweepRecord, final, freeze, mean, read_frozen, searched_runs, sweep_ledger
from multiadvisor.runs.sweep_grid import Axis, SweepGrid

BATCH = 8  # trials between two looks at what came out


def search(
    folder: Path, grid: SweepGrid, crew: Crew, *, trials: int, seed: int = 0, resume: bool = False
) -> dict[str, Any]:
    """Look for the values with the highest score, the mean over the grid's seeds; lists in the grid are choices."""
    optuna = _import_optuna()
    if not grid.ranges:
        raise BadInput(
            "there is nothing to search: give a range in the grid, for example gamma = {low = 0.1, high = 0.9}"
        )
    how = {"engine": "optuna", "seed": seed, "batch": BATCH}
    with sweep_ledger(folder, grid, resume, how) as ledger:
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        table: list[dict[str, Any]] = []
        asked: list[dict[str, Any]] = []
        before = read_frozen(folder).asked if (folder / "sweep.json").exists() else ()  # perhaps more, and all of these
        while len(table) < trials:
            batch = [study.ask() for _ in range(BATCH)]
            cells = [_cell(grid, trial) for trial in batch][: trials - len(table)]
            runs = [cell.runs() for cell in cells]
            jobs = [run.job for many in runs for run in many]
            asked += [job.config for job in jobs]
            freeze(folder, SweepRecord(grid, how, (*asked, *before[len(asked) :])))
            results = drive(ledger, jobs, crew, f"trials {len(table) + 1} to {len(table) + len(runs)}")
            for trial, many in zip(batch, runs, strict=False):
                score = mean([final(results[run.job]) if run.job.id in results else None for run in many])
                if score is None:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    study.tell(trial, score)
                [run] = searched_runs(grid, [many[0].job.config])
                table.append({"trial": len(table), **run.labels, "score": score})
    found = [row for row in table if row["score"] is not None]
    best = max(found, key=lambda row: row["score"]) if found else None
    return {"folder": str(folder), "trials": table, "best": best, "failed": len(table) - len(found)}


def _import_optuna() -> Any:
    with needed("search"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", module="optuna")
    return optuna


def _cell(grid: SweepGrid, trial: Any) -> SweepGrid:
    """The grid with the one value that a trial has chosen for each axis."""
    return dataclasses.replace(grid, axes=tuple(_chosen(axis, trial) for axis in grid.axes))


def _chosen(axis: Axis, trial: Any) -> Axis:
    value, span = axis.values[0], axis.span
    if len(axis.values) > 1:
        value = axis.values[trial.suggest_categorical(axis.label, list(range(len(axis.values))))]
    elif span is not None and isinstance(value, int):
        value = trial.suggest_int(axis.label, int(span.low), int(span.high), log=span.log)
    elif span is not None:
        found = trial.suggest_float(axis.label, span.low, span.high, log=span.log)
        value = min(max(float(f"{found:.6g}"), span.low), span.high)  # what people read is what is run
    return axis._replace(values=(value,), span=None)
