"""The page under every aggregation: the library's numbers, the library's sentences; of others what the server tells."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.conftest import trained
from explorer.pages import Site, entry, site, until, visit
from explorer.test_numbers import READ, SENTENCE, number, sentence
from multiadvisor.analysis.theory.policy_improvement import exact_plans
from multiadvisor.analysis.theory.solver import SOLVED
from multiadvisor.core.aggregations import AGGREGATIONS, LEARNED, register_aggregation
from multiadvisor.core.plannings import PLANNINGS, register_planning
from multiadvisor.explorer.bundle import describe
from multiadvisor.explorer.onefile import html
from multiadvisor.runs.trace import explain_step

pytestmark = pytest.mark.slow

HEARD = [
    "fruits=max", "max", "majority", "ranks", "p_norm:3", "normalised", "boltzmann_sum:0.5", "fruits=max_plus:0.2",
    "fruits=boltzmann_product,ghosts=sum",
]  # fmt: skip


@pytest.fixture(scope="module")
def heard(browser: Any) -> Iterator[Site]:
    """One agent's values, heard in every way."""
    task, runs = mad.make("pac-boy"), {}
    learned: Any = trained(task, 300_000, planning="egocentric", gamma=0.9)
    for text in HEARD:
        agent: Any = mad.MultiAdvisor(task, planning="egocentric", gamma=0.9, aggregation=text)
        agent._learner.table[...] = learned._learner.table
        runs[text] = agent
    with site(browser, runs) as one:
        yield one
        assert one.complaints == []


def test_the_page_knows_all_that_the_library_ships(heard: Site) -> None:
    shipped = {name for name, one in AGGREGATIONS.items() if one.prefer.__module__ == "multiadvisor.core.aggregations"}
    shipped -= set(LEARNED)  # which is not told by the advice: the server sends what they come to
    with heard.tab() as page:
        until(
            page, 'import("/static/maths.js").then((maths) => Object.keys(maths.AGGREGATIONS).sort())', sorted(shipped)
        )


def test_numbers_on_the_page_are_the_librarys(heard: Site) -> None:
    rng, samples = random.Random(3), []
    changed = {0: 2.5, 1: -1.0, 5: 0.0, 20: 3.25, 44: -0.5}
    weights = "_".join(f"{j}~{value}" for j, value in changed.items())
    for k in range(120):
        run = k % len(HEARD)
        trace, episode = heard.explorer.library.recorded(entry(heard, run).id, 0)
        samples.append((run, rng.randrange(int(trace.length[episode])), rng.randrange(76), k >= 60))
    fragments = [f"run={r}&step={t}&cell={c}" + (f"&weights={weights}" if w else "") for r, t, c, w in samples]
    with heard.tab(fragments[0]) as page:
        for run in range(len(HEARD)):
            heard.go(page, f"run={run}")
        found = visit(page, fragments, READ)
    for (run, step, cell, with_weights), seen in zip(samples, found, strict=True):
        agent = entry(heard, run).agent
        trace, episode = heard.explorer.library.recorded(entry(heard, run).id, 0)
        x = trace.states(episode)[step].copy()
        x[0] = cell
        names, advice = agent.advice(x)
        spoken = np.array([agent.task.names.index(name) for name in names])
        own = agent.task.weights.copy()
        if with_weights:
            own[list(changed)] = list(changed.values())
        expected = agent.aggregator.prefer(advice, own[spoken], spoken)
        assert (seen["run"], seen["step"], seen["cell"]) == (run, step, cell)
        assert [number(text) for text in seen["rows"][0][1:]] == pytest.approx(expected.tolist(), abs=1e-6)
        assert seen["rows"][0][0] == f"all, by {HEARD[run]}"


def test_the_leading_wish_is_drawn_with_its_map(heard: Site) -> None:
    agent = entry(heard, 0).agent
    trace, episode = heard.explorer.library.recorded(entry(heard, 0).id, 0)
    led = ((step, explain_step(agent, trace, episode, step).leader) for step in range(int(trace.length[episode])))
    step, leader = next((step, one) for step, one in led if one is not None and one.next is not None)
    assert leader is not None
    places = [name.split("(")[1].rstrip(")").replace(" ", "") for name in (str(leader.next), leader.advisor)]
    with heard.tab(f"step={step}&map=-2") as page:
        expect(page.locator("#layer-text")).to_contain_text(f"Framed, the strongest wish: {leader.advisor}, ")
        expect(page.locator("#layer-text")).to_contain_text(f"Only {leader.advisor} is shown")
        expect(page.locator(".chip").first).to_contain_text(leader.advisor)
        expect(page.locator(".chip").last).to_contain_text(str(leader.next))
        expect(page.locator(".facts")).to_contain_text("aggregated by fruits=max")
        until(
            page, "explorer.episode.board.what.led.map(([cell]) => explorer.shown.run.grid.cells[cell].join())", places
        )
        page.locator("#attractors").select_option("exact")
        expect(page.locator("#layer-text")).to_contain_text("at gamma 0.9, aggregated by fruits=max: 0 attractors")
        expect(page.locator(".bars .hint")).to_contain_text("The diamond is sum of ghosts, plus max of fruits.")
        heard.go(page, "run=2&step=3")
        expect(page.locator("#layer-text")).to_have_text("")


def test_contributions_are_listed_and_continuations_are_played(heard: Site) -> None:
    with heard.tab("run=0&step=3") as page:
        page.get_by_text("All differences").click()
        agent = entry(heard, 0).agent
        trace, episode = heard.explorer.library.recorded(entry(heard, 0).id, 0)
        found = explain_step(agent, trace, episode, 3).differences
        name, value = max(found.items(), key=lambda pair: pair[1])
        row = page.locator("details.more tbody tr").filter(has_text=name).first
        expect(row).to_be_visible()
        until(page, """(name) => Number([...document.querySelectorAll("details.more tbody tr")]
            .find((row) => row.cells[0].textContent === name).cells[1].textContent.replace("\\u2212", "-"))""",
              pytest.approx(value, abs=5e-5), argument=name)  # fmt: skip
        page.get_by_role("button", name="Try it").click()
        expect(page.locator(".outcome").first).to_be_visible()


def test_the_table_says_how_it_is_heard(heard: Site) -> None:
    agent = entry(heard, 0).agent
    trace, episode = heard.explorer.library.recorded(entry(heard, 0).id, 0)
    with heard.tab("run=0") as page:
        text = page.evaluate(
            'import("/static/exporting.js").then((m) => m.csvOf(explorer.shown.episode, explorer.shown.run.weights))'
        )
    rows = list(csv.DictReader(io.StringIO(text)))
    for step in (0, 7):
        shown = [float(rows[step][f"Q {name} (fruits=max)"]) for name in agent.task.actions]
        assert shown == pytest.approx(agent.preferences(trace.states(episode)[step]).tolist(), abs=1e-9)


# ---- from elsewhere --------------------------------------------------------------------------------------------------
def fill_least(table, rows, weights, m, parameter, preferences):  # type: ignore[no-untyped-def]
    for action in range(table.shape[1]):
        found = np.inf
        for i in range(m):
            if weights[i] != 0.0:
                found = min(found, weights[i] * table[rows[i], action])
        preferences[action] = 0.0 if found == np.inf else found


def worst_value(q, ahead):  # type: ignore[no-untyped-def]
    found = q[0]
    for action in range(1, q.shape[0]):
        found = q[action] if q[action] < found else found
    return found


@pytest.fixture
def foreign() -> Iterator[mad.MultiAdvisor]:
    """An agent whose planning and aggregation are somebody's own."""

    @register_aggregation("least_of_all", compiled=fill_least)
    def least(advice: Any, weights: Any, parameter: float) -> Any:
        wished = np.where(weights[..., None] != 0, weights[..., None] * advice, np.inf)
        found = wished.min(axis=-2, initial=np.inf)
        return np.where(np.isinf(found), 0.0, found)

    @register_planning("worst_of_all", compiled=worst_value)
    def worst(advice: Any, ahead: Any) -> Any:
        return np.arange(advice.shape[1]) == advice.argmin(axis=1)[:, None]

    try:
        task = mad.make("three-fruits")
        yield trained(task, 2_000, planning="worst_of_all", gamma=0.9, aggregation="least_of_all", epsilon=0.5)
    finally:
        del AGGREGATIONS["least_of_all"], PLANNINGS["worst_of_all"]


def test_an_aggregation_and_a_planning_of_ones_own(browser: Any, foreign: mad.MultiAdvisor) -> None:
    with site(browser, {"own": foreign}) as served, served.tab("step=1&weights=0~3&cell=2") as page:
        trace, episode = served.explorer.library.recorded(entry(served, 0).id, 0)
        told = explain_step(foreign, trace, episode, 1)
        (seen,) = visit(page, ["step=1&weights=0~3&cell=2"], READ)
        assert seen["cell"] == trace.states(episode)[1][0]  # of other cells nobody knows
        assert [number(text) for text in seen["rows"][0][1:]] == pytest.approx(
            list(told.preferences.values()), abs=1e-6
        )
        until(page, SENTENCE, sentence(told.sentence))
        expect(page.locator(".note").first).to_have_text(
            "Other weights can be tried only under the library's own aggregations, and this run uses least_of_all."
        )
        expect(page.get_by_role("slider", name="Weight of fruits")).to_be_disabled()
        page.get_by_role("button", name="Try it").click()
        expect(page.locator(".outcome").first).to_be_visible()
        assert served.complaints == []
        assert len(html(served.explorer.library, [entry(served, 0).id], 0)) > 1000


def test_plans_are_told_by_the_server(browser: Any) -> None:
    agent = exact_plans(mad.make("three-fruits"), 0.9)
    with site(browser, {"plans": agent}) as served, served.tab("attractors=exact") as page:
        trace, episode = served.explorer.library.recorded(entry(served, 0).id, 0)
        for step in range(1, 8):
            told = explain_step(agent, trace, episode, step).sentence
            assert " plan " in told
            served.go(page, f"step={step}&attractors=exact")
            until(page, SENTENCE, sentence(told))
        expect(page.locator(".bars .hint")).to_contain_text("The diamond is what fruits=gpi makes of them.")
        expect(page.locator("#layer-text")).to_contain_text("this run acts by more (gpi)")
        assert served.complaints == []
        assert len(html(served.explorer.library, [entry(served, 0).id], 0)) > 1000


def test_what_the_page_is_told(foreign: mad.MultiAdvisor) -> None:
    told = describe(foreign, "own")
    assert told["aggregation"] == "least_of_all"
    assert told["aggregator"] == {
        "parts": [{"name": "least_of_all", "parameter": 0.0, "additive": False}],
        "of": [0, 0, 0],
    }
    assert told["asks"] is False


def test_the_gallery_offers_what_the_solver_knows(heard: Site) -> None:
    with heard.tab("view=gallery") as page:
        until(page, '[...document.querySelectorAll("#planning option")].map((one) => one.value)', list(SOLVED))
