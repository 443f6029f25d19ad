"""What is said of Ms. Pac-Man is what the runs in the repository say."""

from pathlib import Path

import pytest

from multiadvisor.studies.ms_pacman_report import CAVEAT, reproduce

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_documents_say_what_the_runs_say(tmp_path):
    reproduce(tmp_path / "out", given=ROOT / "docs" / "ms-pacman-study.jsonl", workers=0)
    body = (tmp_path / "out" / "ms-pacman.md").read_text("utf-8").partition(CAVEAT)[2].strip()
    said = (ROOT / "docs" / "ms-pacman.md").read_text("utf-8")
    assert body.replace("(ms-pacman.png)", "(images/ms-pacman.png)") in said
    shipped = next(line for line in body.splitlines() if line.startswith("| as shipped |"))
    assert shipped.split(" | ")[1] in (ROOT / "README.md").read_text("utf-8")
