"""The numbers and sentences on the page are the library's."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.conftest import trained
from explorer.pages import Site, entry, site, until, visit
from multiadvisor.core.aggregations import weighted_sum
from multiadvisor.explain.explanation import explain_advice
from multiadvisor.explorer.playing import reweighted
from multiadvisor.runs.trace import explain_step

pytestmark = pytest.mark.slow


def number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace("+", ""))


READ = """(() => {
  const table = document.querySelector("table.exact");
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  return {
    step: Number(table.dataset.step), cell: Number(table.dataset.cell), run: explorer.store.state.run,
    rows: rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
  };
})()"""


def test_200_numbers_on_the_page_are_the_librarys(calm: Site) -> None:
    rng, samples = random.Random(7), []
    changed = {0: 2.5, 1: -1.0, 5: 0.0, 20: 3.25, 44: -0.5}
    for k in range(200):
        run = k % 2
        trace, episode = calm.explorer.library.recorded(entry(calm, run).id, 0)
        cells = len(entry(calm, run).agent.task.board.cells)
        samples.append((run, rng.randrange(int(trace.length[episode])), rng.randrange(cells), k >= 100))
    weights = "_".join(f"{j}~{value}" for j, value in changed.items())
    fragments = [f"run={r}&step={t}&cell={c}" + (f"&weights={weights}" if w else "") for r, t, c, w in samples]
    with calm.tab(fragments[0]) as page:
        calm.go(page, fragments[1])
        found = visit(page, fragments, READ)
    for (run, step, cell, with_weights), seen in zip(samples, found, strict=True):
        agent = entry(calm, run).agent
        trace, episode = calm.explorer.library.recorded(entry(calm, run).id, 0)
        x = trace.states(episode)[step].copy()
        x[0] = cell
        names, advice = agent.advice(x)
        own = agent.task.weights.copy()
        if with_weights:
            own[list(changed)] = list(changed.values())
        w = own[[agent.task.names.index(name) for name in names]]
        assert (seen["run"], seen["step"], seen["cell"]) == (run, step, cell)
        head, *top = seen["rows"]
        assert np.abs(np.array([number(text) for text in head[1:]]) - weighted_sum(advice, w)).max() < 1e-6
        wished = dict(zip(names, w[:, None] * advice, strict=True))
        assert len(top) == min(5, len(names))
        for name, *shown in top:
            assert np.abs(np.array([number(text) for text in shown]) - wished[name]).max() < 1e-6
        strongest = sorted((np.abs(v).max() for v in wished.values()), reverse=True)[:5]
        assert [max(abs(number(t)) for t in row[1:]) for row in top] == pytest.approx(strongest, abs=1e-6)


def test_the_shortest_reason_is_the_librarys(calm: Site) -> None:
    chips = """[...document.querySelectorAll(".chip")].map((chip) => chip.textContent)"""
    with calm.tab("run=1") as page:
        agent = entry(calm, 1).agent
        trace, episode = calm.explorer.library.recorded(entry(calm, 1).id, 0)
        steps = range(0, int(trace.length[episode]), 6)
        shown = visit(page, [f"run=1&step={step}" for step in steps], chips)
    for step, texts in zip(steps, shown, strict=True):
        seen = trace.step(episode, step)
        told = agent.explain(seen.state, action=int(seen.action))
        if not told.tie:
            assert [text.rpartition(" ")[0] for text in texts] == [*told.msx_plus[:8], *told.msx_minus[:4]]


SENTENCE = 'document.getElementById("sentence").textContent'


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def test_the_sentence_on_the_page_is_the_librarys(calm: Site) -> None:
    """As it was played, against another action, and with other weights: always what Python says."""
    muted = "&muted=0-1"  # the ghosts
    with calm.tab("run=1") as page:
        for run in (1, 0, 2):
            agent = entry(calm, run).agent
            trace, episode = calm.explorer.library.recorded(entry(calm, run).id, 0)
            steps = range(1, int(trace.length[episode]), 9)
            calm.go(page, f"run={run}")
            shown = visit(page, [f"run={run}&step={step}" for step in steps], SENTENCE)
            assert shown == [sentence(explain_step(agent, trace, episode, step).sentence) for step in steps]
            step = steps[-1]
            other = next(a for a in range(len(agent.task.actions)) if a != trace.action[step])
            told = explain_step(agent, trace, episode, step, against=other)
            calm.go(page, f"run={run}&step={step}&against={other}")
            until(page, SENTENCE, sentence(told.sentence))
            weights = [0.0, 0.0, *told.weights[2:]] if run < 2 else told.weights
            changed = explain_advice(
                told.names, told.advice, weights, told.actions, action=told.action, groups=told.groups,
                aggregator=told.aggregator, here=told.here,
            )  # fmt: skip
            calm.go(page, f"run={run}&step={step}{muted if run < 2 else ''}")
            until(page, SENTENCE, sentence(changed.sentence))


@pytest.mark.parametrize("split", ["groups", "none"])
def test_a_network_with_advisors_of_its_own_is_shown_with_these(browser: Any, split: str) -> None:
    deep = mad.DQN(
        hidden=(8,), learning_starts=64, batch_size=16, buffer_size=600, train_freq=2, updates_at_once=4, split=split
    )
    agent = trained(mad.make("three-fruits"), 200, learner=deep)
    with site(browser, {"net": agent}) as served, served.tab("step=1") as page:
        trace, episode = served.explorer.library.recorded(entry(served, 0).id, 0)
        (seen,) = visit(page, ["step=1"], READ)
        assert [row[0] for row in seen["rows"][1:]] == list(trace.step(episode, 1).names)
        expect(page.locator("#sentence")).to_have_text(sentence(explain_step(agent, trace, episode, 1).sentence))
        until(page, "explorer.shown.episode.earned.reduce((a, b) => a + b, 0)", trace.score[episode])
        asked = {"do": "retrain", "run": entry(served, 0).id, "weights": [2.0] * len(agent.advisors)}
        again = page.evaluate("(asked) => explorer.source.ask(asked)", asked)["id"]
        assert served.explorer.library.entry(again).agent.task.weights.tolist() == [2.0] * 3
        assert served.complaints == []


def test_an_episode_that_is_over_says_so_and_nothing_else(calm: Site) -> None:
    ends = [int(calm.explorer.library.recorded(entry(calm, k).id, 0)[0].length[0]) for k in range(2)]
    with calm.tab(f"step={ends[0]}") as page:
        expect(page.locator("#sentence")).to_have_text("The episode is over.")
        expect(page.locator("#live")).to_have_text(f"Step {ends[0]}. The episode is over.")
        expect(page.locator(".chip")).to_have_count(0)
        calm.go(page, f"view=compare&step={min(ends)}")
        expect(page.locator("#divergence")).to_contain_text("diverge")
        expect(page.locator("#live")).to_contain_text("The episode is over.")
        over = re.compile("^The episode is over.$")
        expect(page.locator("main .sentence").filter(has_text=over).first).to_be_visible()


@pytest.mark.parametrize(("weights", "score"), [((2.5, 2, 2), "+6.5"), ((2, 2, 2), "+6"), ((0.1, 0.2, 0.3), "+0.6")])
def test_a_score_is_not_rounded_to_a_whole_number(browser: Any, weights: tuple[float, ...], score: str) -> None:
    agent: Any = mad.theory.exact_agent(mad.make("three-fruits"), "egocentric", 0.4)
    task = reweighted(agent.task, [float(weight) for weight in weights])
    other = mad.MultiAdvisor(task, gamma=0.4)
    other._learner.table[...] = agent._learner.table / np.array(weights)[0]
    with site(browser, {"one": other, "two": other}) as served, served.tab() as page:
        trace, episode = served.explorer.library.recorded(entry(served, 0).id, 0)
        expect(page.locator(".facts")).to_contain_text(f"Score {score} in {int(trace.length[episode])} steps")
        served.go(page, "view=compare")
        expect(page.locator(".pair tr", has_text="own score at the end")).to_contain_text(f"{score}{score}")
        expect(page.locator("#divergence")).to_contain_text(": +3 in ")  # by the task's own weights


def test_a_task_without_a_board_shows_its_advice(calm: Site) -> None:
    with calm.tab("run=2&step=1") as page:
        expect(page.locator("main")).to_contain_text("no board")
        agent = entry(calm, 2).agent
        trace, episode = calm.explorer.library.recorded(entry(calm, 2).id, 0)
        rows = visit(page, ["run=2&step=1"], READ)[0]["rows"]
        shown = [number(text) for text in rows[0][1:]]
        assert shown == pytest.approx(agent.preferences(trace.states(episode)[1]).tolist(), abs=1e-6)


class Decision:
    """An agent without tables: it can only be asked."""

    def __init__(self, agent: mad.MultiAdvisor) -> None:
        self.task, self.settings, self.advice, self.act = agent.task, agent.settings, agent.advice, agent.act


def test_an_agent_without_tables_has_its_board_and_its_advice(
    browser: Any, agents: dict[str, mad.MultiAdvisor]
) -> None:
    agent: Any = Decision(agents["empathic"])
    lake = trained(mad.make("FrozenLake-v1"), 2_000, gamma=0.9)
    with site(browser, {"told": agent, "lake": lake}) as served, served.tab("step=4&cell=9") as page:
        trace, episode = served.explorer.library.recorded(entry(served, 0).id, 0)
        (seen,) = visit(page, ["step=4&cell=9"], READ)
        x = trace.states(episode)[4]
        assert seen["cell"] == x[0]
        shown = [number(text) for text in seen["rows"][0][1:]]
        assert shown == pytest.approx(agents["empathic"].preferences(x).tolist(), abs=1e-6)
        page.get_by_role("button", name="Try it").click()
        expect(page.locator(".outcome").first).to_be_visible()
        served.go(page, "run=1&step=1")
        expect(page.locator("main")).to_contain_text("is a Python environment")
        rows = visit(page, ["run=1&step=1"], READ)[0]["rows"]
        trace, episode = served.explorer.library.recorded(entry(served, 1).id, 0)
        told = trace.step(episode, 1)
        wished = weighted_sum(told.advice, np.ones(len(told.advice)))
        assert [number(text) for text in rows[0][1:]] == pytest.approx(wished.tolist(), abs=1e-6)
        assert served.complaints == []
