"""Links, odd episodes and odd names: the page shows a sentence, and never the wrong thing."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.conftest import trained
from explorer.pages import DRAWN, site, until, visit
from multiadvisor.analysis.episodes import record
from multiadvisor.explorer.library import Library

pytestmark = pytest.mark.slow


# ---- links -----------------------------------------------------------------------------------------------------------
def a_state(rng):
    """A fragment as the page itself would write it: fields in order, nothing that is standard."""
    parts = {}
    if rng.random() < 0.5:
        parts["view"] = rng.choice(["compare", "gallery", "learning"])
    others = {
        "run": 1, "episode": rng.randrange(1, 3), "step": rng.randrange(1, 140), "speed": 0.25, "loop": 1, "heat": 0,
        "arrows": 0, "map": rng.randrange(77), "cell": rng.randrange(76), "against": rng.randrange(4), "all": 1,
    }  # fmt: skip
    parts |= {name: value for name, value in others.items() if rng.random() < 0.5}
    if rng.random() < 0.4:
        parts["weights"] = "_".join(f"{j}~{rng.choice([0, -1.5, 2.25])}" for j in sorted(rng.sample(range(77), 3)))
    if rng.random() < 0.4:
        first = rng.randrange(60)
        parts["muted"] = f"{first}-{first + rng.randrange(2, 9)}"
    if rng.random() < 0.3:
        parts["gamma"] = rng.choice([0.25, 0.505, 0.9])
    if rng.random() < 0.3:
        parts["theme"] = rng.choice(["light", "dark"])
    return "&".join(f"{name}={value}" for name, value in parts.items())


WRITTEN = "(explorer.store.write(), decodeURIComponent(location.hash.slice(1)))"


def test_100_states_survive_the_trip_through_the_address(calm):
    rng = random.Random(3)
    fragments = [a_state(rng) for _ in range(100)]
    with calm.tab() as page:
        assert visit(page, fragments, WRITTEN) == fragments
        assert calm.explorer.keys.token not in page.url
        page.reload()
        page.wait_for_selector(DRAWN, state="attached")
        until(page, WRITTEN, fragments[-1])


# ---- odd traces ------------------------------------------------------------------------------------------------------
def cut(trace, steps):
    """The first episode of a trace, cut off after so many steps."""
    by_step = ("choice", "explored", "reward", "gain", "asked", "advice", "applied")
    return replace(
        trace, length=np.array([steps]), terminated=np.array([False]), x=trace.x[: steps + 1],
        **{name: getattr(trace, name)[:steps] for name in by_step},
    )  # fmt: skip


def test_odd_episodes_show_a_sentence(browser, agents):
    library = Library(episodes=1)
    whole = library.add_agent(agents["egocentric"], "cut")
    recorded = record(agents["egocentric"], 1, 0)
    whole.traces = [(cut(recorded, steps), 0) for steps in (0, 1, 40)]
    one = trained(mad.make("random-mdp", advisors=1), 500, gamma=0.8)
    many = trained(mad.make("random-mdp", advisors=500), 500, gamma=0.8)
    gadget = trained(mad.make("two-goal"), 500, planning="empathic", gamma=0.8)
    for name, agent in (("one", one), ("many", many), ("gadget", gadget)):
        library.add_agent(agent, name)
    with site(browser, {}, library=library) as served:
        with served.tab("episode=0") as page:
            states = "episode=0 episode=1&step=1 episode=2&step=40 run=1 run=2&step=3 run=3 run=3&step=1"
            for fragment in states.split():
                served.go(page, fragment)
                expect(page.locator("#sentence")).to_have_text(re.compile(r"^.{10,}\.$"))
            served.go(page, "run=1")
            expect(page.get_by_role("heading", name="Weights")).to_be_hidden()
            expect(page.locator("#drives thead")).not_to_contain_text("without it")
            served.go(page, "run=2&all=1")
            expect(page.locator(".bars + details tbody tr")).to_have_count(500)
            served.go(page, "run=9", loaded=False)
            expect(page.locator("#message")).to_contain_text("no run 10")
            served.go(page, "episode=77", loaded=False)
            expect(page.locator("#message")).to_contain_text("no episode 78")
        served.complaints[:] = [text for text in served.complaints if "400" not in text]
        assert served.complaints == []
    with site(browser, {}) as empty, empty.tab(wait=False) as page:
        expect(page.locator("#message")).to_contain_text("No run was given")
        page.keyboard.press("2")
        expect(page.locator("main")).to_contain_text("Two runs are needed")
        page.keyboard.press("5")
        expect(page.locator("main")).to_contain_text("None of these runs kept a record")
        assert empty.complaints == []


def test_a_torn_answer_shows_a_sentence(served):
    def tear(route):
        whole = route.fetch()
        route.fulfill(status=200, body=whole.body()[: len(whole.body()) // 2], content_type="application/octet-stream")

    with served.tab(wait=False) as page:
        page.goto("about:blank")  # so that what follows is a whole load, and no change of the fragment
        page.route("**/episodes/*", tear)
        page.goto(served.address("episode=2"))
        expect(page.locator("#message")).to_contain_text("damaged")
        page.unroute_all(behavior="wait")  # nobody may be tearing when the page is closed
    served.complaints.clear()


def test_names_with_markup_are_shown_and_not_run(browser):
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    task = mad.make("three-fruits")
    advisors = tuple(
        mad.Advisor(f"{evil} {j}", f.reward, f.state, f.states, group=f.group) for j, f in enumerate(task.advisors)
    )
    import dataclasses

    agent = trained(dataclasses.replace(task, advisors=advisors), 2_000, gamma=0.9)
    with site(browser, {evil: agent, "other": agent}) as served:
        for view in ("episode", "compare", "learning"):
            with served.tab(f"view={view}&all=1&map=1") as page:
                if view == "episode":
                    expect(page.locator("main")).to_contain_text(evil)
                expect(page).to_have_title("multiadvisor explorer")
                expect(page.locator("img")).to_have_count(0)
        assert served.complaints == []
