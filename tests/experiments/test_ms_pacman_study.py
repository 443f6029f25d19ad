"""What is said of Ms. Pac-Man is what the runs in the repository say."""

import runpy
from pathlib import Path

import pytest

from multiadvisor.studies.reproduction import reproduce
from multiadvisor.studies.study import Plan

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_documents_say_what_the_runs_say(tmp_path):
    reproduce(Plan.of("ms-pacman"), tmp_path / "out", given=ROOT / "docs" / "ms-pacman-study.jsonl", workers=0)
    body = runpy.run_path(str(ROOT / "docs" / "from_ms_pacman.py"))["body"]
    said = body((tmp_path / "out" / "report.md").read_text("utf-8"))
    assert said in (ROOT / "docs" / "ms-pacman.md").read_text("utf-8"), "run python docs/from_ms_pacman.py"
    shipped = next(line for line in said.splitlines() if line.startswith("| as shipped |"))
    assert shipped.split(" | ")[1] in (ROOT / "README.md").read_text("utf-8")
