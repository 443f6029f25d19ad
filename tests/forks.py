"""Programs in processes of their own that need not begin from nothing.

To start Python and to import numba, Gymnasium and JAX takes a second or two of the processor's time, several times as
long as most programs of the documents. One process does that once, and is forked for each program, which leaves nothing
behind for the next. What a program imports of this package it imports itself.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from patience import PATIENCE

IMPORTED = ("numba", "scipy.linalg", "gymnasium", "pygame", "jax", "optax")


def run(words, folder, **environment):
    """Python with these words, a script or `-m` and a module and what it is given, in a folder: as `subprocess.run`."""
    server = _server()
    with TemporaryDirectory() as place:
        out, err = (Path(place) / name for name in ("out", "err"))
        asked = {"words": [str(word) for word in words], "folder": str(folder), "environment": environment}
        server.stdin.write(json.dumps({**asked, "out": str(out), "err": str(err)}) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        assert answer, "the process that is forked has ended"
        return subprocess.CompletedProcess(words, int(answer), out.read_text("utf-8"), err.read_text("utf-8"))


@cache
def _server():
    """The process that is forked; one thread for numba, as the tests share the machine."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "NUMBA_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    atexit.register(server.communicate)  # which closes its pipe, and so ends it
    return server


def _ready():
    """Import what takes long, and let numba look up all that it knows, as it does before the first function."""
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    gc.collect()
    gc.freeze()  # else every program copies these pages as soon as it looks for garbage


def _serve():
    """Fork for each program that is asked for: what is returned is one to run, in the new process."""
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            return asked
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None


def _become(asked):
    """This process as Python would start it for a program."""
    for name, number, how in ((os.devnull, 0, os.O_RDONLY), (asked["out"], 1, os.O_WRONLY | os.O_CREAT),
                              (asked["err"], 2, os.O_WRONLY | os.O_CREAT)):  # fmt: skip
        handle = os.open(name, how, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    os.chdir(asked["folder"])
    os.environ.update(asked["environment"])
    if os.environ.get("PYTHONWARNINGS") == "ignore":
        warnings.simplefilter("ignore")
    module = asked["words"][0] == "-m"
    sys.argv = asked["words"][module:]
    sys.path[0] = asked["folder"] if module else str(Path(sys.argv[0]).parent)
    if module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _ready()
    if (program := _serve()) is not None:
        signal.alarm(PATIENCE)  # a hang is ended
        _become(program)
