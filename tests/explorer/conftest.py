"""One browser and a few trained agents for all tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import multiadvisor as mad
from explorer.pages import PATIENCE, Site, site

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
# foreign names that lead to this machine, as a hostile page would have them
FOREIGN = "--host-resolver-rules=MAP evil.test 127.0.0.1, MAP rebind.test 127.0.0.1"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", FOREIGN,
]  # fmt: skip


def browser_path() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next((found for name in names if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = browser_path()
    if path is None:
        message = "NO BROWSER: the tests of the explorer page need Chromium; `make browser` installs it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


def trained(task: mad.Task, turns: int, **settings: Any) -> mad.MultiAdvisor:
    return mad.MultiAdvisor(task, **settings).learn(turns, progress=False)


@pytest.fixture(scope="session")
def agents() -> dict[str, mad.MultiAdvisor]:
    pac_boy = mad.make("pac-boy")
    return {
        "egocentric": trained(pac_boy, 1_000_000, planning="egocentric", gamma=0.9),
        "empathic": trained(pac_boy, 1_000_000, planning="empathic", gamma=0.9, seed=3),
        "jobs": trained(mad.make("resource-scheduling"), 3_000, gamma=0.9),
    }


@pytest.fixture(scope="module")
def served(browser: Any, agents: dict[str, mad.MultiAdvisor]) -> Iterator[Site]:
    with site(browser, agents) as one:
        yield one


@pytest.fixture
def calm(served: Site) -> Iterator[Site]:
    """The site, on which nothing may go wrong on the console."""
    served.complaints.clear()
    yield served
    assert served.complaints == []
