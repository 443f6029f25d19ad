"""How the page is laid out: what is seen at once, what fits a phone, and that nothing jumps while it plays."""

import re

import pytest
from playwright.sync_api import expect

from explorer.pages import PHONE, answered, still, until

pytestmark = pytest.mark.slow

BELOW = """(parts) => parts.filter((part) => {
  const box = document.querySelector(part).getBoundingClientRect();
  return box.height === 0 || box.top < 0 || box.bottom > window.innerHeight;
})"""


def test_board_player_and_timeline_are_seen_at_once(calm):
    with calm.tab("step=60") as page:
        for width, height in ((1440, 900), (1366, 768), (1280, 720)):
            page.set_viewport_size({"width": width, "height": height})
            answered(page)
            until(page, BELOW, [], argument=[".board canvas", ".player", ".timeline canvas", ".scrub"])
        page.set_viewport_size(PHONE)
        answered(page)
        until(page, BELOW, [], argument=[".board canvas", ".player"])


def test_on_a_phone_a_run_is_named_in_full(calm):
    with calm.tab("step=3", viewport=PHONE) as page:
        until(page, "document.querySelector('.toolbar select').clientWidth > 300")
        calm.go(page, "view=compare")
        until(page, "document.querySelector('.toolbar select').clientWidth > 250")


PLAYED = """async () => {
  let shifted = 0;
  const observer = new PerformanceObserver((list) => list.getEntries().forEach((one) => { shifted += one.value; }));
  observer.observe({ type: "layout-shift" });
  const tops = [];
  for (let pass = 0; pass < 2; pass += 1) {
    const found = new Set();
    for (let step = 0; step <= explorer.player.steps; step += 4) {
      explorer.store.set({ step });
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      found.add(Math.round(document.querySelector(".weight input").getBoundingClientRect().top));
    }
    tops.push(found.size);
  }
  observer.disconnect();
  return [shifted, ...tops];
}"""


@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_jumps_while_it_plays(calm, width):
    """The room that the longest sentence takes is kept for the others: on a wide page from the start."""
    with calm.tab("run=1", delay=0, viewport={"width": width, "height": 900}) as page:
        answered(page)
        shifted, first, second = page.evaluate(PLAYED)
    assert shifted < 0.02
    assert first <= 3
    assert second == 1


READ_BARS = """() => [...document.querySelectorAll(".bar")].map((bar) => {
  const box = (one) => one.getBoundingClientRect();
  const action = bar.querySelector(".action");
  const range = document.createRange();
  range.selectNodeContents(action);
  const name = range.getBoundingClientRect();
  const [number, track, total] = [".number", ".track", ".total"].map((one) => box(bar.querySelector(one)));
  const shown = [...bar.querySelectorAll(".segment")].filter((one) => !one.hidden && box(one).width > 24);
  const texts = shown.map((one) => box(one.firstChild)).filter((text) => text.width > 8);
  const beside = (text) => total.left > text.right || total.right < text.left;
  return {
    name: action.textContent,
    clear: name.right <= number.left + 1 && (name.bottom <= track.top + 1 || name.right <= track.left + 1),
    named: shown.every((one) => one.textContent !== ""),
    uncovered: texts.every((text) => total.top >= text.bottom - 2 || beside(text)),
    inside: total.left >= track.left - 1 && total.right <= track.right + 1,
  };
})"""


@pytest.mark.parametrize("width", [1360, 390, 320])
def test_actions_and_parts_of_the_bars_can_be_read(calm, width):
    with calm.tab("run=2&step=1", viewport={"width": width, "height": 844}) as page:
        for fragment in ("run=2&step=1", "run=1&step=12"):
            calm.go(page, fragment)
            names = page.evaluate("explorer.shown.run.actions")
            bars = page.evaluate(READ_BARS)
            assert [bar["name"].split()[-1] for bar in bars] == [name.split()[-1] for name in names]
            for bar in bars:
                assert all(bar[what] for what in ("clear", "named", "uncovered", "inside")), (fragment, bar)
        parts = page.get_by_role("list", name="Parts of the bars").locator("li")
        expect(parts).to_have_text([re.compile("1.*ghost 1"), re.compile("2.*ghost 2"), re.compile("3.*fruits")])
        colours = [colour(page, k) for k in range(3)]
        assert len(set(colours)) == 3
        patches = page.locator(".parts .patch").evaluate_all(
            "(all) => all.map((one) => getComputedStyle(one).backgroundColor)"
        )
        assert patches == colours
        still(page)


def colour(page, part):
    """The colour of a part of the bars, whatever its sign is."""
    segment = page.locator(".bar .lane").first.locator(".segment").nth(part)
    return segment.evaluate("(one) => getComputedStyle(one).backgroundColor")
