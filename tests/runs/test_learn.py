"""`agent.learn` with evaluations, the best agent, logs and a callback: the very run that `train` does."""

import json

import pytest
from test_logs import rows

import multiadvisor as mad
from multiadvisor.agent import load_with_record
from multiadvisor.cli import main
from refusal import refused

QUICK = mad.DQN(hidden=(8,), learning_starts=32, batch_size=16, buffer_size=300)


def test_it_is_what_the_command_does(tmp_path, capsys):
    flags = ["--steps", "500", "--eval-every", "200", "--eval-episodes", "4", "--seed", "3", "--json"]
    out = ["--out", str(tmp_path / "run"), "--keep-best", "--csv", str(tmp_path / "command.csv")]
    assert main(["train", "two-goal", *flags, *out]) == 0
    result, seen = json.loads(capsys.readouterr().out), []
    agent = mad.MultiAdvisor("two-goal", seed=3)
    agent.learn(
        500, eval_every=200, eval_episodes=4, save_best=tmp_path / "best", csv=tmp_path / "learn.csv",
        callback=lambda now: seen.append(now.evaluation), progress=False,
    )  # fmt: skip
    assert [one for one in seen if one] == result["evaluations"]
    assert (tmp_path / "learn.csv").read_bytes() == (tmp_path / "command.csv").read_bytes()
    ours, theirs = (load_with_record(folder) for folder in (tmp_path / "best", tmp_path / "run" / "best"))
    assert ours[0].steps == theirs[0].steps == result["best"]["steps"]
    assert ours[1]["evaluations"] == theirs[1]["evaluations"]
    assert {name: array.tobytes() for name, array in agent.tensors().items()} == {
        name: array.tobytes() for name, array in mad.load(tmp_path / "run").tensors().items()
    }


@pytest.mark.parametrize(("task", "settings"), [("two-goal", {}), ("CartPole-v1", {"learner": QUICK})])
def test_a_callback_sees_how_far_it_is_and_stops_it(task, settings):
    agent, told = mad.MultiAdvisor(task, seed=1, **settings), []

    def callback(now):
        told.append(now)
        return now.evaluation is None or now.steps < 200

    assert agent.learn(1_000, eval_every=100, eval_episodes=2, callback=callback, progress=False) is agent
    assert agent.steps == 200
    assert [now.steps for now in told] == sorted(now.steps for now in told)
    assert all(now.agent is agent and now.episodes <= agent.episodes for now in told)
    evaluated = [now for now in told if now.evaluation is not None]
    assert [now.evaluation["steps"] for now in evaluated] == [100, 200]
    assert evaluated[-1].returns == evaluated[-1].evaluation["advisors"] == agent.evaluate(2, seeds=(2,)).advisors
    assert set(evaluated[-1].returns) == set(agent.task.names)
    assert (evaluated[-1].losses is None) == (not settings)
    assert any(now.score is not None for now in told), "episodes of training have ended"


def test_a_second_call_begins_a_schedule_of_its_own_and_none_is_evaluated_unless_asked():
    agent, told = mad.MultiAdvisor("two-goal", seed=1), []
    agent.learn(150, callback=told.append, progress=False)
    assert (agent.steps, [now.evaluation for now in told]) == (150, [None] * len(told))
    agent.learn(250, eval_every=100, eval_episodes=1, callback=told.append, progress=False)
    assert [now.evaluation["steps"] for now in told if now.evaluation] == [250, 350, 400]
    plain = mad.MultiAdvisor("two-goal", seed=1).learn(400, progress=False)
    assert (agent.values(0) == plain.values(0)).all(), "what is learned does not depend on who looks at it"
    assert agent.learn(10_000_000, callback=lambda now: False, progress=False).steps < 10_000_000


def test_a_log_or_the_best_agent_means_ten_evaluations(tmp_path):
    agent = mad.MultiAdvisor("two-goal").learn(105, csv=str(tmp_path / "a.csv"), eval_episodes=1, progress=False)
    assert [int(row["steps"]) for row in rows(tmp_path / "a.csv")] == [*range(11, 100, 11), 105]
    pytest.importorskip("tensorboardX")
    agent.learn(100, tensorboard=tmp_path / "tb", save_best=tmp_path / "best", eval_episodes=1, progress=False)
    assert list((tmp_path / "tb").glob("events.*"))
    assert mad.load(tmp_path / "best").steps <= agent.steps


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"eval_every": 0}, "eval_every is 0"),
        ({"eval_every": 10, "eval_episodes": -1}, "eval_episodes is -1"),
        ({"save_best": "best", "eval_episodes": 0}, "let eval_episodes be above 0"),
        ({"save_best": __file__}, "is a file: name a folder"),
        ({"csv": __file__}, "is not the log of such a run"),
        ({"callback": 3}, "callback is 3: give a function"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, given, words):
    monkeypatch.chdir(tmp_path)
    agent = mad.MultiAdvisor("two-goal")
    refused(words, agent.learn, 100, **given)
    assert agent.steps == 0
