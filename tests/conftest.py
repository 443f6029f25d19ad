"""Settings of all tests."""

import fcntl
import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings
from numba.core.dispatcher import Dispatcher

from multiadvisor.core import compiling
from patience import PATIENCE

# The first example of a test may have to compile, hence no deadline; in CI the examples are the same each time.
settings.register_profile("multiadvisor", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("multiadvisor")

# All workers, and the processes that tests start, share what JAX compiles, as they share the machine code of tables.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(compiling.cache_root() / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")

# foreign names that lead to this machine, as a hostile page would have them
FOREIGN = "--host-resolver-rules=MAP evil.test 127.0.0.1, MAP rebind.test 127.0.0.1"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", FOREIGN,
]  # fmt: skip

# Started in the background by a shell, these tests would ignore Ctrl-C, and so would every program that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Examples in docstrings are the package's: nobody has to look for any in the tests."""
    return [one for one in (yield) if not isinstance(one, DoctestModule)]


def pytest_collection_finish():
    """What is imported and collected by now stays, and is no longer looked through for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_said_of_compiling():
    """Which test comes first and has to compile is chance: what is said then is no part of any test's output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "_is_cached", lambda dispatcher: True)
        yield


@pytest.fixture(scope="session", autouse=True)
def each_loop_is_compiled_by_one_worker():
    """The others wait for it, and find it in the cache: on a fresh machine all would compile the same loops at once."""
    compile_now, busy = Dispatcher.compile, set()

    def once(self, sig):
        folder, name = compiling._cache_path(self), self.py_func.__qualname__
        if folder is None or (folder, name) in busy or not Path(folder).is_dir():
            return compile_now(self, sig)
        busy.add((folder, name))
        try:
            with Path(folder, f"{name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return compile_now(self, sig)
        finally:
            busy.discard((folder, name))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", once)
        yield


# What takes minutes in few tests begins first: pytest-xdist puts groups of few tests last, and the other workers would
# have nothing to do while one of them is at it.
LONGEST = (
    "tests/runs/test_ray.py", "the page", "tests/runs/test_chaos.py", "tests/test_built_site.py",
    "tests/experiments/test_reproduce.py", "tests/test_compiling.py", "tests/tabular/test_parity.py",
    "tests/test_documents.py::test_example_runs", "tests/test_documents.py::test_programs",
)  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Which tests stay on one worker: those of a file, where what they share is made and compiled once.

    All those of the page share agents and a browser; the programs of the documents share nothing. (Groups by marker
    are passed over in silence by pytest-xdist 3.8 with pytest 9.2.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::")[0]
            if file.endswith("test_documents.py"):
                return nodeid
            return "the page" if file.startswith("tests/explorer/") else file

        def _assign_work_unit(self, node: Any) -> None:
            first = next((one for start in LONGEST for one in self.workqueue if one.startswith(start)), None)
            if first is not None:
                self.workqueue.move_to_end(first, last=False)
            super()._assign_work_unit(node)

    return ByFile(config, log)


def browser_path() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next((found for name in names if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for each worker that tests the page or the site."""
    path = browser_path()
    if path is None:
        message = "NO BROWSER: the tests of the explorer page and the site need Chromium; `make browser` installs it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        fresh = chromium.new_context

        def patient(**options: Any) -> Any:
            context = fresh(**options)
            context.set_default_timeout(1000 * PATIENCE)
            return context

        chromium.new_context = patient  # type: ignore[method-assign]
        yield chromium
        chromium.close()


def pytest_terminal_summary(terminalreporter):
    """Tests that had no browser are not passed over in silence."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "NO BROWSER" in str(report.longrepr)]
    if skipped:
        told = f"NO BROWSER: {len(skipped)} tests of pages were skipped; `make browser` installs Chromium"
        terminalreporter.write_line(told, yellow=True, bold=True)


@pytest.fixture(autouse=True)
def nothing_imported() -> Iterator[None]:
    """Worker processes import only what this test imports, and no other one after it."""
    from multiadvisor.core.plugins import IMPORTED

    kept = IMPORTED[:]
    IMPORTED.clear()
    yield
    IMPORTED[:] = kept
