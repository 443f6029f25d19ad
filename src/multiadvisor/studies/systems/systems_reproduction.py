"""`multiadvisor reproduce NAME` of a system: runs in, a figure, a page and a verdict out; stopped, it goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput
from multiadvisor.runs.driver import run_jobs
from multiadvisor.storage.files import check_writable, write_atomically
from multiadvisor.studies.parts import many, unique
from multiadvisor.studies.systems.system import SEEDS, System, judged, systems
from multiadvisor.version import VERSION

ALL = "systems"
MARK = "systems.json"
RUNS = "runs"


def take_folder(out: Path) -> None:
    """Make the folder one for systems: several may share it, as equal runs are done once."""
    check_writable(out)
    mark = (json.dumps({"systems": True, "version": VERSION}) + "\n").encode()
    if out.exists() and any(out.iterdir()):
        if not (out / MARK).exists():
            raise BadInput(f"{str(out)!r} exists and holds no runs of systems: name a new or empty folder")
        if (out / MARK).read_bytes() != mark:
            raise BadInput(f"{str(out)!r} holds systems of another version than {VERSION!r}: name another folder")
    write_atomically(out / MARK, mark)


def chosen(what: str) -> list[System]:
    """The system of that name, or all of them."""
    known = systems()
    return list(known.values()) if what == ALL else [known[what]]


def reproduce(what: str, out: Path, seeds: int | None = None, workers: int | None = None) -> list[dict[str, Any]]:
    """Run what is missing, write a figure and a page for each, and give the verdicts."""
    require("plots")
    take_folder(out)
    count = SEEDS if seeds is None else seeds
    taken = chosen(what)
    jobs = unique(job for system in taken for job in system.jobs(count))
    results = run_jobs(out / RUNS, jobs, workers=workers, title=what)
    held = {job.id: results[job.id] for job in jobs}
    verdicts = []
    for system in taken:
        from multiadvisor.viz import plots

        found = judged(system, held, count)
        svg, png = plots.both(system.draw(held, count), system.name)
        write_atomically(out / f"{system.name}.svg", svg)
        write_atomically(out / f"{system.name}.png", png)
        write_atomically(out / f"{system.name}.json", (json.dumps(found, indent=1, allow_nan=False) + "\n").encode())
        write_atomically(out / f"{system.name}.md", (page(system, found, count) + "\n").encode())
        verdicts.append(found)
    return verdicts


def page(system: System, found: dict[str, Any], seeds: int) -> str:
    """The system on a page: what it is here, what was seen, and how to run it."""
    lines = [
        f"# {system.title}", "", f"{system.source}. {system.behaviour}", "",
        "| advisor | state view | planning | aggregator | guarantee |", "|---|---|---|---|---|",
        f"| {system.advisor} | {system.view} | {system.planning} | {system.aggregator} | {system.guarantee} |", "",
        f"`multiadvisor reproduce {system.name} --seeds {seeds}`: **{found['verdict']}**, {many(seeds, 'seed')}.", "",
        f"![{system.title}]({system.name}.png)", "", "| what should be seen | seen | holds |", "|---|---|---|",
    ]  # fmt: skip
    lines += [f"| {one['claim']} | {seen(one)} | {'yes' if one['holds'] else 'no'} |" for one in found["statistics"]]
    if system.choices:
        lines += ["", "What was chosen here:", "", *(f"- {choice}" for choice in system.choices)]
    return "\n".join(lines)


def seen(one: dict[str, Any]) -> str:
    """A statistic in figures.

    >>> seen({"value": 1.0, "interval": (0.5, 1.5)}), seen({"value": 12.0, "interval": None})
    ('1 [0.5, 1.5]', '12')
    """
    value = f"{one['value']:.4g}"
    return value if one["interval"] is None else f"{value} [{one['interval'][0]:.4g}, {one['interval'][1]:.4g}]"


def told(verdicts: Sequence[dict[str, Any]], out: Path) -> str:
    """For a terminal."""
    lines = []
    for found in verdicts:
        lines.append(f"{found['name']}: {found['verdict']}")
        marks = (("holds" if one["holds"] else "does not hold", one) for one in found["statistics"])
        lines += [f"  {seen(one)}: {one['claim']} ({mark})" for mark, one in marks]
    return "\n".join([*lines, f"figures and pages are in {out}"])
