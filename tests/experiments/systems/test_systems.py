"""What holds of every system of the literature: its map, its jobs, its verdict; and the command that runs one."""

import json

import pytest

from multiadvisor.cli import main
from multiadvisor.core.intervals import Estimate
from multiadvisor.studies.claims import above, below, not_below, seen, verdict
from multiadvisor.studies.study import Plan, systems
from multiadvisor.studies.systems import gm_sarsa

ALL = systems()


@pytest.mark.parametrize("name", ALL)
def test_a_system_is_whole(name):
    system = ALL[name]
    of = system.literature
    row = (of.advisor, of.view, of.planning, of.aggregator, of.guarantee)
    for text in (system.title, of.source, of.behaviour, *row):
        assert text
        assert not set("|\n") & set(text), "it stands in a table"
    few, more = (system.jobs(Plan(seeds=seeds, first_seed=1000)) for seeds in (2, 3))
    assert len({job.id for job in few}) == len(few)
    assert {job.id for job in few} <= {job.id for job in more}, "more seeds add runs, and change none"


def test_the_order_is_one():
    assert len({system.order for system in ALL.values()}) == len(ALL)


@pytest.mark.parametrize(("judge", "estimate", "bar", "holds"), [
    (above, (1.0, 0.1, 2.0), 0.0, True), (above, (1.0, -0.1, 2.0), 0.0, False),
    (below, (1.0, 0.1, 2.0), 2.1, True), (below, (1.0, 0.1, 2.0), 2.0, False),
    (not_below, (-1.0, -2.0, 0.1), 0.0, True), (not_below, (-1.0, -2.0, -0.1), 0.0, False),
])  # fmt: skip
def test_a_bar_is_cleared_by_the_whole_interval_only(judge, estimate, bar, holds):
    found = judge("a", "", Estimate(*estimate), bar)
    assert found.holds == holds
    assert json.loads(json.dumps(found.as_dict()))["interval"] == list(estimate[1:])


def test_verdicts():
    yes, no = seen("a", "", 1.0, True), seen("b", "", 1.0, False)
    assert [verdict(found) for found in ([yes, yes], [yes, no], [no])] == ["reproduced", "partly", "not reproduced"]


@pytest.mark.slow
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gm_sarsa, "STEPS", 2_000)
    monkeypatch.setattr(gm_sarsa, "SCHEDULES", dict.fromkeys(gm_sarsa.SCHEDULES, gm_sarsa.SCHEDULES["three-fruits"]))
    arguments = ["reproduce", "gm-sarsa", "--seeds", "2", "--out", str(tmp_path / "out"), "--workers", "0"]
    assert main(arguments) == 0
    assert "Sprague and Ballard, IJCAI 2003." in capsys.readouterr().out
    figure = tmp_path / "out" / "gm-sarsa" / "figures" / "gm-sarsa.svg"
    before = figure.read_bytes()
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"name", "verdict", "report", "claims", "judged"} <= set(found)
    assert {"id", "value", "interval", "verdict"} <= set(found["judged"][0])
    assert figure.read_bytes() == before
    assert main(["reproduce", "gm-sarsa", "--epochs", "3"]) == 2
    assert "--epochs" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    assert main(["reproduce", "gm-sarsa", "--out", str(tmp_path / "other")]) == 2
    assert "thesis" not in capsys.readouterr().err
    assert (tmp_path / "other" / "thesis.txt").read_text() == "mine"
