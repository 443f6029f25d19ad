"""Different weights, steady costs, many terms, names that are used twice: what the page says of them."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.pages import as_sentence, site, until
from multiadvisor.analysis.episode_report import report_on
from multiadvisor.analysis.episodes import play
from multiadvisor.explorer.insights import Albums, Insights
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.onefile import html
from multiadvisor.runs.trace import explain_step

pytestmark = pytest.mark.slow


class Toll(gymnasium.Env[Any, Any]):
    """Waiting costs 1, walking on 3, and nothing is ever paid: whoever learns it waits."""

    observation_space, action_space = gymnasium.spaces.Discrete(4), gymnasium.spaces.Discrete(2)
    action_names = ("wait", "toll")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.elapsed = 0, 0
        return self.cell, {}

    def step(self, action):
        self.cell, self.elapsed = (self.cell + int(action)) % 4, self.elapsed + 1
        terms = {"time": -1.0, "toll": -2.0 * action, "view": 0.5 * action}
        return self.cell, sum(terms.values()), False, self.elapsed == 40, terms


class Terms(gymnasium.Env[Any, Any]):
    """A walk along 60 cells; each has a term of its own, and that of the cell is paid."""

    observation_space, action_space = gymnasium.spaces.Discrete(60), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.elapsed = 50, 0
        return self.cell, {}

    def step(self, action):
        self.cell, self.elapsed = min(self.cell + int(action), 59), self.elapsed + 1
        terms = {f"term_{k:02}": float(k == self.cell) for k in range(60)}
        return self.cell, 1.0, False, self.elapsed == 30, terms


def waiting(**weights):
    task = mad.Task.from_gymnasium(Toll(), "info:time,info:toll,info:view", name="toll").with_weights(**weights)
    return mad.MultiAdvisor(task, gamma=0.5, epsilon=0.5, seed=1).learn(1_000, progress=False)


@pytest.fixture(scope="module")
def agents():
    terms = mad.Task.from_gymnasium(Terms(), ",".join(f"info:term_{k:02}" for k in range(60)), name="terms")
    many = mad.MultiAdvisor(terms, gamma=0.5, epsilon=0.3).learn(2_000, progress=False)
    return {"plain": waiting(), "other": waiting(time=0.1), "many": many}


@pytest.fixture(scope="module")
def served(browser, agents):
    library = Library(episodes=2)
    for name, agent in agents.items():
        weighted = {"reward": -40.0} if name == "other" else {}
        library.add_agent(agent, name, [{"steps": 40, "score": agent.evaluate(2).score, **weighted}])
    with site(browser, {}, library=library) as one:
        for name in library.entries:
            one.explorer.insights.of(name)
        yield one


# ---- without a browser -----------------------------------------------------------------------------------------------
def test_a_steady_cost_is_stuck_by_the_one_detector_in_report_and_episode(agents):
    library = Library(episodes=2)
    run = library.add_agent(agents["plain"], "plain")
    insights = Insights(library, Albums(library))
    (reported, _) = report_on(play(agents["plain"], 1, [0, 1])).stuck
    assert (reported.kind, reported.since, reported.steps) == ("stands still", 0, 40)
    (shown,) = insights.stuck(run.id, 0)["stuck"]
    assert shown["sentence"] == str(reported)
    assert [one["sentence"] for one in insights.of(run.id)["stuck"]] == [str(reported)] * 2
    assert shown["sentence"] in html(library, [run.id], 0)


def test_a_run_that_is_named_twice_is_shown_once(tmp_path):
    mad.MultiAdvisor(mad.make("two-goal")).save(tmp_path / "run")
    library = Library()
    for name in ("run", "../" + tmp_path.name + "/run"):
        library.add_folder(tmp_path / name)
    assert len(library.entries) == 1
    assert "named twice" in library.skipped[0]


# ---- in the browser --------------------------------------------------------------------------------------------------
def test_scores_of_different_weights_have_one_yardstick_in_every_view(calm):
    with calm.tab("view=agents") as page:
        rows = page.locator("#agents tbody tr")
        expect(rows.nth(0)).to_contain_text("plainempathic 0.5−40−4040.0")
        expect(rows.nth(1)).to_contain_text("otherempathic 0.5, weights time=0.1−40−440.0")
        expect(page.locator("#agents")).to_contain_text("Scores are by the task's own weights")
        calm.go(page, "view=compare")
        expect(page.locator("#divergence")).to_contain_text(
            "empathic 0.5: −40 in 40 steps; empathic 0.5, weights time=0.1: −40 in 40 steps. "
            "Scores are by the task's own weights."
        )
        expect(page.locator(".pair tr", has_text="own score at the end")).to_have_text("own score at the end−40−4")
        calm.go(page, "view=learning")
        other = page.locator(".charts tr", has_text="weights time=0.1")
        expect(other).to_contain_text("1−40.00one run−4.00")
        calm.go(page, "run=1")
        expect(page.locator(".facts").first).to_contain_text(
            "Score −4 in 40 steps, truncated. By the task's own weights −40."
        )


def test_the_episode_shows_where_the_library_finds_it_stuck(calm):
    with calm.tab("step=3") as page:
        mark = page.get_by_role("button", name="Stuck in steps 0 to the end")
        expect(mark).to_be_visible()
        assert mark.get_attribute("title") == calm.explorer.insights.stuck(calm.run().id, 0)["stuck"][0]["sentence"]
        mark.click()
        until(page, "explorer.store.state.step", 0)
        calm.go(page, "view=compare")
        expect(page.locator(".pair tr", has_text="in which it is stuck")).to_have_text("steps in which it is stuck4040")


def test_a_term_and_an_action_of_one_name_are_told_apart(calm):
    run = calm.run()
    trace, episode = calm.explorer.library.recorded(run.id, 0)
    why = explain_step(run.agent, trace, episode, 3).sentence
    assert "chooses wait rather than toll: the term toll, " in why
    with calm.tab("step=3") as page:
        expect(page.locator("#sentence")).to_have_text(as_sentence(why))


def test_of_many_terms_the_largest_are_shown(calm):
    run = calm.run(2)
    trace, episode = calm.explorer.library.recorded(run.id, 0)
    seen = trace.step(episode, 25)
    size = np.abs(seen.advice).max(axis=1)
    order = [seen.names[k] for k in np.argsort(-size, kind="stable")]
    count = int((size > 0).sum())
    assert 1 < count < 23
    assert seen.names.index(order[0]) > 30, "not one of the first"
    with calm.tab("run=2&step=25") as page:
        legend = page.locator(".parts li:visible")
        expect(legend).to_have_text([*(f"{k + 1}{name}" for k, name in enumerate(order[:count])),
                                     f"{count + 1}{60 - count} more"])  # fmt: skip
        paid = dict(zip(run.agent.task.names, trace.reward.sum(axis=0), strict=True))
        kept = [name for name in sorted(paid, key=lambda name: -paid[name]) if paid[name] > 0]
        expect(page.locator("#rewards .switch .name")).to_have_text([*kept, f"{60 - len(kept)} others"])
        strong = page.locator(".weights").first.locator(".name")
        expect(strong.first).to_have_text(kept[0])
        assert strong.count() <= 30
        page.get_by_text("All differences").click()
        shown = page.locator(".reason tbody td:nth-child(2)")
        texts = [text.replace("−", "-") for text in shown.all_inner_texts()]
        sizes = [abs(float(text)) for text in texts]
        assert sizes == sorted(sizes, reverse=True)
        calm.go(page, "view=agents")
        driving = calm.explorer.insights.of(run.id)["advisors"]
        most = max(driving, key=lambda name: driving[name]["influence"]["changed"])
        expect(page.locator("#agents th.term").filter(has_text="term").first).to_have_text(most)


LABELS = """() => [...document.querySelectorAll(
    "th[scope=col], h2, h3, label > span:first-child, label.check, dt, summary, button")]
  .filter((one) => one.offsetParent && one.textContent.trim() && !one.closest("[title]:not([title=''])")
    && !one.querySelector("[title]"))
  .map((one) => one.textContent.trim())"""


def test_every_label_has_a_tooltip_and_every_episode_one_name(calm):
    with calm.tab("step=3") as page:
        for fragment in ("step=3", "view=compare", "view=agents", "view=learning", "view=gallery"):
            calm.go(page, fragment)
            until(page, LABELS, [])
        calm.go(page, "step=3")
        expect(page.locator(".toolbar select").nth(1).locator("option")).to_have_text(
            ["episode 1 (seed 0)", "episode 2 (seed 1)"]
        )


def test_a_run_is_never_compared_with_itself(calm):
    with calm.tab("view=compare&run=1&other=1") as page:
        expect(page.locator(".pair thead")).to_have_text("1 other2 plain")
        expect(page.get_by_label("Second run", exact=True)).to_have_value("0")
        calm.go(page, "view=compare&run=2&other=2", loaded=False)
        expect(page.locator("main")).to_contain_text("Two runs are needed to compare")
