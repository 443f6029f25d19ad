"""A few trained agents for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import multiadvisor as mad
from explorer.pages import Site, site

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"


def trained(task: mad.Task, steps: int, **settings: Any) -> mad.MultiAdvisor:
    return mad.MultiAdvisor(task, **settings).learn(steps, progress=False)


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
