"""Training in epochs: interrupted, killed and resumed, it ends with the same bytes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import multiadvisor as mad
from multiadvisor.agent import load_with_record
from multiadvisor.runs import training
from multiadvisor.settings import Schedule, Settings


def begin(out=None, resume=False, epochs=5, **how):
    return training.begin(mad.make("pac-boy"), Settings(**how), Schedule(epochs, 2000, 10), out, resume)


def test_resumed_epochs_equal_the_uninterrupted_ones(tmp_path):
    whole = begin().run()
    begin(tmp_path / "a", epochs=2).run()
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "a", resume=True).run(lambda turns, epoch: stop_at(epoch, 4))
    resumed = begin(tmp_path / "a", resume=True)
    assert len(resumed.epochs) == 4
    assert resumed.run().epochs == whole.epochs
    assert resumed.agent._learner.table.tobytes() == whole.agent._learner.table.tobytes()
    assert mad.load(tmp_path / "a").turns == 10_000


def stop_at(epoch, number):
    if epoch is not None and epoch["epoch"] == number:
        raise KeyboardInterrupt


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed(tmp_path):
    """Saved after every epoch here, killed with SIGKILL a random moment after some of them."""
    out = tmp_path / "a"
    program = f"""
import os
os.environ["MULTIADVISOR_SAVE_SECONDS"] = "0"
from pathlib import Path
import multiadvisor as mad
from multiadvisor.runs import training
from multiadvisor.settings import Schedule, Settings
run = training.begin(mad.make("pac-boy"), Settings(seed=2), Schedule(60, 5000, 5), Path({str(out)!r}), True)
run.run(lambda turns, epoch: print(epoch, flush=True))
"""
    generator = random.Random(0)
    for kill in range(9):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        if kill < 8:
            for _ in range(generator.randint(3, 10)):
                process.stdout.readline()
            time.sleep(generator.random() * 0.01)
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == 0
    whole = training.begin(mad.make("pac-boy"), Settings(seed=2), Schedule(60, 5000, 5), None, False).run()
    agent, record = load_with_record(out)
    assert agent._learner.table.tobytes() == whole.agent._learner.table.tobytes()
    assert record["epochs"] == whole.epochs


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "a"
    mad.MultiAdvisor(mad.make("pac-boy")).prepare()
    command = [sys.executable, "-m", "multiadvisor", "train", "pac-boy", "--epochs", "100000", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(8)  # well past the start, also on a busy machine
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with --resume" in error.splitlines()[-1]
    assert "Traceback" not in error
    assert mad.load(out).turns > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 0.5}, "another gamma"),
        ({"seed": 1}, "another seed"),
        ({"epochs": 1}, "2 epochs already"),
        ({"resume": False}, "add --resume"),
    ],
)
def test_another_run_is_not_resumed(tmp_path, change, message):
    begin(tmp_path / "a", epochs=2).run()
    with pytest.raises(mad.BadInput, match=message):
        begin(tmp_path / "a", **{"resume": True, **change})


@pytest.mark.parametrize("inside", ["", "deeper/still"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path, inside):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(mad.BadInput, match=r"is a file|cannot write"):
        begin(tmp_path / "file" / inside)
    with pytest.raises(mad.BadInput, match="cannot write"):
        begin(Path("/proc/nowhere") / inside)
    assert (tmp_path / "file").read_text() == "mine"
    begin(tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(mad.BadInput, match="holds no run"):
        begin(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]
