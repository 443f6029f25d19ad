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
from multiadvisor.analysis.episodes import Episodes
from multiadvisor.analysis.theory.boards import has_tables
from multiadvisor.core.aggregator import Aggregator, plannings_of
from multiadvisor.errors import BadInput
from multiadvisor.explain.decisions import decider_of
from multiadvisor.explorer.branching import alternatives
from multiadvisor.explorer.curves import label, method
from multiadvisor.explorer.questions import Reasons
from multiadvisor.learners.kinds import own_settings

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
        "method": method(dataclasses.asdict(agent.settings)),
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
                {"name": _shown(aggregator, kind.name), "parameter": parameter, "additive": kind.additive}
                for kind, parameter in aggregator.parts
            ],
            "of": aggregator.of.tolist(),
        },
        "reweighted": _reweighted(agent),
        "prices": task.weights.tolist(),
        # by these, which the task came with, runs with different weights are compared; None: with its own
        "yardstick": task.yardstick.tolist() if task.measured_otherwise else None,
        "grid": None if grid is None else grid.as_dict(),
        "labels": list(task.labels[:5000]),
        "compiled": task.world is not None,
        "tries": alternatives(task),
        "paid": [{"name": advisor.name, "group": advisor.group} for advisor in task.advisors],
        "observation": list(task.observation_names),
    }


def _shown(aggregator: Aggregator, name: str) -> str:
    """The name of a part; a sum of advisors whom the aggregator has learned to weigh is not one that the page knows."""
    learned = aggregator.learned
    return learned.name if learned is not None and learned.weighs and not learned.selects else name


def _reweighted(agent: Any) -> str:
    """What other weights mean to values that were learned under the old ones."""
    if own_settings(agent.settings).summed:
        return "It has learned one value for all, under the old weights."
    if own_settings(agent.settings).entropy:
        return "Its actor was trained under the old weights, and acts as it did then."
    planning = agent.settings.planning
    who = "These" if "=" in planning else planning.capitalize()
    if any(one.needs for one in plannings_of(agent.task, planning)):
        told = "were trained under the old weights: they expect the aggregator to act as it did then."
    else:
        told = "learn values that do not depend on the weights; only which states they saw does."
    return f"{who} advisors {told}"


def _advisors(agent: Any) -> int | None:
    """How many of those who speak are advisors: what is expected of an actor's entropy is told beside them."""
    return len(agent.advisors) if own_settings(agent.settings).entropy else None


def sends_table(agent: MultiAdvisor) -> bool:
    """Whether the page gets the agent's tables, and so knows every cell; else it hears the advice of each step."""
    if agent.task.board is None or agent.task.world is None or not has_tables(agent):
        return False
    learned = agent.aggregator.learned
    if learned is not None and (learned.added or learned.weighs):  # which is not in the tables of cells
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


def episode_pack(trace: Episodes, episode: int, agent: Any) -> bytes:
    """One episode of a trace of the agent."""
    grid = agent.task.board
    span = trace.span(episode)
    reward = trace.reward[span]
    step, advisor = np.nonzero(reward)
    arrays: dict[str, np.ndarray] = {
        "action": trace.choice[span].astype(np.int32),
        "explored": trace.explored[span].astype(np.uint8),
        "reward_step": step.astype(np.int32),
        "reward_advisor": advisor.astype(np.int32),
        "reward": np.asarray(reward[step, advisor], float),
    }
    if grid is not None and trace.x is not None:
        states = trace.states(episode)  # the cells of what moves, and one bit for each item
        items = np.packbits(grid.lying(states), axis=1, bitorder="little")
        arrays |= {"cells": grid.movers(states).astype(np.int32), "items": items}
    if trace.advised or "cells" not in arrays:
        arrays |= _advice(trace, span, _advisors(agent))
    if trace.taken is not None:
        arrays["numbers"] = np.asarray(trace.action[span], float)
    if trace.header["own_score"]:
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


def _observed(trace: Episodes, episode: int) -> np.ndarray | None:
    """What was observed before each step and at the end [T + 1, d], where it is a few numbers."""
    if trace.observed is not None:
        seen = trace.observed[trace.walk(episode), :_LONGEST_OBSERVATION]
    elif trace.x is not None and trace.x.shape[1] <= _LONGEST_OBSERVATION:
        seen = trace.states(episode)
    else:
        return None
    return np.where(np.isfinite(seen), seen, 0.0).astype(float)


def _advice(trace: Episodes, span: slice, advisors: int | None) -> dict[str, np.ndarray]:
    """The advice of every step as a table of its own, and the rows [T, n] that are active, -1 where silent.

    What is told of who comes behind so many `advisors` is the entropy, [T, 2].
    """
    if not trace.advised:
        raise BadInput(f"the trace of task {trace.header['task']['name']!r} has no advice: record it with advice=True")
    asked, advice = trace.asked[span], trace.advice[span]
    own = asked[:, :advisors]
    rows = np.full(own.shape, -1, np.int32)
    rows[own] = np.arange(int(own.sum()))
    label = {} if trace.x is None else {"state": trace.x[span.start : span.stop, 0].astype(np.int32)}
    weights = np.array([one["weight"] for one in trace.header["asked"]], float)[:advisors]
    applied = trace.applied[span][:, :advisors]
    more = {}
    if (applied != np.where(own, weights, 0.0)).any():  # what their own weights are multiplied by
        more["factor"] = np.divide(applied, weights, out=np.ones(own.shape), where=weights != 0)[own]
    if trace.push is not None:
        more["push"] = trace.push[span][:, :advisors][own]
    if advisors is not None and asked[:, advisors:].any():
        more["entropy"] = advice[:, advisors:][asked[:, advisors:]]
    return {"rows": rows, "table": advice[:, :advisors][own], **label, **more}
