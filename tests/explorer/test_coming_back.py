"""Coming back: a server that was started anew, what failed once, and the browser's Back."""

import pytest
from playwright.sync_api import expect

from explorer.pages import Site, still, until
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer, serving

pytestmark = pytest.mark.slow


def test_after_a_restart_the_new_address_works_in_the_open_tab(browser, agents):
    def explorer():
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


def still_there(page, fragment):
    """The page is drawn, in this state, and no ticket stands in its address."""
    until(page, "Boolean(window.explorer && explorer.shown)")
    still(page)
    until(page, "(explorer.store.write(), location.hash)", f"#{fragment}")


def test_a_ticket_leaves_the_address_and_opens_only_once_and_a_stale_tab_takes_a_new_one(calm):
    once = calm.address("step=4")
    context = calm.browser.new_context()
    page = context.new_page()
    page.goto(once)
    still_there(page, "step=4")
    page.reload()
    still_there(page, "step=4")
    context.close()
    stranger = calm.browser.new_context()
    page = stranger.new_page()
    page.goto(once)
    expect(page.locator("#message")).to_contain_text("used before")
    page.goto(once.partition("#")[0] + "#step=5")
    page.reload()
    expect(page.locator("#message")).to_contain_text("This page needs the address that the terminal shows")
    page.evaluate("(address) => { location.href = address; }", calm.address())
    still_there(page, "step=5")
    stranger.close()


def test_what_failed_once_is_asked_for_again(served):
    with served.tab() as page:
        page.route("**/insight/*", lambda route: route.abort())  # whose moments ask for episodes of their own
        page.reload()
        until(page, "Boolean(window.explorer && explorer.shown)")
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


def test_back_leads_to_the_last_view(calm):
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
