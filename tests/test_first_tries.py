"""What somebody tries first with an environment, a file or a folder of his own: a line that names the culprit."""

import csv
import shutil

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from command_line import printed
from command_line import refused as one_line
from multiadvisor.cli import main
from multiadvisor.learners.kinds import chosen_for
from refusal import refused


def said(words, call, *given, **how):
    assert words in refused(".", call, *given, **how)


class Odd(gymnasium.Env):
    """Of a user who has overlooked something."""

    def __init__(self, space=None, **gives):
        self.observation_space = space or spaces.Discrete(3)
        self.action_space, self.gives = spaces.Discrete(2), gives

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        plain = {"seen": self.observation_space.sample(), "reward": 1.0, "terminated": True, "truncated": False}
        return (*(plain | self.gives).values(), {})


REAL = spaces.Box(-1.0, 1.0, (2,), np.float32)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Odd(terminated=None), "gave terminated as None: give True or False"),
        (Odd(terminated="no"), "gave terminated as 'no': give True or False"),
        (Odd(truncated=np.array([False, True])), "gave truncated as array([False, True]): give True or False"),
        (Odd(reward=10**400), "let it be what it was declared to be"),
        (Odd(reward=np.ones(2)), "pays a vector of 2, and declares no reward_space: set its reward_space to"),
        (Odd(reward=None), "correct what pays it"),
        (Odd(REAL, seen=np.array([0.0, np.nan], np.float32)), "has a number that is not finite"),
        (Odd(spaces.Dict(a=REAL), seen={"a": np.array([0.0, np.inf])}), "has a number that is not finite"),
    ],
    ids=["none", "text", "array", "huge", "vector", "nothing", "nan", "inf in a dict"],
)
def test_what_a_step_gives_is_looked_at_before_it_is_learned(env, words):
    said(words, lambda: mad.MultiAdvisor(env).learn(40, progress=False))


@pytest.mark.parametrize("ends", [np.bool_(True), 1, np.array(True), np.int64(1)])
def test_true_may_be_written_in_many_ways(ends):
    assert mad.MultiAdvisor(Odd(terminated=ends)).learn(5, progress=False).episodes == 5


def test_images_get_a_network_and_small_grids_of_bytes_a_table():
    for shape, learner in (((96, 96, 3), "dqn"), ((3, 84, 84), "dqn"), ((7, 7, 3), "tabular")):
        assert chosen_for(mad.make(Odd(spaces.Box(0, 255, shape, np.uint8))))[0] == learner


def test_names_that_are_empty_or_of_another_kind(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    agent = mad.MultiAdvisor("two-goal")
    for call in (lambda: agent.save(""), lambda: agent.learn(10, save_best=""), lambda: mad.load("")):
        said("is '': name a folder", call)
    assert not list(tmp_path.iterdir())
    one_line(capsys, "--out: it is empty: name a file or a folder", "train", "two-goal", "--out", "")
    agent.save("run")
    one_line(capsys, "is a file: name the folder of a run", "evaluate", "run/agent.json")
    for command in ("diagnose", "check", "solve", "train"):
        one_line(capsys, "is the folder of a run, and no environment", command, "run")
    next(tmp_path.glob("run/values-*")).unlink()
    one_line(capsys, "No such file or directory; restore it from a copy", "evaluate", "run")
    said("gamma is a setting of the agent", mad.make, "FrozenLake-v1", gamma=0.5)
    said("did you mean 'is_slippery'?", mad.make, "FrozenLake-v1", is_slipery=False)
    said("import Robot and give Robot()", mad.make, "robots.py:Robot")
    said("learner is the class DQN: give one with its settings, DQN()", mad.MultiAdvisor, "two-goal", learner=mad.DQN)
    said("alpha is a setting of the agent", mad.MultiAdvisor, "two-goal", learner={"alpha": 0.5})
    said("advisor 0.5 is not among the 2", agent.values, 0.5)
    said("bins are for real numbers", mad.make, "FrozenLake-v1", bins="3")
    said("give true or false", mad.make, "pac-boy", ghosts=-1)
    said("give rewards by name, a list of advisors", mad.make, "FrozenLake-v1", advisors={"info:prob"})


def test_one_built_in_task_is_listed_by_its_name(capsys):
    assert list(printed(capsys, "tasks", "pac-boy")) == ["pac-boy"]
    assert main(["tasks", "pac-boy"]) == 0
    assert "CartPole-v1" not in capsys.readouterr().out
    one_line(capsys, "did you mean 'pac-boy'?", "tasks", "pac-boi")


def test_flags_of_the_past_and_files_with_faults(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    one_line(capsys, "it is called '--step' now", "explain", "run", "--turn", "3")
    one_line(capsys, "'x' is not an integer", "explain", "run", "--step", "x")
    one_line(capsys, "diagnose --help-all lists the flags", "diagnose", "CartPole-v1", "--out", "x")
    (tmp_path / "broken_tries.py").write_text("def f(:\n")
    assert "plugins" not in one_line(capsys, "(broken_tries.py, line 1)", "train", "broken_tries.py:X")
    (tmp_path / "own_tries.py").write_text(
        "import numpy as np\nimport gymnasium\n\n\ndef fails(seen):\n    raise KeyError('x')\n\n\n"
        "def endless():\n    return gymnasium.make('FrozenLake-v1').unwrapped\n"
    )
    assert "did you mean" not in one_line(capsys, "has no 'nope'", "train", "own_tries.py:nope")
    policy = ["--policy", "own_tries.py:fails", "--steps", "20"]
    one_line(capsys, "own_tries.py:6, in fails)", "diagnose", "FrozenLake-v1", *policy)
    assert main(["train", "own_tries.py:endless", "--steps", "10", "--eval-episodes", "0"]) == 0
    assert "has no step limit of its own: episodes are cut off after 10,000" in capsys.readouterr().err
    (tmp_path / "grid.toml").write_text('task = "two-goal"\nsteps = 5\n')
    one_line(capsys, "write it below [schedule]", "sweep", "grid.toml", "--out", "sweep")
    (tmp_path / "grid.toml").write_text('task = "two-goal"\n[schedule]\nsteps = 5\neval_every = 5\n')
    one_line(capsys, "'grid.toml' is a file: name a folder", "sweep", "grid.toml", "--out", "grid.toml")
    one_line(capsys, "is a folder: name a TOML file", "sweep", ".")
    one_line(capsys, "'grid.toml' is a file: name a folder", "diagnose", "CartPole-v1", "--pictures", "grid.toml")


def test_learning_on_keeps_the_logs_and_a_better_agent(tmp_path):
    pytest.importorskip("tensorboardX")
    out = {"csv": tmp_path / "log.csv", "tensorboard": tmp_path / "board", "save_best": tmp_path / "best"}
    agent = mad.MultiAdvisor("two-goal", gamma=0.9)
    for _ in range(2):
        agent.learn(200, eval_every=100, eval_episodes=2, progress=False, **out)
    with out["csv"].open() as file:
        assert [int(row["steps"]) for row in csv.DictReader(file)] == [100, 200, 300, 400]
    assert len(list(out["tensorboard"].glob("events.*"))) == 2
    assert mad.load(out["save_best"]).steps == 100, "a later one that is no better does not replace it"
    shutil.rmtree(out.pop("tensorboard"))
    mad.MultiAdvisor("two-goal", gamma=0.5).learn(200, eval_every=200, eval_episodes=2, progress=False, **out)
    with out["csv"].open() as file:
        assert [int(row["steps"]) for row in csv.DictReader(file)] == [200], "another agent begins anew"
    assert mad.load(out["save_best"]).steps == 200
