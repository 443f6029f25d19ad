"""Ctrl-C that waits for a consistent moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Stop:
    """Whether somebody asked to stop."""

    requested = False


@contextmanager
def deferred_interrupt() -> Iterator[Stop]:
    """Within the block the first Ctrl-C only sets `requested`; at its end KeyboardInterrupt is raised. A second one is
    raised at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            raise KeyboardInterrupt
        stop.requested = True

    before: Any = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
    if stop.requested:
        raise KeyboardInterrupt
