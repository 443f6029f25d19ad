"""A job that does nothing of use, in every way a job can go: for measuring overheads and for rehearsing faults."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from multiadvisor.errors import BadInput, unknown
from multiadvisor.runs.jobs import Tell

ENDS = ("return", "raise", "kill", "exit", "hang", "nan")
_DIARY = "MULTIADVISOR_REHEARSAL_DIARY"  # a file to which every execution adds a line, for those who count them


def rehearse(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """Wait `seconds` in `steps`, then end as `then` says; `faults` limits that to so many times, kept in the folder."""
    known = {"number": 0, "seconds": 0.0, "steps": 1, "then": "return", "faults": None}
    for key in config:
        if key not in known:
            raise unknown("key of a rehearsal", key, known)
    given = {**known, **config}
    if given["then"] not in ENDS:
        raise unknown("end of a rehearsal", given["then"], ENDS)
    if (diary := os.environ.get(_DIARY)) is not None:
        with open(diary, "a", encoding="ascii") as file:
            file.write(f"{given['number']} {os.getpid()}\n")
    for step in range(given["steps"]):
        time.sleep(given["seconds"] / given["steps"])
        tell((step + 1) / given["steps"])
    if given["then"] != "return" and _due(given["faults"], folder):
        _fault(given["then"])
    return {"number": given["number"], "square": given["number"] ** 2}


def _due(faults: int | None, folder: Path | None) -> bool:
    if faults is None:
        return True
    if folder is None:
        raise BadInput("a rehearsal with a limited number of faults needs a folder: leave faults out")
    folder.mkdir(parents=True, exist_ok=True)
    earlier = len(list(folder.iterdir()))
    (folder / str(earlier)).touch()
    return earlier < faults


def _fault(how: str) -> None:
    if how == "raise":
        raise RuntimeError("as rehearsed")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(3)
    while how == "hang":
        time.sleep(1.0)
