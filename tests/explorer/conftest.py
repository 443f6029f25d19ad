"""A few trained agents for all tests of the page."""

from pathlib import Path

import pytest

import multiadvisor as mad
from explorer.pages import site

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"


def trained(task, steps, **settings):
    return mad.MultiAdvisor(task, **settings).learn(steps, progress=False)


@pytest.fixture(scope="session")
def agents():
    pac_boy = mad.make("pac-boy")
    return {
        "egocentric": trained(pac_boy, 1_000_000, planning="egocentric", gamma=0.9),
        "empathic": trained(pac_boy, 1_000_000, planning="empathic", gamma=0.9, seed=3),
        "jobs": trained(mad.make("resource-scheduling"), 3_000, gamma=0.9),
    }


HEARD = [
    "fruits=max", "max", "majority", "ranks", "p_norm:3", "normalised", "boltzmann_sum:0.5", "fruits=max_plus:0.2",
    "fruits=boltzmann_product,ghosts=sum",
]  # fmt: skip


@pytest.fixture(scope="session")
def combined():
    """The values of one agent, combined in every way: agents by their aggregation, the sum last."""
    task, runs = mad.make("pac-boy"), {}
    learned = trained(task, 300_000, planning="egocentric", gamma=0.9)
    for text in HEARD:
        runs[text] = mad.MultiAdvisor(task, planning="egocentric", gamma=0.9, aggregation=text)
        runs[text]._learner.table[...] = learned._learner.table
    return {**runs, "sum": learned}


@pytest.fixture(scope="module")
def served(browser, agents):
    with site(browser, agents) as one:
        yield one


@pytest.fixture
def calm(served):
    """The site, on which nothing may go wrong on the console."""
    served.complaints.clear()
    yield served
    assert served.complaints == []
