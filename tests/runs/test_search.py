"""Search: the same trials from the same seed, in the same ledger, however it is cut; and TensorBoard files."""

import json

import pytest
from test_logs import as_scalars, scalars

from multiadvisor import cli
from multiadvisor.runs.engines.engine import Crew
from multiadvisor.runs.grid_sweep import finished, groups, status
from multiadvisor.runs.ledger import read_log
from multiadvisor.runs.search import BATCH, search
from multiadvisor.runs.sweep_grid import parse_grid
from refusal import refused

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'multiadvisor[search]'")

# Egocentric advisors of two goals wait for ever above gamma = 1/2: where the search should end is known.
GRID = """
task = "two-goal"
seeds = 2
[settings]
planning = "egocentric"
gamma = {low = 0.2, high = 0.9}
[schedule]
steps = 3000
eval_every = 3000
eval_episodes = 4
"""


HERE = Crew(workers=0, progress=False)


def look(folder, trials, **more):
    return search(folder, parse_grid(GRID), HERE, trials=trials, **more)


@pytest.mark.slow
def test_the_search_finds_what_the_theory_says(tmp_path):
    found = look(tmp_path / "a", 12)
    assert found["best"]["score"] == 1.0
    assert found["best"]["gamma"] < 0.5
    assert {row["score"] for row in found["trials"] if row["gamma"] < 0.48} == {1.0}
    assert {row["score"] for row in found["trials"] if row["gamma"] > 0.55} == {0.0}
    assert len(groups(finished(tmp_path / "a"))) == 12
    assert all(len(items) == 2 for items in groups(finished(tmp_path / "a")).values())
    assert status(tmp_path / "a")["done"] == 24


@pytest.mark.slow
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not(tmp_path):
    whole = look(tmp_path / "a", BATCH + 4)
    look(tmp_path / "b", 3)
    look(tmp_path / "b", BATCH + 1, resume=True)
    again = look(tmp_path / "b", BATCH + 4, resume=True)
    assert again["trials"] == whole["trials"]
    assert {one.starts for one in read_log(tmp_path / "b").values()} == {1}
    other = search(tmp_path / "c", parse_grid(GRID), HERE, trials=3, seed=1)
    assert other["trials"] != whole["trials"][:3]


def test_lists_are_choices(tmp_path):
    text = GRID.replace('"egocentric"', '["egocentric", "agnostic", "empathic"]').replace("3000", "100")
    found = search(tmp_path / "a", parse_grid(text), HERE, trials=10)
    assert {row["planning"] for row in found["trials"]} == {"egocentric", "agnostic", "empathic"}
    whole = text.replace("gamma = {low = 0.2, high = 0.9}", "alpha_half = {low = 100, high = 2000, log = true}")
    found = search(tmp_path / "b", parse_grid(whole), HERE, trials=4)
    assert all(isinstance(row["alpha_half"], int) and 100 <= row["alpha_half"] <= 2000 for row in found["trials"])


def test_bad_input(tmp_path):
    look(tmp_path / "a", 1)
    refused("add --resume", look, tmp_path / "a", 1)
    refused("another search", look, tmp_path / "a", 1, resume=True, seed=1)
    plain = GRID.replace("{low = 0.2, high = 0.9}", "0.4")
    refused("nothing to search", search, tmp_path / "b", parse_grid(plain), HERE, trials=1)


def test_the_command(tmp_path, capsys):
    (tmp_path / "g.toml").write_text(GRID.replace("3000", "100"))
    line = ["sweep", str(tmp_path / "g.toml"), "--out", str(tmp_path / "s"), "--workers", "0"]
    assert cli.main(line) == 2
    assert "add --search optuna" in capsys.readouterr().err
    assert cli.main([*line, "--trials", "3"]) == 2
    assert cli.main([*line, "--search", "grid"]) == 2
    capsys.readouterr()
    assert cli.main([*line, "--search", "optuna", "--trials", "3", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["trials"]) == 3
    assert cli.main([*line, "--search", "optuna", "--trials", "4", "--resume"]) == 0
    assert "the best of 4 trials first" in capsys.readouterr().out
    assert cli.main(["sweep", "results", str(tmp_path / "s")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 4


def test_tensorboard_files_have_the_returns_by_advisor_name(tmp_path, capsys):
    pytest.importorskip("tensorboardX")
    text = 'task = "bridge"\nseeds = 2\n[schedule]\n'
    text += "steps = 300\neval_every = 100\neval_episodes = 2\n"
    (tmp_path / "g.toml").write_text(text)
    line = ["sweep", str(tmp_path / "g.toml"), "--out", str(tmp_path / "s"), "--workers", "0", "--tensorboard"]
    assert cli.main(line) == 0
    places = sorted((tmp_path / "s" / "tensorboard").iterdir())
    assert [place.name[:15] for place in places] == ["all runs, seed ", "all runs, seed "]
    item = finished(tmp_path / "s")[0]
    [file] = next(place for place in places if place.name.endswith(item.run.job.id[:8])).iterdir()
    *others, last = item.result["evaluations"]
    assert scalars(file.parent) == as_scalars([*others, {**last, "advisors": item.result["advisors"]}])
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "tensorboard").rglob("*")}
    assert cli.main([*line, "--resume"]) == 0
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "tensorboard").rglob("*")}
