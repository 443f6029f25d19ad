"""How long one question takes to an agent that has learned: CPU time, medians over the rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from measures.tables import crowd, machine
from multiadvisor.agent import MultiAdvisor
from multiadvisor.envs.registry import make
from multiadvisor.task import Task

SIZES = (77, 770, 7700)
_QUESTIONS = ("act", "advice", "explain")
_BLOCK_SECONDS = 0.02  # how long a question is asked again and again in a round


def _microseconds(work: Callable[[], Any]) -> float:
    """Of one call, in a block of calls."""
    calls, start = 0, time.process_time()
    while (taken := time.process_time() - start) < _BLOCK_SECONDS:
        for _ in range(10):
            work()
        calls += 10
    return taken / calls * 1e6


def _row(task: Task, rounds: int) -> dict[str, Any]:
    agent, state = MultiAdvisor(task).learn(2_000, progress=False), task.initial_state()
    row: dict[str, Any] = {"task": task.name, "advisors": task.n, "active": len(agent.advice(state)[0])}
    for name in _QUESTIONS:
        ask = partial(getattr(agent, name), state)
        ask()  # compiled
        row[f"{name}_us"] = float(np.median([_microseconds(ask) for _ in range(rounds)]))
    return row


def act(rounds: int = 9) -> dict[str, Any]:
    """Microseconds of `act`, `advice` and `explain`, all advisors active: Pac-Boy, and crowds of 77 to 7,700."""
    tasks = [make("pac-boy"), *(crowd(n, n) for n in SIZES)]
    return {"machine": machine(), "rows": [_row(task, rounds) for task in tasks], "rounds": rounds}


BENCHMARKS = {"act": act}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}, medians of {result['rounds']} rounds"]
    for row in result["rows"]:
        times = ", ".join(f"{name} {row[f'{name}_us']:,.1f} us" for name in _QUESTIONS)
        lines.append(f"  {row['task']:13} {row['advisors']:5} advisors, {row['active']:5} active: {times}")
    return "\n".join(lines)
