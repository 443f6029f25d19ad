"""Learning curves of runs and of sweeps: settings that differ in their seed alone are one curve, with an interval.

A seed counts once, by its longest record, as the same run again says nothing new; and only records of one length are
averaged, so that no curve is cut and no interval is of fewer runs than it says. Curves of one task are called by what
they differ in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.intervals import interval
from multiadvisor.errors import short
from multiadvisor.learners.kinds import AUTO, LEARNERS
from multiadvisor.runs.grid_sweep import figure_of
from multiadvisor.runs.ledger import read_result
from multiadvisor.runs.logs import MEASURES, are_evaluations
from multiadvisor.task import BY_ADVISOR

_CONFIG = ("task", "options", "settings", "schedule")  # of a result: what it was trained by
OWN = "reward"
"""A score by the task's own weights, in the place of the score of a run that was trained with others."""


class Record(NamedTuple):
    """What a run has kept of its training."""

    name: str
    task: str
    options: dict[str, Any]
    settings: dict[str, Any]
    evaluations: list[dict[str, Any]]
    eval_every: int | None = None
    """Steps between them, where that is known."""
    config: dict[str, Any] = {}  # noqa: RUF012
    """Of a run of a sweep: what it was trained by."""

    @property
    def label(self) -> str:
        """Its settings in a few words."""
        return label(self.settings, self.options)


def eval_every(schedule: Any) -> int | None:
    """The steps between two evaluations of this schedule, if it says so.

    >>> eval_every({"eval_every": 500}), eval_every(None)
    (500, None)
    """
    found = schedule.get("eval_every") if isinstance(schedule, dict) else None
    return found if isinstance(found, int) and found > 0 else None


def curves(records: Iterable[Record]) -> list[dict[str, Any]]:
    """One curve for each setting, in the order in which they come.

    >>> runs = [Record(f"run {s}", "pac-boy", {}, {"planning": "empathic", "gamma": 0.9, "seed": s},
    ...         [{"steps": 1, "score": float(s)}]) for s in (0, 1)]
    >>> [(curve["label"], curve["runs"], curve["figures"]["score"]["mean"]) for curve in curves(runs)]
    [('empathic 0.9', 2, [0.5])]
    """
    settings: dict[str, dict[str, Record]] = {}
    for record in records:
        same = {key: value for key, value in record.settings.items() if key != "seed"}
        seeds = settings.setdefault(key_of([record.task, record.options, same, record.eval_every]), {})
        seed = key_of(record.settings.get("seed"))
        if len(record.evaluations) > (len(seeds[seed].evaluations) if seed in seeds else 0):
            seeds[seed] = record
    groups = [group for seeds in settings.values() if seeds for group in _by_steps(list(seeds.values()))]
    firsts = [group[0] for group in groups]
    return [_curve(group, name) for group, name in zip(groups, names_of(firsts), strict=True)]


def key_of(parts: Any) -> str:
    """Plain data as a key."""
    return json.dumps(parts, sort_keys=True, default=str)


def _by_steps(records: list[Record]) -> list[list[Record]]:
    """The runs of one setting: together, unless some are longer than others."""
    groups: dict[tuple[int, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(kept["steps"] for kept in record.evaluations), []).append(record)
    return list(groups.values())


def _curve(group: list[Record], name: str) -> dict[str, Any]:
    first = group[0]
    steps = [kept["steps"] for kept in first.evaluations]
    curve: dict[str, Any] = {"task": first.task, "label": name, "runs": len(group), "steps": steps}
    if any(OWN in record.evaluations[-1] for record in group):
        curve["own"] = float(np.mean([record.evaluations[-1].get("score") or 0.0 for record in group]))
    metrics = dict.fromkeys(name for record in group for kept in record.evaluations for name in kept.get("metrics", {}))
    found = {
        measure: [[figure_of(record.evaluations[k], measure) for record in group] for k in range(len(steps))]
        for measure in (*MEASURES, *metrics)
    }
    whole = {measure: rows for measure, rows in found.items() if not any(None in row for row in rows)}
    table = np.array(list(whole.values()), float).reshape(-1, len(steps), len(group))
    low, high = interval(table)
    curve["figures"] = {
        measure: {"mean": table[k].mean(axis=1).tolist(), "low": low[k], "high": high[k]}
        for k, measure in enumerate(whole)
    }
    return curve


# ---- what to call them -----------------------------------------------------------------------------------------------
_NAMED = 4  # weights
_SAID = ("planning", "learner name", "gamma", "aggregation", "noise", "seed")  # in the label, or of no matter


def method(settings: dict[str, Any]) -> str:
    """How it plans, where that matters, and what learns, unless it is tables.

    >>> method({"planning": "empathic", "learner": {"name": "sac"}}), method({"planning": "agnostic"})
    ('sac', 'agnostic')
    """
    name = (settings.get("learner") or {}).get("name", "tabular")
    kind = LEARNERS.get(name)
    words = [settings["planning"]] if kind is None or kind.plans else []
    return " ".join([*words, *([name] if name not in ("tabular", AUTO) else [])])


def label(settings: dict[str, Any], options: Mapping[str, Any] | None = None) -> str:
    """Settings in two words, `method` and gamma; and the weights.

    >>> label({"planning": "empathic", "learner": {"name": "linear"}, "gamma": 0.9})
    'linear 0.9'
    >>> label({"planning": "egocentric", "gamma": 0.9, "aggregation": "fruits=max"})
    'egocentric 0.9, fruits=max'
    >>> label({"planning": "empathic", "gamma": 0.99, "learner": {"name": "dqn", "split": "groups"}})
    'empathic dqn 0.99'
    >>> label({"planning": "empathic", "gamma": 0.99}, {"weights": {"alive": 0.1, "speed": 2.0}})
    'empathic 0.99, weights alive=0.1 speed=2'
    """
    text = f"{method(settings)} {settings['gamma']:g}"
    aggregation = settings.get("aggregation", "sum")
    text += "" if aggregation == "sum" else f", {aggregation}"
    text += f", noise {settings['noise']:g}" if settings.get("noise") else ""
    weights = (options or {}).get("weights")
    return text + (f", weights {weights_text(weights)}" if weights and isinstance(weights, dict) else "")


def weights_text(weights: Mapping[str, Any]) -> str:
    """Some weights by name, the first of them, as a file may have them.

    >>> weights_text({"a": 1.0, "b": 0.5, "c": 2, "d": 1, "e": 1, "f": 1})
    'a=1 b=0.5 c=2 d=1 and 2 more'
    """
    shown = [
        f"{short(str(name), 30)}={value:g}" if isinstance(value, int | float) else short(str(name), 30)
        for name, value in list(weights.items())[:_NAMED]
    ]
    return " ".join([*shown, *([f"and {len(weights) - _NAMED} more"] if len(weights) > _NAMED else [])])


def names_of(records: list[Record]) -> list[str]:
    """A name for each of several records: its settings in two words, and what else tells it from others of its task.

    >>> runs = [Record("a", "pac-boy", {}, {"planning": "empathic", "gamma": 0.9, "alpha": a}, []) for a in (0.1, 0.2)]
    >>> names_of(runs)
    ['empathic 0.9, alpha 0.1', 'empathic 0.9, alpha 0.2']
    """
    alike: dict[tuple[str, str], list[dict[str, Any]]] = {}
    known = [(record.task, record.label, facts(record)) for record in records]
    for task, base, own in known:
        alike.setdefault((task, base), []).append(own)
    apart = {
        place: [name for name in dict.fromkeys(name for one in others for name in one)
                if name not in _SAID and len({key_of(one.get(name)) for one in others}) > 1]
        for place, others in alike.items()
    }  # fmt: skip
    return [
        ", ".join([base, *(phrase(name, own[name]) for name in apart[task, base] if name in own)])
        for task, base, own in known
    ]


def facts(record: Record) -> dict[str, Any]:
    """All that two runs of one task may differ in, each by its name."""
    found: dict[str, Any] = {}
    for name, value in {**record.settings, **record.options}.items():
        if name == "learner" and isinstance(value, dict):
            found |= {f"{name} {part}": inner for part, inner in (value or {}).items()}
        else:
            found[name] = value
    last = record.evaluations[-1]["steps"] if record.evaluations else 0
    return found | {"steps": last, "eval_every": record.eval_every}


def phrase(name: str, value: Any) -> str:
    """One of them in words.

    >>> phrase("learner learning_rate", 1e-3), phrase("steps", 2000), phrase("learner hidden", [8])
    ('learning rate 0.001', '2,000 steps', 'hidden 8')
    """
    words = name.removeprefix("learner ").replace("_", " ")
    if name == "steps":
        return f"{value:,} steps"
    if name == "eval_every":
        return "evaluated at unknown intervals" if value is None else f"evaluated every {value:,}"
    if value is None or value is False:
        return f"no {words}"
    if value is True:
        return words
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value)) or "none"
    return f"{words} {short(f'{value:g}' if isinstance(value, float) else str(value), 40)}"


def sweep_records(folder: Path) -> list[Record]:
    """The finished runs of a sweep: it keeps their records, one sealed file each, and not the agents."""
    records = []
    for path in sorted((folder / "results").glob("[0-9a-f]*.json")):
        result = read_result(folder, path.stem)
        try:
            options = {**result["options"], **{name: result[name] for name in BY_ADVISOR if result.get(name)}}
            found = Record(
                path.stem, result["task"], options, result["settings"], list(result["evaluations"]),
                eval_every(result.get("schedule")),
                {name: result[name] for name in (*_CONFIG, *BY_ADVISOR) if name in result},
            )  # fmt: skip
            float(found.settings["gamma"]), str(found.settings["planning"])
            if not are_evaluations(found.evaluations):
                continue
        except (KeyError, TypeError, ValueError):
            continue  # another kind of job
        records.append(found)
    return records
