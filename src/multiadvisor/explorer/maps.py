"""Maps of a sweep: what was reached over two settings that it varied, and the agent behind each cell, trained again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.errors import BadInput
from multiadvisor.explorer.curves import Record, facts, key_of, phrase
from multiadvisor.runs.grid_sweep import figure_of
from multiadvisor.runs.logs import MEASURES
from multiadvisor.runs.training import RunConfig

_PIECES = 50  # of a training, between which it is told how far it is


def maps(records: Iterable[Record]) -> list[dict[str, Any]]:
    """For each task whose runs differ in two numbers or more, a map for each pair of these, and for each choice of
    what else they differ in: rows [upwards] of cells [across], each the mean over seeds of every last measure.

    >>> runs = [Record(f"{g} {n} {s}", "pac-boy", {}, {"gamma": g, "noise": n, "seed": s},
    ...         [{"steps": 1, "score": g - n + s}]) for g in (0.4, 0.6, 0.9) for n in (0.0, 0.1) for s in (0, 1)]
    >>> [found] = maps(runs)
    >>> found["label"], found["across"], found["columns"], found["upwards"], found["rows"]
    ('noise over gamma', 'gamma', [0.4, 0.6, 0.9], 'noise', [0.0, 0.1])
    >>> found["cells"][1][2]["run"], round(found["cells"][1][2]["figures"]["score"], 2)
    ('0.9 0.1 0', 1.3)
    """
    tasks: dict[str, list[Record]] = {}
    for record in records:
        if record.evaluations:
            tasks.setdefault(record.task, []).append(record)
    return [found for task, own in tasks.items() for found in _maps_of(task, own)]


def _maps_of(task: str, records: Sequence[Record]) -> list[dict[str, Any]]:
    known = [facts(record) for record in records]
    values = {name: {key_of(one.get(name)): one.get(name) for one in known} for name in known[0]}
    varied = [name for name, found in values.items() if len(found) > 1 and name != "seed"]
    numbers = [name for name in varied if all(map(_is_number, values[name].values()))]
    axes = sorted(numbers, key=lambda name: -len(values[name]))
    found = []
    for upwards in axes[1:]:
        groups: dict[str, list[int]] = {}
        others = [name for name in varied if name not in (axes[0], upwards)]
        for k, one in enumerate(known):
            groups.setdefault(key_of([one.get(name) for name in others]), []).append(k)
        for group in groups.values():
            words = [phrase(name, known[group[0]].get(name)) for name in others]
            label = ", ".join([f"{upwards} over {axes[0]}", *words])
            cells = _cells([records[k] for k in group], [(known[k][axes[0]], known[k][upwards]) for k in group])
            if len(cells["rows"]) > 1 and len(cells["columns"]) > 1:
                found.append({"task": task, "label": label, "across": axes[0], "upwards": upwards, **cells})
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cells(records: Sequence[Record], places: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The cells of a map, None where there is no run."""
    at: dict[tuple[float, float], list[Record]] = {}
    for record, place in zip(records, places, strict=True):
        at.setdefault(place, []).append(record)
    columns, rows = (sorted({place[axis] for place in places}) for axis in (0, 1))
    cells = [[_cell(at[column, row]) if (column, row) in at else None for column in columns] for row in rows]
    return {"columns": columns, "rows": rows, "cells": cells}


def _cell(records: Sequence[Record]) -> dict[str, Any]:
    """The mean of runs that differ in their seed, and the first of them."""
    names = dict.fromkeys([*MEASURES, *(name for one in records for name in one.evaluations[-1].get("metrics", {}))])
    values = {name: [figure_of(one.evaluations[-1], name) for one in records] for name in names}
    figures = {name: float(np.mean(np.array(found, float))) for name, found in values.items() if None not in found}
    return {"run": records[0].name, "runs": len(records), "figures": figures}


def trained_again(record: Record, tell: Callable[[float], None]) -> MultiAdvisor:
    """The agent of a run whose record was kept and who was not: from the same seed, it is the same to the last bit."""
    run = RunConfig.parse(record.config)
    agent = MultiAdvisor(run.make_task(), run.settings)
    if agent.task.world is None:
        raise BadInput(f"runs of {agent.task.name!r} take long: use `multiadvisor train` with these settings")
    return trained(agent, run.schedule.steps, tell)


def trained(agent: MultiAdvisor, steps: int, tell: Callable[[float], None]) -> MultiAdvisor:
    """The agent after so many steps, in pieces between which it is told how far it is."""
    for piece in range(1, _PIECES + 1):
        agent.learn(piece * steps // _PIECES - agent.steps, progress=False)
        tell(piece / _PIECES)
    return agent
