"""How long explanations take, against the number of advisors: CPU time, medians over the rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from measures.tables import machine
from multiadvisor.explain.explanation import explain_advice
from multiadvisor.explain.msx import msx

SIZES = (77, 1_000, 10_000)


def cases(n: int) -> dict[str, np.ndarray]:
    """Differences [n] of several kinds; the last are the slowest, as only exact sums can tell who wins."""
    generator = np.random.default_rng(0)
    normal = generator.normal(0.05, 1.0, n)
    paired = np.concatenate([np.abs(normal[: n // 2]), -np.abs(normal[: n // 2]), [2.0**-40]])
    return {"normal": normal, "all for it": np.abs(normal), "nearly a tie": generator.permutation(paired)}


def _milliseconds(work: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds + 1):  # the first one only warms up
        start = time.process_time()
        work()
        times.append((time.process_time() - start) * 1e3)
    return float(np.median(times[1:]))


def measure(rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of MSX+ and MSX- for each kind of differences, and of a whole explanation with four actions."""
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        for kind, differences in cases(n).items():
            found = msx(differences)
            rows.append({
                "what": f"MSX, {kind}", "advisors": len(differences),
                "ms": _milliseconds(partial(msx, differences), rounds),
                "plus": len(found.plus), "minus": len(found.minus),
            })  # fmt: skip
        advice, names = np.random.default_rng(1).normal(size=(n, 4)), [f"advisor {j}" for j in range(n)]
        whole = _milliseconds(partial(explain_advice, names, advice, np.ones(n), "NWSE"), rounds)
        rows.append({"what": "the whole explanation", "advisors": n, "ms": whole})
    return rows


def explain(rounds: int = 9) -> dict[str, Any]:
    """Milliseconds of shortest explanations, and of whole ones, against the number of advisors."""
    return {"machine": machine(), "rows": measure(rounds), "rounds": rounds}


BENCHMARKS = {"explain": explain}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    rows = [f"  {row['advisors']:6} advisors, {row['what']}: {row['ms']:.3f} ms" for row in result["rows"]]
    return "\n".join([f"machine: {result['machine']}, medians of {result['rounds']} rounds", *rows])
