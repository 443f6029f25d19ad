"""Learning curves: which run is which, a chart for each task, transitions from left to right."""

import dataclasses

import numpy as np
import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from command_line import refused
from explorer.pages import fits, site, until
from multiadvisor.explorer.curves import Record, curves, label, names_of
from multiadvisor.explorer.library import Library
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job
from multiadvisor.settings import Settings

EMPATHIC = {"planning": "empathic", "gamma": 0.9}


def kept(settings=None, every=100, scores=(1.0, 2.0), task="pac-boy", options=None):
    evaluations = [{"steps": (every or 10) * (e + 1), "score": score} for e, score in enumerate(scores)]
    return Record("a", task, options or {}, {**EMPATHIC, **(settings or {})}, evaluations, every)


NETWORK = {"name": "dqn", "split": "advisors", "hidden": [8], "learning_rate": 0.01}


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        ([kept({"alpha": 0.1, "epsilon": 0.05}), kept({"alpha": 0.2, "epsilon": 0.05}), kept({"learner": NETWORK}),
          kept({"learner": {**NETWORK, "hidden": [64, 64]}}), kept({"gamma": 0.99}), kept(task="bridge")],
         ["empathic 0.9, alpha 0.1", "empathic 0.9, alpha 0.2", "empathic dqn 0.9, hidden 8",
          "empathic dqn 0.9, hidden 64 64", "empathic 0.99", "empathic 0.9"]),
        ([kept(options={"ghosts": True}), kept(options={"ghosts": False})],
         ["empathic 0.9, ghosts", "empathic 0.9, no ghosts"]),
        ([kept(every=100), kept(every=20_000)],
         ["empathic 0.9, 200 steps, evaluated every 100", "empathic 0.9, 40,000 steps, evaluated every 20,000"]),
        ([kept(), kept(options={"weights": {"ghosts": 2.0}})],
         ["empathic 0.9", "empathic 0.9, weights ghosts=2"]),
        *(([kept(dataclasses.asdict(settings))], [name]) for settings, name in (
            (Settings(learner=DQN()), "empathic dqn 0.9"), (Settings(learner=SAC()), "sac 0.9"))),
    ],
)  # fmt: skip
def test_runs_are_named_by_what_tells_them_apart(runs, names):
    assert names_of(runs) == names
    assert len(runs) > 1 or names == [label(runs[0].settings)]


def test_evaluations_at_other_steps_are_not_one_curve():
    found = curves([kept({"seed": 0}, 100), kept({"seed": 1}, 200)])
    assert [(one["runs"], one["steps"]) for one in found] == [(1, [100, 200]), (1, [200, 400])]
    assert curves([kept(every=None)])[0]["steps"] == [10, 20]


def test_a_seed_counts_once_by_its_longest_record_and_lengths_are_not_cut():
    many = [(0, [1.0]), (0, [1.0, 2.0, 3.0]), (0, [1.0, 2.0]), (1, []), (1, [3.0, 4.0, 5.0])]
    (curve,) = curves(kept({"seed": seed}, scores=scores) for seed, scores in many)
    assert (curve["label"], curve["runs"]) == ("empathic 0.9", 2)
    assert curve["figures"]["score"]["mean"] == [2.0, 3.0, 4.0]
    assert curve["figures"]["score"]["low"] == [1.0, 2.0, 3.0]
    many = [(0, [1.0, 2.0, 3.0]), (1, [5.0]), (2, [3.0, 4.0, 5.0])]
    found = curves(kept({"seed": seed}, scores=scores) for seed, scores in many)
    assert [(one["label"], one["runs"], one["figures"]["score"]["mean"]) for one in found] == [
        ("empathic 0.9, 300 steps", 2, [2.0, 3.0, 4.0]), ("empathic 0.9, 100 steps", 1, [5.0]),
    ]  # fmt: skip


def test_a_folder_of_runs_is_one_curve_with_an_interval(tmp_path):
    for seed in range(3):
        evaluations = [{"steps": e + 1, "score": float(seed + e), "length": 1.0, "terminated": 1.0, "metrics": {}}
                       for e in range(4)]  # fmt: skip
        mad.MultiAdvisor("three-fruits", seed=seed).save(tmp_path / f"run-{seed}", {"evaluations": evaluations})
    library = Library()
    library.add_folder(tmp_path)
    (curve,) = library.curves()
    assert (curve["runs"], list(curve["figures"])) == (3, ["score", "length", "terminated"])
    low, mean, high = (np.array(curve["figures"]["score"][name]) for name in ("low", "mean", "high"))
    assert mean.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert ((low < mean) & (mean < high)).all()


def test_a_sweep_gives_curves_and_a_torn_result_one_line(tmp_path, capsys):
    folder, schedule = tmp_path / "sweep", {"steps": 200, "eval_every": 100, "eval_episodes": 4}
    jobs = [Job("train", {"task": "two-goal", "settings": {"planning": "agnostic", "seed": seed}, "schedule": schedule})
            for seed in range(2)]  # fmt: skip
    results = run_jobs(folder, jobs, workers=0)
    library = Library()
    library.add_folder(folder)
    (curve,) = library.curves()
    means = [sum(results[job]["evaluations"][k]["score"] for job in jobs) / 2 for k in range(2)]
    assert (curve["runs"], curve["figures"]["score"]["mean"], curve["label"]) == (2, means, "agnostic 0.9")
    torn = folder / "results" / f"{jobs[0].id}.json"
    torn.write_text(torn.read_text().replace('"score":', '"score":9', 1))
    refused(capsys, "was changed", "explore", folder)


@pytest.mark.slow
def test_a_chart_for_each_task_by_steps(browser):
    library = Library(episodes=1)
    for name, alpha in (("three-fruits", 0.1), ("three-fruits", 0.2), ("two-goal", 0.1)):
        evaluations = [{"steps": e + 1, "score": 9.0 * e} for e in range(3)]
        library.add_agent(mad.MultiAdvisor(name, alpha=alpha), f"{name} {alpha}", evaluations)
    with site(browser, {}, library=library) as served, served.tab("view=learning") as page:
        expect(page.locator(".charts h3")).to_have_text(["three-fruits", "two-goal"])
        names = ["empathic 0.9, alpha 0.1", "empathic 0.9, alpha 0.2", "empathic 0.9"]
        expect(page.locator(".charts tbody tr th")).to_have_text(names)
        first, second = page.locator(".charts canvas").all()
        expect(first).to_have_attribute("aria-label", "Score of three-fruits by steps. empathic 0.9, alpha 0.1: "
                                        "18.00 at the end; empathic 0.9, alpha 0.2: 18.00 at the end")  # fmt: skip
        expect(second).to_have_attribute("aria-label", "Score of two-goal by steps. empathic 0.9: 18.00 at the end")
        expect(page.get_by_label("Show").locator("option")).to_have_text(["Score"])  # nothing else was recorded
        served.go(page, "view=learning&measure=touches")
        expect(page.get_by_label("Show")).to_have_value("score")
        page.set_viewport_size({"width": 320, "height": 700})
        fits(page)
        high = "[...document.querySelectorAll('.charts tbody tr')].every((row) => row.clientHeight < 75)"
        until(page, high)  # a name is broken between words, and not between letters
        assert served.complaints == []
