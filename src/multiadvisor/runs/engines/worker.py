"""A worker process: orders come in, events go out, one JSON text each."""

from __future__ import annotations

import contextlib
import json
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from multiadvisor.errors import BadInput
from multiadvisor.runs.child_process import messages
from multiadvisor.runs.engines.engine import Event, Order
from multiadvisor.runs.jobs import KINDS, perform

BEAT_SECONDS = 0.2
LONGEST_ERROR = 4000


def describe(error: BaseException) -> str:
    """What is kept of an error: a sentence where it is one, else the end of the traceback."""
    if isinstance(error, BadInput):
        return " ".join(str(error).split())[:LONGEST_ERROR]
    return "".join(traceback.format_exception(error))[-LONGEST_ERROR:].strip()


def carry_out(order: Order, send: Callable[[Event], None]) -> Event:
    """One order; the event that ends it."""
    latest = start = time.monotonic()

    def tell(fraction: float) -> None:
        nonlocal latest
        if time.monotonic() - latest >= BEAT_SECONDS:
            latest = time.monotonic()
            send(Event("beat", order.id, fraction=float(fraction)))

    try:
        if order.kind not in KINDS:
            import_module(order.module)
        result = perform(order.kind, order.config, Path(order.folder), tell)
    except Exception as error:
        return Event("error", order.id, error=describe(error))
    return Event("done", order.id, result=result, seconds=time.monotonic() - start)


def _die_with_the_driver() -> None:
    """Even where no thread gets its turn: Linux is asked to send SIGKILL."""
    if sys.platform == "linux":
        import ctypes
        import signal

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main(number: str, *names: str) -> None:
    """Work as long as there is a driver."""
    _die_with_the_driver()
    pipe, orders = messages(number, *names)

    def send(event: Event) -> None:
        pipe.send_bytes(json.dumps(event, allow_nan=False).encode())

    send(Event("hello", ""))
    for order in orders:
        send(carry_out(Order(*json.loads(order)), send))


if __name__ == "__main__":
    main(*sys.argv[1:])
