"""The map of the literature in the documents is that of the registered systems."""

import re
import runpy
from pathlib import Path

from multiadvisor.studies.study import systems

DOCS = Path(__file__).resolve().parents[3] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "from_systems.py"))


def test_the_map_is_up_to_date():
    text = (DOCS / "systems.md").read_text("utf-8")
    assert SCRIPT["between"]("map").search(text)[2].strip() == SCRIPT["the_map"](), "run python docs/from_systems.py"
    listed = re.findall(r"`multiadvisor reproduce ([\w-]+)` \|$", text, re.MULTILINE)
    assert listed == list(systems())


def test_pages_of_systems_are_of_registered_ones():
    pages = {path.stem for path in (DOCS / "systems").glob("*.md")}
    assert pages <= set(systems())
    assert {"q-decomposition", "gm-sarsa", "shaping", "ensembles"} <= pages


def test_what_was_seen_is_the_table_of_a_report():
    report = "# A\n\n| a |\n\n## The claims\n\n| claim |\n| More. |\n\n- **More.**\n"
    assert SCRIPT["what_was_seen"](report) == "| claim |\n| More. |"
