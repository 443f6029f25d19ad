"""Writes the results of docs/ms-pacman-results.md, and its figure, from the runs in docs/ms-pacman-study.jsonl.

python docs/from_ms_pacman.py
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Plan

HERE = Path(__file__).parent


def body(report: str) -> str:
    """The first words of a report, its figure and its tables."""
    parts = report.split("\n\n")
    tables = [part for part in parts if part.startswith("|")]
    return "\n\n".join([*parts[1:3], "![Ms. Pac-Man](images/ms-pacman.png)", *tables])


def shipped() -> list[dict[str, Any]]:
    """The runs of the shipped settings, by seed."""
    runs = [json.loads(line) for line in (HERE / "ms-pacman-study.jsonl").read_text("utf-8").splitlines()]
    return sorted((run for run in runs if run["name"] == "as shipped"), key=lambda run: run["config"]["seed"])


def plan() -> Plan:
    """As many seeds as there are runs."""
    return Plan.of("ms-pacman", seeds=len(shipped()))


def lengths() -> str:
    """What the shipped settings scored while learning, in 30 episodes up to some of them."""
    learning = [run["result"]["learning"] for run in shipped()]
    rows = ["| episodes learned | score of the last 30, by seed | mean |", "| --- | ---: | ---: |"]
    for last in (60, 100, 137, 170, 205):
        means = [float(np.mean(scores[last - 30 : last])) for scores in learning]
        rows.append(f"| {last} | {', '.join(f'{mean:,.0f}' for mean in means)} | {np.mean(means):,.0f} |")
    return "\n".join(rows)


def put(text: str, name: str, inner: str) -> str:
    """The text with something else between two marks."""
    marks = f"<!-- {name}: python docs/from_ms_pacman.py -->", f"<!-- end of {name} -->"
    found = re.compile(f"{re.escape(marks[0])}.*?{re.escape(marks[1])}", re.DOTALL)
    return found.sub(lambda _: f"{marks[0]}\n{inner}\n{marks[1]}", text)


def main() -> None:
    """Write both."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        reproduce(plan(), out, given=HERE / "ms-pacman-study.jsonl", workers=0)
        report = (out / "report.md").read_text("utf-8")
        (HERE / "images" / "ms-pacman.png").write_bytes((out / "figures" / "ms-pacman.png").read_bytes())
    text = (HERE / "ms-pacman-results.md").read_text("utf-8")
    changed = put(put(text, "results", body(report)), "lengths", lengths())
    (HERE / "ms-pacman-results.md").write_text(changed, "utf-8")


if __name__ == "__main__":
    main()
