"""The page in a real browser: where the agent rests, playing, weights, what if, and two agents."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.conftest import trained
from explorer.pages import DELAY, answered, site, still, until
from multiadvisor.explorer.questions import attractor_layer, what_if

pytestmark = pytest.mark.slow


# ---- where it rests --------------------------------------------------------------------------------------------------
def test_the_page_shows_where_the_egocentric_agent_rests_and_that_it_is_an_attractor(calm):
    agent = calm.run().agent
    trace, episode = calm.recorded()
    states = trace.states(episode)
    rests = int(states[-1][0])
    assert (states[-30:, 0] == rests).all()
    layer = attractor_layer(agent, states[-1])
    assert {one["cell"]: one["stable"] for one in layer["exact"]}[rests]
    place = agent.task.board.name(rests)
    for kind in ("exact", "learned"):
        with calm.tab(f"step=290&attractors={kind}") as page:
            stands = f"The player is at {place}, which the solver calls a stable attractor"
            expect(page.locator("#layer-text")).to_contain_text(stands)
            expect(page.get_by_role("button", name="Stuck")).to_contain_text("to the end")


def test_the_three_fruit_gallery_turns_south_at_one_half(calm):
    with calm.tab("view=gallery&exhibit=three-fruits&gamma=0.4") as page:
        best = {}
        for gamma in (0.4, 0.499, 0.4999, 0.5, 0.5001, 0.501, 0.6):
            page.get_by_label("Gamma, exactly").fill(str(gamma))
            page.keyboard.press("Enter")
            best[gamma] = page.get_attribute(f'#verdict[data-gamma="{gamma}"]', "data-best")
    assert all(best[gamma] == "N W E" for gamma in (0.4, 0.499, 0.4999))
    assert best[0.5] == "N W S E"
    assert all(best[gamma] == "S" for gamma in (0.5001, 0.501, 0.6))


VERDICTS = {
    "four-fruits": "an unstable attractor", "two-goal": "a stable attractor", "bridge": "never ends",
    "noise": "one of the exact ones",
}  # fmt: skip


def test_every_exhibit_has_its_verdict(calm):
    with calm.tab("view=gallery") as page:
        for name, verdict in VERDICTS.items():
            calm.go(page, f"view=gallery&exhibit={name}")
            told = page.locator(f'#verdict[data-exhibit="{name}"]')
            expect(told).to_contain_text(verdict)
            expect(told).to_contain_text("0.3333" if name == "four-fruits" else verdict)
        calm.go(page, "view=gallery&exhibit=three-fruits&gamma=0.4&planning=egocentric&speed=16")
        expect(page.locator('#verdict[data-exhibit="three-fruits"][data-gamma="0.4"]')).to_be_visible()
        page.keyboard.press("End")
        until(page, "explorer.store.state.at", 10)
        for planning in ("agnostic", "egocentric", "empathic"):
            calm.go(page, f"view=gallery&exhibit=bridge&planning={planning}")
            ends = "never ends" if planning == "agnostic" else "ends after 4"
            expect(page.locator("#verdict")).to_contain_text(ends)
        calm.go(page, "view=gallery&exhibit=three-fruits&gamma=0.4&planning=egocentric&at=10")
        expect(page.locator(".bars")).to_contain_text("The episode is over")


def test_the_gallery_says_that_it_is_solving_and_keeps_to_the_cap(calm):
    held = []
    with calm.tab("view=gallery&exhibit=two-goal&gamma=0.5") as page:
        page.route("**/api/gallery/**", lambda route: held.append(route))
        calm.go(page, "view=gallery&exhibit=two-goal&gamma=0.99999", loaded=False)
        expect(page.get_by_text("Solving")).to_be_visible()
        expect(page.get_by_label("Gamma, exactly")).to_have_value("0.999")
        (route,) = held
        assert "gamma=0.999&" in route.request.url
        route.continue_()
        expect(page.get_by_text("Solving")).to_be_hidden()
        expect(page.locator('#verdict[data-gamma="0.999"]')).to_be_visible()


# ---- playing ---------------------------------------------------------------------------------------------------------
def test_a_journey_by_keyboard_alone(calm):
    def is_now(**wanted):
        for name, value in wanted.items():
            until(page, f"explorer.store.state.{name}", value)

    def tab_to(attribute, value):
        for _ in range(60):
            press("Tab")
            if page.evaluate("(name) => document.activeElement.getAttribute(name)", attribute) == value:
                return
        raise AssertionError(f"no way by Tab to {value}")

    with calm.tab("speed=16") as page:
        press = page.keyboard.press
        page.evaluate("document.body.focus()")
        press("Space")
        until(page, "explorer.store.state.step > 3")
        press("Space")
        until(page, "explorer.player.playing", False)
        press("Home")
        for key in (".", ".", "ArrowRight", ","):
            press(key)
        is_now(step=2)
        press("End")
        is_now(step=300)
        press("ArrowDown")
        is_now(speed=8)
        press("Shift+?")
        expect(page.locator("dialog[open]")).to_have_count(1)
        press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
        press("Home")
        tab_to("role", "gridcell")
        press("ArrowUp")
        here = page.locator("[role=gridcell]:focus")
        expect(here).to_have_attribute("aria-label", re.compile(r"row \d+, column \d+.*Best: "))
        press("Enter")
        until(page, "explorer.store.state.cell >= 0")
        press(".")
        is_now(step=1)
        tab_to("aria-label", "Weight of ghosts")
        for _ in range(4):
            press("ArrowRight")
        is_now(weights={"0": 1.2, "1": 1.2})
        expect(page.locator(".badge")).to_be_visible()
        press("Tab")
        press("Space")
        is_now(muted=[0, 1])
        expect(page.locator("#live")).to_contain_text("Step 1.")


def test_a_checkbox_keeps_only_the_space_bar(calm):
    with calm.tab("step=3") as page:
        page.get_by_label("Arrows").click()
        page.keyboard.press(".")
        page.keyboard.press("ArrowRight")
        until(page, "explorer.store.state.step", 5)
        page.keyboard.press("Space")
        until(page, "[explorer.store.state.arrows, explorer.player.playing]", [True, False])
        for key, view in enumerate(("episode", "compare", "agents", "gallery", "learning"), 1):
            page.keyboard.press(str(key))
            until(page, "explorer.store.state.view", view)
            expect(page.locator("#views [aria-current]")).to_have_text(view.capitalize())


def test_nothing_stale_is_read_out_where_there_is_nothing_to_show(calm):
    with calm.tab("step=3") as page:
        live = page.locator("#live")
        expect(live).to_have_text(re.compile(r"^Step 3\. "))
        expect(page.locator(".facts")).to_contain_text("Score")
        calm.go(page, "run=99", loaded=False)
        expect(page.locator("#message")).to_contain_text("no run 100")
        expect(live).to_have_text("")
        expect(page.locator(".facts")).to_have_text("")
        calm.go(page, "view=compare&other=99", loaded=False)
        expect(live).to_have_text(re.compile("^Two runs are needed"))
        calm.go(page, "view=learning")
        expect(live).to_have_text("")


def test_a_pointer_on_the_timeline_of_two_episodes_finds_the_step_under_it(calm):
    ends = [int(calm.recorded(k)[0].length[0]) for k in range(2)]
    short = int(ends[1] < ends[0])
    with calm.tab(f"view=compare&run={short}&other={1 - short}") as page:
        assert ends[short] < ends[1 - short] - 1
        expect(page.locator("#divergence")).to_contain_text("diverge")
        still(page)
        box = page.locator(".timeline canvas").bounding_box()
        page.mouse.click(box["x"] + box["width"] - 58, box["y"] + 20)
        until(page, f"Math.abs(explorer.store.state.step - {max(ends)}) <= 1")


def test_pointer_touch_and_pin(calm):
    with calm.tab("step=3", has_touch=True) as page:
        answered(page)
        board = page.locator(".board").first
        box = board.bounding_box()
        step = box["width"] / 11
        page.mouse.move(box["x"] + 3.5 * step, box["y"] + 2.5 * step)
        expect(page.get_by_role("heading", name="Cell (2, 3)")).to_be_visible()
        page.touchscreen.tap(box["x"] + 7.5 * step, box["y"] + 2.5 * step)
        page.mouse.move(0, 0)
        expect(page.get_by_role("heading", name="Cell (2, 7)")).to_be_visible()
        page.get_by_role("button", name="Unpin").click()
        until(page, "explorer.store.state.cell", -1)


def test_arrows_follow_a_weight_within_50_ms_of_work(calm):
    with calm.tab("step=20") as page:
        spent = page.evaluate("""async () => {
          const taken = [];
          for (let k = 0; k < 10; k += 1) {
            const before = explorer.measured.length;
            const start = performance.now();
            explorer.store.set({ weights: { 0: k, 1: -k } });
            const set = performance.now() - start;
            while (explorer.measured.length === before) await new Promise((done) => setTimeout(done));
            taken.push(set + explorer.measured.at(-1));
          }
          return taken;
        }""")
    assert sorted(spent)[len(spent) // 2] < 50


@pytest.mark.parametrize("delay", [DELAY, 250, 700])
def test_solo_mute_reset_and_the_sentence_on_empathic_training(calm, delay):
    with calm.tab("run=1&step=10", delay=delay) as page:
        page.get_by_role("button", name="Solo fruits").click()
        expect(page.locator(".badge")).to_be_visible()
        expect(page.locator("main")).to_contain_text("Empathic advisors were trained under the old weights")
        page.get_by_role("button", name="Reset").click()
        expect(page.locator(".badge")).to_be_hidden()


def test_solo_lifts_mute_and_mute_lifts_solo(calm):
    heard = "Array.from(explorer.episode.memo.weights.value).filter(Boolean).length"
    with calm.tab("run=1&step=10") as page:
        page.get_by_role("button", name="Mute fruits").click()
        page.get_by_role("button", name="Solo fruits").click()
        expect(page.get_by_role("button", name="Mute fruits", pressed=False)).to_be_visible()
        until(page, heard, 75)
        page.get_by_role("button", name="Mute fruits").click()
        expect(page.get_by_role("button", name="Solo fruits", pressed=False)).to_be_visible()
        until(page, heard, 2)
        calm.go(page, "run=1&step=10")
        until(page, heard, 77)
        calm.go(page, "run=1&step=10&muted=0-1&solo=0-1")
        until(page, heard, 2)


def test_under_weights_of_zero_all_actions_tie_and_nobody_is_trained(calm):
    with calm.tab("run=1&step=10&weights=" + "_".join(f"{j}~0" for j in range(77))) as page:
        expect(page.locator("#sentence")).to_have_text(re.compile("^Tie between"))
        expect(page.locator("main")).not_to_contain_text("at random")
        calm.go(page, "run=1&step=10&muted=0-76")
        expect(page.get_by_role("button", name="Train again")).to_be_disabled()
        expect(page.locator("main")).to_contain_text("Nobody has a say now: raise a weight to train again.")
        asked = {"do": "retrain", "run": calm.run(1).id, "weights": [0] * 77}
        told = page.evaluate("(asked) => explorer.source.ask(asked).catch((error) => error.message)", asked)
        assert told.startswith("All weights are 0")


def test_training_again_with_other_weights_gives_that_agent(browser, agents):
    start = trained(mad.make("pac-boy"), 30_000, planning="empathic", gamma=0.9)
    with site(browser, {"short": start}) as served, served.tab("step=1&weights=0~3_1~3") as page:
        page.get_by_role("button", name="Train again").click()
        expect(page.get_by_label("Run", exact=True).locator("option:checked")).to_contain_text("trained again")
        expect(page.locator(".badge")).to_be_hidden()
        again = list(served.explorer.library.entries.values())[-1].agent
        assert again.task.weights[:2].tolist() == [3.0, 3.0]
        expected = trained(start.task.with_weights(ghosts=3.0), 30_000, planning="empathic", gamma=0.9)
        assert np.array_equal(again._learner.table, expected._learner.table)
        assert served.complaints == []


def test_what_if_shows_the_librarys_continuations(calm):
    with calm.tab("run=1&step=12") as page:
        page.get_by_label("Another action").select_option("3")
        page.get_by_role("button", name="Try it").click()
        fan = page.get_by_role("img", name="Branches from step 12: ")
        expect(fan).to_be_visible()
        shown = fan.get_attribute("aria-label")
    trace, episode = calm.recorded(1)
    done = int(trace.step(episode, 12).action)
    found = what_if(calm.run(1).agent, trace.states(episode)[12], 12, (done, 3))
    assert shown == f"Branches from step 12: {found['sentence']}"
    assert [len(one["paths"]) for one in found["actions"]] == [20, 20]
    taken, other = (one["mean"] for one in found["actions"])
    assert f"{abs(other - taken):.3g} {'more' if other >= taken else 'less'}" in shown


def test_two_agents_are_locked_and_their_first_divergence_is_marked(calm):
    traces = [calm.recorded(k)[0] for k in range(2)]
    assert np.array_equal(traces[0].states(0)[0], traces[1].states(0)[0])  # the same episode, whatever their own seeds
    length = int(min(trace.length[0] for trace in traces))
    fork = next(t for t in range(length) if traces[0].action[t] != traces[1].action[t])
    with calm.tab("view=compare&step=5") as page:
        expect(page.locator("#divergence")).to_contain_text(f"They diverge in step {fork}:")
        page.get_by_role("button", name="First divergence").click()
        until(page, "explorer.store.state.step", fork)
        chosen = "[...document.querySelectorAll('.bar.chosen')].map((bar) => Number(bar.dataset.action))"
        until(page, chosen, [int(trace.action[fork]) for trace in traces])


def test_the_second_run_is_one_of_the_same_task_and_both_can_always_be_chosen(calm):
    with calm.tab("view=compare&run=0&other=2") as page:
        first, second = (page.get_by_label(f"{which} run", exact=True) for which in ("First", "Second"))
        expect(second.locator("option")).to_have_text(["empathic (empathic 0.9)"])
        expect(page.locator("#divergence")).to_contain_text("They diverge")
        first.select_option("2")
        expect(page.locator("main")).to_contain_text("Two runs are needed to compare, of one task")
        expect(second).to_be_hidden()
        first.select_option("1")
        expect(second).to_have_value("0")
        expect(page.locator("h2", has_text="egocentric 0.9")).to_be_visible()


def test_another_episode_is_compared_and_both_runs_have_their_numbers(calm):
    traces = [calm.recorded(k, 2)[0] for k in range(2)]
    with calm.tab("view=compare") as page:
        page.get_by_label("Episode").select_option("2")
        until(page, "[explorer.store.state.episode, explorer.store.state.step]", [2, 0])
        ends = page.get_by_role("row", name="score at the end").get_by_role("cell")
        expect(ends).to_have_text([f"{trace.score[0]:+.0f}".replace("-", "\u2212") for trace in traces])
        steps = page.get_by_role("row", name="steps", exact=True).or_(
            page.locator("tr", has_text=re.compile("^steps\\d"))
        )
        expect(steps.first.get_by_role("cell")).to_have_text([str(int(trace.length[0])) for trace in traces])
