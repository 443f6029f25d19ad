"""Coming back: a server that was started anew, what failed once, and the browser's Back."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.pages import Site, still, until
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer, serving

pytestmark = pytest.mark.slow


def test_after_a_restart_the_new_address_works_in_the_open_tab(
    browser: Any, agents: dict[str, mad.MultiAdvisor]
) -> None:
    def explorer() -> Explorer:
        library = Library(episodes=3)
        library.add_agent(agents["empathic"], "a")
        return Explorer(library)

    first = explorer()
    with serving(first) as port:
        served = Site(browser, first, port)
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.address("step=4"))
        still_there(page, "step=4")
    page.get_by_label("Episode").select_option("1")
    expect(page.locator("#message")).to_contain_text("does not answer")
    again = explorer()
    with serving(again, port) as same:
        assert same == port
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("#message")).to_contain_text("open the newest one")
        before = page.evaluate("history.length")
        page.evaluate("(address) => { location.href = address; }", Site(browser, again, port).address())
        still_there(page, "episode=1")
        assert page.evaluate("history.length") <= before + 1
        page.go_back()
        until(page, "location.hash.includes('ticket')", False)
        page.go_forward()
        until(page, "location.hash.includes('ticket')", False)
    context.close()


def still_there(page: Any, fragment: str) -> None:
    """The page is drawn, in this state, and no ticket stands in its address."""
    until(page, "Boolean(window.explorer && explorer.shown)")
    still(page)
    until(page, "(explorer.store.write(), location.hash)", f"#{fragment}")


def test_a_stale_tab_that_could_not_be_opened_takes_the_new_address(calm: Site) -> None:
    context = calm.browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{calm.port}/#step=5")
    expect(page.locator("#message")).to_contain_text("This page needs the address that the terminal shows")
    page.evaluate("(address) => { location.href = address; }", calm.address())
    still_there(page, "step=5")
    context.close()


def test_what_failed_once_is_asked_for_again(served: Site) -> None:
    with served.tab() as page:
        page.route("**/episodes/1", lambda route: route.abort())
        page.route("**/curves", lambda route: route.abort())
        served.go(page, "episode=1", loaded=False)
        expect(page.locator("#message")).to_contain_text("does not answer")
        served.go(page, "view=learning", loaded=False)
        expect(page.locator("main")).to_contain_text("does not answer")
        page.unroute("**/episodes/1")
        page.unroute("**/curves")
        served.go(page, "episode=1")
        expect(page.locator("#message")).to_be_hidden()
        expect(page.get_by_role("button", name="Try again")).to_be_hidden()
        served.go(page, "view=learning")
        expect(page.locator("main")).not_to_contain_text("does not answer")
        page.route("**/episodes/2", lambda route: route.abort())
        served.go(page, "episode=2", loaded=False)
        again = page.get_by_role("button", name="Try again")
        expect(again).to_be_visible()
        page.unroute("**/episodes/2")
        again.click()
        expect(page.locator("#message")).to_be_hidden()
        still(page)
    served.complaints.clear()


def test_back_leads_to_the_last_view(calm: Site) -> None:
    with calm.tab("step=4") as page:
        page.keyboard.press("2")
        page.keyboard.press(".")
        until(page, "explorer.store.state.step", 5)
        page.keyboard.press("4")
        until(page, "explorer.store.state.view", "gallery")
        for view, step in (("compare", 5), ("episode", 4)):
            page.go_back()
            until(page, "[explorer.store.state.view, explorer.store.state.step]", [view, step])
            still(page)
        page.go_forward()
        until(page, "[explorer.store.state.view, explorer.store.state.step]", ["compare", 5])
