"""The page under every aggregation: the library's numbers, the library's sentences; of others what the server tells."""

import csv
import io

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from agents import LEARNED
from exact_plans import exact_plans
from explorer.conftest import HEARD, trained
from explorer.pages import as_sentence, site, until, visit
from explorer.test_numbers import READ, SENTENCE, check_numbers, numbers
from multiadvisor.analysis.theory.solver import SOLVED
from multiadvisor.core.aggregations import AGGREGATIONS, register_aggregation
from multiadvisor.core.plannings import PLANNINGS, register_planning
from multiadvisor.explorer.bundle import describe
from multiadvisor.explorer.onefile import html
from multiadvisor.runs.trace import explain_step

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def heard(browser, combined):
    with site(browser, combined) as one:
        yield one
        assert one.complaints == []


def test_the_page_knows_all_that_the_library_ships(heard):
    shipped = {name for name, one in AGGREGATIONS.items() if one.prefer.__module__ == "multiadvisor.core.aggregations"}
    shipped -= set(LEARNED)  # which is not told by the advice: the server sends what they come to
    with heard.tab() as page:
        until(
            page, 'import("/static/maths.js").then((maths) => Object.keys(maths.AGGREGATIONS).sort())', sorted(shipped)
        )


def test_numbers_on_the_page_are_the_librarys(heard):
    check_numbers(heard, len(HEARD) + 1, 200)


def test_the_leading_wish_is_drawn_with_its_map(heard):
    agent = heard.run().agent
    trace, episode = heard.recorded()
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


def test_contributions_are_listed_and_continuations_are_played(heard):
    with heard.tab("run=0&step=3") as page:
        page.get_by_text("All differences").click()
        agent = heard.run().agent
        trace, episode = heard.recorded()
        found = explain_step(agent, trace, episode, 3).differences
        name, value = max(found.items(), key=lambda pair: pair[1])
        row = page.locator("details.more tbody tr").filter(has_text=name).first
        expect(row).to_be_visible()
        until(page, """(name) => Number([...document.querySelectorAll("details.more tbody tr")]
            .find((row) => row.cells[0].textContent === name).cells[1].textContent.replace("\\u2212", "-"))""",
              pytest.approx(value, abs=5e-5), argument=name)  # fmt: skip
        page.get_by_role("button", name="Try it").click()
        expect(page.locator(".results canvas")).to_be_visible()


def test_the_table_says_how_it_is_heard(heard):
    agent = heard.run().agent
    trace, episode = heard.recorded()
    with heard.tab("run=0") as page:
        text = page.evaluate(
            'import("/static/exporting.js").then((m) => m.csvOf(explorer.shown.episode, explorer.shown.run.weights))'
        )
    rows = list(csv.DictReader(io.StringIO(text)))
    for step in (0, 7):
        shown = [float(rows[step][f"Q {name} (fruits=max)"]) for name in agent.task.actions]
        assert shown == pytest.approx(agent.preferences(trace.states(episode)[step]).tolist(), abs=1e-9)


# ---- from elsewhere --------------------------------------------------------------------------------------------------
def fill_least(table, rows, weights, m, parameter, preferences):
    for action in range(table.shape[1]):
        found = np.inf
        for i in range(m):
            if weights[i] != 0.0:
                found = min(found, weights[i] * table[rows[i], action])
        preferences[action] = 0.0 if found == np.inf else found


def worst_value(q, ahead):
    found = q[0]
    for action in range(1, q.shape[0]):
        found = q[action] if q[action] < found else found
    return found


@pytest.fixture
def foreign():
    """An agent whose planning and aggregation are somebody's own."""

    @register_aggregation("least_of_all", compiled=fill_least)
    def least(advice, weights, parameter):
        wished = np.where(weights[..., None] != 0, weights[..., None] * advice, np.inf)
        found = wished.min(axis=-2, initial=np.inf)
        return np.where(np.isinf(found), 0.0, found)

    @register_planning("worst_of_all", compiled=worst_value)
    def worst(advice, ahead):
        return np.arange(advice.shape[1]) == advice.argmin(axis=1)[:, None]

    try:
        task = mad.make("three-fruits")
        yield trained(task, 2_000, planning="worst_of_all", gamma=0.9, aggregation="least_of_all", epsilon=0.5)
    finally:
        del AGGREGATIONS["least_of_all"], PLANNINGS["worst_of_all"]


def test_an_aggregation_and_a_planning_of_ones_own(browser, foreign):
    sent = describe(foreign, "own")
    parts = [{"name": "least_of_all", "parameter": 0.0, "additive": False}]
    assert (sent["aggregation"], sent["aggregator"]) == ("least_of_all", {"parts": parts, "of": [0, 0, 0]})
    assert "do not depend on the weights" in sent["reweighted"]
    with site(browser, {"own": foreign}) as served, served.tab("step=1&weights=0~3&cell=2") as page:
        trace, episode = served.recorded()
        told = explain_step(foreign, trace, episode, 1)
        (seen,) = visit(page, ["step=1&weights=0~3&cell=2"], READ)
        assert seen["cell"] == trace.states(episode)[1][0]  # of other cells nobody knows
        assert numbers(seen["rows"][0]) == pytest.approx(list(told.preferences.values()), abs=1e-6)
        until(page, SENTENCE, as_sentence(told.sentence))
        expect(page.locator(".note").first).to_have_text(
            "Other weights can be tried only under the library's own aggregations, and this run uses least_of_all."
        )
        expect(page.get_by_role("slider", name="Weight of fruits")).to_be_disabled()
        page.get_by_role("button", name="Try it").click()
        expect(page.locator(".results canvas")).to_be_visible()
        assert served.complaints == []
        assert len(html(served.explorer.library, [served.run().id], 0)) > 1000


def test_plans_are_told_by_the_server(browser):
    agent = exact_plans(mad.make("three-fruits"), 0.9)
    with site(browser, {"plans": agent}) as served, served.tab("attractors=exact") as page:
        trace, episode = served.recorded()
        for step in range(1, 8):
            told = explain_step(agent, trace, episode, step).sentence
            assert " plan " in told
            served.go(page, f"step={step}&attractors=exact")
            until(page, SENTENCE, as_sentence(told))
        expect(page.locator(".bars .hint")).to_contain_text("The diamond is what fruits=gpi makes of them.")
        expect(page.locator("#layer-text")).to_contain_text("this run acts by more (gpi)")
        assert served.complaints == []
        assert len(html(served.explorer.library, [served.run().id], 0)) > 1000


def test_the_gallery_offers_what_the_solver_knows(heard):
    with heard.tab("view=gallery") as page:
        until(page, '[...document.querySelectorAll("#planning option")].map((one) => one.value)', list(SOLVED))
