"""From an agent and its episodes to what the page is sent: a JSON header and binary arrays, each number once.

The tables go over as float64, so that the page's sums are the library's. A step is the state x on a grid, and
elsewhere the rows of the table that the advisors look at. The page computes what other weights would do; sentences are
the library's, one for each step.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.boards import has_tables
from multiadvisor.core.aggregations import SELECTIONS
from multiadvisor.core.aggregator import plannings_of
from multiadvisor.core.board_layout import Grid
from multiadvisor.errors import BadInput
from multiadvisor.explain.decisions import decider_of
from multiadvisor.explorer.curves import label
from multiadvisor.explorer.reasons import Reasons
from multiadvisor.learners.registry import own_settings
from multiadvisor.runs.trace import Trace

_LARGEST_TABLE = 64 << 20  # bytes
_LONGEST_OBSERVATION = 24  # numbers that the page draws over time
_ENTROPY = (
    "It is no advisor and no reward: what the critic expects of acting unpredictably from here on, for which the actor "
    "is trained too."
)
_TYPES = {"float64": "f8", "int32": "i4", "uint8": "u1"}


def pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """One message: the header's length, the header as JSON, then the arrays, each at a multiple of 8 bytes.

    >>> len(pack({}, {"a": np.zeros(3)})) % 8
    0
    """
    listed, bodies, offset = [], [], 0
    for name, array in arrays.items():
        body = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        listed.append({"name": name, "type": _TYPES[array.dtype.name], "shape": list(array.shape), "offset": offset})
        bodies.append(body + b"\0" * (-len(body) % 8))
        offset += len(bodies[-1])
    text = json.dumps({**header, "arrays": listed}, allow_nan=False).encode()
    text += b" " * (-(len(text) + 8) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(bodies)


def describe(agent: MultiAdvisor, name: str) -> dict[str, Any]:
    """What the page shows of a run before it has any number of it."""
    task, grid, decider = agent.task, agent.task.board, decider_of(agent)
    box, advisors = None if task.adapter is None else task.adapter.box, decider.asked[: _advisors(agent)]
    aggregator = decider.combined._replace(of=decider.combined.of[: len(advisors)])
    return {
        "name": name,
        "task": task.name,
        "label": label(dataclasses.asdict(agent.settings), task.options),
        "settings": dataclasses.asdict(agent.settings),
        "caveat": getattr(agent.settings, "caveat", ""),
        "steps": getattr(agent, "steps", 0),
        "actions": list(decider.choices),
        "numbers": None if box is None else {**box.bounds(), "names": list(task.actions)},
        "entropy": _ENTROPY,
        "pointing": own_settings(agent.settings).points,
        # a network may have others than the task, which is paid
        "advisors": [{"name": one.name, "group": one.group, "weight": float(one.weight)} for one in advisors],
        "aggregation": agent.settings.aggregation,
        "aggregator": {
            "parts": [
                {"name": kind.name, "parameter": parameter, "additive": kind.additive}
                for kind, parameter in aggregator.parts
            ],
            "of": aggregator.of.tolist(),
        },
        "asks": any(planning.needs for planning in plannings_of(task, agent.settings.planning)),
        "prices": task.weights.tolist(),
        # by these, which the task came with, runs with different weights are compared; None: with its own
        "yardstick": task.yardstick.tolist() if task.measured_otherwise else None,
        "gammas": task.gammas(agent.settings.gamma).tolist(),
        "grid": None if grid is None else grid.as_dict(),
        "labels": list(task.labels[:5000]),
        "compiled": task.world is not None,
        "paid": [{"name": advisor.name, "group": advisor.group} for advisor in task.advisors],
        "observation": list(task.observation_names),
    }


def _advisors(agent: Any) -> int | None:
    """How many of those who speak are advisors: what is expected of an actor's entropy is told beside them."""
    return len(agent.advisors) if own_settings(agent.settings).entropy else None


def sends_table(agent: MultiAdvisor) -> bool:
    """Whether the page gets the agent's tables, and so knows every cell; else it hears the advice of each step."""
    if agent.task.board is None or agent.task.world is None or not has_tables(agent):
        return False
    if len(agent.advisors) != agent.task.n:  # a correction looks at the whole state, and not at a cell
        return False
    if agent.settings.aggregation in SELECTIONS:  # who is in control is not in the tables
        return False
    return agent.tables.table.nbytes <= _LARGEST_TABLE


def run_pack(agent: MultiAdvisor, name: str) -> bytes:
    """The run: its descriptor and, on a grid, the one flat table and where each advisor's rows lie in it."""
    if not sends_table(agent):
        return pack(describe(agent, name), {})
    learner = agent.tables
    return pack(
        describe(agent, name), {"table": np.asarray(learner.table, float), "layout": learner.layout.astype(np.int32)}
    )


def episode_pack(trace: Trace, episode: int, agent: Any) -> bytes:
    """One episode of a trace of the agent."""
    grid = agent.task.board
    span = trace.span(episode)
    paid = (trace.reward_step >= span.start) & (trace.reward_step < span.stop)
    arrays = {
        "action": trace.choice[span].astype(np.int32),
        "explored": trace.explored[span].astype(np.uint8),
        "reward_step": (trace.reward_step[paid] - span.start).astype(np.int32),
        "reward_advisor": trace.reward_advisor[paid].astype(np.int32),
        "reward": np.asarray(trace.reward[paid], float),
    }
    if grid is not None and trace.x is not None:
        arrays |= _on_grid(grid, trace.states(episode))
    if trace.advice is not None or "cells" not in arrays:
        arrays |= _advice(trace, span, _advisors(agent))
    if trace.taken is not None:
        arrays["numbers"] = np.asarray(trace.action[span], float)
    if trace.gain is not None:
        arrays["earned"] = trace.gain[span]
    if (observed := _observed(trace, episode)) is not None:
        arrays["observed"] = observed
    reasons, more = Reasons(agent, trace, episode).all()
    arrays |= more
    header = {
        "seed": trace.header["seed"], "steps": span.stop - span.start, "terminated": bool(trace.terminated[episode]),
        "reasons": reasons,
    }  # fmt: skip
    return pack(header, arrays)


def _observed(trace: Trace, episode: int) -> np.ndarray | None:
    """What was observed before each step and at the end [T + 1, d], where it is a few numbers."""
    span = trace.span(episode)
    if trace.observed is not None:
        seen = trace.observed[span.start + episode : span.stop + episode + 1, :_LONGEST_OBSERVATION]
    elif trace.x is not None and trace.x.shape[1] <= _LONGEST_OBSERVATION:
        seen = trace.states(episode)
    else:
        return None
    return np.where(np.isfinite(seen), seen, 0.0).astype(float)


def _on_grid(grid: Grid, states: np.ndarray) -> dict[str, np.ndarray]:
    """x [T + 1, size] as the cells of what moves and one bit for each item."""
    items = np.packbits(grid.lying(states), axis=1, bitorder="little")
    return {"cells": grid.movers(states).astype(np.int32), "items": items}


def _advice(trace: Trace, span: slice, advisors: int | None) -> dict[str, np.ndarray]:
    """The advice of every step as a table of its own, and the rows [T, n] that are active, -1 where silent.

    What is told of who comes behind so many `advisors` is the entropy, [T, 2].
    """
    if trace.active is None or trace.advice is None:
        raise BadInput(f"the trace of task {trace.header['task']['name']!r} has no advice: record it with advice=True")
    active, said = trace.active[span][:, :advisors], trace.rows(span.start, span.stop)
    own = np.nonzero(trace.active[span])[1] < active.shape[1]  # of these rows
    rows = np.full(active.shape, -1, np.int32)
    rows[active] = np.arange(int(active.sum()))
    label = {} if trace.x is None else {"state": trace.x[span.start : span.stop, 0].astype(np.int32)}
    beside = {name: getattr(trace, name) for name in ("voice", "push")}
    more = {name: np.asarray(array[said][own], float) for name, array in beside.items() if array is not None}
    if not own.all():
        more["entropy"] = np.asarray(trace.advice[said][~own], float)
    return {"rows": rows, "table": np.asarray(trace.advice[said][own], float), **label, **more}
