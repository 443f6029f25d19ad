"""The programs of docs/extending.md as one file of a user's own: a planning, an aggregation, a world, a learner, ...

So what the guide shows is what the tests train, save, sweep and report.
"""

import os
import re
import tempfile
from pathlib import Path

from multiadvisor.core.compiling import cache_root
from test_documents import ROOT, blocks, section

PARTS = ("A planning", "An aggregation", "A learned aggregation", "A world", "A learner", "A study", "A command")


def program(heading: str) -> str:
    """The one program under a heading, without what it tries out and prints at its end."""
    [block] = blocks(section((ROOT / "docs" / "extending.md").read_text("utf-8"), heading))
    parts = [re.sub(r"\nprint\(.*\n", "\n", part) for part in block.code.split("\n\n\n")]
    return "\n\n\n".join(part for part in parts if not part.startswith(("print(", "advice = ")))


def own_file() -> Path:
    """Where that file is: always in the same place, so that its compiled functions are found again."""
    path = cache_root() / "guide" / "own_extension.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n\n".join(map(program, PARTS)) + "\n"
    if not path.is_file() or path.read_text("utf-8") != text:
        handle, new = tempfile.mkstemp(dir=path.parent)
        os.write(handle, text.encode())
        os.close(handle)
        os.replace(new, path)  # another worker may be at it
    return path
