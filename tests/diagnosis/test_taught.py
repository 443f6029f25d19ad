"""Answers that short branches taught, from the command line: for anyone's policy, and for runs of ours."""

import json
import shutil

import gymnasium
import numpy as np
import pushed_point
import pytest
from pushed_point import Line

import multiadvisor as mad
from command_line import printed, refused, typed
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.diagnosis.consequences import Precision
from multiadvisor.diagnosis.kept import TAUGHT, saved
from multiadvisor.diagnosis.taught import Taught, read_taught
from multiadvisor.diagnosis.term_values import FEATURES, features_for
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.server import Explorer

FILE = pushed_point.__file__
TERMS = "info:r_near,info:r_move"
FEW = ("--gamma", 0.9, "--steps", 300, "--branches", 2, "--pairs", 60)


class Robot(Line):
    """Cannot be copied, so that episodes are replayed; as a `real` one not even that."""

    real = False

    def __init__(self):
        super().__init__(finite=True)
        self.link = (word for word in ())  # nothing can copy a generator

    def step(self, action):
        self.fault = "forgets" if self.real else ""
        return super().step(action)


gymnasium.register("taught/Robot-v0", entry_point=Robot)


def learned(folder, steps):
    own = mad.DQN(hidden=(8,), learning_starts=20, batch_size=16, buffer_size=600)
    task = mad.make("taught/Robot-v0", advisors=TERMS)
    mad.MultiAdvisor(task, learner=own, gamma=0.9).learn(steps, progress=False).save(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose answers were taught, the report on that, and one of its episodes."""
    folder = tmp_path_factory.mktemp("taught") / "run"
    learned(folder, 60)
    return folder


def foreign(*more, policy="towards", fault=""):
    fault = ("--env-kwarg", f"fault={fault}") if fault else ()
    return ("diagnose", f"{FILE}:Line", "--policy", f"{FILE}:{policy}", "--advisors", TERMS, *FEW, *fault, *more)


# ---- anyone's policy -------------------------------------------------------------------------------------------------
def test_a_foreign_policy_is_taught_of_beside_its_diagnosis(capsys, tmp_path):
    place = tmp_path / "taught.json"
    found = printed(capsys, *foreign("--teach", place))
    assert found["branches"] == 2
    assert (found["taught"]["file"], found["taught"]["pairs"], found["taught"]["length"]) == (str(place), 60, 25)
    assert found["taught"]["terms"]["r_near"].keys() >= {"agreement", "ranks", "holds"}
    answers = read_taught(place)
    assert answers.agent == ""
    right, left = (answers.compare([at, 0.2], [1.0], [-1.0]) for at in (-0.9, 0.9))
    assert right.difference[0] > 0 > left.difference[0]  # towards the middle
    assert right.as_dict()["pairs"] == 60
    if right.told:
        assert right.sentence.startswith("as taught by 60 pairs of 25 steps, it brings ")
        assert ", agrees with whole branches at r " in right.sentence
    code, out, _ = typed(capsys, *foreign("--teach", place))  # in its place
    assert code == 0
    assert out.splitlines()[-1] == f"kept in {place}"
    assert "r_near: agrees with whole branches of other episodes at" in out
    (tmp_path / "notes.txt").write_text("mine")
    refused(capsys, "already exists and is not a file of taught answers", *foreign("--teach", tmp_path / "notes.txt"))
    refused(capsys, "pairs is 0", *foreign("--teach", place, "--pairs", 0))
    refused(capsys, "leave --teach out", "diagnose", "CartPole-v1", "--checkpoints", tmp_path, "--teach", place)


@pytest.mark.parametrize(("policy", "fault", "message"), [
    ("towards", "forgets", "no state can be gone back to"), ("keeps", "", "keeps a state of its own"),
])  # fmt: skip
def test_what_cannot_be_taught_is_one_line_and_the_diagnosis_is_kept(capsys, tmp_path, policy, fault, message):
    code, out, err = typed(capsys, *foreign("--teach", tmp_path / "t", "--json", policy=policy, fault=fault))
    assert code == 2
    assert json.loads(out)["steps"] == 300
    assert message in err.splitlines()[-1]
    assert not (tmp_path / "t").exists()


# ---- a run of ours ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_run_is_answered_as_it_was_taught_where_its_environment_is_slow_or_real(capsys, run, tmp_path, monkeypatch):
    line = ("explain", run, "--step", 3)
    assert printed(capsys, *line)["branches"] is None  # an episode would be replayed for every branch
    code, out, _ = typed(capsys, "diagnose", "--run", run, "--teach", *FEW)
    assert code == 0
    assert out.splitlines()[-1] == f"kept in {run / TAUGHT}"
    before, found = (run / TAUGHT).read_bytes(), printed(capsys, *line)["branches"]
    assert (found["steps"], found["pairs"], found["length"]) == (0, 60, 25)
    assert found["terms"].keys() == {"r_near", "r_move"}
    assert "as taught by 60 pairs of 25 steps" in found["sentence"]
    assert "branches" not in printed(capsys, *line, "--no-branches")
    text = typed(capsys, *line)[1]
    assert f"{found['sentence']}\n(taught by 60 pairs of 25 steps in " in text
    moments = printed(capsys, "evaluate", run, "--episodes", 1, "--moments", 1)["moments"]
    assert moments[0]["branches"]["pairs"] == 60
    assert (run / TAUGHT).read_bytes() == before

    trace = tmp_path / "episodes.trace"
    assert typed(capsys, "evaluate", run, "--episodes", 1, "--trace", trace)[0] == 0
    asked = {"do": "what-if", "episode": 0, "step": 3, "action": 0}
    explorer, entry = page(run, trace)
    played = explorer._do({**asked, "run": entry.id}, lambda share: None)
    assert len(played["actions"]) == 2
    assert "as taught by 60 pairs of 25 steps" in played["note"].lower()
    monkeypatch.setattr(Robot, "real", True)
    assert printed(capsys, *line, "--trace", trace)["branches"] == found
    explorer, entry = page(run, trace)
    unplayed = explorer._do({**asked, "run": entry.id}, lambda share: None)
    assert unplayed["actions"] == []
    assert unplayed["sentence"] in played["note"]
    assert "no state can be gone back to" in unplayed["note"]


def page(run, trace):
    library = Library(episodes=1)
    library.add_folder(run)
    library.add_trace(read_trace(trace), "trace")
    return Explorer(library), next(iter(library.entries.values()))


def taught_by_hand(run, agent):
    """What was taught of somebody, in the folder of this run."""
    precision = (Precision(0.9, 0.9, 0.9, 0.0),) * 2
    features, found = features_for(np.zeros((3, 2)), 0), np.ones((FEATURES + 3, 3, 2))
    places = None, (0, 3)
    Taught(("r_near", "r_move"), features, found, places, precision, np.zeros(2), 25, 60, 1.0, agent).save(run / TAUGHT)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["", "somebody else"])
def test_what_was_taught_of_another_agent_is_not_used_and_that_is_said(capsys, run, tmp_path, agent):
    own = tmp_path / "run"
    shutil.copytree(run, own)
    (own / "branches.json").unlink(missing_ok=True)
    taught_by_hand(own, agent)
    out = typed(capsys, "explain", own, "--step", 2)[1]
    assert "taught.json' was taught of another agent, or before this one was saved again: teach it again)" in out
    assert printed(capsys, "explain", own, "--step", 2)["branches"] is None
    trace = tmp_path / "episodes.trace"
    typed(capsys, "evaluate", own, "--episodes", 1, "--trace", trace)
    explorer, entry = page(own, trace)
    asked = {"do": "what-if", "run": entry.id, "episode": 0, "step": 3, "action": 0}
    assert "was taught of another agent" in explorer._do(asked, lambda share: None)["note"]
    (own / TAUGHT).write_text("torn")
    assert "is damaged or was changed" in typed(capsys, "explain", own, "--step", 2)[1]


@pytest.mark.slow
def test_an_agent_that_learned_on_is_taught_of_again(capsys, run, tmp_path):
    own = tmp_path / "run"
    shutil.copytree(run, own)
    agent = mad.load(own)
    taught_by_hand(own, saved(own, agent))
    assert printed(capsys, "explain", own, "--step", 2)["branches"]["pairs"] == 60
    agent.learn(30, progress=False).save(own)
    assert "was taught of another agent, or before" in typed(capsys, "explain", own, "--step", 2)[1]
