"""`multiadvisor evaluate --report`: one run, several, moments, and what cannot be."""

import csv
import json

import pytest

import multiadvisor as mad
from multiadvisor.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    task = mad.make("three-fruits")
    mad.theory.exact_agent(task, "egocentric", 0.6).save(folder / "egocentric")
    mad.MultiAdvisor(task, planning="empathic").learn(20_000, progress=False).save(folder / "empathic")
    return folder


def test_a_report_as_text_and_as_json(runs, capsys):
    run = ["evaluate", str(runs / "egocentric"), "--episodes", "3", "--report", "--moments", "2"]
    capsys.readouterr()
    assert main(run) == 0
    text = capsys.readouterr().out
    assert "stuck in 3 of 3 episodes" in text
    assert "at (2, 2); held by fruit" in text
    assert "each advisor expects that its own best actions follow" in text
    assert "the most decisive steps:" in text
    assert main([*run, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {"run", "score", "advisors", "report", "moments"} <= set(result)
    one = result["report"]["advisors"]["fruit (2, 0)"]
    assert set(one) == {"group", "weight", "return", "reward", "influence", "calibration"}
    assert one["calibration"]["bias"] > 0.3
    assert [row["since"] for row in result["report"]["stuck"]] == [0, 0, 0]
    assert len(result["moments"]) == 1  # it is always the same step


def test_several_runs_in_one_table(runs, capsys, tmp_path):
    both = [str(runs / "egocentric"), str(runs / "empathic")]
    capsys.readouterr()
    assert main(["evaluate", *both, "--episodes", "2", "--report", "--csv", str(tmp_path / "a.csv")]) == 0
    assert "drives" in capsys.readouterr().out
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["planning"] for row in rows] == ["egocentric", "empathic"]
    assert [float(row["stuck"]) for row in rows] == [1.0, 0.0]
    assert [float(row["return/fruit (2, 0)"]) for row in rows] == [0.0, 1.0]
    assert float(rows[0]["bias/fruit (2, 0)"]) > abs(float(rows[1]["bias/fruit (2, 0)"]))
    assert main(["evaluate", *both, "--episodes", "2", "--json"]) == 0
    assert [row["terminated"] for row in json.loads(capsys.readouterr().out)["runs"]] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["--csv", "a.csv"], "add --report"),
        (["--report", "--csv", "."], "it is a folder"),
        (["--moments", "0"], "at least 1"),
        (["{run}", "--trace", "a.trace"], "name one"),
    ],
)
def test_what_cannot_be(runs, capsys, words, way_out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = str(runs / "empathic")
    capsys.readouterr()
    assert main(["evaluate", run, *(word.format(run=run) for word in words)]) == 2
    error = capsys.readouterr().err
    assert way_out in error
    assert len(error.splitlines()) == 1
