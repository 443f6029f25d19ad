"""Runs with different weights are compared by one yardstick: the weights that the task came with."""

import csv
import json

import numpy as np
import pytest

import multiadvisor as mad
from command_line import typed
from multiadvisor.cli import main
from multiadvisor.explorer.curves import Record, curves
from multiadvisor.explorer.insights import Albums, Insights
from multiadvisor.explorer.library import Library
from multiadvisor.runs.grid_sweep import final
from multiadvisor.runs.logs import are_evaluations

SCHEDULE = ["--steps", "4000", "--eval-every", "2000", "--eval-episodes", "3"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, more in {"plain": [], "other": ["--weights", "goal 1=3,goal 2=0.1"]}.items():
        assert main(["train", "two-goal", "--out", str(folder / name), *SCHEDULE, *more]) == 0
    return folder


def test_a_task_knows_the_weights_it_came_with():
    task = mad.make("two-goal").with_weights(**{"goal 1": 3.0}).with_weights(**{"goal 2": 0.5})
    assert task.yardstick.tolist() == [1.0, 1.0]
    assert task.other_weights() == {"goal 1": 3.0, "goal 2": 0.5}
    score, returns = np.array([6.5]), np.array([[2.0, 1.0]])
    assert task.rewards(score, returns).tolist() == [3.0]
    back = task.with_weights(**{"goal 1": 1.0, "goal 2": 1.0})
    assert (back.other_weights(), back.rewards(score, returns)) == ({}, score)


def test_an_evaluation_has_both_scores(runs):
    kept = {name: json.loads((runs / name / "agent.json").read_text()) for name in ("plain", "other")}
    plain, other = (one["record"]["evaluations"] for one in kept.values())
    assert all("reward" not in evaluation for evaluation in plain)
    for evaluation in other:
        paid = evaluation["advisors"]
        assert evaluation["reward"] == pytest.approx(paid["goal 1"] + paid["goal 2"])
        assert evaluation["score"] == pytest.approx(3 * paid["goal 1"] + 0.1 * paid["goal 2"])
        assert are_evaluations([evaluation])
        assert not are_evaluations([{**evaluation, "reward": "much"}])
    assert final({"evaluations": other}) == pytest.approx(np.mean([evaluation["reward"] for evaluation in other]))


def test_learning_curves_agents_and_listing_use_one_yardstick_and_name_the_weights(runs):
    library = Library(episodes=2)
    for name in ("plain", "other"):
        library.add_folder(runs / name)
    drawn = library.curves()
    assert [one["label"] for one in drawn] == ["empathic 0.9", "empathic 0.9, weights goal 1=3 goal 2=0.1"]
    assert drawn[1]["figures"]["score"]["mean"][-1] == 1.0
    assert drawn[1]["own"] == 3.0
    assert "own" not in drawn[0]
    assert [run["label"] for run in library.listing()["runs"]] == [one["label"] for one in drawn]
    seen = [Insights(library, Albums(library)).of(name) for name in library.entries]
    assert [(one["score"], one["own"]) for one in seen] == [(1.0, None), (1.0, 3.0)]


def test_several_runs_on_the_command_line(runs, capsys, tmp_path):
    both = ["evaluate", runs / "plain", runs / "other", "--episodes", "2"]
    code, text, _ = typed(capsys, *both, "--report", "--csv", tmp_path / "a.csv")
    assert code == 0
    head, _, plain, other = text.splitlines()[-4:]
    assert "own score" in head
    assert (plain.split()[1], other.split()[1]) == ("1.00", "1.00")
    assert "goal 1=3 goal 2=0.1" in other
    assert "by the task's own weights 1.00" in text
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [(float(row["score"]), float(row["reward"]), row["weights"]) for row in rows]
    assert found == [(1.0, 1.0, ""), (3.0, 1.0, "goal 1=3 goal 2=0.1")]


def test_runs_of_a_sweep_that_differ_in_weights_are_different_curves():
    settings, kept = {"planning": "empathic", "gamma": 0.9, "seed": 0}, {"steps": 1, "reward": 1.0}
    two = [Record(str(w), "two-goal", {"weights": {"goal 1": w}}, settings, [{**kept, "score": w}]) for w in (2.0, 3.0)]
    assert [(one["label"], one["figures"]["score"]["mean"], one["own"]) for one in curves(two)] == [
        ("empathic 0.9, weights goal 1=2", [1.0], 2.0),
        ("empathic 0.9, weights goal 1=3", [1.0], 3.0),
    ]
