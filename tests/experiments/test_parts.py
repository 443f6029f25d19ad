"""A study is one file: what lies in the folder is listed, run and reported; and what the videos say of an
episode."""

from __future__ import annotations

import sys

import pytest

import multiadvisor.studies
from multiadvisor.commands.reproduce import run
from multiadvisor.core import checkout
from multiadvisor.errors import BadInput
from multiadvisor.runs.jobs import KINDS, Job, kind_named, perform
from multiadvisor.studies.paper.episode_study import described
from multiadvisor.studies.study import Plan, chosen
from refusal import refused

MINE = """
from multiadvisor.studies.study import Figure, Study
from multiadvisor.runs.jobs import Job, kind


@kind("dice", lease=30.0)
def work(config, folder=None, tell=None):
    return {"sum": sum(config["eyes"])}


def jobs(plan):
    return [Job("dice", {"eyes": [seed, 2]}) for seed in plan.each]


def figures(evidence):
    sums = [evidence.result(job)["sum"] for job in jobs(evidence.plan)]
    return [Figure("dice", "Dice", f"The sums are {sums}.")]


STUDY = Study("dice", "Dice that are thrown", 99, jobs, figures)
"""


@pytest.fixture
def dropped(tmp_path, monkeypatch):
    """A further file among the studies."""
    (tmp_path / "dice.py").write_text(MINE)
    monkeypatch.setattr(multiadvisor.studies, "__path__", [*multiadvisor.studies.__path__, str(tmp_path)])
    yield
    KINDS.pop("dice", None)
    sys.modules.pop("multiadvisor.studies.dice", None)
    del multiadvisor.studies.dice


def test_what_is_not_in_the_installed_package_is_said_to_be_in_the_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(checkout, "_HOME", tmp_path)
    refused("unknown study 'beyond'.* more are in the repository: run it from a checkout", chosen, "beyond")
    assert [study.name for study in chosen("hra")] == ["hra"]


def test_a_study_that_lies_there_is_listed_and_its_jobs_are_done(dropped, capsys):
    with pytest.raises(SystemExit):
        run(["--help"])
    assert "  dice            Dice that are thrown\n" in capsys.readouterr().out
    [study] = chosen("dice")
    plan = Plan(what="dice", seeds=2)
    assert [perform(job.kind, job.config, None, lambda fraction: None) for job in study.jobs(plan)] == [
        {"sum": 2}, {"sum": 3}
    ]  # fmt: skip
    assert kind_named("dice").lease == 30.0


def test_a_worker_finds_a_kind_by_its_name_alone(dropped):
    """As in a process that has only the job's data: nobody has loaded the study."""
    assert "dice" not in KINDS
    assert perform("dice", {"eyes": [5]}, None, lambda fraction: None) == {"sum": 5}


@pytest.mark.slow
def test_its_report_is_written(dropped, tmp_path):
    assert run(["dice", "--seeds", "2", "--workers", "0", "--out", str(tmp_path / "report")]) == 0
    assert "The sums are [2, 3]." in (tmp_path / "report" / "report.html").read_text()


def test_without_it_the_name_is_unknown(capsys):
    with pytest.raises((SystemExit, BadInput)):
        run(["dice"])
    refused("unknown kind of job 'dice'", Job, "dice", {})


def test_two_studies_cannot_share_a_kind(dropped):
    from multiadvisor.runs.jobs import kind

    chosen("dice")
    with pytest.raises(BadInput, match=r"'dice' are the work of multiadvisor\.studies\.dice"):
        kind("dice")(lambda config, folder, tell: {})


def test_a_fruit_eaten_while_a_ghost_touches_is_counted():
    trace = {"movers": [[0, 5], [1, 1], [2, 3]], "fruit": [1, 2], "actions": [3, 3], "rewards": [-9.0, 1.0]}
    assert described(trace, 50) == "Epoch 50, first episode: score -8, 2 of 2 fruits, 2 steps, all fruit eaten."
    trace["fruit"] = [1, 2, 7]
    assert described(trace, 50) == "Epoch 50, first episode: score -8, 2 of 3 fruits, 2 steps, cut off."
