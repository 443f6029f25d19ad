"""Programs in processes of their own: where they find what Python finds here, whom they have started, who lives."""

import contextlib
import os
import sys
import time
from pathlib import Path

from patience import PATIENCE


def environment(**more):
    """What Python finds here it finds there."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def children(pid):
    """The living processes that a process has started."""
    with contextlib.suppress(OSError):
        parts = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(child) for part in parts for child in part if alive(int(child))]
    return []


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
