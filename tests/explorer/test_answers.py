"""What the page answers first: what drives a run, what another action or other weights would bring, and two runs."""

import json
import shlex
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer import drawn  # noqa: F401 it registers its environment
from explorer.pages import fits, site
from multiadvisor.analysis.episodes import record
from multiadvisor.commands import train
from multiadvisor.commands.parsing import parse
from multiadvisor.core.rng import evaluation_seed
from multiadvisor.errors import BadInput
from multiadvisor.explorer.answers import command, diagnosis_card, preview, read_diagnosis
from multiadvisor.explorer.branching import Branching, alternatives, fan, unplayed
from multiadvisor.explorer.insights import Albums, Insights
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer

EFFORT = mad.Advisor("effort", reward=lambda t: -(float(t.action[0]) ** 2))


def swinging():
    terms = [EFFORT, mad.Advisor("upright", reward="remainder", weight=0.5)]
    return mad.Task.from_gymnasium(gymnasium.make("Pendulum-v1", max_episode_steps=60), terms, name="swing")


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory):
    file = tmp_path_factory.mktemp("diagnosed") / "swing.json"
    found = mad.diagnose(
        "Pendulum-v1", lambda seen: [np.sign(seen[2])], [EFFORT], steps=400, branches=5, progress=False
    )
    file.write_text(json.dumps(found.as_dict()))
    return file


@pytest.fixture(scope="module")
def agents():
    lake = mad.make("FrozenLake-v1", is_slippery=True)
    return {
        "near": mad.MultiAdvisor("three-fruits", planning="egocentric", gamma=0.4).learn(5_000, progress=False),
        "far": mad.MultiAdvisor("three-fruits", planning="egocentric", gamma=0.9).learn(5_000, progress=False),
        "lake": mad.MultiAdvisor(lake, gamma=0.9).learn(2_000, progress=False),
    }


@pytest.fixture(scope="module")
def library(agents, diagnosed):
    found = Library(episodes=2)
    for name, agent in agents.items():
        found.add_agent(agent, name)
    found.add_folder(diagnosed)
    return found


@pytest.fixture(scope="module")
def served(browser, library):
    with site(browser, {}, library=library) as one:
        yield one


@pytest.fixture(scope="module")
def insights(library):
    return Insights(library, Albums(library))


def ids(library):
    return list(library.entries)


# ---- sentences and tables --------------------------------------------------------------------------------------------
def test_terms_are_ranked_by_what_they_pay_and_what_is_counted_is_said(library, insights):
    (card,) = insights.of(ids(library)[0])["cards"]
    report = insights.report(ids(library)[0])
    returns = report.returns.mean(axis=0)
    shown = [(row["name"], float(row["cells"][2].split()[0])) for row in card["rows"] if not row["kind"]]
    assert [value for _, value in shown] == sorted((value for _, value in shown), reverse=True)
    assert dict(shown) == pytest.approx(dict(zip(report.episodes.names, returns.tolist(), strict=True)), abs=0.005)
    assert any("another action would be taken" in one["text"] for one in card["sentences"])


def test_a_diagnosis_of_anybodys_policy_is_told_from_its_file(diagnosed, tmp_path):
    found = json.loads(diagnosed.read_text())
    told = read_diagnosis(diagnosed)
    assert told is not None
    assert told[0] == "Pendulum-v1"
    assert told[1]["rows"][0]["name"] == "effort"
    assert [one["text"][1:-1] for one in told[1]["sentences"]] == [one["sentence"][1:] for one in found["findings"]]
    (tmp_path / "diagnosis.json").write_text(diagnosed.read_text())
    assert read_diagnosis(tmp_path) == told
    assert read_diagnosis(tmp_path / "runs") is None
    mad.MultiAdvisor(mad.make("two-goal")).save(tmp_path)  # a run with its diagnosis beside it
    library = Library()
    library.add_folder(tmp_path)
    shown = library.listing()["runs"]
    assert [one.get("diagnosis", False) for one in shown] == [False, True]
    assert (shown[1]["name"], shown[1]["label"]) == (str(tmp_path), "diagnosis of Pendulum-v1")


def test_a_diagnosis_says_first_what_drives_the_policy():
    def term(name, push, share, returned):
        interval = {"value": push, "low": push - 0.01, "high": push + 0.01}
        return {"name": name, "weight": 1.0, "push": interval, "share": share, "agreement": 0.9, "calibration": None,
                "returned": {"value": returned, "low": None, "high": None}, "with_the_rest": None}  # fmt: skip

    terms = [term("alive", 0.2, 0.9, 1234.5678), term("near", 0.75, 0.05, -123.456), term("fuel", 0.05, 0.05, 1.234)]
    step = {"episode": 2, "step": 7, "effects": {"alive": 0.001, "near": -2.0, "fuel": 0.5}}
    found = {"environment": "Here", "episodes": 1, "length": 9.0, "gamma": 0.9, "branches": 3, "branch_length": 5,
             "terms": terms, "findings": [], "decisive": [step, {**step, "step": 8}], "notes": []}  # fmt: skip
    card = diagnosis_card(found)
    first, second = (one["text"] for one in card["sentences"])
    assert first == "Near is 75% [74%, 76%] of what another action changes, and alive is 20% [19%, 21%]."
    assert second == "Nothing else stands out among the terms."
    assert [(row["name"], row["cells"][2]) for row in card["rows"]] == [
        ("near", "\u2212123.5"), ("alive", "1235"), ("fuel", "1.23"),
    ]  # fmt: skip
    assert card["notes"][1].endswith("in episode 2, step 7: near \u22122.00, fuel +0.50.")  # what is alike is said once
    untold = [{**one, "push": None} for one in terms]
    card = diagnosis_card({**found, "terms": untold, "problem": "the policy acts outside the space"})
    assert card["sentences"][0]["text"].startswith("Which term drives it cannot be told: two halves of the branches")
    assert card["notes"][0].endswith("what was gathered until then: the policy acts outside the space.")


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"environment": "x"}', '{"environment": 1, "terms": 3}', "[" * 9999]
)
def test_a_file_that_is_no_diagnosis_is_one_line(text, tmp_path):
    file = tmp_path / "swing.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"swing\.json' is not a diagnosis") as refused:
        Library().add_folder(file)
    assert "\n" not in str(refused.value)


def test_two_runs_are_compared_term_by_term_in_the_same_episodes(library, insights):
    near, far, _ = ids(library)
    found = insights.compare(near, far)
    reports = [insights.report(name) for name in (near, far)]
    rows = {row["name"]: row["cells"] for row in found["rows"]}
    for j, name in enumerate(reports[0].episodes.task.names):
        means = [float(report.episodes.played.returns[:, j].mean()) for report in reports]
        assert [float(cell) for cell in rows[name][1:3]] == pytest.approx(means, abs=0.005)
        assert float(rows[name][0].split()[0].replace("\u2212", "-")) == pytest.approx(means[0] - means[1], abs=0.005)
    assert "fruits 1" in found["notes"][1]
    with pytest.raises(BadInput, match="of different tasks"):
        insights.compare(near, ids(library)[2])


def test_runs_with_other_weights_have_one_yardstick(agents):
    task = agents["near"].task.with_weights(fruits=3.0)
    library = Library(episodes=1)
    pair = [library.add_agent(one, "x").id for one in (agents["near"], mad.MultiAdvisor(task, gamma=0.4))]
    found = Insights(library, Albums(library)).compare(*pair)
    assert {tuple(row["cells"][-2:]) for row in found["rows"] if not row["kind"]} == {("1", "3")}
    returns = Insights(library, Albums(library)).report(pair[1]).episodes.played.returns
    assert float(found["rows"][0]["cells"][2]) == pytest.approx(returns.sum(), abs=0.005)


# ---- other weights ---------------------------------------------------------------------------------------------------
def test_the_preview_counts_the_steps_in_which_it_would_act_otherwise(library, insights):
    report = insights.report(ids(library)[1])
    episodes = report.episodes
    weights = np.array([0.0, *[1.0] * (len(episodes.advisors) - 1)])
    wished = (episodes.advice * (episodes.applied * weights)[:, :, None]).sum(axis=1)
    best = wished >= wished.max(axis=1, keepdims=True) - 1e-9
    before = episodes.preferences >= episodes.preferences.max(axis=1, keepdims=True) - 1e-9
    kept = np.take_along_axis(best, episodes.choice[:, None], axis=1)[:, 0] / best.sum(axis=1)
    share = np.where((best == before).all(axis=1), 0.0, 1.0 - kept).mean()
    told = preview(report, weights.tolist())
    assert told.startswith(f"With {episodes.names[0]} = 0 another action would be taken in ")
    assert f"{share:.0%}" in told
    assert "another action would be taken in 0% of" in preview(report, [1.0] * len(episodes.advisors))


def test_an_actor_is_not_said_to_act_otherwise():
    library = Library(episodes=1)
    agent = mad.MultiAdvisor(swinging(), gamma=0.9).learn(200, progress=False)
    report = Insights(library, Albums(library)).report(library.add_agent(agent, "swing").id)
    assert "train it with them" in preview(report, [1.0, 2.0])


@pytest.mark.parametrize(
    ("task", "options", "settings", "weights"),
    [
        ("pac-boy", {"rules": "hra"}, {"planning": "agnostic", "gamma": 0.4, "alpha": 0.2}, {"ghosts": 3.0}),
        ("CartPole-v1", {"max_episode_steps": 30}, {"learner": mad.DQN(hidden=(8, 8), double=True)}, {"reward": 0.5}),
        ("drawn/Line-v0", {"advisors": "info:g*,info:time", "max_episode_steps": 9}, {"gamma": 0.5}, {"oal": 2.0}),
        ("FrozenLake-v1", {"is_slippery": False}, {"gamma": 0.8, "aggregation": "max"}, {"reward": 2.0}),
    ],
)
def test_the_command_trains_the_same_agent_under_other_weights(task, options, settings, weights):
    agent = mad.MultiAdvisor(mad.make(task, **options), **settings).learn(10, progress=False)
    words = shlex.split(command(agent, Path("runs/a"), weights))
    assert words[:3] == ["multiadvisor", "train", task]
    assert words[-2:] == ["--out", "a-reweighted"]
    made, own, schedule = train._described(parse(train.parser(), words[2:]))
    assert own == agent.settings
    assert schedule.steps == agent.steps
    assert made.identity == agent.task.with_weights(**weights).identity


def test_what_no_flag_can_name_is_trained_again_in_python():
    agent = mad.MultiAdvisor(swinging(), gamma=0.9)
    told = "mad.MultiAdvisor(task.with_weights(effort=2), agent.settings).learn(0)"
    assert command(agent, None, {"effort": 2.0}) == told


# ---- another action --------------------------------------------------------------------------------------------------
def test_the_branch_of_what_was_done_is_the_episode_itself():
    agent = mad.MultiAdvisor(swinging(), gamma=0.9, seed=4).learn(200, progress=False)
    trace = record(agent, 1, 3)
    found = Branching(agent).what_if(trace, 0, 20, 0, 5)
    assert found["count"] == 1
    assert "nothing here is random" in found["sentence"]
    own, other = (np.array(one["paths"][0]) for one in found["actions"])
    assert np.all(own == 0)  # what is drawn is the difference to what was done
    assert len(own) == 41
    env = swinging().adapter.env
    env.reset(seed=evaluation_seed(trace.header["draws"], trace.header["seed"], 0))
    played, paid = [agent.task.adapter.played(action) for action in trace.actions_of(0)], 0.0
    seen, scores = None, []
    for step in range(60):
        action = played[step] if step < 20 else np.zeros(1) if step == 20 else agent.act(seen)
        seen, reward, *_ = env.step(action)
        effort = -(float(action[0]) ** 2)
        paid += (effort + 0.5 * (reward - effort)) if step >= 20 else 0.0
        scores.append(paid)
    was = trace.reward[20:] @ agent.task.weights
    assert other[-1] == pytest.approx(scores[-1] - was.sum(), abs=1e-4)


def test_an_environment_that_draws_has_a_fan(agents):
    agent = agents["lake"]
    trace = record(agent, 1, 0)
    found = Branching(agent).what_if(trace, 0, 0, (int(trace.choice[0]) + 1) % 4, 6)
    assert found["count"] == 6
    assert [len(one["paths"]) for one in found["actions"]] == [6, 6]
    assert "of 6 branches" in found["sentence"] or "brings the same" in found["sentence"]
    assert alternatives(agent.task) == list(agent.task.actions)


@pytest.mark.parametrize(("ends", "said"), [((1.0, 1.0), "in 1 step."), ((0.0, 2.0), "in 1 step, on average.")])
def test_what_is_the_same_on_average_only_is_said_so(ends, said):
    paths = [np.array([[0.0, 1.0]] * 2), np.array([[0.0, end] for end in ends])]
    found = fan(0, ["left", "right"], paths, np.zeros((2, 2, 1)), ["reward"], [0, 0], "")
    assert found["sentence"] == f"Right instead of left brings the same {said}"


def test_a_diagnosis_on_the_page_answers_what_follows(monkeypatch):
    from multiadvisor.explorer import answers

    for name, value in (("_STEPS", 300), ("_BRANCHES", 4), ("_TRIALS", 4)):
        monkeypatch.setattr(answers, name, value)
    library = Library(episodes=1)
    name = library.add_agent(mad.MultiAdvisor(swinging(), gamma=0.9).learn(150, progress=False), "swing").id
    explorer = Explorer(library)
    card = explorer._do({"do": "diagnose", "run": name}, lambda share: None)
    assert {row["name"] for row in card["rows"]} == {"effort", "upright"}
    first, counted = explorer.insights.of(name)["cards"]
    assert first == card
    topics = [[one["text"].partition(":")[0] for one in shown["sentences"]] for shown in (first, counted)]
    assert not set(topics[0]) & set(topics[1]), "nothing is said twice"
    assert not any("other actions show" in one["text"] for one in counted["sentences"]), "they were tried"
    asked = {"do": "what-if", "run": name, "episode": 0, "step": 5, "action": 1}
    assert "short branches: " in explorer._do(asked, lambda share: None)["note"]


# ---- in the browser --------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_answer_is_the_first_card_and_a_foreign_diagnosis_has_one(calm):
    with calm.tab() as page:
        first = page.locator("#view .card").first
        expect(first).to_contain_text("Which term drives it")
        expect(first.locator("tbody tr").first).to_be_visible()
        calm.go(page, "run=3", loaded=False)
        expect(first).to_contain_text("effort")
        expect(page.locator(".columns.episode")).to_be_hidden()
        fits(page)
        calm.go(page, "run=3&view=learning", loaded=False)
        expect(page.locator("main")).to_contain_text("kept a record")


@pytest.mark.slow
def test_weights_are_previewed_with_the_command_and_two_runs_by_term(calm):
    with calm.tab("run=1&weights=0~0") as page:
        weights = page.locator(".effect")
        report = calm.explorer.insights.report(calm.run(1).id)
        expect(weights).to_contain_text(preview(report, [0.0, *[1.0] * (len(report.episodes.advisors) - 1)]))
        expect(weights.locator("code")).to_contain_text("multiadvisor train three-fruits")
        calm.go(page, "view=compare")
        expect(page.locator("#terms tbody tr").first).to_contain_text("score")
        expect(page.locator("#terms")).to_contain_text("the largest difference stands first")
        page.route("**/compare/**", lambda route: None)  # the answer on other runs never comes
        calm.go(page, "view=compare&run=1&other=0")
        expect(page.locator("#terms")).to_have_text("Term by termPlaying all episodes \u2026")


@pytest.mark.slow
def test_what_branches_taught_is_said_where_nothing_can_be_played(calm, monkeypatch):
    told = "As taught by 60 pairs of 25 steps, it brings goal +0.4."
    monkeypatch.setattr(calm.explorer, "_what_if", lambda *given: unplayed(1, told, "No state can be gone back to."))
    with calm.tab("run=2&step=1") as page:
        page.get_by_role("button", name="Try it").click()
        expect(page.locator(".results")).to_contain_text(told)
        expect(page.locator(".results")).to_contain_text("No state can be gone back to.")
        expect(page.locator(".results .plot")).to_be_hidden()
        page.get_by_role("button", name="Clear").click()
        expect(page.locator(".results")).to_be_hidden()
