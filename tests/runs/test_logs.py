"""What a training says while it goes on: every advisor's return, in the result, a CSV file and TensorBoard."""

import csv
import json
import math
import struct

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.explorer.curves import Record, curves
from multiadvisor.runs import training
from multiadvisor.runs.logs import CsvLog, room_for_advisors

TRAIN = ["train", "two-goal", "--eval-every", "100", "--eval-episodes", "4", "--json"]


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def checksum(content):
    """The masked CRC-32C under which TensorBoard keeps every record, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def scalars(folder):
    """All that stands in the event files of a folder, (name, step) to value; nothing may stand there twice."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    found = {}
    for file in folder.glob("events.*"):
        content = file.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            record = content[12 : 12 + length]
            sums = struct.unpack("<I", content[8:12]) + struct.unpack("<I", content[12 + length : 16 + length])
            assert sums == (checksum(content[:8]), checksum(record))
            event, content = event_pb2.Event.FromString(record), content[16 + length :]
            for value in event.summary.value:
                assert (value.tag, event.step) not in found, "an evaluation twice"
                found[value.tag, event.step] = value.simple_value
    return found


def test_every_evaluation_has_each_advisors_return(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run"), "--csv", str(tmp_path / "run.csv")]
    assert main([*TRAIN, "--steps", "300", *out]) == 0
    result = json.loads(capsys.readouterr().out)
    names = mad.make("two-goal").names
    agent = mad.load(tmp_path / "run")
    assert [tuple(evaluation["advisors"]) for evaluation in result["evaluations"]] == [names] * 3
    assert result["evaluations"][-1]["advisors"] == agent.evaluate(4, seeds=(3,)).advisors
    for row, evaluation in zip(rows(tmp_path / "run.csv"), result["evaluations"], strict=True):
        assert int(row["steps"]) == evaluation["steps"]
        assert float(row["score"]) == evaluation["score"]
        assert {name: float(row[f"advisors/{name}"]) for name in names} == evaluation["advisors"]


def test_a_log_is_there_while_it_trains_and_a_resumed_one_is_the_same(tmp_path, capsys, monkeypatch):
    pytest.importorskip("tensorboardX")
    monkeypatch.setenv("MULTIADVISOR_SAVE_SECONDS", "0")
    logs = ["--steps", "500", "--csv", str(tmp_path / "a.csv"), "--tensorboard", str(tmp_path / "a")]
    assert main([*TRAIN, *logs]) == 0
    again = [word.replace(str(tmp_path / "a"), str(tmp_path / "b")) for word in logs]
    look, save, seen = training.Training._evaluate, training.Training.save, []

    def killed(self, number):
        if number == 4:
            seen.append(len(rows(tmp_path / "b.csv")))
            raise training.AtOnce
        return look(self, number)

    # what follows the second evaluation is lost with the process, though it was in the logs
    monkeypatch.setattr(training.Training, "_evaluate", killed)
    monkeypatch.setattr(training.Training, "save", lambda self: save(self) if len(self.evaluations) < 3 else None)
    out = ["--out", str(tmp_path / "run")]
    assert main([*TRAIN, *again, *out]) == 130
    assert seen == [3]
    monkeypatch.setattr(training.Training, "_evaluate", look)
    monkeypatch.setattr(training.Training, "save", save)
    assert len(mad.agent.load_with_record(tmp_path / "run")[1]["evaluations"]) == 2
    assert main([*TRAIN, *again, *out]) == 2
    assert main([*TRAIN, *again, *out, "--resume"]) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert scalars(tmp_path / "a") == scalars(tmp_path / "b")
    assert {tag for tag, _ in scalars(tmp_path / "a")} >= {"score", "advisors/goal 1", "advisors/goal 2"}
    capsys.readouterr()
    assert main([*TRAIN, *again]) == 2
    assert "holds the log of a run already" in capsys.readouterr().err


class Alike(gymnasium.Env):
    """Terms whose names differ in what is no letter; the first has none."""

    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)
    reward_space = gymnasium.spaces.Box(-9, 9, (5,))
    reward_names = ("+ -", "a b", "a_b", "a/b (1, 2)", "\u00e4 b")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.elapsed = 0
        return 0, {}

    def step(self, action):
        self.elapsed += 1
        return 0, self.np_random.normal(size=5) + np.arange(5) * action, False, self.elapsed == 3, {}


gymnasium.register("tests/Alike-v0", Alike)
NETWORK = [
    "--learner",
    "dqn",
    "--hidden",
    "8",
    "--learning-starts",
    "1000",
    "--batch-size",
    "16",
    "--buffer-size",
    "1000",
]


@pytest.mark.parametrize(
    ("task", "more"),
    [
        ("two-goal", ["--eval-episodes", "3"]),
        ("fruit-grid", ["--eval-episodes", "2"]),
        ("tests/Alike-v0", ["--eval-episodes", "2"]),
        ("tests/Alike-v0", ["--eval-episodes", "2", *NETWORK]),
        ("tests/Alike-v0", ["--eval-episodes", "0"]),
    ],
)
def test_tensorboard_has_every_figure_of_the_record_and_no_other(tmp_path, capsys, task, more):
    pytest.importorskip("tensorboardX")
    flags = ["--steps", "120", "--eval-every", "40", "--tensorboard", str(tmp_path / "tb"), "--json"]
    assert main(["train", task, *flags, "--out", str(tmp_path / "run"), *more]) == 0
    result = json.loads(capsys.readouterr().out)
    kept = mad.agent.load_with_record(tmp_path / "run")[1]["evaluations"]
    assert kept == result["evaluations"]
    assert scalars(tmp_path / "tb") == {
        (name, evaluation["steps"]): np.float32(value)
        for evaluation in kept
        for name, value in [
            *((name, evaluation[name]) for name in ("score", "length", "terminated")),
            *((f"advisors/{name}", value) for name, value in evaluation.get("advisors", {}).items()),
        ]
        if value is not None
    }
    assert not kept[0].get("advisors") or {*kept[0]["advisors"]} == {*mad.make(task).names}


@pytest.mark.slow
def test_episodes_side_by_side_are_logged_with_what_was_learned(tmp_path, capsys):
    """Seven episodes learn from seven transitions at once, past the end of an evaluation: 105, 203 and 301 of them."""
    out = ["--out", str(tmp_path / "run"), "--csv", str(tmp_path / "run.csv"), "--tensorboard", str(tmp_path / "board")]
    small = ["--learner", "dqn", "--n-envs", "7", "--hidden", "4", "--buffer-size", "200"]
    assert main([*TRAIN, *small, "--steps", "200", *out]) == 0
    assert main([*TRAIN, *small, "--steps", "300", *out, "--resume"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    learned = [evaluation["steps"] for evaluation in result["evaluations"]]
    assert learned == [int(row["steps"]) for row in rows(tmp_path / "run.csv")] == [105, 203, 301]
    assert learned[-1] == result["steps"] == mad.load(tmp_path / "run").steps
    assert sorted(step for tag, step in scalars(tmp_path / "board") if tag == "score") == learned
    settings = {"gamma": 0.9, "planning": "empathic"}
    (curve,) = curves([Record("run", "two-goal", {}, settings, result["evaluations"], 100)])
    assert curve["steps"] == learned


def test_somebody_elses_file_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.csv").write_text("chapter,words\n")
    assert main([*TRAIN, "--steps", "100", "--csv", str(tmp_path / "thesis.csv")]) == 2
    assert "not the log of such a run" in capsys.readouterr().err
    assert (tmp_path / "thesis.csv").read_text() == "chapter,words\n"
    assert main([*TRAIN, "--steps", "100", "--csv", str(tmp_path)]) == 2


def test_a_run_without_episodes_has_nothing_to_say(tmp_path, capsys):
    assert main([*TRAIN, "--eval-episodes", "0", "--steps", "200", "--csv", str(tmp_path / "a.csv")]) == 0
    assert [row["score"] for row in rows(tmp_path / "a.csv")] == ["", ""]
    assert "advisors" not in json.loads(capsys.readouterr().out)["evaluations"][0]


def test_the_table_has_a_column_for_few_advisors_and_for_groups(capsys):
    assert main([*TRAIN[:-1], "--steps", "100"]) == 0
    assert mad.make("two-goal").names[0] in capsys.readouterr().out.splitlines()[0]
    assert main(["train", "pac-boy", "--steps", "50", "--eval-every", "50", "--eval-episodes", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[-2:] == ["ghosts", "fruits"]


def test_names_with_commas_and_quotes_are_columns_too(tmp_path):
    task = mad.make("three-fruits")
    log = CsvLog(tmp_path / "a.csv", task)
    paid = dict.fromkeys(task.names, math.pi)
    figures = {"score": 1.0, "length": 1.0, "terminated": 1.0, "metrics": {}}
    log.add({"steps": 10, **figures, "advisors": paid})
    log.close()
    (row,) = rows(tmp_path / "a.csv")
    assert [float(row[f"advisors/{name}"]) for name in task.names] == [math.pi] * 3
    assert room_for_advisors(task, 1000)
    assert not room_for_advisors(task, 250_000)
