"""`multiadvisor explore` as it is typed: the address, the port, and one line for whatever cannot be shown."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import multiadvisor as mad
from command_line import refused
from explorer.typed import Server, explored
from measures import watch
from multiadvisor import explorer
from multiadvisor.analysis.episodes import record
from multiadvisor.cli import main
from multiadvisor.commands.explore import VIEWS
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.questions import what_if
from multiadvisor.explorer.server import Explorer, has_display, listen
from multiadvisor.storage.checkpoint import read_checkpoint, write_checkpoint
from processes import wait_for


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "a"
    mad.MultiAdvisor(mad.make("three-fruits")).learn(2_000, progress=False).save(folder)
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [("nothing", "no run in"), (f"RUN --trace {__file__}", "is not a trace"), ("RUN --port 70000", "port is 70000"),
     ("RUN --episodes 0", "episodes is 0"), ("RUN --episodes 100000000000 --export x.html", "at most 100000"),
     ("RUN --seed -1", "seed is -1"), ("--export x.html", "no run to export"), ("RUN --prot 1", "unknown flag"),
     ("RUN --view nowhere", "invalid choice")],
)  # fmt: skip
def test_what_cannot_be_shown_gets_one_line(run, tmp_path, capsys, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    refused(capsys, said, "explore", *words.replace("RUN", str(run)).split())


def test_only_an_exported_page_is_replaced(run, tmp_path, capsys):
    notes, page = tmp_path / "notes.md", tmp_path / "episode.html"
    for text in ("my notes", "<!doctype html><title>my page</title>"):
        notes.write_text(text)
        refused(capsys, "already exists and is not an exported page", "explore", str(run), "--export", str(notes))
        assert notes.read_text() == text
    refused(capsys, "it is a folder", "explore", str(run), "--export", str(tmp_path))
    page.write_text("")
    for episodes in ("1", "100000"):
        assert main(["explore", str(run), "--episodes", episodes, "--export", str(page)]) == 0
    assert page.read_bytes().startswith(b"<!doctype html>")


def test_a_torn_trace_gets_one_line(run, tmp_path, capsys):
    agent = mad.load(run)
    whole = tmp_path / "episodes.trace"
    record(agent, 2, 5).save(whole)
    torn = tmp_path / "torn.trace"
    torn.write_bytes(whole.read_bytes()[:-9])
    refused(capsys, "damaged or was changed", "explore", str(run), "--trace", str(torn))
    other = tmp_path / "other"
    mad.MultiAdvisor(mad.make("four-fruits")).save(other)
    refused(capsys, "played by none of these runs", "explore", str(other), "--trace", str(whole))


def test_the_episodes_of_the_page_are_those_of_the_library():
    agent = mad.MultiAdvisor(mad.make("pac-boy"), gamma=0.9, seed=2).learn(20_000, progress=False)
    library = Library(episodes=2, seed=4)
    name = library.add_agent(agent, "a").id
    for number in range(2):
        shown, same = library.recorded(name, number)[0], record(agent, 1, 4 + number)
        assert np.array_equal(shown.x, same.x)
        assert np.array_equal(shown.action, same.action)
        assert shown.score.tolist() == agent.evaluate(1, seeds=(4 + number,)).played.score.tolist()


def test_grids_of_the_descriptor_are_the_worlds():
    for name in ("pac-boy", "bridge", "two-goal", "fruit-grid"):
        task = mad.make(name)
        x, layout = task.initial_state(3), task.layout()
        advisors, rows = mad.MultiAdvisor(task)._learner.rows(x)
        local = [sum(x[place] * factor for place, factor in task.grid.terms[j]) for j in advisors]
        assert (layout.offset[advisors] + layout.stride[advisors] * np.array(local)).tolist() == rows.tolist()


def test_episodes_of_a_trace_come_first(run):
    library = Library(episodes=2)
    library.add_folder(run)
    trace = record(library.entry(next(iter(library.entries))).agent, 2, 5)
    library.add_trace(trace, "x")
    name = next(iter(library.entries))
    assert library.recorded(name, 1) == (trace, 1)
    assert len(library.listing()["runs"][0]["episodes"]) == 4


def damaged(run, folder, **changed):
    """A copy of a run, sealed like any other, with something else in its header."""
    header, tensors = read_checkpoint(run)
    kept = {key: value for key, value in header.items() if key not in ("values", "format", "kind")}
    write_checkpoint(folder, {**kept, **changed}, tensors)


def test_an_agent_of_a_task_that_is_not_installed_gets_one_line(run, tmp_path, capsys):
    task = json.loads((run / "agent.json").read_text())["task"]
    for name in ("NoSuchEpisode-v7", "somebody's own"):
        other = {"name": name, "maker": name, "options": {}, "identity": {}}
        damaged(run, tmp_path / "foreign", task=task | other)
        refused(capsys, name, "explore", tmp_path / "foreign")


def test_a_torn_run_gets_one_line(run, tmp_path, capsys):
    folder = tmp_path / "torn"
    folder.mkdir()
    for file in run.iterdir():
        (folder / file.name).write_bytes(file.read_bytes()[: -40 if file.suffix == ".safetensors" else None])
    refused(capsys, "damaged or was changed", "explore", str(folder))


def test_a_damaged_run_in_a_folder_is_skipped_with_a_line(run, tmp_path, capsys):
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
    refused(capsys, str(folder), "explore", folder)  # nothing is left to show


def test_a_taken_port_gives_way_to_the_next(run):
    with listen(0) as first:
        port = first.getsockname()[1]
        with listen(port) as second:
            assert port < second.getsockname()[1] < port + 50


def test_there_is_no_screen_on_a_server(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not has_display()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_display()


@pytest.mark.slow
def test_it_loads_nothing_heavy_says_which_port_it_took_and_ends_by_ctrl_c(run):
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with explored(run, "--port", port, PYTHONPROFILEIMPORTTIME="1") as (process, line):
            found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#ticket=[\w-]{20,}\n", line)
    assert found
    assert int(found[1]) > port
    assert process.returncode == 0
    assert f"port {port} is in use: took {found[1]}" in process.told
    assert "Traceback" not in process.told
    rows = process.told.splitlines()
    loaded = {row.rpartition("|")[2].strip() for row in rows if row.startswith("import time:")}
    assert "multiadvisor.explorer.server" in loaded
    assert not loaded & {"jax", "matplotlib", "ray", "mo_gymnasium", "ale_py"}


@pytest.mark.slow
def test_with_a_screen_it_opens_the_browser_on_an_address_of_its_own(run, tmp_path):
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    with explored(run, "--port", 0, "--json", DISPLAY=":7", BROWSER=f"{browser} %s") as (process, line):
        wait_for(opened.exists)
    shown = json.loads(line)
    assert opened.read_text().startswith(f"http://127.0.0.1:{shown['port']}/#ticket=")
    assert opened.read_text().strip() != shown["address"]
    assert process.returncode == 0


@pytest.mark.slow
def test_a_used_address_is_followed_by_a_new_one(run):
    with explored(run, "--port", 0) as (process, line):
        server = Server(process, line)
        assert server.runs
        assert process.stdout.readline().startswith(f"http://127.0.0.1:{server.port}/#ticket=")
    assert process.returncode == 0


# ---- continuations ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_continuations_have_common_random_numbers_and_follow_the_greedy_policy():
    task = mad.make("pac-boy")
    agent = mad.MultiAdvisor(task, gamma=0.9).learn(100_000, progress=False)
    x = task.initial_state(2)
    twice = what_if(agent, x, 0, (1, 1, 3))
    first, second, other = twice["actions"]
    assert first["paths"] == second["paths"]
    assert len(first["paths"]) == 20
    assert {way[1] for way in twice["ways"]} == {int(task.world.constants.neighbour[x[0], 3])}
    assert len(other["paths"]) == 20
    assert len({tuple(way) for way in twice["ways"]}) > 1  # each with random numbers of its own


def test_a_continuation_without_chance_is_the_episode_itself():
    agent = mad.theory.exact_agent(mad.make("three-fruits"), "egocentric", 0.4)
    trace = record(agent, 1, 0)
    step = 3
    told = what_if(agent, trace.states(0)[step], step, (int(trace.action[step]),))
    (found,) = told["actions"]
    assert found["ended"] == told["count"] == 20
    assert {path[-1] for path in found["paths"]} == {float(trace.reward[step:].sum())}
    assert {len(path) for path in found["paths"]} == {int(trace.length[0]) - step + 1}


def test_what_the_benchmark_of_watching_asks_for_is_there():
    asked = re.findall(r'_asked\(page, f?"([^"]+)"', Path(watch.__file__).read_text("utf-8"))
    shapes = {re.sub(r"\{[^}]*\}|\d+", "*", path) for path in asked}
    known = {re.sub(r"\{[^}]*\}", "*", path) for path in Explorer(Library())._works()}
    assert shapes - known == {"enter"}


def test_the_command_knows_the_views_of_the_page():
    state = (Path(explorer.__file__).parent / "static" / "state.js").read_text("utf-8")
    listed = re.search(r"^export const VIEWS = \{(.*)\}", state, re.MULTILINE)
    assert listed is not None
    assert tuple(re.findall(r"(\w+): ", listed[1])) == VIEWS
