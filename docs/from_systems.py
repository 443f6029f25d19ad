"""Puts the systems of the literature into the documents: `python docs/from_systems.py`, or with `report-systems`.

The map in docs/systems.md is made from the registered systems; with a folder of `multiadvisor reproduce systems`, what
was seen goes to the pages in docs/systems that have marks for it. Nobody types a row or a result.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from multiadvisor.studies.study import Study, systems

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


def row(system: Study) -> tuple[str, ...]:
    """A system in the map, with a link to its page where it has one."""
    of = system.literature
    assert of is not None
    page = f"systems/{system.name}.md"
    title = f"[{system.title}]({page})" if (DOCS / page).exists() else system.title
    parts = (of.advisor, of.view, of.planning, of.aggregator, of.guarantee)
    return (f"{title} ({of.source})", *parts, f"`multiadvisor reproduce {system.name}`")


def the_map() -> str:
    """All systems, as a table."""
    rows = [HEAD, ("---",) * len(HEAD), *map(row, systems().values())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def what_was_seen(report: str) -> str:
    """The table of findings in a report."""
    return report.partition("## The claims\n\n")[2].partition("\n\n")[0]


def main(folder: Path | None) -> None:
    """The map, and what the runs in a folder show."""
    put(DOCS / "systems.md", "map", the_map())
    for name in systems() if folder else ():
        page, result = DOCS / "systems" / f"{name}.md", folder / name / "report.md"
        if result.exists() and page.exists() and between("seen").search(page.read_text("utf-8")):
            put(page, "seen", what_was_seen(result.read_text("utf-8")))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
