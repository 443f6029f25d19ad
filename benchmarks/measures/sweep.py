"""What a sweep costs beside the work itself: tiny jobs on every engine there is, and one training run for scale."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from multiadvisor.core.optional_dependencies import install, missing
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job, Tell, kind

WORKERS = 2
JOBS = {"local": 10_000, "ray": 1_000}
_WORK = 0.001  # seconds


@kind("nap")
def nap(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """A job that does nothing for a while."""
    time.sleep(config["seconds"])
    return {"number": config["number"]}


def sweep(rounds: int = 1) -> dict[str, Any]:
    """Overhead per run of each engine, for runs of a millisecond, and the time of one run of the paper's Pac-Boy."""
    from measures.tables import machine  # only here: every worker imports this file, for the work below

    engines = {"local": measure("local", JOBS["local"])}
    note = {}
    if missing("ray"):
        note = {"note": f"Ray is not installed: {install('ray')} to measure it"}
    else:
        engines["ray"] = measure("ray", JOBS["ray"])
    return {"machine": machine(), "engines": engines, "training_run": _training_run(), "rounds": 1, **note}


def measure(engine: str, jobs: int) -> dict[str, Any]:
    """Milliseconds of a worker's time that a run costs beside its work, all told and without the start."""
    with tempfile.TemporaryDirectory() as folder:
        start = _wall(Path(folder) / "start", engine, WORKERS)[0]
        wall, work, driver = _wall(Path(folder) / "jobs", engine, jobs)
    lost = wall * WORKERS - work
    return {
        "jobs": jobs, "workers": WORKERS, "work_ms": work / jobs * 1e3, "wall_seconds": wall, "start_seconds": start,
        "overhead_ms": lost / jobs * 1e3, "overhead_ms_without_start": max(lost - start * WORKERS, 0.0) / jobs * 1e3,
        "driver_cpu_ms": driver / jobs * 1e3,
    }  # fmt: skip


def _wall(folder: Path, engine: str, jobs: int) -> tuple[float, float, float]:
    """Seconds that passed, seconds of work, and seconds of the driver's own processor time."""
    listed = [Job("nap", {"number": number, "seconds": _WORK}) for number in range(jobs)]
    begun, before = time.perf_counter(), time.process_time()
    results = run_jobs(folder, listed, workers=WORKERS, engine=engine, progress=False)
    return time.perf_counter() - begun, sum(results.seconds.values()), time.process_time() - before


def _training_run() -> dict[str, Any]:
    jobs = [Job("train", {"task": "pac-boy", "settings": {"seed": seed}}) for seed in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        results = run_jobs(Path(folder), jobs, workers=WORKERS, progress=False)
        size = sum(results.path(job).stat().st_size for job in jobs) / len(jobs)
    seconds = sorted(results.seconds.values())
    return {
        "what": "pac-boy, 1,000,000 steps, evaluated every 20,000 by 80 episodes",
        "seconds": seconds[1],
        "result_bytes": size,
    }


BENCHMARKS = {"sweep": sweep}


def describe(what: str, result: dict[str, Any]) -> str:
    """A result as text."""
    lines = [f"machine: {result['machine']}"]
    for name, entry in result["engines"].items():
        lines.append(
            f"  {name:6} {entry['jobs']:,} runs of {entry['work_ms']:.2f} ms on {entry['workers']} workers: "
            f"{entry['overhead_ms']:.2f} ms of overhead a run, {entry['overhead_ms_without_start']:.2f} ms without the "
            f"start of {entry['start_seconds']:.1f} s; {entry['driver_cpu_ms']:.2f} ms of the driver's processor time"
        )
    run = result["training_run"]
    lines.append(f"  one run ({run['what']}): {run['seconds']:.2f} s, {run['result_bytes']:,.0f} bytes of result")
    return "\n".join(lines + ([f"  {result['note']}"] if "note" in result else []))
