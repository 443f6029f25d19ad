"""Settings of all tests."""

import os
import signal

import pytest
from hypothesis import settings

from multiadvisor import compiling

# The first example of a test may have to compile, hence no deadline; in CI the examples are the same each time.
settings.register_profile("multiadvisor", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("multiadvisor")

# Started in the background by a shell, these tests would ignore Ctrl-C, and so would every program that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_said_of_compiling():
    """Which test comes first and has to compile is chance: what is said then is no part of any test's output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "_is_cached", lambda dispatcher: True)
        yield


def pytest_terminal_summary(terminalreporter):
    """Tests of the explorer page that had no browser are not passed over in silence."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "NO BROWSER" in str(report.longrepr)]
    if skipped:
        told = f"NO BROWSER: {len(skipped)} tests of the explorer page were skipped; `make browser` installs Chromium"
        terminalreporter.write_line(told, yellow=True, bold=True)
