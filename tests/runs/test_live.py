"""The lines of a training: what they say, after a kill as well, and who may watch."""

import json
import signal

import pytest

import multiadvisor as mad
from multiadvisor.cli import main
from multiadvisor.core.interrupt import AtOnce, Terminated
from multiadvisor.runs.live import LiveLog, by_term, read_live, terms_of
from multiadvisor.runs.training import LIVE, LOCK, Training, begin
from multiadvisor.settings import Schedule, Settings
from multiadvisor.storage.folder_lock import holder_of

FLAGS = ["--eval-every", "300", "--eval-episodes", "2", "--json"]


def test_a_line_for_every_evaluation_with_each_advisors_return(tmp_path, capsys):
    assert main(["train", "two-goal", "--steps", "900", *FLAGS, "--out", str(tmp_path / "run")]) == 0
    evaluations = json.loads(capsys.readouterr().out)["evaluations"]
    live = read_live(tmp_path / "run")
    assert live["head"]["total"] == 900
    lines = [line for line in live["lines"] if "score" in line]
    assert [line["steps"] for line in lines] == [300, 600, 900]
    assert [line["score"] for line in lines] == [evaluation["score"] for evaluation in evaluations]
    assert [line["length"] for line in lines] == [evaluation["length"] for evaluation in evaluations]
    assert [line["returns"] for line in lines] == [evaluation["advisors"] for evaluation in evaluations]
    assert {line["epsilon"] for line in lines} == {0.05} or all(0 <= line["epsilon"] <= 1 for line in lines)
    assert main(["train", "two-goal", "--steps", "1200", *FLAGS, "--out", str(tmp_path / "run"), "--resume"]) == 0
    lines = [line for line in read_live(tmp_path / "run")["lines"] if "score" in line]
    assert [line["steps"] for line in lines] == [300, 600, 900, 1200]


def test_what_was_lost_or_torn_is_left_out(tmp_path):
    assert read_live(tmp_path) is None
    head = {"kind": "multiadvisor live", "steps": 0, "terms": []}
    rows = [
        head,
        {"steps": 10, "score": 1},
        {"steps": 20, "score": 2},
        {**head, "steps": 10},
        {"steps": 20, "score": 3},
    ]
    odd = ['{"steps": "many"}', "[]", "{", '{"steps": 30, "score": "high"}', '{"steps": 30, "returns": {"a": null}}']
    text = "\n".join([*map(json.dumps, rows), *odd, '{"steps": 40, "sco'])
    (tmp_path / LIVE).write_text(text)
    live = read_live(tmp_path)
    assert live["head"]["steps"] == 10
    assert [(line["steps"], line["score"]) for line in live["lines"]] == [(10, 1), (20, 3)]


def test_between_evaluations_lines_come_ever_more_seldom(tmp_path, monkeypatch):
    task = mad.make("two-goal")
    training = Training(mad.MultiAdvisor(task), Schedule(1000, 1_000, 1), out=tmp_path)
    now = [0.0]
    monkeypatch.setattr("multiadvisor.runs.live.time.monotonic", lambda: now[0])
    log = LiveLog(training)
    for _ in range(20_000):  # two hours and more, looked at every half second
        now[0] += 0.5
        log.advance()
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


def test_watch_needs_a_folder(capsys):
    assert main(["train", "two-goal", "--watch"]) == 2
    assert "--watch shows the run in --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--frames"], "--frames puts pictures into the file of --trace"),
        (["--video", "a.txt"], "end it in .mp4 or .gif"),
    ],
)
def test_flags_of_evaluate_that_cannot_be(tmp_path, capsys, flags, said):
    assert main(["evaluate", str(tmp_path), *flags]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("end", "terminal", "code", "waited"),
    [(None, False, 0, []), (None, True, 0, [None]), (KeyboardInterrupt, True, 130, [None]),
     (KeyboardInterrupt, False, 130, []), (Terminated, True, 130, []), (AtOnce, True, 130, [])],
)  # fmt: skip
def test_watch_opens_the_page_in_a_process_of_its_own_and_ends_it(
    tmp_path, capsys, monkeypatch, end, terminal, code, waited
):
    made, held = [], []
    run = tmp_path / "run"

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
        monkeypatch.setattr(Training, "_evaluate", lambda self, number: (_ for _ in ()).throw(end))
    capsys.readouterr()
    assert main(["train", "two-goal", "--steps", "300", *FLAGS, "--out", str(run), "--watch"]) == code
    told = capsys.readouterr()
    assert json.loads(told.out)["evaluations"] if end is None else "interrupted after" in told.err
    assert ("the page stays until Ctrl-C" in told.err) == bool(waited)
    assert held == waited
    command, ended = made
    assert command[1:] == [
        "-m", "multiadvisor", "explore", str(run), "--view", "learning", "--import", "mine.py"
    ]  # fmt: skip
    assert ended == "killed"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
