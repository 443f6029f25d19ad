"""A worker process: orders come in on stdin, events go out on what was stdout, one JSON line each.

It ends when the driver does, however that ends: a thread waits on a pipe that only the driver holds open, and Linux is
asked to send SIGKILL as well.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from multiadvisor.core.plugins import import_own
from multiadvisor.errors import BadInput
from multiadvisor.runs.engines.engine import Event, Order
from multiadvisor.runs.jobs import KINDS, perform

BEAT_SECONDS = 0.2
LONGEST_ERROR = 4000
ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # fmt: skip


def environment() -> dict[str, str]:
    """The environment of a worker: one thread for each library; what Python finds here it finds there."""
    package = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([package, *filter(None, sys.path)])
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}


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


def _die_with_the_driver(lifeline: int) -> None:
    def wait() -> None:
        with contextlib.suppress(OSError):
            os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    if sys.platform == "linux":
        import ctypes
        import signal

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main(lifeline: int, own: Sequence[str] = ()) -> None:
    """Work until stdin ends; `own` are the files that the driver's user has named."""
    faulthandler.enable()
    _die_with_the_driver(lifeline)
    out = os.dup(1)
    os.dup2(2, 1)  # what a job prints must not look like an event

    def send(event: Event) -> None:
        content = json.dumps(event, allow_nan=False).encode() + b"\n"
        while content:
            content = content[os.write(out, content) :]

    for name in own:
        import_own(name)
    send(Event("hello", ""))
    for line in sys.stdin.buffer:
        send(carry_out(Order(*json.loads(line)), send))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
