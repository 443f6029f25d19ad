"""A training says that its episodes get stuck, and looks for it so seldom that it costs nothing and changes nothing."""

import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed, typed
from measures.stuck import planted
from multiadvisor.analysis.stuck import Stuck
from multiadvisor.errors import BadInput
from multiadvisor.runs import stuck_monitor
from multiadvisor.runs.live import LiveLog, read_live
from multiadvisor.runs.logs import are_evaluations
from multiadvisor.runs.training import Training, table_digest
from multiadvisor.settings import Schedule, Settings

STUCK = ["train", "two-goal", "--planning", "egocentric", "--eval-every", "1000", "--eval-episodes", "3", "--seed", "0"]


def test_train_says_that_the_agent_is_stuck(capsys):
    out = typed(capsys, *STUCK, "--steps", 2000)[1]
    assert "stuck in the last evaluation: episode 0 stands still since step 0 (50 steps)" in out
    assert "held by goal" in out
    found = printed(capsys, *STUCK, "--steps", 2000)["stuck"]
    assert found["since"] == 0
    assert set() < set(found["held_by"]) <= {"goal 1", "goal 2"}
    out = typed(capsys, "train", "two-goal", "--steps", 1000, "--eval-every", 1000, "--eval-episodes", 3)[1]
    assert "stuck" not in out


def training(trap, notices, steps=60_000, out=None):
    agent = mad.MultiAdvisor(trap.task, Settings(planning="egocentric", gamma=trap.gamma, alpha=0.3, epsilon=0.3))
    return Training(agent, Schedule(steps, 20_000, 3), by_advisor=True, notices=notices, out=out)


def test_evaluations_say_it_within_their_allowance_and_learning_is_the_same(tmp_path):
    """20,000 transitions allow for 20 steps in a Python environment: an episode of 60 is looked at in every third
    evaluation."""
    watched = training(planted("goes to and fro", 100), True, out=tmp_path / "run")
    watched.agent._prepare()
    log = LiveLog(watched)
    watched.run(log)
    log.close()
    alone = training(planted("goes to and fro", 100), False).run()
    assert table_digest(watched.agent) == table_digest(alone.agent)
    assert [evaluation.get("steps_checked") for evaluation in watched.evaluations] == [None, None, 60]
    assert watched.evaluations[2]["stuck"]["kind"] == "goes to and fro"
    own = {"steps_checked": 0, "stuck": 0}
    assert [one | own for one in alone.evaluations] == [one | own for one in watched.evaluations]
    said = [line["stuck"] for line in read_live(tmp_path / "run")["lines"] if "stuck" in line]
    assert said == [stuck_monitor.in_words(watched.evaluations[2]["stuck"])]
    assert watched.stuck_at_the_end() == watched.evaluations[2]["stuck"]
    assert stuck_monitor.allowance(watched.agent, watched.evaluations) == 0


def test_what_ends_is_not_looked_at_and_what_cannot_be_told_is_left_out(monkeypatch):
    agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric", seed=0).learn(1000, progress=False)
    seen = agent.evaluate(3).played
    assert stuck_monitor.look(agent, 0, seen)["stuck"]["episode"] == 0
    assert stuck_monitor.look(agent, 0, seen, most=49) == {}
    assert stuck_monitor.look(agent, 0, seen._replace(terminated=np.ones(3))) == {}

    def refuse(*_):
        raise BadInput("it acts by more than advice")

    monkeypatch.setattr(stuck_monitor, "play", refuse)
    assert stuck_monitor.look(agent, 0, seen) == {}


KNOWN = Stuck(0, 7, 20, "stands still", "there", {"goal": 1.0}, {}, "learn longer").as_dict()


@pytest.mark.parametrize(
    ("change", "whole"),
    [
        ({"steps_checked": 60}, True), ({"steps_checked": -1}, False), ({"steps_checked": 1.5}, False),
        ({"stuck": {}}, False),
        ({"stuck": 3}, False), ({"stuck": KNOWN}, True), ({"stuck": {**KNOWN, "since": "7"}}, False),
    ],
)  # fmt: skip
def test_a_damaged_record_is_refused(change, whole):
    evaluation = {"steps": 100, "score": 1.0, "length": 2.0, "terminated": 1.0, "metrics": {}}
    assert are_evaluations([{**evaluation, **change}]) is whole
