"""What holds of every system of the literature: its map, its jobs, its verdict; and the command that runs one."""

import json

import pytest

from multiadvisor.cli import main
from multiadvisor.core.intervals import Estimate
from multiadvisor.studies.systems import gm_sarsa
from multiadvisor.studies.systems.system import Statistic, System, judged, systems, verdict

ALL = systems()
FOUND = [Statistic.above("a", "", Estimate(1.0, 0.5, 1.5))]


@pytest.mark.parametrize("name", ALL)
def test_a_system_is_whole(name):
    system = ALL[name]
    row = (system.advisor, system.view, system.planning, system.aggregator, system.guarantee)
    for text in (system.title, system.source, system.behaviour, *row):
        assert text
        assert not set("|\n") & set(text), "it stands in a table"
    few, more = system.jobs(2), system.jobs(3)
    assert len({job.id for job in few}) == len(few)
    assert {job.id for job in few} <= {job.id for job in more}, "more seeds add runs, and change none"


def test_the_order_is_one():
    assert len({system.order for system in ALL.values()}) == len(ALL)


def test_a_bar_is_cleared_by_the_whole_interval_only():
    assert Statistic.above("a", "", Estimate(1.0, 0.1, 2.0)).holds
    assert not Statistic.above("a", "", Estimate(1.0, -0.1, 2.0)).holds
    assert Statistic.below("a", "", Estimate(1.0, 0.1, 2.0), 2.1).holds
    assert not Statistic.below("a", "", Estimate(1.0, 0.1, 2.0), 2.0).holds
    assert Statistic.not_below("a", "", Estimate(-1.0, -2.0, 0.1)).holds
    assert not Statistic.not_below("a", "", Estimate(-1.0, -2.0, -0.1)).holds


def test_verdicts():
    yes, no = Statistic("a", "", 1.0, None, True), Statistic("b", "", 1.0, None, False)
    assert [verdict(found) for found in ([yes, yes], [yes, no], [no])] == ["reproduced", "partly", "not reproduced"]


@pytest.mark.slow
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gm_sarsa, "STEPS", 2_000)
    monkeypatch.setattr(gm_sarsa, "SCHEDULES", dict.fromkeys(gm_sarsa.SCHEDULES, gm_sarsa.SCHEDULES["three-fruits"]))
    arguments = ["reproduce", "gm-sarsa", "--seeds", "2", "--out", str(tmp_path / "out"), "--workers", "0"]
    assert main(arguments) == 0
    assert "gm-sarsa: " in capsys.readouterr().out
    before = (tmp_path / "out" / "gm-sarsa.svg").read_bytes()
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"name", "verdict", "statistics"}
    assert {"name", "value", "interval", "holds"} <= set(found["statistics"][0])
    assert (tmp_path / "out" / "gm-sarsa.svg").read_bytes() == before
    assert main(["reproduce", "gm-sarsa", "--epochs", "3"]) == 2
    assert "--epochs" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    assert main(["reproduce", "gm-sarsa", "--out", str(tmp_path / "other")]) == 2
    assert "thesis" not in capsys.readouterr().err
    assert (tmp_path / "other" / "thesis.txt").read_text() == "mine"


def test_judged_is_data():
    made_up = System("a", "A", "B", 1, *["c"] * 6, lambda seeds: [], lambda results, seeds: FOUND, lambda *given: None)
    found = judged(made_up, {}, 2)
    assert found["verdict"] == "reproduced"
    assert json.loads(json.dumps(found))["statistics"][0]["interval"] == [0.5, 1.5]
