"""What the tests of the page share: a served explorer, and a tab on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import multiadvisor as mad
from multiadvisor.explorer.guards import GUARDS
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer, address, serving

DRAWN = 'html[data-drawn]:not([data-drawn=""])'


class Site:
    """An explorer that is served, and what its tabs complained about."""

    def __init__(self, browser: Any, explorer: Explorer, port: int) -> None:
        self.browser, self.explorer, self.port = browser, explorer, port
        self.complaints: list[str] = []

    def address(self, fragment: str = "") -> str:
        return address(self.port, self.explorer.keys.ticket()) + (f"&{fragment}" if fragment else "")

    @contextlib.contextmanager
    def tab(self, fragment: str = "", *, wait: bool = True, **context: Any) -> Iterator[Any]:
        """A fresh browser with one tab on this state of the page."""
        fresh = self.browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **context})
        try:
            page = fresh.new_page()
            page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: self.complaints.append(str(error)))
            page.goto(self.address(fragment))
            if wait:
                page.wait_for_selector(DRAWN, state="attached")
            yield page
        finally:
            fresh.close()

    def go(self, page: Any, fragment: str) -> None:
        """Another state of the page, by its fragment alone."""
        page.evaluate(GO, fragment)


GO = """async (fragment) => {
  location.hash = fragment;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


@contextlib.contextmanager
def site(
    browser: Any, agents: dict[str, mad.MultiAdvisor], *, guards: frozenset[str] = GUARDS, games: int = 3,
    library: Library | None = None,
) -> Iterator[Site]:  # fmt: skip
    """Serve these agents."""
    if library is None:
        library = Library(games=games)
        for name, agent in agents.items():
            library.add_agent(agent, name)
    explorer = Explorer(library, guards=guards)
    with serving(explorer) as port:
        yield Site(browser, explorer, port)
