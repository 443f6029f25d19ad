"""For everyone: no barrier that axe knows, in any colours; and fast enough."""

import pytest
from playwright.sync_api import expect

from explorer.conftest import SCREENSHOTS
from explorer.pages import DRAWN, PHONE, fits, no_barrier, still, until

pytestmark = pytest.mark.slow

STATES = {  # each with something that is seen there when all of it has come
    "episode": ("step=60&attractors=exact", "exact egocentric values"),
    "why": ("step=20&all=1&weights=0~2_1~2", "Reset"),
    "advisor": ("step=5&map=30", "is shown: its own values"),
    "compare": ("view=compare&step=13", "They diverge in step"),
    "gallery": ("view=gallery", "attractor"),
    "bridge": ("view=gallery&exhibit=bridge", "never ends"),
    "two-goal": ("view=gallery&exhibit=two-goal", "a stable attractor"),
    "noise": ("view=gallery&exhibit=noise", "one of the exact ones"),
    "learning": ("view=learning", "last evaluation"),
    "no-board": ("run=2&step=1", "This task has no board"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_every_view_is_photographed_and_fits_a_phone(calm, scheme, monkeypatch):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for k in range(3):
        evaluations = [{"steps": e + 1, "score": 1000.0 * e + k, "length": 9.0, "terminated": 1.0} for e in range(5)]
        monkeypatch.setattr(calm.run(k), "evaluations", evaluations)
    with calm.tab(color_scheme=scheme) as page:
        for name, (fragment, seen) in STATES.items():
            calm.go(page, fragment)
            expect(page.locator("#view")).to_contain_text(seen)
            page.screenshot(path=SCREENSHOTS / f"{name}-{scheme}.png", full_page=True)
            no_barrier(page)
            for width in (320, 390):
                page.set_viewport_size({**PHONE, "width": width})
                still(page)
                fits(page)
            page.screenshot(path=SCREENSHOTS / f"{name}-{scheme}-phone.png", full_page=True)
            page.set_viewport_size({"width": 1360, "height": 900})


def test_forced_colours_and_reduced_motion(calm):
    with calm.tab("step=3&speed=4", forced_colors="active", reduced_motion="reduce") as page:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "episode-forced.png", full_page=True)
        page.keyboard.press("Space")
        until(page, "explorer.store.state.step > 3")
        until(page, "[explorer.player.playing, explorer.player.between]", [True, 0])


# ---- speed -----------------------------------------------------------------------------------------------------------
def test_the_first_board_takes_the_page_less_than_1_s_of_work(calm):
    """The processor's time of the page's own thread: what else the machine has to do is not the page's."""
    with calm.tab(wait=False, delay=0) as page:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.reload()
        page.wait_for_selector(DRAWN, state="attached")
        until(page, "window.explorer?.shown?.run.n", 77)
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        print(f"first board after {metrics['TaskDuration']:.2f} s of work, {page.evaluate('explorer.first'):.0f} ms")
    assert 0 < metrics["TaskDuration"] < 1


def test_300_steps_of_two_agents_take_at_most_17_ms_a_frame(calm):
    """The page's own work for each step, layout included; a step that is drawn several times counts at its fastest, as
    a busy machine may take the processor away at any time."""
    with calm.tab("view=compare", delay=0) as page:
        expect(page.locator(".bar.chosen")).to_have_count(2)
        taken = [float("inf")] * 301
        for _ in range(10):
            taken = [min(pair) for pair in zip(taken, page.evaluate(FRAMES), strict=True)]
            if sorted(taken)[285] <= 17:
                break
    print(f"p95 frame {sorted(taken)[285]:.1f} ms, median {sorted(taken)[150]:.1f} ms")
    assert sorted(taken)[285] <= 17


STILL_DRAWN = """() => {
  const { player, episode, store } = explorer;
  const drawn = (step, fraction) => {
    store.set({ step });
    player.fraction = fraction;
    explorer.draw();
    return episode.board.still;
  };
  player.playing = true;
  const [first, between, next] = [drawn(5, 0), drawn(5, 0.5), drawn(6, 0)];
  const listed = [...document.querySelectorAll(".bars + details tbody tr")].filter((row) => !row.hidden).length;
  player.playing = false;
  return [first === between, between === next, listed];
}"""


def test_between_two_steps_only_what_moves_is_drawn_and_long_lists_are_cut(calm):
    with calm.tab("run=1&all=1&step=5") as page:
        trace, episode = calm.recorded(1)
        names = calm.run(1).agent.advice(trace.states(episode)[6])[0]
        assert len(names) > 24
        assert page.evaluate(STILL_DRAWN) == [True, False, 24]
        rows = page.locator(".bars + details tbody tr")
        expect(rows.locator("visible=true")).to_have_count(len(names))


FRAMES = """async () => {
  const taken = [];
  for (let step = 0; step <= 300; step += 1) {
    const start = performance.now();
    explorer.store.set({ step });
    explorer.draw();
    document.body.getBoundingClientRect();
    taken.push(performance.now() - start);
    if (step % 50 === 0) await new Promise((done) => requestAnimationFrame(done));
  }
  return taken;
}"""
