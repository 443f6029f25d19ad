"""The built site in a browser: every page in both themes, wide and narrow; and from the front page to a program.

Opening a page and asking axe about it costs the processor a second or so, there are some sixty pages, and each is seen
in four ways. So axe judges what does not depend on colours once for each page, what depends on the width once for each
width, and contrast once for each pair of colours and size of text that occurs anywhere in a theme.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from patience import PATIENCE
from test_documents import ROOT, blocks

pytestmark = pytest.mark.slow

WIDE, NARROW = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
THEME = "document.body.dataset.mdColorScheme"
AROUND = {"exclude": [".md-header", ".md-tabs", ".md-sidebar", ".md-footer"]}  # the same on all pages
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"
# What scrolls has been given its place in the order of the keyboard.
REACHED = """() => [...document.querySelectorAll(".md-typeset__scrollwrap, pre > code")].every(
    (one) => one.scrollWidth <= one.clientWidth || one.tabIndex === 0)"""
AXE = """([within, options]) => axe.run(within, {resultTypes: ["violations"], ...options}).then((found) =>
    found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120))}`))"""
# Text that looks like none before: its colour, the colours behind it, its size and weight.
NEW_LOOKS = """(seen) => {
  const known = new Set(seen), fresh = [], words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const behind = new Map();
  const ground = (one) => {
    if (!one) return "";
    if (!behind.has(one)) {
      const colour = getComputedStyle(one).backgroundColor;
      behind.set(one, colour === "rgba(0, 0, 0, 0)" ? ground(one.parentElement) : colour + ground(one.parentElement));
    }
    return behind.get(one);
  };
  for (const one of document.querySelectorAll(".looked")) one.classList.remove("looked");
  while (words.nextNode()) {
    const one = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || !one.checkVisibility()) continue;
    const style = getComputedStyle(one);
    const look = [style.color, ground(one), style.fontSize, style.fontWeight, style.opacity].join(" ");
    if (!known.has(look)) { known.add(look); fresh.push(look); one.classList.add("looked"); }
  }
  return fresh;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Server(http.server.ThreadingHTTPServer):
    """A server that takes it calmly when a browser has gone on to the next page."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: what the page misses, the page says."""


class Page(HTMLParser):
    """What a page of the site has: ids, links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what matters here."""
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag in ("a", "area") and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(found.get("href", ""))
        elif "src" in found:
            self.loads.append(found["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not all(importlib.util.find_spec(name) for name in ("mkdocs", "material", "mkdocstrings")):
        message = "the extra docs is not installed: `make test` installs it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    folder = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = Server(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Every page by its name in the site."""
    return {path.relative_to(site).as_posix(): Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def test_the_site_is_whole_and_every_link_and_anchor_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    assert len(pages) > 40
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
    wrong = []
    for name, page in pages.items():
        base = "/" + name
        for target in page.links + page.loads:
            if urlsplit(target).scheme in ("http", "https", "mailto", "data", "blob"):
                if target in page.loads and not target.startswith("data:"):
                    wrong.append(f"{name} loads {target}")
                continue
            there = urlsplit(urljoin(base, target))
            path = unquote(there.path).lstrip("/") or "index.html"
            if not (site / path).is_file():
                wrong.append(f"{name}: {target}")
            elif there.fragment and path in pages and unquote(there.fragment) not in pages[path].ids:
                wrong.append(f"{name}: {target} has no such anchor")
    assert wrong == []


def test_every_page_in_both_themes_wide_and_narrow(browser: Any, site: Path, address: str) -> None:
    from axe_playwright_python.base import AXE_FILE_PATH  # type: ignore[import-untyped]
    from playwright.sync_api import TimeoutError

    axe, wrong = AXE_FILE_PATH.read_text("utf-8"), []
    looks: dict[str, set[str]] = {"default": set(), "slate": set()}
    context = browser.new_context(viewport=WIDE, color_scheme="light")
    words = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    few = {**words, "docs": words["docs"][:3]}  # every page reads them all and orders them, which is much of the work
    context.route("**/search_index.json", lambda route: route.fulfill(json=few))
    tab = context.new_page()
    tab.on("console", lambda m: wrong.append(f"{tab.url}: {m.text}") if m.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: wrong.append(f"{tab.url}: {error}"))
    tab.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else wrong.append(r.url))
    tab.on("response", lambda r: wrong.append(f"{r.status} {r.url}") if r.status >= 400 else None)

    def ask(within: Any = None, **options: Any) -> None:
        how = f"{name}, {theme}, {tab.viewport_size['width']} wide"
        wrong.extend(f"{how}: {one}" for one in tab.evaluate(AXE, [within or "html", options]))

    def reach() -> None:
        """Wait until the theme has seen the new width; where it never does, axe says what is wrong."""
        with contextlib.suppress(TimeoutError):
            tab.wait_for_function(REACHED, timeout=1000 * PATIENCE)

    for name in sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html")):
        if name == "pac-boy.html":  # the explorer in one file: below, and in the explorer's tests
            continue
        tab.goto(address + name)  # as wide, and in the theme, that the last page was left in
        tab.evaluate(axe)
        tab.add_style_tag(content=STILL)
        theme = tab.evaluate(THEME)
        reach()
        ask(AROUND, rules={"color-contrast": {"enabled": False}})
        for step in range(4):
            if step == 2:
                tab.set_viewport_size(NARROW if tab.viewport_size == WIDE else WIDE)
                reach()
            elif step:  # by the button in the header
                tab.evaluate("document.querySelector('.md-header__option label:not([hidden])').click()")
                before, theme = theme, tab.evaluate(THEME)
                assert {before, theme} == {"default", "slate"}
            if (over := tab.evaluate(OVERFLOW)) > 0:
                wrong.append(f"{name}, {theme}: {over} pixels wider than {tab.viewport_size['width']}")
            if name == "index.html":
                ask()
            if fresh := tab.evaluate(NEW_LOOKS, list(looks[theme])):
                looks[theme].update(fresh)
                ask(".looked", runOnly=["color-contrast"])
            if tab.viewport_size == NARROW and step % 2 == 0:
                ask("article", runOnly=["scrollable-region-focusable"])
    context.close()
    assert wrong == []
    assert min(len(seen) for seen in looks.values()) > 20


def test_search_finds_a_page(browser: Any, address: str) -> None:
    from playwright.sync_api import expect

    context = browser.new_context(viewport=WIDE)
    tab = context.new_page()
    tab.goto(address)
    tab.get_by_role("textbox", name="Search").click()
    tab.keyboard.type("bootstrap interval")
    expect(tab.locator(".md-search-result__link").first).to_be_visible()
    context.close()


def test_the_episode_on_the_site_plays(browser: Any, address: str) -> None:
    context = browser.new_context(viewport=WIDE)
    tab, wrong = context.new_page(), []
    tab.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    tab.set_default_timeout(30_000)
    tab.goto(f"{address}explorer.html")
    tab.get_by_role("link", name="pac-boy.html").click()
    tab.wait_for_selector('html[data-drawn^="episode "]', state="attached")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_selector('html[data-drawn$=" 1"]', state="attached")
    context.close()
    assert wrong == []


@pytest.mark.parametrize("tool", ["Stable-Baselines3", "CleanRL", "MORL-Baselines"])
def test_users_of_other_tools_reach_a_program_in_three_clicks_and_ten_lines(
    browser: Any, address: str, tool: str
) -> None:
    context = browser.new_context(viewport=WIDE)
    tab = context.new_page()
    tab.goto(address)
    tab.locator("article").get_by_role("link", name=tool, exact=True).first.click()  # the first click, and the only one
    tab.wait_for_url("**/coming-from-*.html")
    document = ROOT / "docs" / Path(urlsplit(tab.url).path).with_suffix(".md").name
    run = [block.code.strip() for block in blocks(document.read_text("utf-8"))]  # by test_documents.py
    shown = [text.strip() for text in tab.locator("article pre code").all_inner_texts()]
    context.close()
    programs = [code for code in shown if code in run and "import multiadvisor" in code]
    assert programs
    first = programs[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 10
    assert re.search(r"MultiAdvisor\(\"\w+-v\d|mad\.diagnose\(env", first), "it is their environment, not one of ours"
