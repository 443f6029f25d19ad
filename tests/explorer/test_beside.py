"""Beside the bars: pictures, rewards, decisive moments, who drives, the table of agents, a training that goes on."""

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer import drawn
from explorer.pages import DRAWN, PHONE, fits, no_barrier, site, until
from multiadvisor.analysis.episodes import record
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.onefile import html
from multiadvisor.runs.live import LiveLog
from multiadvisor.runs.training import LOCK, Training
from multiadvisor.settings import Schedule
from multiadvisor.storage.folder_lock import locked

pytestmark = pytest.mark.slow
PIXEL = """() => {
  const { canvas } = explorer.episode.picture;
  const copy = new OffscreenCanvas(1, 1).getContext("2d");
  copy.drawImage(canvas, 20, 20, 1, 1, 0, 0, 1, 1);
  return [canvas.dataset.step, ...copy.getImageData(0, 0, 1, 1).data.slice(0, 3)].join(" ");
}"""


@pytest.fixture(scope="module")
def served(browser):
    stuck = mad.theory.exact_agent(mad.make("three-fruits"), "egocentric", 0.6)
    novice = mad.MultiAdvisor(drawn.line(), gamma=0.9)
    with site(browser, {"walker": drawn.walker(), "stuck": stuck, "novice": novice}, episodes=2) as one:
        for name in one.explorer.library.entries:
            one.explorer.insights.of(name)  # compiled, so that no tab has to wait for it
            one.explorer.library.recorded(name, 0)
        yield one


def test_the_picture_of_every_step_stands_beside_the_bars(calm):
    trace, episode = calm.recorded()
    with calm.tab() as page:
        for step in (0, 2, int(trace.length[episode]), 1):
            calm.go(page, f"step={step}" if step else "")
            colour = drawn.COLOURS[int(trace.observed[step, 0])].tolist()
            until(page, PIXEL, " ".join(map(str, [step, *colour])))
        expect(page.get_by_role("img", name="in step 1, before on")).to_be_visible()
        expect(page.get_by_text("Pictures of 60 × 40.")).to_be_visible()
        page.get_by_text("Observation", exact=True).click()
        expect(page.get_by_role("img", name="Observation in step 1: cell ")).to_be_visible()


def test_what_cannot_be_drawn_shows_its_observation(calm, monkeypatch):
    monkeypatch.setitem(drawn.Line.metadata, "render_modes", [])
    with calm.tab("episode=1") as page:
        expect(page.get_by_role("img", name="Observation in step 0: cell 1")).to_be_visible()
        expect(page.locator(".picture")).to_contain_text("no render mode")


RIGHT_OF_THE_CURSOR = """(share) => {
  const canvas = document.querySelector("#rewards canvas");
  const [scale, wide] = [canvas.width / canvas.clientWidth, canvas.clientWidth - 72];
  const left = Math.round((52 + wide * share + 2) * scale); // half of the cursor's width, and one more
  const copy = new OffscreenCanvas(2, canvas.height).getContext("2d");
  copy.drawImage(canvas, left, 0, 2, canvas.height, 0, 0, 2, canvas.height);
  const { data } = copy.getImageData(0, 0, 2, canvas.height);
  let found = 0;
  for (let k = 0; k < data.length; k += 4) found += data[k] === 0x1d && data[k + 1] === 0x5c && data[k + 2] === 0xc4;
  return found > 4;
}"""


@pytest.mark.parametrize("kind", ["returns", "rewards"])
def test_a_reward_in_the_last_step_is_seen_beside_the_cursor(calm, kind):
    trace, episode = calm.recorded()
    length = int(trace.length[episode])
    step = length if kind == "returns" else length - 1
    with calm.tab(f"step={step}", color_scheme="light") as page:
        page.locator("#rewards").get_by_label("Lines").select_option(kind)
        page.locator("#rewards").get_by_role("button", name="time").click()
        until(page, RIGHT_OF_THE_CURSOR, argument=step / length)


def test_rewards_of_each_term_and_lines_that_are_switched_off(calm):
    trace, episode = calm.recorded()
    length = int(trace.length[episode])
    with calm.tab(f"step={length}") as page:
        chart = page.locator("#rewards canvas")
        expect(chart).to_have_attribute("aria-label", f"Paid before step {length}: time −{length}.00; goal +10.00")
        expect(page.locator("#rewards tr.now")).to_contain_text(f"episode 1{length}")
        before = page.evaluate("document.querySelector('#rewards canvas').toDataURL()")
        goal = page.locator("#rewards").get_by_role("button", name="goal")
        goal.click()
        expect(goal).to_have_attribute("aria-pressed", "false")
        until(page, "(before) => document.querySelector('#rewards canvas').toDataURL() !== before", True, before)
        goal.click()
        until(page, "(before) => document.querySelector('#rewards canvas').toDataURL() === before", True, before)
        page.locator("#rewards").get_by_label("Lines").select_option("rewards")
        calm.go(page, f"step={length - 1}")
        name = f"Rewards of step {length - 1}: time −1.00; goal +10.00"
        expect(page.get_by_role("img", name=name)).to_be_visible()


COLOURS = """() => {
  const [parts, terms] = [{}, {}];
  for (const one of document.querySelectorAll(".parts li"))
    parts[one.lastChild.textContent] = getComputedStyle(one).getPropertyValue("--part").trim();
  const ink = new OffscreenCanvas(1, 1).getContext("2d");
  for (const one of document.querySelectorAll("#rewards .switch")) {
    ink.fillStyle = one.querySelector(".swatch").style.borderTopColor;
    terms[one.querySelector(".name").textContent] = ink.fillStyle;
  }
  return [parts, terms];
}"""


def test_an_advisor_has_one_colour_in_bars_and_lines(calm):
    """Lines are darker on a light page, as they are thin: in the dark both are the same."""
    with calm.tab("step=1", color_scheme="dark") as page:
        expect(page.locator("#rewards .switch")).to_have_count(2)
        parts, terms = page.evaluate(COLOURS)
        assert parts == terms
        assert len(set(parts.values())) == 2


def test_one_click_leads_to_a_decisive_moment_and_to_where_it_is_stuck(calm):
    found = calm.explorer.insights.of(calm.run().id)
    with calm.tab() as page:
        moments = page.locator("#moments li")
        page.locator("#moments").scroll_into_view_if_needed()
        expect(moments).to_have_count(len(found["moments"]))
        expect(moments.first.locator("img")).to_be_visible()
        first = found["moments"][0]
        moments.first.get_by_role("button").click()
        until(page, "[explorer.store.state.episode, explorer.store.state.step]", [first["episode"], first["step"]])
        expect(page.locator("#drives")).to_contain_text("None of the 2 episodes is stuck")
        expect(page.locator("#drives tbody tr").first).to_contain_text("%, by")
        calm.go(page, "run=1")
        expect(page.locator("#moments canvas").first).to_be_visible()  # a board
        since = page.locator("#drives li", has_text="Stuck: ").nth(1)
        expect(since).to_contain_text("stands still since step 0")
        expect(since).to_contain_text("held by fruit")
        expect(page.locator("#drives li").last).to_contain_text("plan empathically")
        since.get_by_role("button").click()
        until(page, "explorer.store.state.episode", 1)


def test_agents_in_one_table_sorted_and_as_csv(calm):
    with calm.tab("view=agents") as page:
        rows = page.locator("#agents tbody tr")
        expect(rows).to_have_count(3)
        expect(page.locator("#agents table")).to_have_count(2)  # one for each task
        expect(page.locator("#agents")).not_to_contain_text("Playing")
        names = "[...document.querySelectorAll('#agents tbody th')].map((one) => one.textContent)"
        until(page, names, ["walker", "novice", "stuck"])
        length = page.locator("#agents th[data-key=steps]").first
        length.get_by_role("button").click()
        until(page, names, ["novice", "walker", "stuck"])
        expect(length).to_have_attribute("aria-sort", "descending")
        length.get_by_role("button").click()
        until(page, names, ["walker", "novice", "stuck"])
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Table as CSV").click()
        table = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text())))
    insight = calm.explorer.insights.of(calm.run().id)
    assert [row["run"] for row in table] == ["walker", "stuck", "novice"]
    for name, one in insight["advisors"].items():
        assert float(table[0][f"return/{name}"]) == pytest.approx(one["return"])
        assert float(table[0][f"changed/{name}"]) == pytest.approx(one["influence"]["changed"])
        assert float(table[0][f"bias/{name}"]) == pytest.approx(one["calibration"]["bias"])
    assert table[1]["return/time"] == ""


def test_an_exported_file_has_pictures_and_moments(calm, browser, tmp_path):
    path = tmp_path / "episode.html"
    path.write_text(html(calm.explorer.library, [calm.run().id], 0), "utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.on("pageerror", lambda error: calm.complaints.append(str(error)))
    page.goto(f"file://{path}#step=1")
    page.wait_for_selector(DRAWN, state="attached")
    until(page, PIXEL, " ".join(map(str, [1, *drawn.COLOURS[2]])))
    page.locator("#moments").scroll_into_view_if_needed()
    expect(page.locator("#moments li").first).to_contain_text("Episode 1, step")
    context.close()


@pytest.mark.parametrize("fragment", ["step=2", "view=agents"])
def test_on_a_phone_nothing_overflows_and_axe_finds_nothing(calm, fragment):
    with calm.tab(fragment, viewport=PHONE) as page:
        page.locator("main section").last.scroll_into_view_if_needed()
        until(page, "document.querySelector('#moments, #agents') && !document.body.innerText.includes('Playing')")
        fits(page)
        no_barrier(page)


def test_while_a_picture_is_drawn_axe_finds_nothing(calm):
    with calm.tab() as page:
        page.route("**/pictures/**", lambda route: None)  # it never comes
        calm.go(page, "episode=1")
        expect(page.get_by_text("Drawing \u2026")).to_be_visible()
        no_barrier(page)


def test_what_drives_a_run_does_not_wait_for_pictures(calm):
    with calm.tab() as page:
        page.route("**/moments/**", lambda route: None)  # they never come
        calm.go(page, "run=2")
        expect(page.locator("#drives .answer")).to_be_visible()
        expect(page.locator("#moments li").first).to_contain_text(", step ")
        expect(page.locator("#moments .where").first).not_to_be_empty()
        expect(page.locator("#moments img")).to_have_count(0)


def test_small_rewards_are_not_shown_as_nothing(calm):
    texts = 'import("/static/dom.js").then(({ scoreText }) => [-0.0023, 1e-9, 2.5, -3, NaN].map(scoreText))'
    with calm.tab() as page:
        until(page, texts, ["\u22120.002", "0", "+2.5", "\u22123", ""])


def test_exploration_is_told_of_those_that_have_some(calm):
    seen = """import("/static/live.js").then(({ seriesFrom }) => [[0, 0], [0.5, 0]].map((all) =>
      seriesFrom("epsilon", { lines: all.map((epsilon, steps) => ({ epsilon, steps })) })[0].ys))"""
    with calm.tab() as page:
        until(page, seen, [[], [0.5, 0]])


def test_a_training_that_was_stopped_says_so_and_which_score_is_which(browser, tmp_path):
    training = Training(mad.MultiAdvisor(mad.make("two-goal"), seed=1), Schedule(600, 200, 2), out=tmp_path / "run")
    log = LiveLog(training)

    def tell(now):
        log(now)
        if now.evaluation is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.run(tell)
    log.close()
    library = Library(episodes=1)
    library.add_folder(tmp_path / "run")
    with site(browser, {}, library=library) as one, one.tab("view=learning") as page:
        card = page.locator("#training")
        expect(card).to_contain_text("Interrupted: ")
        expect(card).to_contain_text("200 of 600 steps (33%). Continue with --resume.")
        expect(card).to_contain_text("Score after 200 steps")
        expect(card).to_contain_text("greedy episodes of an evaluation, without exploration")
        expect(page.get_by_role("columnheader", name="last evaluation")).to_be_visible()


def test_a_run_is_followed_while_another_process_trains_it(browser, tmp_path):
    agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric", alpha=0.5, seed=1)
    training = Training(agent, Schedule(600, 200, 2), out=tmp_path / "run")
    training.by_advisor = True
    with locked(tmp_path / "run", LOCK):
        training.save()
        record(training.agent)  # compiled
        log = LiveLog(training)
        library = Library(episodes=1)
        library.add_folder(tmp_path / "run")
        with site(browser, {}, library=library) as one, one.tab("view=learning") as page:
            card = page.locator("#training")
            expect(card).to_contain_text("Training: ")
            expect(card).to_contain_text("0 of 600 steps")
            expect(page.locator("main")).to_contain_text(
                "The curves begin when the first evaluation of the training is saved."
            )
            training.run(log)
            expect(card).to_contain_text("600 of 600 steps (100%)")
            expect(card).to_contain_text("Score after 600 steps")
            expect(card).to_contain_text("Stuck after 600 steps: stands still since step 0 (50 steps)")
            card.get_by_label("Curve").select_option("returns")
            returns = training.evaluations[-1]["advisors"]
            expect(card.get_by_role("button", name=next(iter(returns)))).to_be_visible()
            until(page, "Object.values(explorer.watch.newest)[0] > 0")
            expect(page.get_by_role("img", name="Score of two-goal by ")).to_be_visible()
            card.get_by_label("Curve").select_option("influence")
            expect(card.get_by_role("img", name="Influence of each term after 600 steps: ")).to_be_visible()
            card.get_by_role("button", name="Latest episode").click()
            until(page, "explorer.shown && explorer.shown.run.steps", 600)
            assert not one.complaints
        log.close()
