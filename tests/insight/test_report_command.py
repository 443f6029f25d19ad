"""`multiadvisor evaluate --report`: one run, several, moments, and what cannot be."""

import csv

import pytest

import multiadvisor as mad
from command_line import printed, refused, typed


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    task = mad.make("three-fruits")
    mad.theory.exact_agent(task, "egocentric", 0.6).save(folder / "egocentric")
    mad.MultiAdvisor(task, planning="empathic").learn(20_000, progress=False).save(folder / "empathic")
    return folder


def test_a_report_as_text_and_as_json(runs, capsys):
    run = ["evaluate", runs / "egocentric", "--episodes", "3", "--report", "--moments", "2"]
    code, text, _ = typed(capsys, *run)
    assert code == 0
    for said in ("stuck in 3 of 3 episodes", "at (2, 2); held by fruit", "the most decisive steps:",
                 "each advisor expects that its own best actions follow"):  # fmt: skip
        assert said in text
    result = printed(capsys, *run)
    assert {"run", "score", "advisors", "report", "moments"} <= set(result)
    one = result["report"]["advisors"]["fruit (2, 0)"]
    assert set(one) == {"group", "weight", "return", "reward", "influence", "calibration"}
    assert one["calibration"]["bias"] > 0.3
    assert [row["since"] for row in result["report"]["stuck"]] == [0, 0, 0]
    assert len(result["moments"]) == 1  # it is always the same step


def test_several_runs_in_one_table(runs, capsys, tmp_path):
    both = ["evaluate", runs / "egocentric", runs / "empathic", "--episodes", "2"]
    code, text, _ = typed(capsys, *both, "--report", "--csv", tmp_path / "a.csv")
    assert (code, "drives" in text) == (0, True)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["planning"] for row in rows] == ["egocentric", "empathic"]
    assert [float(row["stuck"]) for row in rows] == [1.0, 0.0]
    assert [float(row["return/fruit (2, 0)"]) for row in rows] == [0.0, 1.0]
    assert float(rows[0]["bias/fruit (2, 0)"]) > abs(float(rows[1]["bias/fruit (2, 0)"]))
    assert [row["terminated"] for row in printed(capsys, *both)["runs"]] == [0.0, 1.0]


def test_what_cannot_be(runs, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = runs / "empathic"
    for words, way_out in (
        (["--csv", "a.csv"], "add --report"), (["--report", "--csv", "."], "it is a folder"),
        (["--moments", "0"], "at least 1"), ([run, "--trace", "a.trace"], "name one"),
    ):  # fmt: skip
        refused(capsys, way_out, "evaluate", run, *words)
