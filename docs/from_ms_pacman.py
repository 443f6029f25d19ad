"""Writes the results of docs/ms-pacman.md, and its figure, from the runs in docs/ms-pacman-study.jsonl.

python docs/from_ms_pacman.py
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Plan

HERE = Path(__file__).parent
MARKS = ("<!-- results: python docs/from_ms_pacman.py -->", "<!-- end of results -->")


def body(report: str) -> str:
    """The first words of a report, its figure and its tables."""
    parts = report.split("\n\n")
    tables = [part for part in parts if part.startswith("|")]
    return "\n\n".join([*parts[1:3], "![Ms. Pac-Man](images/ms-pacman.png)", *tables])


def main() -> None:
    """Write both."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        reproduce(Plan.of("ms-pacman"), out, given=HERE / "ms-pacman-study.jsonl", workers=0)
        report = (out / "report.md").read_text("utf-8")
        (HERE / "images" / "ms-pacman.png").write_bytes((out / "figures" / "ms-pacman.png").read_bytes())
    text = (HERE / "ms-pacman.md").read_text("utf-8")
    inner = re.compile(f"{re.escape(MARKS[0])}.*?{re.escape(MARKS[1])}", re.DOTALL)
    changed = inner.sub(lambda _: f"{MARKS[0]}\n{body(report)}\n{MARKS[1]}", text)
    (HERE / "ms-pacman.md").write_text(changed, "utf-8")


if __name__ == "__main__":
    main()
