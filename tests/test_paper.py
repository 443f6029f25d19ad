"""The paper's Pac-Boy results at full length: 50 epochs of 20,000 transitions, five seeds."""

import numpy as np
import pytest

from multiadvisor.runs.driver import run_jobs
from multiadvisor.studies.paper.noise_study import NOISY
from multiadvisor.studies.paper.pac_boy_study import EMPATHIC, SETTINGS, final, job, random_job, row, table
from multiadvisor.studies.study import LAST, Evidence, Plan, unique

pytestmark = pytest.mark.slow

PLAN = Plan(seeds=5)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    settings = (*SETTINGS, *NOISY)
    jobs = unique([random_job(PLAN), *(job(s, seed, PLAN) for s in settings for seed in range(PLAN.seeds))])
    results = run_jobs(tmp_path_factory.mktemp("paper") / "runs", jobs, workers=0)
    return Evidence(PLAN, {one.id: results[one.id] for one in jobs})


@pytest.fixture(scope="module")
def rows(evidence):
    return {one["setting"]: one for one in table(evidence, (*SETTINGS, *NOISY))}


BOUNDS = [  # setting, measure, at least, at most
    ("egocentric 0.4", "score", 35, 37.5), ("egocentric 0.9", "score", -10, 15), ("egocentric 0.9", "length", 299, 300),
    ("egocentric 0.9", "terminated", 0, 0.01),
    ("agnostic 0.9", "score", 32, 36), ("agnostic 0.9", "terminated", 0, 0.75),
    ("empathic 0.9", "score", 34.5, 37.5),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "measure", "low", "high"), BOUNDS)
def test_a_setting_does_what_the_paper_says(rows, setting, measure, low, high):
    """Near-optimal, stuck, leaving the last fruits, near-optimal again."""
    assert low <= rows[setting][measure] <= high


def test_settings_stand_in_the_papers_order(rows):
    """Empathic planning is robust to noise; linear Q-learning is below all; egocentric "tends to finish the episode 20
    steps faster"."""
    score = {name: one["score"] for name, one in rows.items()}
    assert score["empathic 0.9, noise 0.1"] > score["egocentric 0.4, noise 0.01"]
    assert score["linear Q-learning"] < score["egocentric 0.9"]
    assert 10 < rows["empathic 0.9"]["length"] - rows["egocentric 0.4"]["length"] < 50


def test_the_random_player(rows, evidence):
    assert -90 <= rows["random player"]["score"] <= -70
    assert rows["random player"]["seeds"] == 1000
    assert 36.5 < np.mean(evidence.result(random_job(PLAN))["fruits"]) < 38.5  # the best possible score is 37.5


def test_a_row_is_the_mean_of_the_last_epochs(evidence):
    scores = final(evidence, EMPATHIC)
    last = [epoch["score"] for epoch in evidence.result(job(EMPATHIC, 3, PLAN))["evaluations"][-LAST:]]
    assert scores[3] == np.mean(last)
    told = row("x", {key: np.array([1.0, 2.0, 3.0, 30.0]) for key in ("score", "length", "terminated", "touches")})
    assert (told["score"], told["score_iqm"], told["seeds"]) == (9.0, 2.5, 4)
