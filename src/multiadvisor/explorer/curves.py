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

from multiadvisor.errors import short
from multiadvisor.learners.registry import AUTO, LEARNERS
from multiadvisor.runs.ledger import read_result
from multiadvisor.runs.logs import MEASURES
from multiadvisor.task import BY_ADVISOR

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

    @property
    def label(self) -> str:
        """Its settings in a few words."""
        return label(self.settings, self.options)


def is_evaluation(kept: Any) -> bool:
    """Whether a record of an evaluation can be drawn.

    >>> is_evaluation({"steps": 1, "score": 2.5, "length": None}), is_evaluation({"steps": 1, "score": "much"})
    (True, False)
    """
    return (
        isinstance(kept, dict)
        and isinstance(kept.get("steps"), int)
        and all(isinstance(kept.get(name), int | float | None) for name in (*MEASURES, OWN))
        and isinstance(kept.get("metrics", {}), dict)
        and all(isinstance(value, int | float) for value in kept.get("metrics", {}).values())
    )


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
        seeds = settings.setdefault(_key([record.task, record.options, same, record.eval_every]), {})
        seed = _key(record.settings.get("seed"))
        if len(record.evaluations) > (len(seeds[seed].evaluations) if seed in seeds else 0):
            seeds[seed] = record
    groups = [group for seeds in settings.values() if seeds for group in _by_steps(list(seeds.values()))]
    firsts = [group[0] for group in groups]
    return [_curve(group, name) for group, name in zip(groups, names_of(firsts), strict=True)]


def _key(parts: Any) -> str:
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
    figures = curve["figures"] = {}
    metrics = dict.fromkeys(name for record in group for kept in record.evaluations for name in kept.get("metrics", {}))
    for measure in (*MEASURES, *metrics):
        values = [[_measured(record.evaluations[k], measure) for record in group] for k in range(len(steps))]
        if any(value is None for row in values for value in row):
            continue
        table = np.array(values, float)  # [evaluations, runs]
        low, high = intervals(table)
        figures[measure] = {"mean": table.mean(axis=1).tolist(), "low": low.tolist(), "high": high.tolist()}
    return curve


def _measured(kept: dict[str, Any], measure: str) -> Any:
    """A figure of an evaluation: scores all by the same weights."""
    if measure in MEASURES:
        return kept.get(OWN, kept.get(measure)) if measure == "score" else kept.get(measure)
    return kept.get("metrics", {}).get(measure)


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


# ---- what to call them -----------------------------------------------------------------------------------------------
_NAMED = 4  # weights
_SAID = ("planning", "learner name", "gamma", "aggregation", "noise", "seed")  # in the label, or of no matter


def label(settings: dict[str, Any], options: Mapping[str, Any] | None = None) -> str:
    """Settings in two words: how it plans, where that matters, and what learns, unless it is tables; and the weights.

    >>> label({"planning": "empathic", "learner": {"name": "linear"}, "gamma": 0.9})
    'linear 0.9'
    >>> label({"planning": "egocentric", "gamma": 0.9, "aggregation": "fruits=max"})
    'egocentric 0.9, fruits=max'
    >>> label({"planning": "empathic", "gamma": 0.99, "learner": {"name": "dqn", "split": "groups"}})
    'empathic dqn 0.99'
    >>> label({"planning": "empathic", "gamma": 0.99}, {"weights": {"alive": 0.1, "speed": 2.0}})
    'empathic 0.99, weights alive=0.1 speed=2'
    """
    name = (settings.get("learner") or {}).get("name", "tabular")
    kind = LEARNERS.get(name)
    words = [settings["planning"]] if kind is None or kind.plans else []
    words += [name] if name not in ("tabular", AUTO) else []
    text = f"{' '.join(words)} {settings['gamma']:g}"
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
    facts = [_facts(record) for record in records]
    names = []
    for record, own in zip(records, facts, strict=True):
        base = record.label
        others = [
            fact for other, fact in zip(records, facts, strict=True)
            if other.task == record.task and other.label == base
        ]  # fmt: skip
        told = [name for name in own if len({_key(fact.get(name)) for fact in others}) > 1]
        names.append(", ".join([base, *(_phrase(name, own[name]) for name in told)]))
    return names


def _facts(record: Record) -> dict[str, Any]:
    """All that two runs of one task may differ in and that their label does not say, each by its name."""
    found: dict[str, Any] = {}
    for name, value in {**record.settings, **record.options}.items():
        if name == "learner" and isinstance(value, dict):
            found |= {f"{name} {part}": inner for part, inner in (value or {}).items()}
        else:
            found[name] = value
    last = record.evaluations[-1]["steps"] if record.evaluations else 0
    found |= {"steps": last, "eval_every": record.eval_every}
    return {name: value for name, value in found.items() if name not in _SAID}


def _phrase(name: str, value: Any) -> str:
    """One of them in words.

    >>> _phrase("learner learning_rate", 1e-3), _phrase("steps", 2000), _phrase("learner hidden", [8])
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
            )  # fmt: skip
            float(found.settings["gamma"]), str(found.settings["planning"])
            if not all(map(is_evaluation, found.evaluations)):
                continue
        except (KeyError, TypeError, ValueError):
            continue  # another kind of job
        records.append(found)
    return records
