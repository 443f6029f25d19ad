"""Ctrl-C that waits for a consistent moment."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_PATIENCE = 3.0  # seconds; who presses Ctrl-C again sooner is only impatient


class AtOnce(KeyboardInterrupt):
    """Somebody insisted: what was going on is torn, and not worth saving."""


class Stop:
    """Whether somebody asked to stop."""

    requested = False


@contextmanager
def deferred_interrupt() -> Iterator[Stop]:
    """Within the block Ctrl-C only sets `requested`; at its end KeyboardInterrupt is raised.

    Another one after three seconds, where the block does not come to its end, is raised at once, as AtOnce.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    since = 0.0

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal since
        if not stop.requested:
            stop.requested, since = True, time.monotonic()
        elif time.monotonic() - since > _PATIENCE:
            raise AtOnce

    before: Any = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
    if stop.requested:
        raise KeyboardInterrupt
