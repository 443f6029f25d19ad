"""Writes the results of docs/ms-pacman.md, and its figure, from the runs in docs/ms-pacman-study.jsonl.

python docs/from_ms_pacman.py
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from multiadvisor.studies.ms_pacman_report import CAVEAT, reproduce

HERE = Path(__file__).parent
MARKS = ("<!-- results: python docs/from_ms_pacman.py -->", "<!-- end of results -->")


def main() -> None:
    """Write both."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        reproduce(out, given=HERE / "ms-pacman-study.jsonl", workers=0)
        page = (out / "ms-pacman.md").read_text("utf-8")
        (HERE / "images" / "ms-pacman.png").write_bytes((out / "ms-pacman.png").read_bytes())
    body = page.partition(CAVEAT)[2].replace("(ms-pacman.png)", "(images/ms-pacman.png)").strip()
    text = (HERE / "ms-pacman.md").read_text("utf-8")
    inner = re.compile(f"{re.escape(MARKS[0])}.*?{re.escape(MARKS[1])}", re.DOTALL)
    changed = inner.sub(lambda _: f"{MARKS[0]}\n{CAVEAT}\n\n{body}\n{MARKS[1]}", text)
    (HERE / "ms-pacman.md").write_text(changed, "utf-8")


if __name__ == "__main__":
    main()
