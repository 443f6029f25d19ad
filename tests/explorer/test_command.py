"""`multiadvisor explore` as it is typed: the address, the port, and one line for whatever cannot be shown."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor import explorer
from multiadvisor.cli import main
from multiadvisor.commands.explore import VIEWS
from multiadvisor.explorer.curves import Record, curves
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.opening import has_display
from multiadvisor.explorer.playing import what_if
from multiadvisor.explorer.server import listen
from multiadvisor.runs.trace import record
from patience import PATIENCE


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "a"
    mad.MultiAdvisor(mad.make("three-fruits")).learn(2_000, progress=False).save(folder)
    return folder


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explore", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith("multiadvisor explore: ")
    assert told.count("\n") == 1
    return told


def test_what_cannot_be_shown_gets_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no run in" in refused(capsys, str(tmp_path / "nothing"))
    assert "is not a trace" in refused(capsys, str(run), "--trace", __file__)
    assert "port is 70000" in refused(capsys, str(run), "--port", "70000")
    assert "episodes is 0" in refused(capsys, str(run), "--episodes", "0")
    assert "at most 100000" in refused(
        capsys, str(run), "--episodes", "100000000000", "--export", str(tmp_path / "x.html")
    )
    assert "seed is -1" in refused(capsys, str(run), "--seed", "-1")
    assert "no run to export" in refused(capsys, "--export", str(tmp_path / "x.html"))
    assert "unknown flag" in refused(capsys, str(run), "--prot", "1")


def test_only_an_exported_page_is_replaced(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes, page = tmp_path / "notes.md", tmp_path / "episode.html"
    for text in ("my notes", "<!doctype html><title>my page</title>"):
        notes.write_text(text)
        assert "already exists and is not an exported page" in refused(capsys, str(run), "--export", str(notes))
        assert notes.read_text() == text
    assert "it is a folder" in refused(capsys, str(run), "--export", str(tmp_path))
    page.write_text("")
    for episodes in ("1", "100000"):
        assert main(["explore", str(run), "--episodes", episodes, "--export", str(page)]) == 0
    assert page.read_bytes().startswith(b"<!doctype html>")


def test_a_torn_trace_gets_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = mad.load(run)
    whole = tmp_path / "episodes.trace"
    record(agent, 2, 5).save(whole)
    torn = tmp_path / "torn.trace"
    torn.write_bytes(whole.read_bytes()[:-9])
    assert "damaged or was changed" in refused(capsys, str(run), "--trace", str(torn))
    other = tmp_path / "other"
    mad.MultiAdvisor(mad.make("four-fruits")).save(other)
    assert "played by none of these runs" in refused(capsys, str(other), "--trace", str(whole))


def test_the_episodes_of_the_page_are_those_of_the_library() -> None:
    agent = mad.MultiAdvisor(mad.make("pac-boy"), gamma=0.9, seed=2).learn(20_000, progress=False)
    library = Library(episodes=2, seed=4)
    name = library.add_agent(agent, "a").id
    for number in range(2):
        shown, same = library.recorded(name, number)[0], record(agent, 1, 4 + number)
        assert np.array_equal(shown.x, same.x)
        assert np.array_equal(shown.action, same.action)
        assert shown.score.tolist() == agent.evaluate(1, seeds=(4 + number,)).played.score.tolist()


def test_episodes_of_a_trace_come_first(run: Path) -> None:
    library = Library(episodes=2)
    library.add_folder(run)
    trace = record(library.entry(next(iter(library.entries))).agent, 2, 5)
    library.add_trace(trace, "x")
    name = next(iter(library.entries))
    assert library.recorded(name, 1) == (trace, 1)
    assert len(library.listing()["runs"][0]["episodes"]) == 4


def test_an_agent_of_a_task_that_is_not_installed_gets_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from multiadvisor.storage.checkpoint import read_checkpoint, write_checkpoint

    header, tensors = read_checkpoint(run)
    for name in ("NoSuchEpisode-v7", "somebody's own"):
        header["task"] |= {"name": name, "maker": name, "options": {}, "identity": {}}
        kept = {key: value for key, value in header.items() if key not in ("values", "format", "kind")}
        write_checkpoint(tmp_path / "foreign", kept, tensors)
        assert name.removeprefix("gymnasium:") in refused(capsys, str(tmp_path / "foreign"))


def test_a_torn_run_gets_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "torn"
    folder.mkdir()
    for file in run.iterdir():
        (folder / file.name).write_bytes(file.read_bytes()[: -40 if file.suffix == ".safetensors" else None])
    assert "damaged or was changed" in refused(capsys, str(folder))


def damaged(run: Path, folder: Path, **changed: Any) -> None:
    """A copy of a run, sealed like any other, with something else in its header."""
    from multiadvisor.storage.checkpoint import read_checkpoint, write_checkpoint

    header, tensors = read_checkpoint(run)
    kept = {key: value for key, value in header.items() if key not in ("values", "format", "kind")}
    write_checkpoint(folder, {**kept, **changed}, tensors)


def test_a_damaged_run_in_a_folder_is_skipped_with_a_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    for name in ("first", "last"):
        mad.load(run).save(folder / name)
    settings = json.loads((run / "agent.json").read_text())["settings"]
    for name, change in {
        "no-gamma": {"settings": {**settings, "gamma": "much"}}, "no-planning": {"settings": {"planning": "psychic"}},
        "no-settings": {"settings": None}, "no-task": {"task": {}}, "odd-task": {"task": {"name": 3, "options": {}}},
        "no-record": {"record": 3}, "odd-evaluations": {"record": {"evaluations": "many"}},
        "odd-scores": {"record": {"evaluations": [{"steps": 1, "score": "high"}]}},
    }.items():  # fmt: skip
        damaged(run, folder / name, **change)
    (folder / "torn").mkdir()
    (folder / "torn" / "agent.json").write_text('{"kind": ')
    bad = sorted(path.name for path in folder.iterdir() if path.name not in ("first", "last"))
    library = Library(episodes=1)
    library.add_folder(folder)
    assert [Path(entry.name).name for entry in library.entries.values()] == ["first", "last"]
    assert len(library.listing()["runs"]) == 2
    assert library.curves() == []
    assert len(library.skipped) == len(bad)
    for name, sentence in zip(bad, library.skipped, strict=True):
        assert str(folder / name) in sentence
    assert main(["explore", str(folder), "--export", str(tmp_path / "out.html")]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if line.startswith("multiadvisor explore: skipped: ")] == told
    assert len(told) == len(bad)
    for name in ("first", "last"):
        (folder / name / "agent.json").unlink()
    assert str(folder) in refused(capsys, str(folder))  # nothing is left to show


def test_a_taken_port_gives_way_to_the_next(run: Path) -> None:
    with listen(0) as first:
        port = first.getsockname()[1]
        with listen(port) as second:
            assert port < second.getsockname()[1] < port + 50


def test_there_is_no_screen_on_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not has_display()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_display()


MESSAGES: dict[int, IO[str]] = {}  # by process


def start(run: Path, *flags: str, **extra: str) -> tuple[subprocess.Popen[str], str]:
    """The command as a process of its own, and its first line; a full pipe of messages would hold it up, so a file."""
    messages = tempfile.TemporaryFile("w+")  # noqa: SIM115 it is read and closed by `stop`
    environment = {**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": "", "PYTHONUNBUFFERED": "1", **extra}
    process = subprocess.Popen(
        [sys.executable, "-m", "multiadvisor", "explore", str(run), *flags], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=messages,
    )  # fmt: skip
    MESSAGES[process.pid] = messages
    assert process.stdout is not None
    return process, process.stdout.readline()


def stop(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    with MESSAGES.pop(process.pid) as messages:
        messages.seek(0)
        return process.returncode, messages.read()


@pytest.mark.slow
def test_it_loads_nothing_heavy_says_which_port_it_took_and_ends_by_ctrl_c(run: Path) -> None:
    with listen(0) as taken:
        port = taken.getsockname()[1]
        process, line = start(run, "--port", str(port), PYTHONPROFILEIMPORTTIME="1")
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#ticket=[\w-]{20,}\n", line)
        code, told = stop(process)
    assert found
    assert int(found[1]) > port
    assert code == 0
    assert f"port {port} is in use: took {found[1]}" in told
    assert "Traceback" not in told
    loaded = {row.rpartition("|")[2].strip() for row in told.splitlines() if row.startswith("import time:")}
    assert "multiadvisor.explorer.server" in loaded
    assert not loaded & {"jax", "matplotlib", "ray", "mo_gymnasium", "ale_py"}


@pytest.mark.slow
def test_with_a_screen_it_opens_the_browser_on_an_address_of_its_own(run: Path, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    process, line = start(run, "--port", "0", "--json", DISPLAY=":7", BROWSER=f"{browser} %s")
    deadline = time.monotonic() + PATIENCE
    while not opened.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    shown = json.loads(line)
    assert opened.read_text().startswith(f"http://127.0.0.1:{shown['port']}/#ticket=")
    assert opened.read_text().strip() != shown["address"]
    assert stop(process)[0] == 0


@pytest.mark.slow
def test_a_used_address_is_followed_by_a_new_one(run: Path) -> None:
    import http.client

    process, line = start(run, "--port", "0")
    port, ticket = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#ticket=(\S+)\n", line).groups()
    origin = {"origin": f"http://127.0.0.1:{port}"}
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE)
            connection.request("POST", "/api/enter", ticket, origin)
            answer = connection.getresponse()
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    token = json.loads(answer.read())["token"]
    connection.close()
    assert process.stdout.readline().startswith(f"http://127.0.0.1:{port}/#ticket=")
    with socket.create_connection(("127.0.0.1", int(port))) as raw:
        raw.sendall(
            f"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 200")
    assert stop(process)[0] == 0


def test_a_folder_of_runs_is_one_curve_with_an_interval(tmp_path: Path) -> None:
    for seed in range(3):
        agent = mad.MultiAdvisor(mad.make("three-fruits"), seed=seed)
        evaluations = [
            {"steps": e + 1, "score": float(seed + e), "length": 1.0, "terminated": 1.0, "metrics": {}}
            for e in range(4)
        ]
        agent.save(tmp_path / "sweep" / f"run-{seed}", {"evaluations": evaluations})
    library = Library()
    library.add_folder(tmp_path / "sweep")
    assert len(library.entries) == 3
    (curve,) = library.curves()
    assert curve["runs"] == 3
    assert curve["figures"]["score"]["mean"] == [1.0, 2.0, 3.0, 4.0]
    assert all(
        low < mean < high
        for low, mean, high in zip(*(curve["figures"]["score"][k] for k in ("low", "mean", "high")), strict=True)
    )
    assert list(curve["figures"]) == ["score", "length", "terminated"]


def kept(seed: int, *scores: float) -> Record:
    evaluations = [{"steps": e + 1, "score": score} for e, score in enumerate(scores)]
    return Record(f"run {seed}", "pac-boy", {}, {"planning": "empathic", "gamma": 0.9, "seed": seed}, evaluations)


def test_a_seed_counts_once_by_its_longest_record() -> None:
    (curve,) = curves([kept(0, 1.0), kept(0, 1.0, 2.0, 3.0), kept(0, 1.0, 2.0), kept(1), kept(1, 3.0, 4.0, 5.0)])
    assert (curve["label"], curve["runs"]) == ("empathic 0.9", 2)
    assert curve["figures"]["score"]["mean"] == [2.0, 3.0, 4.0]
    assert curve["figures"]["score"]["low"] == [1.0, 2.0, 3.0]


def test_curves_of_different_lengths_are_not_cut() -> None:
    found = curves([kept(0, 1.0, 2.0, 3.0), kept(1, 5.0), kept(2, 3.0, 4.0, 5.0)])
    assert [(one["label"], one["runs"], one["figures"]["score"]["mean"]) for one in found] == [
        ("empathic 0.9, 3 steps", 2, [2.0, 3.0, 4.0]),
        ("empathic 0.9, 1 steps", 1, [5.0]),
    ]


def test_a_linear_run_is_called_linear() -> None:
    library = Library()
    library.add_agent(mad.MultiAdvisor(mad.make("three-fruits"), learner="linear"), "a")
    assert library.listing()["runs"][0]["label"] == "linear 0.9"


def test_intervals_of_curves_are_those_of_the_statistics() -> None:
    from multiadvisor.core.intervals import interval
    from multiadvisor.explorer.curves import intervals

    values = np.random.default_rng(4).normal(size=(6, 5))
    assert [tuple(ends) for ends in np.stack(intervals(values), axis=1)] == [interval(row) for row in values]


def test_a_sweep_gives_curves_and_a_torn_result_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from multiadvisor.runs.driver import run_jobs
    from multiadvisor.runs.jobs import Job

    folder, schedule = tmp_path / "sweep", {"steps": 200, "eval_every": 100, "eval_episodes": 4}
    jobs = [
        Job("train", {"task": "two-goal", "settings": {"planning": "agnostic", "seed": seed}, "schedule": schedule})
        for seed in range(2)
    ]
    results = run_jobs(folder, jobs, workers=0)
    library = Library()
    library.add_folder(folder)
    (curve,) = library.curves()
    means = [sum(results[job]["evaluations"][k]["score"] for job in jobs) / 2 for k in range(2)]
    assert (curve["runs"], curve["figures"]["score"]["mean"], curve["label"]) == (2, means, "agnostic 0.9")
    torn = folder / "results" / f"{jobs[0].id}.json"
    torn.write_text(torn.read_text().replace('"score":', '"score":9', 1))
    assert "was changed" in refused(capsys, str(folder))


# ---- continuations ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_continuations_have_common_random_numbers_and_follow_the_greedy_policy() -> None:
    task = mad.make("pac-boy")
    agent = mad.MultiAdvisor(task, gamma=0.9).learn(100_000, progress=False)
    x = task.initial_state(2)
    twice = what_if(agent, x, 0, (1, 1, 3))
    first, second, other = twice["actions"]
    assert first["score"] == second["score"]
    assert first["ways"] == second["ways"]
    assert len(first["score"]) == 20
    assert {way[1] for way in other["ways"]} == {int(task.world.constants.neighbour[x[0], 3])}
    assert len({tuple(way) for way in first["ways"]}) > 1  # each with random numbers of its own


def test_a_continuation_without_chance_is_the_episode_itself() -> None:
    agent: Any = mad.theory.exact_agent(mad.make("three-fruits"), "egocentric", 0.4)
    trace = record(agent, 1, 0)
    step = 3
    found = what_if(agent, trace.states(0)[step], step, (int(trace.action[step]),))["actions"][0]
    left = int(trace.length[0]) - step
    assert np.mean(found["terminated"]) == 1.0
    assert set(found["score"]) == {float(trace.reward[trace.reward_step >= step].sum())}
    assert min(found["length"]) <= left


def test_the_command_knows_the_views_of_the_page() -> None:
    state = (Path(explorer.__file__).parent / "static" / "state.js").read_text("utf-8")
    listed = re.search(r"^export const VIEWS = \{(.*)\}", state, re.MULTILINE)
    assert listed is not None
    assert tuple(re.findall(r"(\w+): ", listed[1])) == VIEWS
    assert main(["explore", "runs/none", "--view", "nowhere"]) == 2
