"""What holds of every system of the literature: its map, its jobs, its verdict; and the command that runs one."""

import json

import pytest

from multiadvisor.cli import main
from multiadvisor.experiments.systems import q_decomposition
from multiadvisor.experiments.systems.system import Found, judged, systems, verdict
from multiadvisor.statistics import Estimate

ALL = systems()


@pytest.mark.parametrize("name", ALL)
def test_a_system_is_whole(name):
    system = ALL[name]
    row = (system.focus, system.view, system.planning, system.aggregator, system.guarantee)
    for text in (system.title, system.source, system.behaviour, *row):
        assert text
        assert not set("|\n") & set(text), "it stands in a table"
    few, more = system.jobs(2), system.jobs(3)
    assert len({job.id for job in few}) == len(few)
    assert {job.id for job in few} <= {job.id for job in more}, "more seeds add runs, and change none"


def test_the_order_is_one():
    assert len({system.order for system in ALL.values()}) == len(ALL)


def test_a_bar_is_cleared_by_the_whole_interval_only():
    assert Found.above("a", "", Estimate(1.0, 0.1, 2.0)).holds
    assert not Found.above("a", "", Estimate(1.0, -0.1, 2.0)).holds
    assert Found.below("a", "", Estimate(1.0, 0.1, 2.0), 2.1).holds
    assert not Found.below("a", "", Estimate(1.0, 0.1, 2.0), 2.0).holds
    assert Found.not_below("a", "", Estimate(-1.0, -2.0, 0.1)).holds
    assert not Found.not_below("a", "", Estimate(-1.0, -2.0, -0.1)).holds


def test_verdicts():
    yes, no = Found("a", "", 1.0, None, True), Found("b", "", 1.0, None, False)
    assert [verdict(found) for found in ([yes, yes], [yes, no], [no])] == ["reproduced", "partly", "not reproduced"]


def made_up(score):
    """Results of q-decomposition where both plannings score as told."""
    jobs = {planning: [q_decomposition.job(planning, seed) for seed in range(2)] for planning in score}
    return {job.id: {"epochs": [{"score": score[planning]}] * 10} for planning in score for job in jobs[planning]}


def test_a_world_that_refutes_it():
    good, bad = made_up({"egocentric": 0.0, "sarsa": 1.2}), made_up({"egocentric": 1.0, "sarsa": 1.0})
    [dollars] = [one for one in q_decomposition.statistics(good, 2) if one.name == "dollars-and-euros"]
    assert dollars.holds
    [dollars] = [one for one in q_decomposition.statistics(bad, 2) if one.name == "dollars-and-euros"]
    assert not dollars.holds


def test_the_command(tmp_path, capsys):
    arguments = ["reproduce", "q-decomposition", "--seeds", "2", "--out", str(tmp_path / "out"), "--workers", "0"]
    assert main(arguments) == 0
    assert "q-decomposition: " in capsys.readouterr().out
    before = (tmp_path / "out" / "q-decomposition.svg").read_bytes()
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"name", "verdict", "statistics"}
    assert {"name", "value", "interval", "holds"} <= set(found["statistics"][0])
    assert (tmp_path / "out" / "q-decomposition.svg").read_bytes() == before
    assert main(["reproduce", "q-decomposition", "--epochs", "3"]) == 2
    assert "--epochs" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    assert main(["reproduce", "q-decomposition", "--out", str(tmp_path / "other")]) == 2
    assert "thesis" not in capsys.readouterr().err
    assert (tmp_path / "other" / "thesis.txt").read_text() == "mine"


def test_judged_is_data():
    found = judged(ALL["q-decomposition"], made_up({"egocentric": 0.0, "sarsa": 1.2}), 2)
    assert found == json.loads(json.dumps(found)) or found["statistics"][0]["interval"] == (1.2, 1.2)
