"""The map of the literature in the documents is that of the registered systems."""

import re
import runpy
from pathlib import Path

from multiadvisor.studies.systems.system import systems

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


def test_what_was_seen_is_told_from_the_statistics():
    found = {"statistics": [{"claim": "More.", "value": 1.0, "interval": (0.5, 1.5), "holds": False}]}
    assert SCRIPT["what_was_seen"](found).endswith("| More. | 1 [0.5, 1.5] | no |")
