"""`multiadvisor sweep`: grids on disk, resumed, extended, looked at; one line where it cannot be."""

import csv
import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor import cli
from multiadvisor.runs.engines.engine import Crew
from multiadvisor.runs.grid_sweep import final, finished, read_frozen, run_sweep, summary, tidy
from multiadvisor.runs.ledger import driver_of, read_log
from patience import PATIENCE

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
    code = cli.main(["sweep", *map(str, arguments)])
    out, error = capsys.readouterr()
    return code, out, error


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


@pytest.mark.slow
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
    assert out.splitlines()[0].split() == [
        "planning",
        "gamma",
        "seeds",
        "score",
        "95%",
        "interval",
        "length",
        "terminated",
    ]
    assert len(out.splitlines()) == 2 + 4


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_sweep_is_the_same_bytes_as_runs_by_hand(swept):
    _, folder = swept
    item = finished(folder)[5]
    config = item.run.job.config
    agent = mad.MultiAdvisor(mad.make("three-fruits"), **config["settings"]).learn(900, progress=False)
    assert config["settings"]["planning"] == "empathic"
    assert item.result["evaluations"][-1]["score"] == agent.evaluate(4, seeds=(3,)).score
    assert final(item.result) == pytest.approx(np.mean([one["score"] for one in item.result["evaluations"]]))


@pytest.mark.slow
def test_status_while_it_runs_and_afterwards(tmp_path, capsys):
    path = tmp_path / "long.toml"
    path.write_text('task = "pac-boy"\nseeds = 2\n[schedule]\nsteps = 2_000_000_000\n')
    folder = tmp_path / "s"
    line = [sys.executable, "-m", "multiadvisor", "sweep", str(path), "--out", str(folder), "--workers", "1"]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + PATIENCE
        found = {"running": 0}
        while not found["running"] and time.monotonic() < end:
            time.sleep(0.2)
            if driver_of(folder) and (folder / "sweep.json").exists():
                found = json.loads(command(capsys, "status", folder, "--json")[1])
        assert (found["runs"], found["running"], found["waiting"]) == (2, 1, 1)
        assert f"process {process.pid}" in found["driver"]
        code, _, error = command(capsys, path, "--out", folder, "--resume")
        assert code == 2
        assert f"in use by process {process.pid}" in error
        assert len(error.splitlines()) == 1
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
    assert out.splitlines()[:2] == [
        "2 runs: 0 done, 0 running, 2 waiting, 0 failed",
        "no driver: continue with --resume",
    ]


@pytest.mark.slow
def test_a_failed_run_is_told_with_its_error(tmp_path, capsys, monkeypatch):
    from multiadvisor.runs import training

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


@pytest.mark.slow
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
    code, _, error = command(capsys, "plot", folder, "--out", tmp_path / "x.png", "--figure", "touches")
    assert (code, "unknown figure 'touches': choose one of length, score, terminated" in error) == (2, True)


@pytest.mark.slow
def test_bad_input_is_one_line(swept, tmp_path, capsys, monkeypatch):
    file, folder = swept
    monkeypatch.chdir(tmp_path)
    other = write(tmp_path / "other.toml", "2", "[0.5]")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    before = contents(folder)
    for arguments, words in [
        ((file, "--out", folder), "add --resume"),
        (
            (other, "--out", folder, "--resume"),
            "holds another sweep: its run with planning egocentric, gamma 0.4, seed 0",
        ),
        ((file, "--out", tmp_path / "mine"), "holds no jobs"),
        ((file, "--out", "/proc/nowhere"), "cannot write"),
        ((file, "--engine", "slurm"), "unknown engine 'slurm'"),
        ((file, "--address", "x"), "--address is a Ray cluster's"),
        ((file, "--workers", "-1"), "workers is -1"),
        ((tmp_path / "none.toml",), "No such file"),
        (("status", tmp_path), "no sweep in"),
        (("results", tmp_path), "no sweep in"),
        (("results", folder, "--format", "xml"), "invalid choice"),
        (("results", folder, "--format", "parquet"), "name a file with"),
        (("plot", folder), "--out"),
        (("plot", folder, "--out", tmp_path / "x", "--figure", "scores"), "did you mean 'score'"),
    ]:
        code, out, error = command(capsys, *arguments)
        assert (code, out, len(error.splitlines())) == (2, "", 1), arguments
        assert words in error
    assert contents(folder) == before
    assert not (tmp_path / "sweeps").exists()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["precious.txt"]


def test_a_result_put_in_anothers_place_is_refused(swept, capsys):
    _, folder = swept
    first, second = sorted((folder / "results").iterdir())[:2]
    second.write_bytes(first.read_bytes())
    code, _, error = command(capsys, "results", folder)
    assert code == 2
    assert "is the result of another job" in error


def in_a_namespace(script, *arguments):
    """Run a shell script with mounts of its own; skip where the system does not allow that."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody have mounts of his own (unshare -rm)")
    line = ["unshare", "-rm", "sh", "-ec", script, "sh", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize("kilobytes", [50, 100])
def test_a_disk_that_fills_up(original, tmp_path, capsys, kilobytes):
    """A real file system without space: one line, whatever was finished is kept, and more space is all it needs."""
    file, folder = write(tmp_path / "grid.toml", "[0, 1, 2, 3, 4, 5]"), tmp_path / "s"
    folder.mkdir()
    script = """
        mount -t tmpfs -o size=$1k none "$2"; shift
        "$2" -m multiadvisor sweep "$3" --out "$1" --workers 2 --resume || code=$?
        cp -r "$1" "$1-copy"
        exit ${code:-0}
    """
    done = in_a_namespace(script, kilobytes, folder, sys.executable, file)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "cannot write" in done.stderr
    copy = tmp_path / "s-copy"
    kept = contents(copy)
    assert all(content == contents(original).get(name, content) for name, content in kept.items())
    assert command(capsys, file, "--out", copy, "--resume", "--workers", 2)[0] == 0
    assert len(contents(copy)) == 24
    assert {name: contents(copy)[name] for name in contents(original)} == contents(original)


def test_files_of_a_newer_version_say_so(swept, capsys):
    from multiadvisor.storage.sealed import canonical, digest

    _, folder = swept
    for path in (folder / "sweep.json", next((folder / "results").iterdir())):
        whole = path.read_bytes()
        body = {k: v for k, v in json.loads(whole).items() if k != "sha256"} | {"format": 2, "version": "9.9"}
        path.write_bytes(canonical({**body, "sha256": digest(canonical(body))}))
        code, _, error = command(capsys, "results", folder)
        assert code == 2
        assert "made by multiadvisor 9.9: upgrade to read it" in error
        path.write_bytes(whole)


def test_summary_of_runs_without_episodes(tmp_path):
    from multiadvisor.runs.sweep_grid import parse_grid

    text = 'task = "bridge"\n[schedule]\nsteps = 50\neval_every = 50\neval_episodes = 0\n'
    run_sweep(tmp_path / "s", parse_grid(text), text, Crew(workers=0))
    [row] = summary(finished(tmp_path / "s"))
    assert row["score"] is None
    assert row["seeds"] == 1
