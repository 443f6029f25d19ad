"""What a training says while it goes on, in its result, a CSV file, TensorBoard and the lines for whoever watches."""

import csv
import json
import math
import signal
import struct

import gymnasium
import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed, refused, typed
from multiadvisor.agent import load_with_record
from multiadvisor.core.interrupt import AtOnce, Terminated
from multiadvisor.explorer.curves import Record, curves
from multiadvisor.runs import training
from multiadvisor.runs.live import LIVE, LiveLog, by_term, read_live, terms_of
from multiadvisor.runs.logs import MEASURES, Progress, csv_log, room_for_advisors
from multiadvisor.runs.training import LOCK, Training, begin
from multiadvisor.settings import Schedule, Settings
from multiadvisor.storage.folder_lock import holder_of

TRAIN = ("train", "two-goal", "--eval-every", 100, "--eval-episodes", 4)


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


def figures(evaluation):
    """What a log should have of an evaluation."""
    advisors = {f"advisors/{name}": value for name, value in evaluation.get("advisors", {}).items()}
    found = {name: evaluation[name] for name in MEASURES} | advisors
    return {name: value for name, value in found.items() if value is not None}


def as_scalars(evaluations):
    return {(name, one["steps"]): np.float32(value) for one in evaluations for name, value in figures(one).items()}


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
NETWORK = ["--learner", "dqn", "--hidden", "8", "--learning-starts", "1000", "--batch-size", "16",
           "--buffer-size", "1000"]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "episodes", "more"),
    [("two-goal", 3, []), ("fruit-grid", 2, []), ("tests/Alike-v0", 2, []), ("tests/Alike-v0", 2, NETWORK),
     ("tests/Alike-v0", 0, [])],
)  # fmt: skip
def test_every_log_has_the_figures_of_the_record_and_no_other(tmp_path, capsys, task, episodes, more):
    pytest.importorskip("tensorboardX")
    places = ["--out", tmp_path / "run", "--csv", tmp_path / "a.csv", "--tensorboard", tmp_path / "tb"]
    flags = ["--steps", 120, "--eval-every", 40, "--eval-episodes", episodes]
    result = printed(capsys, "train", task, *flags, *places, *more)
    (agent, record), live = load_with_record(tmp_path / "run"), read_live(tmp_path / "run")
    kept = record["evaluations"]
    assert kept == result["evaluations"]
    assert not episodes or kept[-1]["advisors"] == agent.evaluate(episodes, seeds=(3,)).advisors
    assert scalars(tmp_path / "tb") == as_scalars(kept)
    for row, one in zip(rows(tmp_path / "a.csv"), kept, strict=True):
        assert {name: float(text) for name, text in row.items() if text} == {"steps": one["steps"], **figures(one)}
    assert live["head"]["total"] == 120
    assert [{name: line[name] for name in ("steps", *MEASURES, "returns")} for line in live["lines"] if "score" in line
            ] == [{"steps": one["steps"], **{name: one[name] for name in MEASURES},
                   "returns": by_term(agent.task, one["advisors"])} for one in kept if episodes]  # fmt: skip


def test_a_log_is_there_while_it_trains_and_a_resumed_one_is_the_same(tmp_path, capsys, monkeypatch):
    pytest.importorskip("tensorboardX")
    monkeypatch.setenv("MULTIADVISOR_SAVE_SECONDS", "0")
    whole, again = ([*TRAIN, "--steps", 500, "--csv", tmp_path / f"{name}.csv", "--tensorboard", tmp_path / name]
                    for name in "ab")  # fmt: skip
    assert typed(capsys, *whole)[0] == 0
    look, save, seen = Training._evaluate, Training.save, []

    def killed(self, number):
        if number == 4:
            seen.append(len(rows(tmp_path / "b.csv")))
            raise AtOnce
        return look(self, number)

    # what follows the second evaluation is lost with the process, though it was in the logs
    monkeypatch.setattr(Training, "_evaluate", killed)
    monkeypatch.setattr(Training, "save", lambda self: save(self) if len(self.evaluations) < 3 else None)
    again += ["--out", tmp_path / "run"]
    assert typed(capsys, *again)[0] == 130
    assert seen == [3]
    monkeypatch.setattr(Training, "_evaluate", look)
    monkeypatch.setattr(Training, "save", save)
    assert len(load_with_record(tmp_path / "run")[1]["evaluations"]) == 2
    refused(capsys, "add --resume", *again)
    assert typed(capsys, *again, "--resume")[0] == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert scalars(tmp_path / "a") == scalars(tmp_path / "b")
    assert {tag for tag, _ in scalars(tmp_path / "a")} >= {"score", "advisors/goal 1", "advisors/goal 2"}
    live = dict.fromkeys(line["steps"] for line in read_live(tmp_path / "run")["lines"] if "score" in line)
    assert list(live) == [100, 200, 300, 400, 500]  # an evaluation that is made again may be there twice
    refused(capsys, "holds the log of a run already", *again[:-2])


@pytest.mark.slow
def test_episodes_side_by_side_are_logged_with_what_was_learned(tmp_path, capsys):
    """Seven episodes learn from seven transitions at once, past the end of an evaluation: 105, 203 and 301 of them."""
    out = ["--out", tmp_path / "run", "--csv", tmp_path / "run.csv", "--tensorboard", tmp_path / "board"]
    small = ["--learner", "dqn", "--n-envs", "7", "--hidden", "4", "--buffer-size", "200", "--steps"]
    printed(capsys, *TRAIN, *small, 200, *out)
    result = printed(capsys, *TRAIN, *small, 300, *out, "--resume")
    learned = [evaluation["steps"] for evaluation in result["evaluations"]]
    assert learned == [int(row["steps"]) for row in rows(tmp_path / "run.csv")] == [105, 203, 301]
    assert learned[-1] == result["steps"] == mad.load(tmp_path / "run").steps
    assert sorted(step for tag, step in scalars(tmp_path / "board") if tag == "score") == learned
    settings = {"gamma": 0.9, "planning": "empathic"}
    (curve,) = curves([Record("run", "two-goal", {}, settings, result["evaluations"], 100)])
    assert curve["steps"] == learned


def test_somebody_elses_file_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.csv").write_text("chapter,words\n")
    refused(capsys, "not the log of such a run", *TRAIN, "--steps", 100, "--csv", tmp_path / "thesis.csv")
    assert (tmp_path / "thesis.csv").read_text() == "chapter,words\n"
    refused(capsys, "it is a folder, name a file", *TRAIN, "--steps", 100, "--csv", tmp_path)


def test_the_table_has_a_column_for_few_advisors_and_for_groups(capsys):
    assert mad.make("two-goal").names[0] in typed(capsys, *TRAIN, "--steps", 100)[1].splitlines()[0]
    out = typed(capsys, "train", "pac-boy", "--steps", 50, "--eval-every", 50, "--eval-episodes", 1)[1]
    assert out.splitlines()[0].split()[-2:] == ["ghosts", "fruits"]


def test_names_with_commas_and_quotes_are_columns_too(tmp_path):
    task = mad.make("three-fruits")
    one = {"steps": 10, **dict.fromkeys(MEASURES, 1.0), "metrics": {}, "advisors": dict.fromkeys(task.names, math.pi)}
    with csv_log(tmp_path / "a.csv", task, [one]):
        pass
    (row,) = rows(tmp_path / "a.csv")
    assert [float(row[f"advisors/{name}"]) for name in task.names] == [math.pi] * 3
    assert room_for_advisors(task, 1000)
    assert not room_for_advisors(task, 250_000)


# ---- for whoever watches ---------------------------------------------------------------------------------------------
def test_what_was_lost_or_torn_is_left_out(tmp_path):
    assert read_live(tmp_path) is None
    head = {"kind": "multiadvisor live", "steps": 0, "terms": []}
    lines = [head, {"steps": 10, "score": 1}, {"steps": 20, "score": 2}, {**head, "steps": 10},
             {"steps": 20, "score": 3}]  # fmt: skip
    odd = ['{"steps": "many"}', "[]", "{", '{"steps": 30, "score": "high"}', '{"steps": 30, "returns": {"a": null}}']
    (tmp_path / LIVE).write_text("\n".join([*map(json.dumps, lines), *odd, '{"steps": 40, "sco']))
    live = read_live(tmp_path)
    assert live["head"]["steps"] == 10
    assert [(line["steps"], line["score"]) for line in live["lines"]] == [(10, 1), (20, 3)]


def test_between_evaluations_lines_come_ever_more_seldom(tmp_path, monkeypatch):
    run = Training(mad.MultiAdvisor(mad.make("two-goal")), Schedule(1000, 1_000, 1), out=tmp_path)
    now = [0.0]
    monkeypatch.setattr("multiadvisor.runs.live.time.monotonic", lambda: now[0])
    log = LiveLog(run)
    for _ in range(20_000):  # two hours and more, looked at every half second
        now[0] += 0.5
        log(Progress(run.agent, 0, 0, None, {}, None, None))
    log.close()
    lines = read_live(tmp_path)["lines"]
    assert lines[0]["seconds"] == 1.0
    assert 500 < len(lines) < 1_200


def test_many_advisors_are_told_by_group():
    task = mad.make("pac-boy")
    assert terms_of(task) == ["ghosts", "fruits"]
    assert by_term(task, dict.fromkeys(task.names, 1.0)) == {"ghosts": 2.0, "fruits": task.n - 2.0}


def test_a_folder_with_lines_alone_is_a_new_run(tmp_path):
    (tmp_path / LIVE).write_text("")
    begin(mad.make("two-goal"), Settings(), Schedule(10, 10, 0), tmp_path, resume=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [("train two-goal --watch", "--watch shows the run in --out"),
     ("evaluate runs/a --frames", "--frames puts pictures into the file of --trace"),
     ("evaluate runs/a --video a.txt", "end it in .mp4 or .gif")],
)  # fmt: skip
def test_flags_that_cannot_be(capsys, words, said):
    refused(capsys, said, *words.split())


@pytest.mark.parametrize(
    ("end", "terminal", "code", "waited"),
    [(None, False, 0, []), (None, True, 0, [None]), (KeyboardInterrupt, True, 130, [None]),
     (KeyboardInterrupt, False, 130, []), (Terminated, True, 130, []), (AtOnce, True, 130, [])],
)  # fmt: skip
def test_watch_opens_the_page_in_a_process_of_its_own_and_ends_it(
    tmp_path, capsys, monkeypatch, end, terminal, code, waited
):
    made, held, run = [], [], tmp_path / "run"

    class Page:
        pid = 0

        def __init__(self, command, **given):
            made.append(command)
            assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())  # Ctrl-C does not reach it
            assert (run / "agent.json").exists()  # there is something to look at

        def poll(self):
            return None

        def kill(self):
            made.append("killed")

        def wait(self):
            if made[-1] != "killed":
                held.append(holder_of(run / LOCK))  # who looks at it sees that nobody trains any more
                raise KeyboardInterrupt

    monkeypatch.setattr("multiadvisor.commands.train.subprocess.Popen", Page)
    monkeypatch.setattr("multiadvisor.commands.train.os.setpriority", lambda *which: None)
    monkeypatch.setattr("multiadvisor.commands.train.IMPORTED", ["mine.py"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: terminal, raising=False)
    if end is not None:
        monkeypatch.setattr(training.Training, "_evaluate", lambda self, number: (_ for _ in ()).throw(end))
    exit_code, out, error = typed(capsys, *TRAIN, "--steps", 300, "--json", "--out", run, "--watch")
    assert exit_code == code
    assert json.loads(out)["evaluations"] if end is None else "interrupted after" in error
    assert ("the page stays until Ctrl-C" in error) == bool(waited)
    assert held == waited
    command, ended = made
    assert command[1:] == ["-m", "multiadvisor", "explore", str(run), "--view", "learning", "--import", "mine.py"]
    assert ended == "killed"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
