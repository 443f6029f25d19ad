"""Learning curves: which run is which, a chart for each task, transitions from left to right."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.pages import site, until
from multiadvisor.explorer.curves import Record, curves, label, names_of
from multiadvisor.explorer.library import Library
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.settings import Settings

EMPATHIC = {"planning": "empathic", "gamma": 0.9}


def kept(settings: dict[str, Any], every: int | None = 100, evaluations: int = 2, **more: Any) -> Record:
    scores = [{"steps": (every or 10) * (e + 1), "score": 1.0 + e} for e in range(evaluations)]
    return Record("a", more.get("task", "pac-boy"), more.get("options", {}), settings, scores, every)


def test_six_settings_have_six_names() -> None:
    deep = {"name": "dqn", "split": "advisors", "hidden": [8], "learning_rate": 0.01}
    told = names_of([
        kept({**EMPATHIC, "alpha": 0.1, "epsilon": 0.05}), kept({**EMPATHIC, "alpha": 0.2, "epsilon": 0.05}),
        kept({**EMPATHIC, "learner": deep}), kept({**EMPATHIC, "learner": {**deep, "hidden": [64, 64]}}),
        kept({**EMPATHIC, "gamma": 0.99}), kept({**EMPATHIC}, task="bridge"),
    ])  # fmt: skip
    assert told == [
        "empathic 0.9, alpha 0.1", "empathic 0.9, alpha 0.2", "empathic dqn 0.9, hidden 8",
        "empathic dqn 0.9, hidden 64 64", "empathic 0.99", "empathic 0.9",
    ]  # fmt: skip


def test_options_weights_and_eval_every_tell_runs_apart() -> None:
    weights = {"weights": {"ghosts": 2.0}}
    assert names_of([kept(EMPATHIC, options={"ghosts": True}), kept(EMPATHIC, options={"ghosts": False})]) == [
        "empathic 0.9, ghosts", "empathic 0.9, no ghosts",
    ]  # fmt: skip
    assert names_of([kept(EMPATHIC, 100), kept(EMPATHIC, 20_000)]) == [
        "empathic 0.9, 200 steps, evaluated every 100", "empathic 0.9, 40,000 steps, evaluated every 20,000",
    ]  # fmt: skip
    assert len(set(names_of([kept(EMPATHIC), kept(EMPATHIC, options=weights)]))) == 2


def test_evaluations_at_other_steps_are_not_one_curve() -> None:
    found = curves([kept({**EMPATHIC, "seed": 0}, 100), kept({**EMPATHIC, "seed": 1}, 200)])
    assert [one["runs"] for one in found] == [1, 1]
    assert [one["steps"] for one in found] == [[100, 200], [200, 400]]
    assert curves([kept(EMPATHIC, None)])[0]["steps"] == [10, 20]


def test_every_setting_of_a_network_or_an_actor_has_a_name() -> None:
    import dataclasses

    for settings in (Settings(learner=DQN()), Settings(learner=SAC())):
        data = dataclasses.asdict(settings)
        assert label(data) in ("empathic dqn 0.9", "sac 0.9")
        assert names_of([kept(data)]) == [label(data)]


@pytest.mark.slow
def test_a_chart_for_each_task_by_steps(browser: Any) -> None:
    library = Library(episodes=1)
    tasks = {name: mad.make(name) for name in ("three-fruits", "two-goal")}
    for name, alpha in (("three-fruits", 0.1), ("three-fruits", 0.2), ("two-goal", 0.1)):
        agent = mad.MultiAdvisor(tasks[name], alpha=alpha)
        library.add_agent(agent, f"{name} {alpha}", [{"steps": e + 1, "score": 9.0 * e} for e in range(3)])
    with site(browser, {}, library=library) as served, served.tab("view=learning") as page:
        expect(page.locator(".charts h3")).to_have_text(["three-fruits", "two-goal"])
        expect(page.locator(".charts tbody tr th")).to_have_text(
            ["empathic 0.9, alpha 0.1", "empathic 0.9, alpha 0.2", "empathic 0.9"]
        )
        first, second = page.locator(".charts canvas").all()
        expect(first).to_have_attribute("aria-label", "Score of three-fruits by steps. empathic 0.9, alpha 0.1: "
                                        "18.00 at the end; empathic 0.9, alpha 0.2: 18.00 at the end")  # fmt: skip
        expect(second).to_have_attribute("aria-label", "Score of two-goal by steps. empathic 0.9: 18.00 at the end")
        expect(page.get_by_label("Show").locator("option")).to_have_text(["Score"])  # nothing else was recorded
        served.go(page, "view=learning&measure=touches")
        expect(page.get_by_label("Show")).to_have_value("score")
        page.set_viewport_size({"width": 320, "height": 700})
        until(page, "document.documentElement.scrollWidth", 320)
        assert served.complaints == []
