"""Processes of our own beside this one: they do jobs or draw, and end when this one does, however that ends.

Such a process gets messages through a pipe, which a thread of its own reads at all times: so nobody waits to hand one
over, and that the other end is gone is noticed whatever is being done.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from multiadvisor.core import plugins

_PATIENCE = 60.0  # seconds for a process that has closed its pipe to end
ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # fmt: skip


def environment() -> dict[str, str]:
    """The environment of such a process: one thread for each library; what Python finds here it finds there."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([package, *filter(None, sys.path)])
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}


class Child:
    """A process that runs a module, which calls `messages` with its arguments; Ctrl-C is not for it."""

    def __init__(self, module: str, printed: Any = 2) -> None:
        """`printed`: where all that it prints goes, by default to stderr."""
        self.pipe, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(theirs.fileno()), *plugins.IMPORTED],
                stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, env=environment(),
                pass_fds=(theirs.fileno(),), process_group=0,
            )  # fmt: skip

    def last_words(self) -> str:
        """How it has ended, once its pipe is closed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_PATIENCE)
        self.kill()
        code = self.process.wait()
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def kill(self) -> None:
        """At once; what it started goes with it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def close(self) -> None:
        """End it, whatever it does, and give everything back."""
        self.kill()
        self.process.wait()
        self.pipe.close()


def messages(number: str, *names: str) -> tuple[Connection, Iterator[bytes]]:
    """In such a process: its end of the pipe, and what is sent to it; `names` are files that the user has named."""
    faulthandler.enable()
    pipe, sent = Connection(int(number)), queue.SimpleQueue[bytes]()

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                sent.put(pipe.recv_bytes())
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    for name in names:
        plugins.import_own(name)
    return pipe, iter(sent.get, None)
