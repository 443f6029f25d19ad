"""`multiadvisor reproduce`: a plan in, a folder with the report out; stopped anywhere, it goes on from there."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput
from multiadvisor.runs.driver import Results, run_jobs
from multiadvisor.runs.jobs import Job, kind_named
from multiadvisor.storage.files import check_writable, write_atomically
from multiadvisor.studies.claims import counts, verdict
from multiadvisor.studies.study import SYSTEMS, Evidence, Plan, chosen, unique
from multiadvisor.studies.study_report import MARK, StudyReport, build, reports
from multiadvisor.version import VERSION

RUNS = "runs"
FORMAT = 2
TABULAR = ("train", "scheme")  # kinds whose jobs learn tables


# ---- the folder ------------------------------------------------------------------------------------------------------
def take_folder(out: Path, plan: Plan) -> None:
    """Make the folder this report's own, or refuse one that is somebody else's; nothing in it is ever overwritten.

    Systems of the literature share a folder, whatever their number of seeds: equal runs are done once.
    """
    check_writable(out)
    shared = chosen(plan.what)[0].report == SYSTEMS
    own = {"what": SYSTEMS} if shared else asdict(plan)
    if out.exists() and any(not path.name.startswith(f".{MARK}.") for path in out.iterdir()):
        held = _read_mark(out)
        if held.get("version") != VERSION or held.get("format") != FORMAT:
            raise BadInput(
                f"{str(out)!r} holds a report of version {held.get('version')!r}, this is {VERSION!r}: name another "
                "folder, or remove it"
            )
        was = held["plan"]
        changed = [name for name, value in own.items() if was.get(name) != value]
        if changed:
            raise BadInput(
                f"{str(out)!r} holds a report with another {changed[0].replace('_', '-')} ({was.get(changed[0])!r}): "
                "give the same flags to continue it, or name another folder"
            )
    for leftover in [*out.glob(".*.part"), *out.glob("**/figures/.*.part"), *out.glob("videos/.*.part")]:
        with contextlib.suppress(OSError):
            leftover.unlink()  # of a write that was cut short
    mark = {"format": FORMAT, "version": VERSION, "plan": own}
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


# ---- the runs --------------------------------------------------------------------------------------------------------
def _run(name: str, folder: Path, jobs: list[Job], workers: int | None, engine: str) -> tuple[Results, dict[str, Any]]:
    """Run jobs, and say how many were done now, how long that took, and how many steps they learned from."""
    before = {path.stem for path in (folder / "results").glob("*.json")}
    start = time.perf_counter()
    results = run_jobs(folder, jobs, workers=workers, engine=engine, title=name)
    seconds = time.perf_counter() - start
    new = [job for job in jobs if job.id not in before]
    learned = sum(_steps(job) for job in new)
    return results, {
        "jobs": len(jobs), "done_now": len(new), "seconds": seconds,
        "work_seconds": sum(results.seconds[job.id] for job in jobs), "steps": learned,
        "steps_per_second": learned / seconds if new and seconds > 0 else None,
    }  # fmt: skip


def _machine(workers: int | None, began: float, stages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """machine.json: what an invocation took; no part of the report itself, which is the same every time."""
    cores = len(os.sched_getaffinity(0))
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "cores": cores, "workers": workers or cores, "seconds": time.perf_counter() - began, "stages": stages,
    }  # fmt: skip


def _steps(job: Job) -> int:
    schedule = job.config.get("run", job.config).get("schedule") if job.kind in TABULAR else None
    return schedule["steps"] if isinstance(schedule, dict) else 0


def reproduce(
    plan: Plan, out: Path, workers: int | None = None, given: Path | None = None, engine: str = "local"
) -> Reproduction:
    """Run what is missing, write the report, say what came out; what is `given` in a file is not run again."""
    began, studies = time.perf_counter(), chosen(plan.what)
    first = studies[0]
    require(*dict.fromkeys(need for study in studies for need in study.needs))
    held = first.given(given) if first.given is not None and given is not None else {}
    jobs = unique(job for study in studies for job in study.jobs(plan))
    left = [job for job in jobs if job.id not in held and not (held and first.only_given)]
    if left:
        require(*dict.fromkeys(need for study in studies for need in study.runs_need))
    take_folder(out, plan)
    found, stages = dict(held), {}
    tabular = [job for job in left if job.kind in TABULAR]
    # those that may be silent longest take longest: begun early, so that no core waits for the last of them
    others = sorted((job for job in left if job.kind not in TABULAR), key=lambda job: -kind_named(job.kind).lease)
    for name, asked in (("tabular runs", tabular), ("other runs", others)):
        if asked:
            results, stages[name] = _run(name, out / RUNS, asked, workers, engine)
            found |= {job.id: results[job.id] for job in asked}
    start = time.perf_counter()
    evidence = Evidence(plan, found)
    made = {name or plan.what: build(shown, evidence, out / name) for name, shown in reports(plan.what).items()}
    stages["report"] = {"seconds": time.perf_counter() - start}
    machine = _machine(workers, began, stages)
    write_atomically(out / "machine.json", (json.dumps(machine, indent=1) + "\n").encode())
    return Reproduction(plan, made, machine)


# ---- what is said about it -------------------------------------------------------------------------------------------
class Reproduction(NamedTuple):
    """What an invocation made."""

    plan: Plan
    reports: dict[str, StudyReport]
    """By the name of their study, or of all of them."""
    machine: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """What the command's JSON says."""
        rows = [_as_data(name, report) for name, report in self.reports.items()]
        return {**({SYSTEMS: rows} if self.plan.what == SYSTEMS else rows[0]), "machine": self.machine}

    def pace(self) -> list[str]:
        """How long it took, with the throughput."""
        lines = []
        for name, stage in self.machine["stages"].items():
            speed = stage.get("steps_per_second")
            about = f" ({stage['done_now']} of {stage['jobs']} jobs done now)" if "jobs" in stage else ""
            pace = f", {stage['steps']:,} steps, {speed:,.0f} a second" if speed else ""
            lines.append(f"{name}: {stage['seconds']:.0f} s{about}{pace}")
        return [*lines, f"in all {self.machine['seconds']:.0f} s"]


def _as_data(name: str, report: StudyReport) -> dict[str, Any]:
    """A report as data."""
    rows = [one.as_dict() for one in report.findings if one.judgement is not None]
    return {"name": name, "report": str(report.page), "verdict": verdict(report.findings),
            "claims": counts(report.findings), **report.data, "judged": rows}  # fmt: skip
