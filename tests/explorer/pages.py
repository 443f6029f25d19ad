"""What the tests of the page share: a served explorer, a tab on it, and ways to wait for what is expected.

A test never looks at the page just once: it says what should be seen, with playwright's `expect` or with `until` below,
and that may come at any time. `DRAWING_DELAY=250 pytest tests/explorer` shows whether it does so, by drawing each frame
so many milliseconds late.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Error

import multiadvisor as mad
from multiadvisor.explorer.guards import GUARDS
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer, address, serving
from patience import PATIENCE

DRAWN = 'html[data-drawn]:not([data-drawn=""])'
DELAY = int(os.environ.get("DRAWING_DELAY", "0"))


class Site:
    """An explorer that is served, and what its tabs complained about."""

    def __init__(self, browser: Any, explorer: Explorer, port: int) -> None:
        self.browser, self.explorer, self.port = browser, explorer, port
        self.complaints: list[str] = []

    def address(self, fragment: str = "") -> str:
        return address(self.port, self.explorer.keys.ticket()) + (f"&{fragment}" if fragment else "")

    @contextlib.contextmanager
    def tab(self, fragment: str = "", *, wait: bool = True, delay: int = DELAY, **context: Any) -> Iterator[Any]:
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

    def go(self, page: Any, fragment: str, *, loaded: bool = True) -> None:
        """Another state of the page, by its fragment alone; returns when it stands there, and nothing of the last one.

        Without `loaded` what is asked for may still be on its way, or may not exist.
        """
        until(page, "typeof explorer !== 'undefined'")  # right after a reload it is not there yet
        page.evaluate(GO, fragment)
        still(page, loaded=loaded)


def entry(served: Site, index: int) -> Any:
    return list(served.explorer.library.entries.values())[index]


def until(page: Any, expression: str, wanted: Any = True, argument: Any = None) -> None:
    """Wait until an expression of the page has this value."""
    deadline = time.monotonic() + PATIENCE
    while (seen := _look(page, expression, argument)) != wanted:
        assert time.monotonic() < deadline, f"{expression} is {seen!r} and not {wanted!r}"
        page.wait_for_timeout(20)


def _look(page: Any, expression: str, argument: Any) -> Any:
    try:
        return page.evaluate(expression, argument)
    except Error as error:
        if "context was destroyed" in str(error):  # the page was loaded anew in this moment
            return error
        raise


def still(page: Any, *, loaded: bool = True) -> None:
    """Wait until the state of the page is drawn and nothing is about to be drawn again."""
    until(page, STILL, argument=loaded)


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


def visit(page: Any, fragments: list[str], read: str) -> list[Any]:
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


@contextlib.contextmanager
def site(
    browser: Any, agents: dict[str, mad.MultiAdvisor], *, guards: frozenset[str] = GUARDS, episodes: int = 3,
    library: Library | None = None,
) -> Iterator[Site]:  # fmt: skip
    """Serve these agents."""
    if library is None:
        library = Library(episodes=episodes)
        for name, agent in agents.items():
            library.add_agent(agent, name)
    explorer = Explorer(library, guards=guards)
    with serving(explorer) as port:
        yield Site(browser, explorer, port)
