"""The runs of `multiadvisor reproduce continuous`, many seeds in one program on a GPU where there is one.

    python benchmarks/continuous_study.py --runs Hopper-v5:beside,shared:5:300000 Hopper-v5:sbx:5:300000 \\
        --jobs 8 --out study.json

A run is ENVIRONMENT:KINDS:SEEDS:STEPS. Each environment with each kind is a process of its own (`--together`: one for
so many seeds), and each seed of SBX, which has no other way to learn side by side. Kinds are those of
`studies.continuous_runs` and of critic_variants.py. What was found is written after every evaluation.
After `--seconds`, or when it receives SIGTERM, a study ends early: each run stops after its next evaluation, and its
calibration is measured. `multiadvisor reproduce continuous --from study.json` judges it. Needs the extras deep, mujoco
and, for SBX, benchmarks; racetrack-v0 needs highway-env.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any


def one(text: str, place: Path) -> None:
    """All seeds of one run, here; what it has found is in its file after every evaluation."""
    import critic_variants  # noqa: F401  (more kinds of runs)
    from multiadvisor.learners.dqn.backend import jax
    from studies.continuous_runs import Run, results

    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    given = json.loads(text)
    run = Run(**{**given, "seeds": tuple(given["seeds"])})
    start = time.perf_counter()
    for found in results(run, lambda: bool(told)):
        found |= {"device": str(jax.devices()[0]), "seconds": time.perf_counter() - start}
        whole = place.with_suffix(".new")
        whole.write_text(json.dumps(found))
        whole.replace(place)
        print(f"{run.environment} {run.kind} {run.seeds}: {found['steps']} steps, {found['seconds']:.0f} s, "
              f"{[round(scores[-1]) for scores in found.get('returns', [])]}", file=sys.stderr, flush=True)  # fmt: skip


def planned(given: argparse.Namespace) -> list[dict[str, Any]]:
    """The processes, as what each is told."""
    from studies.continuous_runs import Run

    asked = []
    for text in given.runs:
        environment, kinds, seeds, steps = text.split(":")
        numbers = range(given.first_seed, given.first_seed + int(seeds))
        for kind in kinds.split(","):
            size = 1 if kind == "sbx" else given.together or len(numbers)
            parts = [tuple(numbers[first : first + size]) for first in range(0, len(numbers), size)]
            asked += [Run(environment, kind, part, int(steps), given.evaluations, given.episodes, given.at_once,
                          given.units, given.batch, given.starts, given.gamma) for part in parts]  # fmt: skip
    return [asdict(run) for run in asked]


def _flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", nargs="+", default=["Hopper-v5:beside,shared:5:300000"])
    for name, value in (("first-seed", 0), ("evaluations", 10), ("episodes", 5), ("at-once", 8), ("units", 256),
                        ("batch", 256), ("starts", 5_000), ("jobs", 2), ("together", 0)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--seconds", type=float, help="end early what has not ended by then")
    parser.add_argument("--sbx-on-cpu", action="store_true", help="one core for each run of SBX")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    return parser


def main() -> None:
    """Start the processes, `--jobs` at a time, and put together what they found."""
    given = _flags().parse_args()
    if given.alone:
        one(given.alone, given.out)
        return
    waiting, start = planned(given), time.monotonic()
    folder = given.out.with_suffix(".parts")
    folder.mkdir(parents=True, exist_ok=True)
    places = [folder / f"{number}.json" for number in range(len(waiting))]
    common = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "OMP_NUM_THREADS": "1",
              "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
    one_core = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    running: dict[int, subprocess.Popen[bytes]] = {}
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    todo = list(range(len(waiting)))
    while todo or running:
        while todo and len(running) < given.jobs:
            number = todo.pop(0)
            line = [sys.executable, __file__, "--alone", json.dumps(waiting[number]), "--out", str(places[number])]
            own = waiting[number]["kind"] == "sbx" and given.sbx_on_cpu
            place = {**common, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": one_core} if own else common
            running[number] = subprocess.Popen(line, env=place)
        time.sleep(0.5)
        if told or (given.seconds and time.monotonic() - start > given.seconds):
            todo = []
            for job in running.values():
                job.terminate()
        running = {number: job for number, job in running.items() if job.poll() is None}
        found = [json.loads(place.read_text()) for place in places if place.is_file()]
        given.out.write_text(json.dumps({"runs": found}))


if __name__ == "__main__":
    main()
