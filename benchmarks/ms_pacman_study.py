"""Runs of `multiadvisor reproduce ms-pacman`, side by side on a machine with many cores and within a time limit.

    python benchmarks/ms_pacman_study.py results.jsonl --jobs 16 --seconds 540 --seeds 0,1,2
    python benchmarks/ms_pacman_study.py results.jsonl --jobs 1 --seconds 9000 --seeds 3,4,5 --only shipped \
        --steps 520000

A line of JSON is written as each run ends; those in the file already are not run again, so that the same command goes
on where it stopped. `multiadvisor reproduce ms-pacman --from results.jsonl` takes them up.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any


def run(entry: tuple[str, str, dict[str, Any], float, float]) -> tuple[str, str, dict[str, Any], float, dict[str, Any]]:
    """One run, within so many seconds and steps: its name, id, config, seconds of the processor, and result."""
    from studies import ms_pacman

    name, identity, config, seconds, steps = entry
    start, began, told = time.process_time(), time.monotonic(), [0]

    def tell(share: float) -> None:
        if int(10 * share) > told[0]:
            told[0] = int(10 * share)
            print(f"  {name}, seed {config['seed']}: {share:.0%} after {time.monotonic() - began:.0f} s", flush=True)

    result = ms_pacman.run(
        config, tell=tell, late=lambda share: time.monotonic() - began > share * seconds, steps=steps
    )
    return name, identity, config, time.process_time() - start, result


def wanted(given: argparse.Namespace) -> list[tuple[str, str, dict[str, Any]]]:
    """All runs, the first ones first: every setting with one seed before the next seed; or those of a file."""
    from multiadvisor.runs.jobs import Job
    from studies import ms_pacman

    settings = json.loads(given.settings.read_text()) if given.settings else ms_pacman.SETTINGS
    names = [name for name in settings if not given.only or any(part in name for part in given.only.split("|"))]
    seeds = [int(seed) for seed in given.seeds.split(",")]
    order = [(name, seed) for seed in seeds for name in names if name == ms_pacman.BASE]
    order += [(name, seed) for seed in seeds for name in names if name != ms_pacman.BASE]
    if given.plan:
        order = [tuple(pair) for pair in json.loads(given.plan.read_text())]
    found = []
    for name, seed, *episodes in order:
        plain = {"settings": {}, "options": {}, **settings[name]}
        config = {
            **plain,
            "seed": seed,
            "episodes": episodes[0] if episodes else given.episodes,
            "evaluation": given.evaluation,
        }
        found.append((name, Job("ms-pacman", config).id, config))
    return found


def main() -> None:
    """Run what is missing until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--evaluation", type=int, default=30)
    parser.add_argument("--only", help="settings whose names hold one of these, with | between them")
    parser.add_argument(
        "--plan", type=Path, help="a JSON file of [name, seed] or [name, seed, episodes], in this order"
    )
    parser.add_argument("--each", type=float, default=1e9, help="seconds for a run: it plays less, if need be")
    parser.add_argument("--steps", type=float, default=math.inf, help="steps of a run: 520000 are the default of train")
    parser.add_argument("--settings", type=Path, help="a JSON file of other settings, by name")
    given = parser.parse_args()
    start = time.monotonic()
    done = set()
    if given.out.exists():
        done = {json.loads(line)["id"] for line in given.out.read_text().splitlines()}
    missing = [entry for entry in wanted(given) if entry[1] not in done]
    print(f"{len(done)} runs are there, {len(missing)} are missing", flush=True)
    if missing:
        run(("compiling", "", {**missing[0][2], "episodes": 1, "evaluation": 1}, 1e9, given.steps))  # once for all
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=1) as pool, given.out.open("a") as out:
        running = pool.imap_unordered(run, [(*entry, given.each, given.steps) for entry in missing])
        for _ in missing:
            try:
                name, identity, config, seconds, result = running.next(timeout=given.seconds - time.monotonic() + start)
            except multiprocessing.TimeoutError:
                print("the time is up: the same command goes on", flush=True)
                break
            line = {"id": identity, "name": name, "seconds": round(seconds), "config": config, "result": result}
            out.write(json.dumps(line) + "\n")
            out.flush()
            mean = sum(result["scores"]) / max(len(result["scores"]), 1)
            mazes = [result["mazes"].count(k) for k in (1, 2, 3, 4)]
            last = result["learning"][-50:]
            print(f"{name}, seed {config['seed']}: {mean:,.0f} in {len(result['scores'])} episodes after "
                  f"{len(result['learning'])}, {sum(last) / len(last):,.0f} in the last {len(last)} while learning, "
                  f"mazes {mazes}, "
                  f"{result['frames']:,} frames, {seconds:.0f} s", flush=True)  # fmt: skip
        pool.terminate()


if __name__ == "__main__":
    main()
