"""One critic, the advisors' critic, or one beside the other: soft actor-critic on robots, many seeds in one program.

    python benchmarks/continuous_study.py --envs Hopper-v5,HalfCheetah-v5 --critics one,shared,beside \\
        --seeds 8 --steps 200000 --jobs 3 --out study.json

Each environment with each kind of critics is a process of its own, `--jobs` of them at a time, whose seeds learn in one
compiled program, on a GPU where there is one. The result is one JSON file: the returns of several evaluations without
noise by seed, paired differences to one critic with 95% bootstrap intervals, and how well the advisors' values fit
what followed. Needs the extras deep and mujoco.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

CALIBRATED = 4  # games
COMMON = ("foci", "seeds", "steps", "starts", "evaluations", "games", "batch", "updates_at_once", "beside_every",
          "hidden")  # fmt: skip


def one(given: argparse.Namespace) -> dict[str, Any]:
    """All seeds of one environment with one kind of critics."""
    import multiadvisor as mad
    from multiadvisor.continuous.calibration import calibrate
    from multiadvisor.continuous.learner import ContinuousLearner
    from multiadvisor.deep.backend import jax
    from multiadvisor.settings import ContinuousSettings, Settings

    warnings.simplefilter("ignore")
    hidden = tuple(int(units) for units in given.hidden.split(","))
    own = ContinuousSettings(
        critics=given.critics, hidden=hidden, batch=given.batch, updates_at_once=given.updates_at_once,
        replay=given.steps, starts=given.starts, beside_every=given.beside_every,
    )  # fmt: skip
    task = mad.make(f"gymnasium:{given.envs}", foci=given.foci)
    learner = ContinuousLearner(task, Settings(gamma=0.99, continuous=own), seeds=range(given.seeds))
    looks: list[list[float]] = []  # [evaluations][seeds]
    training: list[list[float]] = []
    learned, start = 0.0, time.perf_counter()
    for look in range(given.evaluations):
        before, began = learner._tally.copy(), time.perf_counter()
        learner.run((look + 1) * given.steps // given.evaluations - learner.turns)
        learned += time.perf_counter() - began
        done = learner._tally - before
        training.append((done[:, 2] / np.maximum(done[:, 1], 1)).tolist())
        played = learner.evaluate_all(given.games, look)
        looks.append([float(each.score.mean()) for each in played])
        print(f"{given.envs} {given.critics}: {learner.turns} transitions, {time.perf_counter() - start:.0f} s, "
              f"return {np.mean(looks[-1]):.0f}", file=sys.stderr, flush=True)  # fmt: skip
    fits = []
    if learner.critics != "one":
        fits = [
            {name: one._asdict() for name, one in calibrate(learner, CALIBRATED, run=run).items()}
            for run in range(given.seeds)
        ]
    return {
        "environment": given.envs, "critics": given.critics, "steps": given.steps, "seeds": given.seeds,
        "hidden": hidden, "batch": given.batch, "updates_at_once": given.updates_at_once,
        "beside_every": given.beside_every, "games": given.games, "device": str(jax.devices()[0]),
        "seconds_of_learning": learned, "returns": np.array(looks).T.tolist(),
        "training": np.array(training).T.tolist(), "advisors": list(task.names), "calibration": fits,
    }  # fmt: skip


def _paired(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Differences to one critic, seed by seed: of the mean of the last half of the evaluations."""
    from multiadvisor.statistics import interval

    late = {
        (each["environment"], each["critics"]): np.array(each["returns"])[:, each_half(each) :].mean(axis=1)
        for each in found
    }
    rows = []
    for (environment, critics), scores in late.items():
        row = {"environment": environment, "critics": critics, "mean": float(scores.mean()),
               "interval": interval(scores), "final": None}  # fmt: skip
        base = late.get((environment, "one"))
        if base is not None and critics != "one":
            row |= {"less_one_critic": float((scores - base).mean()), "paired_interval": interval(scores - base)}
        rows.append(row)
    for row, each in zip(rows, found, strict=True):
        row["final"] = float(np.array(each["returns"])[:, -1].mean())
    return rows


def each_half(each: dict[str, Any]) -> int:
    """From which evaluation on they count."""
    return len(each["returns"][0]) // 2


def _flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", default="Hopper-v5,HalfCheetah-v5")
    parser.add_argument("--critics", default="one,shared,beside")
    parser.add_argument("--foci", default="info:reward_*")
    for name, value in (("seeds", 8), ("steps", 200_000), ("starts", 5_000), ("evaluations", 10), ("games", 5),
                        ("batch", 256), ("updates-at-once", 1), ("beside-every", 4), ("jobs", 3)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--hidden", default="256,256")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser


def main() -> None:
    """Start a process for each combination, and put their results together."""
    given = _flags().parse_args()
    if given.alone:
        given.out.write_text(json.dumps(one(given)))
        return
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "OMP_NUM_THREADS": "1",
                   "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
    waiting = list(product(given.envs.split(","), given.critics.split(",")))
    places = {pair: given.out.with_suffix(f".{pair[0]}.{pair[1]}.json") for pair in waiting}
    running: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
    common = []
    for name in COMMON:
        common += [f"--{name.replace('_', '-')}", str(getattr(given, name))]
    while waiting or running:
        while waiting and len(running) < given.jobs:
            pair = waiting.pop(0)
            line = [sys.executable, __file__, "--alone", "--envs", pair[0], "--critics", pair[1], *common, "--out"]
            running[pair] = subprocess.Popen([*line, str(places[pair])], env=environment)
        time.sleep(0.5)
        running = {pair: job for pair, job in running.items() if job.poll() is None}
        found = [json.loads(place.read_text()) for place in places.values() if place.is_file()]
        given.out.write_text(json.dumps({"comparison": _paired(found), "runs": found}, indent=1))
    print(json.dumps(_paired(found), indent=1))


if __name__ == "__main__":
    main()
