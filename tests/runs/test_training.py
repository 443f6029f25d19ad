"""Training in evaluations: interrupted, killed and resumed, it ends with the same bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import multiadvisor as mad
from command_line import refused as one_line
from multiadvisor.agent import load_with_record
from multiadvisor.cli import main
from multiadvisor.core.interrupt import AtOnce
from multiadvisor.runs import training
from multiadvisor.settings import Schedule, Settings
from refusal import refused


def begin(out=None, resume=False, steps=10_000, **how):
    return training.begin(mad.make("pac-boy"), Settings(**how), Schedule(steps, 2000, 10), out, resume)


def assert_same(one, other):
    assert one.evaluations == other.evaluations
    assert training.table_digest(one.agent) == training.table_digest(other.agent)


def test_resumed_evaluations_equal_the_uninterrupted_ones(tmp_path):
    begin(tmp_path / "a", steps=4000).run()
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "a", resume=True).run(stop_at(8000))
    resumed = begin(tmp_path / "a", resume=True)
    assert len(resumed.evaluations) == 4
    assert_same(resumed.run(), begin().run())
    assert mad.load(tmp_path / "a").steps == 10_000


def test_a_run_that_does_not_divide_ends_with_one_more_evaluation(tmp_path):
    """And a longer one resumed from there is the uninterrupted one: the evaluation at the former end is dropped."""
    short = begin(tmp_path / "a", steps=5_000).run()
    assert [one["steps"] for one in short.evaluations] == [2_000, 4_000, 5_000]
    assert_same(begin(tmp_path / "a", resume=True, steps=5_000).run(), short)
    longer = begin(tmp_path / "a", resume=True, steps=7_000).run()
    assert [one["steps"] for one in longer.evaluations] == [2_000, 4_000, 6_000, 7_000]
    assert_same(longer, begin(steps=7_000).run())
    refused("has learned 7000 steps already", begin, tmp_path / "a", resume=True, steps=6_500)


def stop_at(steps):
    def tell(now):
        if now.evaluation is not None and now.steps == steps:
            raise KeyboardInterrupt

    return tell


@pytest.mark.slow
@pytest.mark.parametrize(("number", "part"), [("SIGINT", "run"), ("SIGTERM", "run"), ("SIGTERM", "evaluate")])
def test_ctrl_c_and_sigterm_save_and_say_how_to_go_on(tmp_path, number, part):
    """The process asks itself to end, in the middle of learning or of the episodes of the second evaluation."""
    out = tmp_path / "a"
    program = f"""
import os, signal, sys
from multiadvisor import cli
from multiadvisor.learners.tabular.compiled_learner import CompiledLearner
real, calls = CompiledLearner.{part}, []
def end(self, *given):
    calls.append(given)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.{number})
    return real(self, *given)
CompiledLearner.{part} = end
sys.argv[1:] = "train pac-boy --eval-every 2000 --eval-episodes 5 --seed 2 --steps 6000 --out".split() + [{str(out)!r}]
cli.command()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    last = done.stderr.splitlines()[-1]
    assert "interrupted after 4,000 steps; saved in" in last
    assert "continue with --resume" in last
    assert "Traceback" not in done.stderr
    assert mad.load(out).steps == 4000
    assert [path.name for path in out.iterdir() if path.name.endswith(".lock")] == []
    run = (mad.make("pac-boy"), Settings(seed=2), Schedule(6000, 2000, 5))
    assert_same(training.begin(*run, out, True).run(), training.begin(*run, None, False).run())


def test_two_trainings_in_one_folder_are_one_too_many(tmp_path, monkeypatch, capsys):
    """While the first is at it the second is refused; otherwise both would end well, and one would be lost."""
    command = ["train", "two-goal", "--steps", "100", "--eval-every", "50", "--out", str(tmp_path / "a"), "--resume"]
    look, codes = training.Training._evaluate, []

    def meanwhile(self, number):
        if number == 1:
            codes.append(main([*command, "--seed", "1"]))
        return look(self, number)

    monkeypatch.setattr(training.Training, "_evaluate", meanwhile)
    assert main(command) == 0
    assert codes == [2]
    assert f"in use by process {os.getpid()}" in capsys.readouterr().err
    assert mad.load(tmp_path / "a").settings.seed == 0
    assert main(command) == 0, "the lock goes with its holder"


SMALL = mad.DQN(hidden=(8,), learning_starts=100, buffer_size=1000, batch_size=8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [("pac-boy", Settings()), ("FrozenLake-v1", Settings(seed=3)), ("two-goal", Settings(learner=SMALL)),
     ("CartPole-v1", Settings(learner=SMALL))],
)  # fmt: skip
def test_killed_between_evaluations_it_goes_on_from_there(tmp_path, monkeypatch, name, settings):
    """Saves do not wait for an evaluation; and who goes on from one of them ends with the same bytes."""
    monkeypatch.setenv("MULTIADVISOR_SAVE_SECONDS", "0")
    schedule, pieces = Schedule(24_000, 12_000, 5) if name == "pac-boy" else Schedule(6_000, 3_000, 5), []

    def kill(now):
        pieces.append(now.steps)
        if len(pieces) == 2:
            raise AtOnce  # nothing is saved after this

    def run(*how):
        return training.begin(mad.make(name), settings, schedule, *how)

    with pytest.raises(AtOnce):
        run(tmp_path / "a", False).run(kill)
    agent, record = load_with_record(tmp_path / "a")
    assert agent.steps == pieces[0] < schedule.eval_every
    assert record["evaluations"] == []
    assert_same(run(tmp_path / "a", True).run(), run(None, False).run())


def test_killed_before_anything_was_saved_it_begins_again(tmp_path):
    for left in ("run.lock", "values-0123456789abcdef.safetensors", ".agent.json.x1y2.part"):
        (tmp_path / left).touch()
    assert begin(tmp_path, resume=True, steps=2000).run().agent.steps == 2000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 0.5}, "another gamma"),
        ({"seed": 1}, "another seed"),
        ({"steps": 2000}, "has learned 4000 steps already: give --steps at least that"),
        ({"resume": False}, "add --resume"),
    ],
)
def test_another_run_is_not_resumed(tmp_path, change, message):
    begin(tmp_path / "a", steps=4000).run()
    refused(message, begin, tmp_path / "a", **{"resume": True, **change})


@pytest.mark.parametrize("inside", ["", "deeper/still"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path, inside):
    (tmp_path / "file").write_text("mine")
    refused(r"is a file|cannot write", begin, tmp_path / "file" / inside)
    refused("cannot write", begin, Path("/proc/nowhere") / inside)
    assert (tmp_path / "file").read_text() == "mine"
    begin(tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()
    refused("holds no run", begin, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_best_evaluation_is_kept_and_found_again(tmp_path):
    """Interrupted and resumed, the same evaluation is the best one, and its folder holds what it was then."""
    out = tmp_path / "a"

    def go(steps, tell=None, **how):
        task, settings, schedule = mad.make("three-fruits"), Settings(seed=2), Schedule(steps, 20, 5)
        return training.begin(task, settings, schedule, out, True, **how).run(tell)

    with pytest.raises(KeyboardInterrupt):
        go(120, stop_at(40), keep_best=True)
    done = go(120)  # goes on keeping it, without being told again
    scores = [evaluation["score"] for evaluation in done.evaluations]
    first = scores.index(max(scores))
    assert done.best == done.result()["best"] == {"steps": 20 * (first + 1), "score": scores[first]}
    kept, record = load_with_record(out / "best")
    assert (kept.steps, len(record["evaluations"])) == (20 * (first + 1), first + 1)
    assert kept.evaluate(5, seeds=(first + 1,)).score == scores[first]
    assert load_with_record(out)[1]["best"] == done.best
    assert 0 < first < 5  # so that neither the first nor the last would do


@pytest.mark.parametrize("more", [["--eval-episodes", "2"], ["--out", "a", "--eval-episodes", "0"]])
def test_nothing_to_keep_the_best_of_is_one_line(tmp_path, monkeypatch, capsys, more):
    monkeypatch.chdir(tmp_path)
    line = ["train", "three-fruits", "--steps", "20000", "--keep-best", *more]
    one_line(capsys, "give --out, and --eval-episodes above 0", *line)
