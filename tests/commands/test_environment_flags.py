"""Options of Gymnasium environments on the command line, and runs whose task names a module."""

import json

import pytest

import forks
import multiadvisor as mad
from command_line import refused, typed
from multiadvisor.commands.parsing import named_value

SHORT = ("--steps", 100, "--eval-every", 100, "--eval-episodes", 2)


def made(folder):
    return mad.load(folder).task.options


@pytest.mark.slow
def test_options_reach_the_environment_and_the_checkpoint(capsys, tmp_path):
    long = ("--steps", 20_000, "--eval-every", 20_000, "--eval-episodes", 20, "--epsilon", 0.5)
    flags = ("--env-kwarg", "is_slippery=false", "--env-kwarg", "map_name=4x4", "--max-episode-steps", 30)
    line = ("train", "FrozenLake-v1", *flags, *long, "--out", tmp_path / "a", "--json")
    code, out, error = typed(capsys, *line)
    assert (code, error) == (0, "")
    assert json.loads(out)["evaluations"][0]["score"] == 1.0
    assert made(tmp_path / "a") == {"is_slippery": False, "max_episode_steps": 30}
    assert json.loads(typed(capsys, "evaluate", tmp_path / "a", "--json")[1])["score"] == 1.0
    assert "is_slippery was False" in typed(capsys, *line[:2], *line[6:], "--resume")[2]
    assert typed(capsys, *line, "--resume")[0] == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("false", False), ("True", True), ("null", None), ("None", None), ("3", 3), ("-0.5", -0.5), ("4x4", "4x4"),
        ('"3"', "3"), ("", ""), ("a=b", "a=b"), ('["SG", "FF"]', ["SG", "FF"]), ("NaN", "NaN"),
        ("[" * 9999, "[" * 9999),
    ],
)  # fmt: skip
def test_values_are_plain(text, value):
    assert named_value(f"name={text}") == ("name", value)


def test_bins_make_a_table_of_real_numbers(capsys, tmp_path):
    """Ranges may begin with a minus, and come from the space where it has them."""
    for name, bins, kept in (
        ("MountainCar-v0", "-1.2:0.6:18,-0.07:0.07:14", "-1.2:0.6:18,-0.07:0.07:14"),
        ("CartPole-v1", "2,-3:3:4,2,-3:3:4", None),
    ):
        folder = tmp_path / name
        assert typed(capsys, "train", f"{name}", "--bins", bins, *SHORT, "--out", folder)[0] == 0
        assert kept is None or made(folder)["bins"] == kept
        assert typed(capsys, "evaluate", folder, "--episodes", 1)[0] == 0
    assert mad.load(tmp_path / "CartPole-v1").task.adapter.rows == 64
    assert typed(capsys, "check", "MountainCar-v0", "--bins", "9,7", "--steps", 300)[0] == 0


def test_an_episode_without_a_limit_gets_one_and_that_is_said(capsys, tmp_path):
    """A greedy player that has learned next to nothing walks into the wall for ever."""
    line = ("train", "CliffWalking-v1", "--steps", 20, "--eval-every", 20, "--eval-episodes", 1, "--json")
    code, out, error = typed(capsys, *line, "--out", tmp_path / "a")
    assert code == 0
    assert json.loads(out)["evaluations"][0]["length"] == 10_000
    [said] = error.splitlines()
    assert "has no step limit of its own: episodes are cut off after 10,000 steps" in said
    assert typed(capsys, "evaluate", tmp_path / "a", "--episodes", 1)[2] == "", "a run says it once"
    code, out, error = typed(capsys, *line, "--max-episode-steps", 50)
    assert (code, error) == (0, "")
    assert json.loads(out)["evaluations"][0]["length"] == 50
    for name in ("FrozenLake-v1", "multiadvisor/mo-TwoGoal-v0"):  # these have limits
        assert mad.make(f"{name}").note == ""
    assert mad.make("CliffWalking-v1", max_episode_steps=-1).adapter.env.spec.max_episode_steps is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train pac-boy --env-kwarg a=1", "--env-kwarg is for Gymnasium environments: pac-boy has its own flags"),
        ("train pac-boy --bins 3", "--bins is for Gymnasium environments"),
        ("check pac-boy --max-episode-steps 3", "--max-episode-steps is for Gymnasium environments"),
        ("train FrozenLake-v1 --is-slippery false", "are given as --env-kwarg is_slippery=VALUE"),
        ("train FrozenLake-v1 --step 3", "did you mean '--steps'?"),
        ("train FrozenLake-v1 --env-kwarg slippery", "is not of the form name=value"),
        ("train FrozenLake-v1 --env-kwarg a-b=1", "is not of the form name=value"),
        ("train FrozenLake-v1 --env-kwarg is_slipery=1", "did you mean 'is_slippery'?"),
        ("train FrozenLake-v1 --env-kwarg is_slippery=1 --env-kwarg is_slippery=0", "is given twice"),
        ("train FrozenLake-v1 --max-episode-steps 0", "max_episode_steps is 0"),
        ("train FrozenLake-v1 --max-episode-steps 9 --env-kwarg max_episode_steps=9", "is given twice"),
        ("train FrozenLake-v1 --bins 3", "bins are for real numbers, and the observation is Discrete(16)"),
        ("train MountainCar-v0 --bins 3", "bins '3' are for 1 numbers, but the observation is Box"),
        ("train MountainCar-v0 --bins 3,x", "bins have 'x': give COUNT or LOW:HIGH:COUNT"),
        ("train MountainCar-v0 --bins 3,1:2:3:4", "bins have '1:2:3:4'"),
        ("train MountainCar-v0 --bins 3,0", "in 0 bins"),
        ("train CartPole-v1 --bins 2,2,2,2", "number 1 of the observation has no range of its own"),
        ("train FrozenLake-v1 --env-kwarg advisors=3", "advisors are 3"),
        ("train FrozenLake-v1 --env-kwarg wrappers=[3]", "the wrapper 3 is no pair such as"),
        ('train FrozenLake-v1 --env-kwarg wrappers=[["RecordVideo",{}]]', "unknown wrapper 'RecordVideo'"),
        ('train FrozenLake-v1 --env-kwarg advisors=[{"name":"x","rewart":1}]', "unknown field of an advisor 'rewart'"),
        ('train FrozenLake-v1 --env-kwarg advisors=[{"name":"x","state":{"a":1}}]', "the state of advisor 'x'"),
    ],
)
def test_bad_input_is_one_line(capsys, line, words):
    refused(capsys, words, *line.split())


# ---- modules ---------------------------------------------------------------------------------------------------------
MODULE = """
import gymnasium, pathlib
pathlib.Path(__file__).with_name("ran").touch()
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
gymnasium.register("Planted-v0", lambda **options: FrozenLakeEnv(**options), max_episode_steps=20)
"""
TASK = "planted_lake:Planted-v0"


@pytest.mark.slow
def test_what_the_user_names_is_imported_and_nothing_else(tmp_path):
    """Each command is a process of its own, so that nothing is imported already."""
    (tmp_path / "planted_lake.py").write_text(MODULE)
    ran = tmp_path / "ran"

    def command(*arguments):
        ran.unlink(missing_ok=True)
        return forks.run(["-m", "multiadvisor", *arguments], tmp_path)

    assert command("train", TASK, *SHORT, "--env-kwarg", "is_slippery=false", "--out", "run").returncode == 0
    for reading in (("evaluate", "run", "--episodes", 2), ("explain", "run", "--step", 0),
                    ("explore", "run", "--export", "episode.html")):  # fmt: skip
        done = command(*reading)
        assert (done.returncode, len(done.stderr.splitlines()), ran.exists()) == (2, 1, False)
        assert f"'{TASK}' names a module to import, which no file may do: name it yourself, with --task" in done.stderr
        done = command(*reading, "--task", "os:Planted-v0")
        assert (done.returncode, ran.exists()) == (2, False)
        done = command(*reading, "--task", TASK)
        assert (done.returncode, ran.exists()) == (0, True), done.stderr
    line = ("train", TASK, *SHORT, "--env-kwarg", "is_slippery=false", "--out", "run", "--resume")
    assert command(*line).returncode == 0
