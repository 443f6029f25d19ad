"""What the tests of the page share: a served explorer, a tab on it, and ways to wait for what is expected.

A test never looks at the page just once: it says what should be seen, with playwright's `expect` or with `until` below,
and that may come at any time. `DRAWING_DELAY=250 pytest tests/explorer` shows whether it does so, by drawing each frame
so many milliseconds late.
"""

import contextlib
import os
import time

from playwright.sync_api import Error, expect

from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer, address, serving
from patience import PATIENCE

DRAWN = 'html[data-drawn]:not([data-drawn=""])'
PHONE = {"width": 390, "height": 844}
DELAY = int(os.environ.get("DRAWING_DELAY", "0"))


class Site:
    """An explorer that is served, and what its tabs complained about."""

    def __init__(self, browser, explorer, port):
        self.browser, self.explorer, self.port = browser, explorer, port
        self.complaints = []

    def run(self, number=0):
        return list(self.explorer.library.entries.values())[number]

    def recorded(self, number=0, episode=0):
        """A trace, and which episode of it this one of a run is."""
        return self.explorer.library.recorded(self.run(number).id, episode)

    def address(self, fragment=""):
        return address(self.port, self.explorer.keys.ticket()) + (f"&{fragment}" if fragment else "")

    @contextlib.contextmanager
    def tab(self, fragment="", *, wait=True, delay=DELAY, **context):
        """A fresh browser with one tab on this state of the page."""
        fresh = self.browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **context})
        try:
            page = fresh.new_page()
            page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: self.complaints.append(str(error)))
            if delay:
                page.add_init_script(LATE.replace("DELAY", str(delay)))
            page.goto(self.address(fragment))
            if wait:
                page.wait_for_selector(DRAWN, state="attached")
                still(page)
            yield page
        finally:
            fresh.close()

    def go(self, page, fragment, *, loaded=True):
        """Another state of the page, by its fragment alone; returns when it stands there, and nothing of the last one.

        Without `loaded` what is asked for may still be on its way, or may not exist.
        """
        until(page, "typeof explorer !== 'undefined'")  # right after a reload it is not there yet
        page.evaluate(GO, fragment)
        still(page, loaded=loaded)


def until(page, expression, wanted=True, argument=None):
    """Wait until an expression of the page has this value."""
    deadline = time.monotonic() + PATIENCE
    while (seen := _look(page, expression, argument)) != wanted:
        assert time.monotonic() < deadline, f"{expression} is {seen!r} and not {wanted!r}"
        page.wait_for_timeout(20)


def _look(page, expression, argument):
    try:
        return page.evaluate(expression, argument)
    except Error as error:
        if "context was destroyed" in str(error):  # the page was loaded anew in this moment
            return error
        raise


def still(page, *, loaded=True):
    """Wait until the state of the page is drawn and nothing is about to be drawn again."""
    until(page, STILL, argument=loaded)


def fits(page):
    """Nothing sticks out of the window to the right."""
    until(page, "document.documentElement.scrollWidth <= innerWidth")


def no_barrier(page):
    """Axe finds nothing."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def as_sentence(text):
    """As the page writes it."""
    return f"{text[0].upper()}{text[1:]}."


def answered(page):
    """The first card has its answer, and the board is gone to."""
    expect(page.locator("#drives .answer").first).to_be_attached()
    still(page)
    page.evaluate("document.querySelector('.columns.episode').scrollIntoView()")


# every frame comes late, as on a machine that has other things to do
LATE = """{
  const frame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) => window.setTimeout(() => frame(draw), DELAY);
}"""

STILL = """async (loaded) => {
  const still = () => window.explorer && explorer.drawn === explorer.store.state && !explorer.waiting
    && !(loaded && document.documentElement.dataset.drawn === "");
  if (!still()) return false; // also while the page is being loaded
  // a box that has changed its size says so after the frame in which it did, and everything is drawn again
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return still();
}"""

GO = """async (fragment) => {
  explorer.store.write();
  if (decodeURIComponent(location.hash) === (fragment && `#${fragment}`)) return;
  const changed = new Promise((done) => addEventListener("hashchange", done, { once: true }));
  location.hash = fragment;
  await changed;
}"""


def visit(page, fragments, read):
    """What an expression says in each of these states; their runs must be loaded. No frame is waited for."""
    return page.evaluate(
        f"""async (fragments) => {{
          const [found, go] = [[], {GO}];
          explorer.waiting = true; // each state is drawn once, here
          for (const fragment of fragments) {{
            await go(fragment);
            explorer.draw();
            found.push({read});
          }}
          explorer.waiting = false;
          explorer.schedule();
          return found;
        }}""",
        fragments,
    )


class Watched(Explorer):
    """An explorer, perhaps without one of its guards; what reached a handler, and what was turned away by which."""

    def __init__(self, library, without=None):
        super().__init__(library)
        self.without, self.reached, self.refused = without, [], []

    def app(self, port):
        guard = super().app(port)
        guard.guards.pop(self.without, None)
        inner, stopped_by = guard.app, guard.stopped_by

        async def reaching(scope, receive, send):
            self.reached.append(scope["path"])
            await inner(scope, receive, send)

        def stopping(scope, fields):
            name = stopped_by(scope, fields)
            if name is not None:
                self.refused.append((name, scope["path"]))
            return name

        guard.app, guard.stopped_by = reaching, stopping
        return guard


@contextlib.contextmanager
def site(browser, agents, *, without=None, episodes=3, library=None):
    """Serve these agents."""
    if library is None:
        library = Library(episodes=episodes)
        for name, agent in agents.items():
            library.add_agent(agent, name)
    explorer = Watched(library, without)
    with serving(explorer) as port:
        yield Site(browser, explorer, port)
