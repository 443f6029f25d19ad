"""The numbers and sentences on the page are the library's."""

import random
import re

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.conftest import trained
from explorer.pages import as_sentence, site, until, visit
from multiadvisor.core.aggregations import weighted_sum
from multiadvisor.explain.explanation import explain_advice
from multiadvisor.explorer.questions import reweighted
from multiadvisor.runs.trace import explain_step

pytestmark = pytest.mark.slow


READ = """(() => {
  const table = document.querySelector("table.exact");
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  return {
    step: Number(table.dataset.step), cell: Number(table.dataset.cell), run: explorer.store.state.run,
    rows: rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
  };
})()"""


CHANGED = {0: 2.5, 1: -1.0, 5: 0.0, 20: 3.25, 44: -0.5}


def numbers(row):
    return [float(text.replace("\u2212", "-").replace("+", "")) for text in row[1:]]


def check_numbers(site, runs, count):
    """The page at random steps and cells of some runs, half of them under other weights, against the library."""
    rng, samples = random.Random(7), []
    for k in range(count):
        trace, episode = site.recorded(k % runs)
        samples.append((k % runs, rng.randrange(int(trace.length[episode])), rng.randrange(76), 2 * k >= count))
    weights = "&weights=" + "_".join(f"{j}~{value}" for j, value in CHANGED.items())
    fragments = [f"run={run}&step={step}&cell={cell}{weights * other}" for run, step, cell, other in samples]
    with site.tab(fragments[0]) as page:
        for run in range(runs):
            site.go(page, f"run={run}")
        found = visit(page, fragments, READ)
    for (run, step, cell, other), seen in zip(samples, found, strict=True):
        agent, (trace, episode) = site.run(run).agent, site.recorded(run)
        x = trace.states(episode)[step].copy()
        x[0] = cell
        names, advice = agent.advice(x)
        who, own = np.array([agent.task.names.index(name) for name in names]), agent.task.weights.copy()
        if other:
            own[list(CHANGED)] = list(CHANGED.values())
        assert (seen["run"], seen["step"], seen["cell"]) == (run, step, cell)
        head, *top = seen["rows"]
        assert numbers(head) == pytest.approx(agent.aggregator.prefer(advice, own[who], who).tolist(), abs=1e-6)
        assert agent.settings.aggregation == "sum" or head[0] == f"all, by {agent.settings.aggregation}"
        wished = dict(zip(names, own[who, None] * advice, strict=True))
        assert len(top) == min(5, len(names))
        for row in top:
            assert numbers(row) == pytest.approx(wished[row[0]].tolist(), abs=1e-6)
        strongest = sorted((np.abs(v).max() for v in wished.values()), reverse=True)[:5]
        assert [max(map(abs, numbers(row))) for row in top] == pytest.approx(strongest, abs=1e-6)


SENTENCE = 'document.getElementById("sentence").textContent'
REASON = f'[{SENTENCE}, [...document.querySelectorAll(".chip")].map((chip) => chip.textContent)]'


def test_the_reason_on_the_page_is_the_librarys(calm):
    """As it was played, against another action, and with other weights: always what Python says."""
    muted = "&muted=0-1"  # the ghosts
    with calm.tab("run=1") as page:
        for run in (1, 0, 2):
            agent = calm.run(run).agent
            trace, episode = calm.recorded(run)
            steps = range(1, int(trace.length[episode]), 9)
            calm.go(page, f"run={run}")
            shown = visit(page, [f"run={run}&step={step}" for step in steps], REASON)
            reasons = [explain_step(agent, trace, episode, step) for step in steps]
            assert [text for text, _ in shown] == [as_sentence(why.sentence) for why in reasons]
            for why, (_, chips) in zip(reasons, shown, strict=True):
                assert [text.rpartition(" ")[0] for text in chips] == [*why.msx_plus[:8], *why.msx_minus[:4]]
            step = steps[-1]
            other = next(a for a in range(len(agent.task.actions)) if a != trace.action[step])
            told = explain_step(agent, trace, episode, step, against=other)
            calm.go(page, f"run={run}&step={step}&against={other}")
            until(page, SENTENCE, as_sentence(told.sentence))
            weights = [0.0, 0.0, *told.weights[2:]] if run < 2 else told.weights
            changed = explain_advice(
                told.names, told.advice, weights, told.actions, action=told.action, groups=told.groups,
                aggregator=told.aggregator, here=told.here,
            )  # fmt: skip
            calm.go(page, f"run={run}&step={step}{muted if run < 2 else ''}")
            until(page, SENTENCE, as_sentence(changed.sentence))


@pytest.mark.parametrize("split", ["groups", "none"])
def test_a_network_with_advisors_of_its_own_is_shown_with_these(browser, split):
    deep = mad.DQN(
        hidden=(8,), learning_starts=64, batch_size=16, buffer_size=600, train_freq=2, updates_at_once=4, split=split
    )
    agent = trained(mad.make("three-fruits"), 200, learner=deep)
    with site(browser, {"net": agent}) as served, served.tab("step=1") as page:
        trace, episode = served.recorded()
        (seen,) = visit(page, ["step=1"], READ)
        assert [row[0] for row in seen["rows"][1:]] == list(trace.step(episode, 1).names)
        expect(page.locator("#sentence")).to_have_text(as_sentence(explain_step(agent, trace, episode, 1).sentence))
        until(page, "explorer.shown.episode.earned.reduce((a, b) => a + b, 0)", trace.score[episode])
        asked = {"do": "retrain", "run": served.run().id, "weights": [2.0] * len(agent.advisors)}
        again = page.evaluate("(asked) => explorer.source.ask(asked)", asked)["id"]
        assert served.explorer.library.entry(again).agent.task.weights.tolist() == [2.0] * 3
        assert served.complaints == []


def test_an_episode_that_is_over_says_so_and_nothing_else(calm):
    ends = [int(calm.recorded(k)[0].length[0]) for k in range(2)]
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
def test_a_score_is_not_rounded_to_a_whole_number(browser, weights, score):
    agent = mad.theory.exact_agent(mad.make("three-fruits"), "egocentric", 0.4)
    task = reweighted(agent, [float(weight) for weight in weights])
    other = mad.MultiAdvisor(task, gamma=0.4)
    other._learner.table[...] = agent._learner.table / np.array(weights)[0]
    with site(browser, {"one": other, "two": other}) as served, served.tab() as page:
        trace, episode = served.recorded()
        expect(page.locator(".facts")).to_contain_text(f"Score {score} in {int(trace.length[episode])} steps")
        served.go(page, "view=compare")
        expect(page.locator(".pair tr", has_text="own score at the end")).to_contain_text(f"{score}{score}")
        expect(page.locator("#divergence")).to_contain_text(": +3 in ")  # by the task's own weights


class Foreign:
    """An agent without tables: it can only be asked."""

    def __init__(self, agent):
        self.task, self.settings, self.advice, self.act = agent.task, agent.settings, agent.advice, agent.act


def test_an_agent_without_tables_has_its_board_and_its_advice(browser, agents):
    agent = Foreign(agents["empathic"])
    lake = trained(mad.make("FrozenLake-v1"), 2_000, gamma=0.9)
    with site(browser, {"told": agent, "lake": lake}) as served, served.tab("step=4&cell=9") as page:
        trace, episode = served.recorded()
        (seen,) = visit(page, ["step=4&cell=9"], READ)
        x = trace.states(episode)[4]
        assert seen["cell"] == x[0]
        shown = numbers(seen["rows"][0])
        assert shown == pytest.approx(agents["empathic"].preferences(x).tolist(), abs=1e-6)
        page.get_by_role("button", name="Try it").click()
        expect(page.locator(".results canvas")).to_be_visible()
        served.go(page, "run=1&step=1")
        page.get_by_role("button", name="Try it").click()
        expect(page.locator(".results")).to_contain_text("an unchanged branch reproduces the episode")
        rows = visit(page, ["run=1&step=1"], READ)[0]["rows"]
        trace, episode = served.recorded(1)
        told = trace.step(episode, 1)
        wished = weighted_sum(told.advice, np.ones(len(told.advice)))
        assert numbers(rows[0]) == pytest.approx(wished.tolist(), abs=1e-6)
        assert served.complaints == []
