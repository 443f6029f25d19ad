"""`multiadvisor train --learner dqn`: what it prints and what it refuses."""

import subprocess
import sys

import pytest
import toy_envs  # noqa: F401  (which registers what is trained in here)

import multiadvisor as mad
from command_line import printed, refused

pytestmark = pytest.mark.slow

SMALL = [
    "--learner", "dqn", "--hidden", "8", "--learning-starts", "50", "--batch-size", "16", "--buffer-size", "600",
    "--updates-at-once", "4", "--steps", "300", "--eval-every", "150", "--eval-episodes", "2",
]  # fmt: skip
NAMES = ["--components", "steady,shaky"]


def test_a_run_is_told_as_json_and_resumed_with_its_own_settings_only(capsys, tmp_path):
    line = ["train", "CartPole-v1", *SMALL, "--out", str(tmp_path / "a")]
    first = printed(capsys, *line)
    assert first["learner"]["hidden"] == [8]
    assert (first["steps"], len(first["evaluations"])) == (300, 2)
    refused(capsys, "has another double", *line, "--resume", "--no-double")


def test_names_of_components_and_weights(capsys, tmp_path):
    out = str(tmp_path / "a")
    told = printed(capsys, "train", "tests/Spoiled-v0", *SMALL, *NAMES, "--weights", "shaky=-0.5", "--out", out)
    agent = mad.load(out)
    assert agent.task.names == ("steady", "shaky")
    assert agent.task.weights.tolist() == [1.0, -0.5]
    assert 10.0 <= told["evaluations"][-1]["score"] <= 20.0  # 20 steps, less a half for each action 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Pendulum-v1", "--double"], "--double is for dqn, and this is learned by sac"),
        (["tests/Spoiled-v0", *SMALL], "has 2 components without names: give --components with 2 names"),
        (["tests/Spoiled-v0", *SMALL, "--components", "one"], "1 components were named"),
        (["CartPole-v1", *SMALL, "--components", "one"], "is a number"),
        (["three-fruits", *SMALL, "--components", "one"], "is for Gymnasium environments"),
        (["three-fruits", "--hidden", "8"], "--hidden is for dqn and sac, and this is learned by tabular"),
        (["three-fruits", "--no-double"], "--double is for dqn, and this is learned by tabular"),
        (["three-fruits", "--learner", "dqn", "--hidden", "eight"], "--hidden"),
        (["three-fruits", "--deep"], "unknown flag '--deep': it is called '--learner' now"),
        (["three-fruits", "--learner", "dqn", "--convolutions", "4,4", "--steps", "20000"], "nothing of an image"),
        (["two-goal", "--learner", "dqn", "--convolutions", "4"], "convolutions need images"),
        (["three-fruits", "--learner", "dqn", "--hiden", "8"], "did you mean '--hidden'"),
        (["CartPole-v1", "--learner", "tabular"], "--learner dqn"),
    ],
)
def test_what_cannot_be_used_is_one_line(capsys, arguments, message):
    refused(capsys, message, "train", *arguments)


def test_without_jax_the_extra_is_named():
    program = """
import sys
sys.modules["jax"] = sys.modules["optax"] = None  # as if they were not installed
from multiadvisor.cli import main
assert main(["train", "three-fruits", "--steps", "100", "--eval-every", "100", "--eval-episodes", "1"]) == 0
sys.exit(main(["train", "three-fruits", "--learner", "dqn", "--steps", "20000"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("compiling for")]
    assert len(lines) == 1
    assert "networks need jax, optax: install the extra deep with " in lines[0]
