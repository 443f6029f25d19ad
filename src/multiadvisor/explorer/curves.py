"""Learning curves of runs and of sweeps: settings that differ in their seed alone are one curve, with an interval.

A seed counts once, by its longest record, as the same run again says nothing new; and only records of one length are
averaged, so that no curve is cut and no interval is of fewer runs than it says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.runs.ledger import read_result

MEASURES = ("score", "turns", "finished", "touches")


class Record(NamedTuple):
    """What a run has kept of its training."""

    name: str
    task: str
    options: dict[str, Any]
    settings: dict[str, Any]
    epochs: list[dict[str, Any]]


def is_epoch(kept: Any) -> bool:
    """Whether a record of an epoch can be drawn.

    >>> is_epoch({"epoch": 1, "score": 2.5, "touches": None}), is_epoch({"score": "much"}), is_epoch(3)
    (True, False, False)
    """
    return isinstance(kept, dict) and all(
        isinstance(kept.get(name), int | float | None) for name in ("epoch", *MEASURES)
    )


def curves(records: Iterable[Record]) -> list[dict[str, Any]]:
    """One curve for each setting, in the order in which they come.

    >>> runs = [Record(f"run {s}", "pac-boy", {}, {"planning": "empathic", "gamma": 0.9, "seed": s},
    ...         [{"epoch": 1, "score": float(s)}]) for s in (0, 1)]
    >>> [(curve["label"], curve["runs"], curve["score"]["mean"]) for curve in curves(runs)]
    [('empathic 0.9', 2, [0.5])]
    """
    settings: dict[str, dict[str, Record]] = {}
    for record in records:
        same = {key: value for key, value in record.settings.items() if key != "seed"}
        seeds = settings.setdefault(_key([record.task, record.options, same]), {})
        seed = _key(record.settings.get("seed"))
        if len(record.epochs) > (len(seeds[seed].epochs) if seed in seeds else 0):
            seeds[seed] = record
    return [curve for seeds in settings.values() if seeds for curve in _curves(list(seeds.values()))]


def _key(parts: Any) -> str:
    return json.dumps(parts, sort_keys=True, default=str)


def _curves(records: list[Record]) -> list[dict[str, Any]]:
    """The curves of one setting: one, unless some runs are longer than others."""
    groups: dict[int, list[Record]] = {}
    for record in records:
        groups.setdefault(len(record.epochs), []).append(record)
    if len(groups) == 1:
        return [_curve(records, "")]
    return [_curve(group, f", {length} epoch{'s' * (length != 1)}") for length, group in groups.items()]


def _curve(group: list[Record], note: str) -> dict[str, Any]:
    length = len(group[0].epochs)
    curve: dict[str, Any] = {
        "task": group[0].task, "label": label(group[0].settings) + note, "runs": len(group),
        "epochs": [group[0].epochs[k].get("epoch", k + 1) for k in range(length)],
    }  # fmt: skip
    for measure in MEASURES:
        values: list[list[Any]] = [[record.epochs[k].get(measure) for record in group] for k in range(length)]
        if any(value is None for row in values for value in row):
            curve[measure] = None
            continue
        table = np.array(values, float)  # [epochs, runs]
        low, high = intervals(table)
        curve[measure] = {"mean": table.mean(axis=1).tolist(), "low": low.tolist(), "high": high.tolist()}
    return curve


def intervals(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`statistics.interval` of every row at once: low and high ends [rows], the same numbers from the same resamples.

    >>> [end.tolist() for end in intervals(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))]
    [[1.0, 0.0], [1.0, 0.0]]
    """
    runs = values.shape[1]
    if runs < 2:
        return values.mean(axis=1), values.mean(axis=1)
    generator = np.random.default_rng(0)
    means = [values[:, generator.integers(runs, size=(100, runs))].mean(axis=2) for _ in range(20)]
    low, high = np.quantile(np.concatenate(means, axis=1), [0.025, 0.975], axis=1)
    return low, high


def label(settings: dict[str, Any]) -> str:
    """Settings in two words.

    >>> label({"planning": "empathic", "learner": "linear", "gamma": 0.9})
    'linear 0.9'
    >>> label({"planning": "egocentric", "gamma": 0.9, "aggregation": "fruits=max"})
    'egocentric 0.9, fruits=max'
    """
    learner = settings.get("learner", "advisors")
    text = f"{settings['planning'] if learner == 'advisors' else learner} {settings['gamma']:g}"
    aggregation = settings.get("aggregation", "sum")
    text += "" if aggregation == "sum" else f", {aggregation}"
    return text + (f", noise {settings['noise']:g}" if settings.get("noise") else "")


def sweep_records(folder: Path) -> list[Record]:
    """The finished runs of a sweep: it keeps their records, one sealed file each, and not the agents."""
    records = []
    for path in sorted((folder / "results").glob("[0-9a-f]*.json")):
        result = read_result(folder, path.stem)
        try:
            found = Record(path.stem, result["task"], result["options"], result["settings"], list(result["epochs"]))
            float(found.settings["gamma"]), str(found.settings["planning"])
        except (KeyError, TypeError, ValueError):
            continue  # another kind of job
        records.append(found)
    return records
