"""Puts the systems of the literature into the documents: `python docs/from_systems.py`, or with `report-systems`.

The map in docs/systems.md is made from the registered systems; with a folder of `multiadvisor reproduce systems`, what
was seen goes to the pages in docs/systems that have marks for it. Nobody types a row or a result.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from multiadvisor.studies.systems.system import System, systems
from multiadvisor.studies.systems.systems_reproduction import seen

DOCS = Path(__file__).parent
HEAD = ("system", "advisor", "state view", "planning", "aggregator", "guarantee", "command")


def between(name: str) -> re.Pattern[str]:
    """The marks of this name, and what stands between them."""
    return re.compile(rf"(<!-- {name}: .*? -->\n)(.*?)(<!-- end of {name} -->)", re.DOTALL)


def put(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks of this name."""
    new, found = between(name).subn(lambda match: match[1] + text + "\n" + match[3], path.read_text("utf-8"))
    if found != 1:
        raise SystemExit(f"{path} has no marks {name!r}")
    path.write_text(new, "utf-8")
    print(f"{path.name}: {name}")


def row(system: System) -> tuple[str, ...]:
    """A system in the map, with a link to its page where it has one."""
    page = f"systems/{system.name}.md"
    title = f"[{system.title}]({page})" if (DOCS / page).exists() else system.title
    parts = (system.advisor, system.view, system.planning, system.aggregator, system.guarantee)
    return (f"{title} ({system.source})", *parts, f"`multiadvisor reproduce {system.name}`")


def the_map() -> str:
    """All systems, as a table."""
    rows = [HEAD, ("---",) * len(HEAD), *map(row, systems().values())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def what_was_seen(found: dict[str, Any]) -> str:
    """The statistics of a system, as a table."""
    rows = [f"| {one['claim']} | {seen(one)} | {'yes' if one['holds'] else 'no'} |" for one in found["statistics"]]
    return "\n".join(["| what should be seen | seen | holds |", "|---|---|---|", *rows])


def main(folder: Path | None) -> None:
    """The map, and what the runs in a folder show."""
    put(DOCS / "systems.md", "map", the_map())
    for name in systems() if folder else ():
        page, result = DOCS / "systems" / f"{name}.md", folder / f"{name}.json"
        if result.exists() and page.exists() and between("seen").search(page.read_text("utf-8")):
            put(page, "seen", what_was_seen(json.loads(result.read_text("utf-8"))))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
