"""Settings of all tests."""

import os

from hypothesis import settings

# The first example of a test may have to compile, hence no deadline; in CI the examples are the same each time.
settings.register_profile("multiadvisor", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("multiadvisor")


def pytest_terminal_summary(terminalreporter):
    """Tests of the explorer page that had no browser are not passed over in silence."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "NO BROWSER" in str(report.longrepr)]
    if skipped:
        told = f"NO BROWSER: {len(skipped)} tests of the explorer page were skipped; `make browser` installs Chromium"
        terminalreporter.write_line(told, yellow=True, bold=True)
