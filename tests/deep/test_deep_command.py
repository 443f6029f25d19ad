"""`multiadvisor train --learner dqn`: what it prints, what it refuses, and that a run goes on where it stopped."""

import inspect
import json
import subprocess
import sys

import pytest
import toy_envs

import multiadvisor as mad
from multiadvisor.cli import main

SMALL = [
    "--learner",
    "dqn",
    "--hidden",
    "8",
    "--learning-starts",
    "50",
    "--batch-size",
    "16",
    "--buffer-size",
    "600",
    "--updates-at-once",
    "4",
    "--steps",
    "300",
    "--eval-every",
    "150",
    "--eval-episodes",
    "2",
]
NAMES = ["--components", "steady,shaky"]


def call(capsys, *arguments):
    code = main(list(arguments))
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.slow
def test_a_run_is_told_as_json_saved_resumed_and_evaluated(capsys, tmp_path):
    out = str(tmp_path / "a")
    line = ["train", "CartPole-v1", *SMALL, "--json"]
    code, told, _ = call(capsys, *line, "--out", out)
    first = json.loads(told)
    assert code == 0
    assert first["learner"]["hidden"] == [8]
    assert (first["steps"], len(first["evaluations"])) == (300, 2)
    longer = [*line[: line.index("--steps")], "--steps", "600", *line[line.index("--steps") + 2 :]]
    code, told, _ = call(capsys, *longer, "--out", out, "--resume")
    assert code == 0
    assert json.loads(told)["evaluations"] == json.loads(call(capsys, *longer)[1])["evaluations"]
    code, told, _ = call(capsys, "evaluate", out, "--episodes", "2", "--json")
    assert code == 0
    assert json.loads(told)["episodes"] == 2
    code, _, error = call(capsys, *longer, "--out", out, "--resume", "--double")
    assert (code, len(error.splitlines())) == (2, 1)
    assert "has another double" in error


@pytest.mark.slow
def test_names_of_components_and_weights(capsys, tmp_path):
    out = str(tmp_path / "a")
    code, told, _ = call(
        capsys, "train", "tests/Spoiled-v0", *SMALL, *NAMES, "--weights", "shaky=-0.5", "--out", out, "--json"
    )
    assert code == 0
    agent = mad.load(out)
    assert agent.task.names == ("steady", "shaky")
    assert agent.task.weights.tolist() == [1.0, -0.5]
    score = json.loads(told)["evaluations"][-1]["score"]
    assert 10.0 <= score <= 20.0  # 20 steps, less a half for each action 1


def test_a_decomposition_that_the_documentation_names():
    task = mad.make("mo-mountaincar-v0")
    assert task.names == ("time", "reverse", "forward")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Pendulum-v1", "--double"], "--double is for dqn, and this is learned by sac"),
        (["tests/Spoiled-v0", *SMALL], "has 2 components without names: give --components with 2 names"),
        (["tests/Spoiled-v0", *SMALL, "--components", "one"], "1 components were named"),
        (["CartPole-v1", *SMALL, "--components", "one"], "is a number"),
        (["three-fruits", *SMALL, "--components", "one"], "is for Gymnasium environments"),
        (
            ["three-fruits", "--hidden", "8"],
            "--hidden is for dqn and sac, and this is learned by tabular",
        ),
        (["three-fruits", "--no-double"], "--double is for dqn, and this is learned by tabular"),
        (["three-fruits", "--learner", "dqn", "--hidden", "0"], "hidden is 0"),
        (["three-fruits", "--learner", "dqn", "--hidden", "eight"], "--hidden"),
        (["three-fruits", "--deep"], "unknown flag '--deep': it is called '--learner' now"),
        (["three-fruits", "--learner", "dqn", "--batch-size", "100", "--buffer-size", "50"], "holds no batch"),
        (
            ["three-fruits", "--learner", "dqn", "--convolutions", "4,4", "--steps", "20000"],
            "nothing of an image",
        ),
        (["two-goal", "--learner", "dqn", "--convolutions", "4"], "convolutions need images"),
        (["three-fruits", "--learner", "dqn", "--hiden", "8"], "did you mean '--hidden'"),
        (["CartPole-v1", "--learner", "tabular"], "--learner dqn"),
    ],
)
def test_what_cannot_be_used_is_one_line(capsys, arguments, message):
    code, told, error = call(capsys, "train", *arguments)
    assert (code, told) == (2, "")
    assert len(error.splitlines()) == 1
    assert message in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "message"),
    [("observation", "the loss of advisor 'steady' is no longer finite"), ("reward", "advisor 'shaky' is not finite"),
     ("shape", "the shape (3,) was given where (2,) is expected")],
)  # fmt: skip
def test_an_environment_that_fails_under_way(capsys, monkeypatch, what, message, tmp_path):
    out = str(tmp_path / "a")
    line = ["train", "tests/Spoiled-v0", *SMALL, *NAMES, "--out", out]
    assert call(capsys, *line)[0] == 0
    longer = [*line[: line.index("--steps")], "--steps", "1350", *line[line.index("--steps") + 2 :], "--resume"]
    begin = toy_envs.Spoiled.__init__

    def broken(self, what=what, step=400):
        begin(self, what, step)

    broken.__signature__ = inspect.signature(begin)  # its code goes wrong, and not what it is asked for
    monkeypatch.setattr(toy_envs.Spoiled, "__init__", broken)
    code, _, error = call(capsys, *longer)
    assert (code, len(error.splitlines())) == (2, 1)
    assert message in error
    monkeypatch.undo()
    steps = mad.load(out).steps
    assert 300 <= steps < 400
    code, told, _ = call(capsys, *longer, "--json")  # mended, it goes on
    assert code == 0
    assert json.loads(told)["steps"] == 9 * 150


@pytest.mark.slow
def test_without_jax_the_extra_is_named():
    program = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jax", "optax", "equinox"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from multiadvisor.cli import main
assert main(["train", "three-fruits", "--steps", "100", "--eval-every", "100", "--eval-episodes", "1"]) == 0
sys.exit(main(["train", "three-fruits", "--learner", "dqn", "--steps", "20000"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("compiling for")]
    assert len(lines) == 1
    assert "networks need jax, equinox, optax: install the extra deep with " in lines[0]
