"""What it costs a training to be watched: blocks of it in turn, alone and with a page that follows it.

Watched, the training writes its lines, and another process serves the page; this one asks it every two seconds for all
that an open page asks for, the latest episode included. Alone, it does none of this; checkpoints are saved in both.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np

from measures.tables import machine
from multiadvisor.agent import MultiAdvisor
from multiadvisor.core.optional_dependencies import require
from multiadvisor.envs.registry import make
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.runs.live import LiveLog
from multiadvisor.runs.training import Training
from multiadvisor.settings import Schedule, Settings

_EVERY = 2.0  # seconds between two looks, as an open page has them


class _Case(NamedTuple):
    task: str
    settings: Settings
    schedule: Schedule


_CASES = {
    "CartPole, network": _Case("CartPole-v1", Settings(gamma=0.99, learner=DQN()), Schedule(30_000, 5_000, 5)),
    "Pac-Boy, tables": _Case("pac-boy", Settings(gamma=0.9), Schedule(20_000_000, 1_000_000, 80)),
}


def _asked(page: str, path: str, token: str, body: bytes | None = None) -> bytes:
    headers = {"Authorization": f"Bearer {token}", "Origin": page}
    with urlopen(Request(f"{page}/api/{path}", body, headers), timeout=300) as answer:
        found: bytes = answer.read()
        return found


@contextlib.contextmanager
def _watched(folder: Path) -> Iterator[list[float]]:
    """A page on a run, and somebody who looks at it; the CPU seconds of that thread, when it is over."""
    command = [sys.executable, "-m", "multiadvisor", "explore", str(folder), "--no-browser", "--json", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        os.setpriority(os.PRIO_PROCESS, server.pid, 10)  # as `train --watch` does
        over = threading.Event()
        try:
            page, _, ticket = json.loads(server.stdout.readline())["address"].partition("/#ticket=")
            token = json.loads(_asked(page, "enter", "", ticket.encode()))["token"]
            (run,) = json.loads(_asked(page, "runs", token))["runs"]
            _asked(page, f"runs/{run['id']}/episodes/0", token)  # started, compiled and all
            spent: list[float] = []
            looking = threading.Thread(target=_look, args=(page, token, run["id"], over, spent), daemon=True)
            looking.start()
            yield spent
            over.set()
            looking.join()
            if not spent:
                raise RuntimeError("the page did not answer while it trained: nothing was measured")
        finally:
            over.set()
            server.terminate()


def _look(page: str, token: str, run: str, over: threading.Event, spent: list[float]) -> None:
    """What an open page asks for, again and again."""
    version, lines = -1, 0
    while not over.wait(_EVERY):
        try:
            (seen,) = json.loads(_asked(page, "live", token))["runs"]
            lines = json.loads(_asked(page, f"live/{run}/{lines}", token))["count"]
            if seen["version"] != version:
                version = seen["version"]
                _asked(page, f"runs/{run}", token)
                _asked(page, f"runs/{run}/episodes/0", token)
            spent[:] = [time.thread_time()]
        except HTTPError as error:
            if error.code != 400:  # the run is being replaced at this moment: next time
                raise


def _block(case: _Case, watched: bool) -> tuple[float, float]:
    """Wall and CPU seconds of one training; who looks at it does so in this process, but is no part of it."""
    task = make(case.task)
    with tempfile.TemporaryDirectory() as folder:
        training = Training(MultiAdvisor(task, case.settings), case.schedule, out=Path(folder) / "run", by_advisor=True)
        training.agent._prepare()
        training.save()
        with _watched(Path(folder) / "run") if watched else contextlib.nullcontext([0.0]) as spent:
            log = LiveLog(training) if watched else None
            start = time.perf_counter(), time.process_time()
            training.run(log)
            taken = time.perf_counter() - start[0], time.process_time() - start[1] - sum(spent)
        if log is not None:
            log.close()
    return taken


def watch(rounds: int = 9) -> dict[str, Any]:
    """The share of its time that a training spends on being watched, on CartPole with a network and on Pac-Boy."""
    require("explorer", "deep")
    rows = []
    for name, case in _CASES.items():
        _block(case, False)  # compiled
        pairs = []
        for number in range(rounds):
            order = (False, True) if number % 2 == 0 else (True, False)
            taken = {watched: _block(case, watched) for watched in order}
            pairs.append((taken[False], taken[True]))
        times = np.array(pairs)  # [rounds, alone or watched, wall or CPU]
        ratios = times[:, 1] / times[:, 0] - 1.0  # [rounds, 2]
        rows.append({
            "case": name, "steps": case.schedule.steps,
            "seconds": float(np.median(times[:, 0, 0])),
            "wall": float(np.median(ratios[:, 0])), "cpu": float(np.median(ratios[:, 1])),
            "wall_quartiles": np.quantile(ratios[:, 0], [0.25, 0.75]).tolist(),
            "cpu_quartiles": np.quantile(ratios[:, 1], [0.25, 0.75]).tolist(),
        })  # fmt: skip
    return {"machine": machine(), "cores": os.cpu_count(), "rounds": rounds, "rows": rows}


BENCHMARKS = {"watch": watch}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}, {result['cores']} cores, medians of {result['rounds']} rounds"]
    for row in result["rows"]:
        parts = []
        for name, words in (("cpu", "of the processor's time"), ("wall", "by the clock")):
            low, high = row[f"{name}_quartiles"]
            parts.append(f"{row[name]:+.1%} {words} (quartiles {low:+.1%} to {high:+.1%})")
        lines.append(f"  {row['case']:18} {row['steps']:,} steps in {row['seconds']:.1f} s: watched, "
                     f"{' and '.join(parts)}")  # fmt: skip
    return "\n".join(lines)
