"""`multiadvisor reproduce`: a plan in, a folder with the report out; stopped anywhere, it goes on from there."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput
from multiadvisor.runs.driver import Results, run_jobs
from multiadvisor.runs.jobs import Job, lease_of
from multiadvisor.storage.files import check_writable, write_atomically
from multiadvisor.studies.claims import ClaimResult, counts
from multiadvisor.studies.parts import Evidence, Plan, parts, unique
from multiadvisor.studies.study_report import build
from multiadvisor.version import VERSION

MARK = "report.json"
RUNS = "runs"
FORMAT = 1
TABULAR = ("train", "scheme")  # kinds whose jobs learn tables


def take_folder(out: Path, plan: Plan) -> None:
    """Make the folder this report's own, or refuse one that is somebody else's; nothing in it is ever overwritten."""
    check_writable(out)
    mark = {"format": FORMAT, "version": VERSION, "plan": asdict(plan)}
    if out.exists() and any(not path.name.startswith(f".{MARK}.") for path in out.iterdir()):
        held = _read_mark(out)
        if held.get("version") != VERSION or held.get("format") != FORMAT:
            raise BadInput(
                f"{str(out)!r} holds a report of version {held.get('version')!r}, this is {VERSION!r}: name another "
                "folder, or remove it"
            )
        changed = [name for name, value in mark["plan"].items() if held.get("plan", {}).get(name) != value]  # type: ignore[attr-defined]
        if changed:
            was = held.get("plan", {}).get(changed[0])
            raise BadInput(
                f"{str(out)!r} holds a report with another {changed[0].replace('_', '-')} ({was!r}): give the same "
                "flags to continue it, or name another folder"
            )
    for leftover in [*out.glob(".*.part"), *out.glob("figures/.*.part"), *out.glob("videos/.*.part")]:
        with contextlib.suppress(OSError):
            leftover.unlink()  # of a write that was cut short
    write_atomically(out / MARK, (json.dumps(mark, indent=1) + "\n").encode())


def _read_mark(out: Path) -> dict[str, Any]:
    if not (out / MARK).exists():
        raise BadInput(f"{str(out)!r} exists and holds no report: name a new or empty folder")
    try:
        held = json.loads((out / MARK).read_bytes())
    except (OSError, ValueError, RecursionError):
        held = None
    if not isinstance(held, dict) or not isinstance(held.get("plan"), dict):
        raise BadInput(f"{str(out / MARK)!r} is no mark of a report: name another folder")
    return held


def ordered(jobs: Sequence[Job]) -> list[Job]:
    """Those that may be silent longest take longest: begun early, so that no core waits for the last of them."""
    return sorted(jobs, key=lambda job: -lease_of(job.kind))


class Measurement:
    """What an invocation took; no part of the report itself, which is the same every time."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.stages: dict[str, dict[str, Any]] = {}

    def run(self, name: str, folder: Path, jobs: list[Job], workers: int | None) -> Results:
        """Run jobs, and note how many were done now, how long that took, and how many steps they learned from."""
        before = {path.stem for path in (folder / "results").glob("*.json")}
        start = time.perf_counter()
        results = run_jobs(folder, jobs, workers=workers, title=name)
        seconds = time.perf_counter() - start
        new = [job for job in jobs if job.id not in before]
        learned = sum(_steps(job) for job in new)
        self.stages[name] = {
            "jobs": len(jobs), "done_now": len(new), "seconds": seconds,
            "work_seconds": sum(results.seconds[job.id] for job in jobs), "steps": learned,
            "steps_per_second": learned / seconds if new and seconds > 0 else None,
        }  # fmt: skip
        return results

    def as_dict(self, workers: int | None) -> dict[str, Any]:
        """machine.json."""
        return {
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
            "cores": len(os.sched_getaffinity(0)), "workers": workers or len(os.sched_getaffinity(0)),
            "seconds": time.perf_counter() - self.began, "stages": self.stages,
        }  # fmt: skip


def _steps(job: Job) -> int:
    schedule = job.config.get("run", job.config).get("schedule") if job.kind in TABULAR else None
    return schedule["steps"] if isinstance(schedule, dict) else 0


def given_results(path: Path) -> dict[str, Any]:
    """Results that were computed elsewhere, by the id of their job: a file of `benchmarks/beyond_runs.py`."""
    try:
        found = json.loads(path.read_bytes())["results"]
        if not isinstance(found, dict) or not all(isinstance(result, dict) for result in found.values()):
            raise TypeError("no results by the id of their job")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{str(path)!r} holds no results: {error}") from None
    return found


def reproduce(plan: Plan, out: Path, workers: int | None = None, given: Path | None = None) -> dict[str, Any]:
    """Run what is missing, write the report, say what came out; what is `given` in a file is not run again."""
    require("plots", "video", "deep")
    held = {} if given is None else given_results(given)
    take_folder(out, plan)
    measured = Measurement()
    jobs = unique(job for part in parts(plan.what) for job in part.jobs(plan))
    evidence: dict[str, Any] = {job.id: held[job.id] for job in jobs if job.id in held}
    left = [job for job in jobs if job.id not in held]
    tabular = [job for job in left if job.kind in TABULAR]
    others = ordered([job for job in left if job.kind not in TABULAR])
    for name, chosen in (("tabular runs", tabular), ("other runs", others)):
        if chosen:
            results = measured.run(name, out / RUNS, chosen, workers)
            evidence |= {job.id: results[job.id] for job in chosen}
    start = time.perf_counter()
    judged = build(Evidence(plan, evidence), out)
    measured.stages["report"] = {"seconds": time.perf_counter() - start}
    machine = measured.as_dict(workers)
    write_atomically(out / "machine.json", (json.dumps(machine, indent=1) + "\n").encode())
    return {"report": str(out / "report.html"), "claims": counts(judged), "machine": machine, **_tables(evidence, plan),
            "judged": [one.as_dict() for one in judged if one.judgement is not None]}  # fmt: skip


def _tables(evidence: dict[str, Any], plan: Plan) -> dict[str, Any]:
    if plan.what not in ("all", "pac-boy"):
        return {}
    from multiadvisor.studies.pac_boy_study import SETTINGS, table

    return {"table": table(Evidence(plan, evidence), SETTINGS)}


def said(result: dict[str, Any], judged: list[ClaimResult] | None = None) -> str:
    """The report's first lines for a terminal, with the throughput."""
    found = result["claims"]
    lines = [f"claims: {', '.join(f'{count} {verdict}' for verdict, count in found.items())}"]
    for name, stage in result["machine"]["stages"].items():
        speed = stage.get("transitions_per_second")
        about = f" ({stage['done_now']} of {stage['jobs']} jobs done now)" if "jobs" in stage else ""
        pace = f", {stage['transitions']:,} transitions, {speed:,.0f} a second" if speed else ""
        lines.append(f"{name}: {stage['seconds']:.0f} s{about}{pace}")
    return "\n".join([*lines, f"in all {result['machine']['seconds']:.0f} s; the report is {result['report']}"])
