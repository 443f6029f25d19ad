"""Checkpoints: bit-identical resumption, and faults that really happen."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import copytree

import gymnasium
import numpy as np
import pytest
from forging import reseal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import multiadvisor as mad
from agents import in_pieces, same
from multiadvisor.agent import load_with_record
from multiadvisor.settings import MOST_EVALUATIONS, Schedule
from multiadvisor.storage import checkpoint, files
from multiadvisor.storage.checkpoint import FORMAT, LARGEST_JSON, MOST_ENTRIES
from multiadvisor.storage.files import write_atomically
from multiadvisor.storage.sealed import strict_json
from refusal import refused


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "a"
    mad.MultiAdvisor(mad.make("three-fruits"), seed=3).learn(777, progress=False).save(folder, {"note": "kept"})
    return folder


def lake():
    advisors = [
        mad.Advisor("goal", reward=lambda t: float(t.reward), state=lambda o: f"place {o}"),
        mad.Advisor("column", reward=lambda t: -0.1, state=lambda o: (o % 4, "column")),
        mad.Advisor("plain", weight=0.1),
    ]
    return mad.Task.from_gymnasium(gymnasium.make("FrozenLake-v1"), advisors, name="my lake")


@pytest.mark.parametrize(
    ("make", "cut", "how"),
    [*((lambda: mad.make("pac-boy"), 1234, {"planning": planning, "noise": noise})
       for planning in ("egocentric", "agnostic", "empathic", "estimate") for noise in (0.0, 0.1)),
     *((lake, cut, {}) for cut in (1, 500, 1003, 2500))],
)  # fmt: skip
def test_training_goes_on_bit_for_bit(tmp_path, make, cut, how):
    whole = mad.MultiAdvisor(make(), seed=5, **how).learn(4000, progress=False)
    begun = mad.MultiAdvisor(make(), seed=5, **how)
    resumed = in_pieces(begun, lake() if make is lake else None, tmp_path, cut, 4000 - cut)
    assert same(resumed, whole)
    assert resumed.evaluate(3).as_dict() == whole.evaluate(3).as_dict()


def test_saving_twice_is_the_same_bytes_and_leaves_no_litter(tmp_path):
    agent = mad.MultiAdvisor(mad.make("two-goal")).learn(100, progress=False)
    agent.save(tmp_path / "a")
    first = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    agent.save(tmp_path / "a")
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == first
    agent.learn(100, progress=False).save(tmp_path / "a")
    assert len(list((tmp_path / "a").iterdir())) == 2


@pytest.mark.parametrize("name", ["agent.json", "values"])
def test_torn_files_are_refused(saved, tmp_path, name):
    folder = copytree(saved, tmp_path / "torn")
    path = next(folder.glob(f"{name}*"))
    content = path.read_bytes()
    for size in (0, 1, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        refused(r"torn|changed|is no agent", mad.load, folder)
    path.unlink()
    refused(r"no run in|cannot read", mad.load, folder)


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode) | st.just(b"[" * 100_000))
def test_any_bytes_in_the_place_of_the_header(saved, tmp_path, content):
    folder = tmp_path / "any"
    folder.mkdir(exist_ok=True)
    (folder / "agent.json").write_bytes(content)
    with pytest.raises(mad.BadInput):
        mad.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h["settings"].update(gamma=7), "gamma is 7"),
        (lambda h: h["settings"].update(planning="x"), "was made with the planning 'x', which is not registered here"),
        (lambda h: h["settings"].update(extra=1), "unknown setting 'extra'"),
        (lambda h: h["settings"].pop("noise"), "not as an agent has them: noise was not given, and is 0.0"),
        (lambda h: h["settings"].update(gamma=1), "not as an agent has them: gamma was 1, and is 1.0"),
        (lambda h: h["settings"].update(planning=" empathic"), "planning was ' empathic', and is 'empathic'"),
        (lambda h: h.update(settings=3), "are no table"),
        (lambda h: h.update(extra=1), "misnames a field: 'extra'"),
        (lambda h: h["task"].update(extra=1), "misnames a field: 'extra'"),
        (lambda h: h["values"].update(extra=1), "names no values file"),
        (lambda h: h.update(steps=777.0), "does not say how many steps"),
        (lambda h: h.update(version=7), "does not say what made it"),
        (lambda h: h.update(format=True), "does not say what made it"),
        (lambda h: h["task"].update(by_hand="no reason"), "it says that it cannot be made from them"),
        (lambda h: h["task"].update(identity=3), "no valid identity"),
        (lambda h: h["task"]["identity"].update(limit=50.0), "limit was 50.0, and is 50"),
        (lambda h: h.pop("task"), "misnames a field"),
        (lambda h: h["task"].update(name="four-fruits"), "other advisors"),
        (lambda h: h["task"].update(maker="four-fruits"), "other advisors"),
        (lambda h: h["task"].update(maker="os.system"), "task 'os.system', which is not registered here"),
        (lambda h: h["task"].update(maker=3), "no valid maker"),
        (lambda h: h["task"].update(options=[]), "no valid options"),
        (lambda h: h["task"].update(options={"weights": 3}), "weights are 3"),
        (lambda h: h["task"].update(maker="", by_hand="somebody\nmade it"), "as somebody made it: give task="),
        (lambda h: h["values"].update(file="../../secret"), "names no values file"),
        (lambda h: h.update(format=FORMAT + 1, version="9.0.0"), "made by multiadvisor 9.0.0: upgrade"),
        (lambda h: h.update(kind="cake"), "is no agent of multiadvisor"),
    ],
)
def test_contradictions_are_refused(saved, tmp_path, change, message):
    folder = copytree(saved, tmp_path / "changed")
    reseal(folder, change_header=change)
    refused(message, mad.load, folder)


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_state(saved, tmp_path):
    """A limit on the size of files stands in for a full disk: the write itself fails half-way."""
    folder = copytree(saved, tmp_path / "full")
    program = """
import resource, signal, sys
import multiadvisor as mad
agent = mad.MultiAdvisor(mad.make("three-fruits")).learn(5, progress=False)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    agent.save(sys.argv[1])
except mad.BadInput as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    assert "cannot write" in done.stdout
    assert mad.load(folder).steps == 777
    assert not list(folder.glob(".*"))


def test_a_read_only_folder_is_named(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(files.os, "open", refuse)
    refused("Read-only file system", write_atomically, tmp_path / "x", b"")


def test_saving_onto_a_file_is_refused(tmp_path):
    (tmp_path / "a").write_text("mine")
    refused("it is a file", lambda: mad.MultiAdvisor(mad.make("two-goal")).save(tmp_path / "a"))
    assert (tmp_path / "a").read_text() == "mine"


@pytest.mark.slow
def test_killed_while_saving_the_old_or_the_new_state_is_there(tmp_path):
    """SIGKILL at random moments of a loop that saves all the time."""
    folder = tmp_path / "killed"
    program = f"""
import multiadvisor as mad
agent = mad.MultiAdvisor(mad.make("fruit-grid", width=12, height=12), seed=1)
while True:
    agent.learn(100, progress=False).save({str(folder)!r})
    print(agent.steps, flush=True)
"""
    generator = random.Random(1)
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(generator.randint(1, 12)):
            told = int(process.stdout.readline())
        time.sleep(generator.random() * 0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        agent = mad.load(folder)
        assert agent.steps >= told
        twin = mad.MultiAdvisor(mad.make("fruit-grid", width=12, height=12), seed=1).learn(agent.steps, progress=False)
        assert np.array_equal(twin._learner.table, agent._learner.table)


# ---- what can be written can be read ---------------------------------------------------------------------------------
@pytest.mark.slow
def test_as_many_evaluations_as_a_schedule_allows_are_read_again(tmp_path):
    evaluations = [
        {"steps": 20_000 * k, "score": k / 7, "length": k / 3, "terminated": k / 11, "metrics": {"touches": k / 13}}
        for k in range(1, MOST_EVALUATIONS + 1)
    ]
    agent = mad.MultiAdvisor(mad.make("two-goal"))
    agent.save(tmp_path / "a", {"evaluations": evaluations, "seconds": 1.0, "schedule": {}})
    assert (tmp_path / "a" / "agent.json").stat().st_size > 16 << 20
    assert load_with_record(tmp_path / "a")[1]["evaluations"] == evaluations
    refused(f"at most {MOST_EVALUATIONS}", Schedule, steps=MOST_EVALUATIONS + 1, eval_every=1)


@pytest.mark.slow
@pytest.mark.parametrize("record", [{"text": "x" * LARGEST_JSON}, {"list": [0] * MOST_ENTRIES}])
def test_a_record_that_could_not_be_read_again_is_not_written(tmp_path, record):
    agent = mad.MultiAdvisor(mad.make("two-goal")).learn(10, progress=False)
    agent.save(tmp_path / "a")
    agent.learn(10, progress=False)
    refused("too large to be read again", agent.save, tmp_path / "a", record)
    assert mad.load(tmp_path / "a").steps == 10
    assert agent.learn(10, progress=False).steps == 30


def test_loading_while_another_process_saves_tries_again(tmp_path, monkeypatch):
    agent = mad.MultiAdvisor(mad.make("two-goal"))
    agent.save(tmp_path / "a")
    read, times = checkpoint.read_header, []

    def read_and_be_overtaken(folder):
        header = read(folder)
        if len(times) < 5:
            agent.learn(10, progress=False).save(folder)  # the values that the header names are gone
        times.append(1)
        return header

    monkeypatch.setattr(checkpoint, "read_header", read_and_be_overtaken)
    assert mad.load(tmp_path / "a").steps == 50
    next((tmp_path / "a").glob("values*")).unlink()
    refused("cannot read", mad.load, tmp_path / "a")


def test_what_a_killed_process_left_is_removed_by_the_next_save(tmp_path):
    folder = tmp_path / "a"
    program = """
import os, sys
import multiadvisor as mad
agent = mad.MultiAdvisor(mad.make("two-goal"))
os.fsync = lambda handle: os.kill(os.getpid(), 9)
agent.save(sys.argv[1])
"""
    assert subprocess.run([sys.executable, "-c", program, str(folder)], check=False).returncode == -9
    (left,) = folder.glob(".*.part")
    others = [folder / ".mine.part", folder / ".agent.json.part", folder / "x.part"]
    for path in others:
        path.write_text("somebody else's")
    handle, living = files._part(folder / "agent.json")
    mad.MultiAdvisor(mad.make("two-goal")).save(folder)
    assert not left.exists()
    assert Path(living).exists()
    assert all(path.exists() for path in others)
    os.close(handle)
    mad.MultiAdvisor(mad.make("two-goal")).save(folder)
    assert not Path(living).exists()


def test_numbers_beyond_all_floats_are_no_json():
    with pytest.raises(ValueError, match="too large"):
        strict_json("[1e999]")
