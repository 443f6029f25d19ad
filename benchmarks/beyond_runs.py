"""The runs of `multiadvisor reproduce beyond --full` by plain processes, within a time budget, into one file.

python benchmarks/beyond_runs.py --workers 16 --minutes 8 --out beyond.json

Called again with the same file it goes on where it was. `multiadvisor reproduce beyond --full --from beyond.json` makes
the report of it, and runs what is missing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

from multiadvisor.runs.jobs import Job, perform
from multiadvisor.storage.files import write_atomically
from multiadvisor.studies.study import Plan
from studies import schemes
from studies.beyond import STUDY

SAVE_SECONDS = 20.0


def work(order: tuple[str, dict, float]) -> tuple[str, dict | None, float]:
    """One job; those that are begun after the end of the budget are left alone."""
    kind, config, end = order
    if time.time() > end:
        return "", None, 0.0
    start = time.time()
    return Job(kind, config).id, perform(kind, config, None, lambda fraction: None), time.time() - start


def compiled() -> None:
    """Compile both loops before the processes are forked, which then share them."""
    tiny = Plan(what="beyond", seeds=2, epochs=1, transitions=100, episodes=1)
    for scheme in (schemes.EMPATHIC, schemes.EMP_MAX):
        schemes.run_work(schemes.run_job(scheme, schemes.pac_boy(), 0, tiny).config)


def save(out: Path, plan: Plan, results: dict[str, dict]) -> None:
    """The file: the plan's length, and the results by the id of their job."""
    data = {"seeds": plan.seeds, "epochs": plan.epochs, "results": results}
    write_atomically(out, (json.dumps(data, separators=(",", ":"), sort_keys=True) + "\n").encode())


def main() -> int:
    """Run what is missing, and say how far it came."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--first", type=int, metavar="JOBS", help="only so many of them, for a rehearsal")
    parser.add_argument("--out", type=Path, default=Path("beyond.json"))
    given = parser.parse_args()
    end = time.time() + 60 * given.minutes
    plan = Plan.of("beyond", True, given.seeds, given.epochs, "paper")
    jobs = STUDY.jobs(plan)[: given.first]
    results: dict[str, dict] = json.loads(given.out.read_bytes())["results"] if given.out.exists() else {}
    left = [job for job in jobs if job.id not in results]
    print(f"{len(jobs)} jobs, {len(jobs) - len(left)} of them done before", flush=True)
    compiled()
    print(f"compiled; {given.workers} processes", flush=True)
    seconds: Counter[str] = Counter()
    saved = time.time()
    with multiprocessing.get_context("fork").Pool(given.workers) as pool:
        for name, result, took in pool.imap_unordered(work, [(job.kind, job.config, end) for job in left], chunksize=2):
            if result is not None:
                results[name] = result
                seconds["work"] += int(1000 * took)
                seconds["jobs"] += 1
            if time.time() - saved > SAVE_SECONDS:
                save(given.out, plan, results)
                saved = time.time()
                print(f"{len(results)} of {len(jobs)}, {end - saved:.0f} s left", flush=True)
    save(given.out, plan, results)
    missing = sum(job.id not in results for job in jobs)
    print(f"{seconds['jobs']} jobs now, {seconds['work'] / 1000:.0f} s of work, {missing} left; {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
