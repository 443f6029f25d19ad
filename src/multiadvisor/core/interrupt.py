"""Ctrl-C, and a SIGTERM that is taken like it, that wait for a consistent moment."""

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


class Terminated(KeyboardInterrupt):
    """It was a SIGTERM: nobody sits there who could press Ctrl-C once more."""


class Stop:
    """Whether somebody asked to stop."""

    requested = False


def take_sigterm_like_ctrl_c() -> None:
    """For a process of our own: who asks it to end gets what Ctrl-C gives, everything saved and one line."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _signals() -> list[signal.Signals]:
    """Those that mean KeyboardInterrupt here; a program that did not ask for it keeps its own SIGTERM."""
    like = signal.getsignal(signal.SIGTERM) is _terminate
    return [signal.SIGINT, signal.SIGTERM] if like else [signal.SIGINT]


@contextmanager
def deferred_interrupt() -> Iterator[Stop]:
    """Within the block Ctrl-C only sets `requested`; at its end KeyboardInterrupt is raised.

    Another one after three seconds, where the block does not come to its end, is raised at once, as AtOnce.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    since, kind = 0.0, KeyboardInterrupt

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal since, kind
        if number == signal.SIGTERM:
            kind = Terminated
        if not stop.requested:
            stop.requested, since = True, time.monotonic()
        elif time.monotonic() - since > _PATIENCE:
            raise AtOnce

    before: dict[signal.Signals, Any] = {number: signal.signal(number, ask) for number in _signals()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stop.requested:
        raise kind
