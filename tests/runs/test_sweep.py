"""`multiadvisor sweep`: grids on disk, resumed, extended, looked at; one line where it cannot be."""

import csv
import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import multiadvisor as mad
from command_line import refused, typed
from multiadvisor import cli
from multiadvisor.runs import training
from multiadvisor.runs.engines.engine import Crew
from multiadvisor.runs.grid_sweep import final, finished, read_frozen, run_sweep, summary, tidy
from multiadvisor.runs.ledger import driver_of, read_log, read_running
from multiadvisor.runs.sweep_grid import parse_grid
from multiadvisor.storage.sealed import with_checksum
from patience import PATIENCE
from processes import wait_for

pytestmark = pytest.mark.slow

GRID = """
title = "small"
task = "three-fruits"
seeds = {seeds}
[settings]
planning = ["egocentric", "empathic"]
gamma = {gammas}
[schedule]
steps = 900
eval_every = 300
eval_episodes = 4
"""


def write(path, seeds="2", gammas="[0.4, 0.9]"):
    path.write_text(GRID.format(seeds=seeds, gammas=gammas))
    return str(path)


def command(capsys, *arguments):
    return typed(capsys, "sweep", *arguments)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    home = tmp_path_factory.mktemp("sweep")
    assert cli.main(["sweep", write(home / "grid.toml"), "--out", str(home / "s"), "--workers", "2"]) == 0
    return home / "s"


@pytest.fixture
def swept(original, tmp_path):
    shutil.copytree(original, tmp_path / "s")
    return write(tmp_path / "grid.toml"), tmp_path / "s"


def contents(folder):
    return {path.name: path.read_bytes() for path in (folder / "results").iterdir()}


def test_a_sweep_in_python_is_the_command(swept, tmp_path):
    file, folder = swept
    assert [one.result for one in mad.sweep(file, folder, resume=True)] == [one.result for one in finished(folder)]
    data = {"task": "two-goal", "settings": {"gamma": (0.4, 0.9)}, "schedule": {"steps": 50, "eval_every": 50}}
    assert [one.run.labels["gamma"] for one in mad.sweep(data, tmp_path / "own", workers=0)] == [0.4, 0.9]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"grid": 3}, "grid of a sweep is 3: give a dictionary, or a file"),
        ({"grid": {}}, "the sweep has no task"),
        ({"out": None}, "out of a sweep is None: give a folder"),
        ({"workers": "two"}, "workers is 'two': give an integer"),
        ({"workers": -1}, "workers is -1: give an integer"),
        ({"engine": "nope"}, "unknown engine 'nope'"),
    ],
)
def test_what_a_sweep_in_python_cannot_take_leaves_no_folder(changes, said, tmp_path):
    given = {"grid": {"task": "two-goal"}, "out": tmp_path / "out", **changes}
    with pytest.raises(mad.BadInput, match=said):
        mad.sweep(given.pop("grid"), given.pop("out"), **given)
    assert not (tmp_path / "out").exists()


def test_results_in_every_format(swept, tmp_path, capsys):
    _, folder = swept
    done = finished(folder)
    assert len(done) == 8
    code, out, _ = command(capsys, "results", folder, "--format", "json")
    data = json.loads(out)
    assert code == 0
    assert [run["result"] for run in data["runs"]] == [item.result for item in done]
    assert [(row["planning"], row["gamma"], row["seeds"]) for row in data["table"]] == [
        ("egocentric", 0.4, 2), ("egocentric", 0.9, 2), ("empathic", 0.4, 2), ("empathic", 0.9, 2),
    ]  # fmt: skip
    scores = [[evaluation["score"] for evaluation in run["result"]["evaluations"]] for run in data["runs"]]
    assert [final(item.result) for item in done] == pytest.approx([np.mean(each) for each in scores])
    assert data["table"][0]["score"] == pytest.approx(np.mean(scores[:2]))
    low, high = data["table"][0]["score_interval"]
    assert low <= data["table"][0]["score"] <= high

    code, out, _ = command(capsys, "results", folder, "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert len(rows) == 8 * 3
    assert [float(row["score"]) for row in rows] == pytest.approx(np.ravel(scores).tolist())
    assert {row["seed"] for row in rows} == {"0", "1"}

    parquet = pytest.importorskip("pyarrow.parquet")
    command(capsys, "results", folder, "--format", "parquet", "--out", tmp_path / "x.parquet")
    assert parquet.read_table(tmp_path / "x.parquet").to_pydict() == tidy(done)

    code, out, _ = command(capsys, "results", folder)
    assert " ".join(out.splitlines()[0].split()) == "planning gamma seeds score 95% interval length terminated"
    assert len(out.splitlines()) == 2 + 4


def test_more_seeds_run_only_what_is_new(swept, tmp_path, capsys):
    _, folder = swept
    before = {path: path.stat().st_mtime_ns for path in (folder / "results").iterdir()}
    code, out, _ = command(
        capsys, write(tmp_path / "grid.toml", "3", "[0.4, 0.9]"), "--out", folder, "--resume", "--json"
    )
    assert code == 0
    assert json.loads(out)["done"] == 12
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert {one.starts for one in read_log(folder).values()} == {1}
    assert read_frozen(folder).grid.seeds == (0, 1, 2)


def test_status_while_it_runs_and_afterwards(tmp_path, capsys):
    path = tmp_path / "long.toml"
    path.write_text('task = "pac-boy"\nseeds = 2\n[schedule]\nsteps = 2_000_000_000\n')
    folder = tmp_path / "s"
    line = [sys.executable, "-m", "multiadvisor", "sweep", str(path), "--out", str(folder), "--workers", "1"]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: driver_of(folder) and (folder / "sweep.json").exists() and read_running(folder))
        found = json.loads(command(capsys, "status", folder, "--json")[1])
        assert (found["runs"], found["running"], found["waiting"]) == (2, 1, 1)
        assert f"process {process.pid}" in found["driver"]
        refused(capsys, f"in use by process {process.pid}", "sweep", path, "--out", folder, "--resume")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert "continue with --resume" in error.splitlines()[-1]
        assert "Traceback" not in error
    finally:
        process.kill()
        process.wait()
    code, out, _ = command(capsys, "status", folder)
    assert code == 0
    told = ["2 runs: 0 done, 0 running, 2 waiting, 0 failed", "no driver: continue with --resume"]
    assert out.splitlines()[:2] == told


def test_a_failed_run_is_told_with_its_error(tmp_path, capsys, monkeypatch):
    real = training.train_config

    def faulty(config, folder, tell):
        if config["settings"]["seed"] == 1:
            raise ArithmeticError("seed 1 is cursed")
        return real(config, folder, tell)

    monkeypatch.setattr(training, "train_config", faulty)
    folder = tmp_path / "s"
    code, out, error = command(capsys, write(tmp_path / "g.toml", "3", "0.4"), "--out", folder, "--workers", 0)
    assert code == 1
    assert "4 runs in" in out
    assert len(error.splitlines()) == 1
    assert "2 of 6 jobs failed" in error
    assert "seed 1 is cursed" in error
    code, out, _ = command(capsys, "status", folder)
    assert "4 done, 0 running, 0 waiting, 2 failed" in out
    assert "failed after 3 tries: planning egocentric, seed 1" in out
    assert "ArithmeticError: seed 1 is cursed" in out
    monkeypatch.undo()
    assert command(capsys, write(tmp_path / "g.toml", "3", "0.4"), "--out", folder, "--resume")[0] == 0


def test_plot(swept, tmp_path, capsys):
    _, folder = swept
    code, out, _ = command(capsys, "plot", folder, "--out", tmp_path / "x.png", "--json")
    assert code == 0
    assert json.loads(out)["curves"] == [
        "egocentric, gamma 0.4", "egocentric, gamma 0.9", "empathic, gamma 0.4", "empathic, gamma 0.9",
    ]  # fmt: skip
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "gamma 0.9 (2 seeds)" in (tmp_path / "x.svg").read_text()
    first = (tmp_path / "x.svg").read_bytes()
    command(capsys, "plot", folder, "--out", tmp_path / "x.png")
    assert (tmp_path / "x.svg").read_bytes() == first
    line = ("plot", folder, "--out", tmp_path / "x.png", "--figure", "touches")
    refused(capsys, "unknown figure 'touches': choose one of length, score, terminated", "sweep", *line)


def test_bad_input_is_one_line(swept, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "other.toml", "2", "[0.5]")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    before = contents(tmp_path / "s")
    for words, said in [
        ("grid.toml --out s", "add --resume"),
        ("other.toml --out s --resume", "holds another sweep: its run with planning egocentric, gamma 0.4, seed 0"),
        ("grid.toml --out mine", "holds no jobs"),
        ("grid.toml --out /proc/nowhere", "cannot write"),
        ("grid.toml --engine slurm", "unknown engine 'slurm'"),
        ("grid.toml --address x", "--address is a Ray cluster's"),
        ("grid.toml --workers -1", "workers is -1"),
        ("none.toml", "No such file"),
        ("status .", "no sweep in"),
        ("results .", "no sweep in"),
        ("results s --format xml", "invalid choice"),
        ("results s --format parquet", "name a file with"),
        ("plot s", "--out"),
        ("plot s --out x --figure scores", "did you mean 'score'"),
    ]:
        refused(capsys, said, "sweep", *words.split())
    assert contents(tmp_path / "s") == before
    assert not (tmp_path / "sweeps").exists()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["precious.txt"]


def test_a_result_put_in_anothers_place_is_refused(swept, capsys):
    _, folder = swept
    first, second = sorted((folder / "results").iterdir())[:2]
    second.write_bytes(first.read_bytes())
    refused(capsys, "is the result of another job", "sweep", "results", folder)


def in_a_namespace(script, *arguments):
    """Run a shell script with mounts of its own; skip where the system does not allow that."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody have mounts of his own (unshare -rm)")
    line = ["unshare", "-rm", "sh", "-ec", script, "sh", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_read_only_folder_can_be_looked_at_and_nothing_else(swept):
    file, folder = swept
    read_only = 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; exec "$@"'
    program = [sys.executable, "-m", "multiadvisor", "sweep"]
    done = in_a_namespace(read_only, folder, *program, "status", folder)
    assert done.returncode == 0, done.stderr
    assert "8 done" in done.stdout
    done = in_a_namespace(read_only, folder, *program, "results", folder)
    assert len(done.stdout.splitlines()) == 6, done.stderr
    done = in_a_namespace(read_only, folder, *program, file, "--out", folder, "--resume")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "Read-only file system" in done.stderr


def test_files_of_a_newer_version_say_so(swept, capsys):
    _, folder = swept
    for path in (folder / "sweep.json", next((folder / "results").iterdir())):
        whole = path.read_bytes()
        body = {k: v for k, v in json.loads(whole).items() if k != "sha256"} | {"format": 2, "version": "9.9"}
        path.write_bytes(with_checksum(body))
        refused(capsys, "made by multiadvisor 9.9: upgrade to read it", "sweep", "results", folder)
        path.write_bytes(whole)


def test_summary_of_runs_without_episodes(tmp_path):
    text = 'task = "bridge"\n[schedule]\nsteps = 50\neval_every = 50\neval_episodes = 0\n'
    run_sweep(tmp_path / "s", parse_grid(text), Crew(workers=0))
    [row] = summary(finished(tmp_path / "s"))
    assert row["score"] is None
    assert row["seeds"] == 1
