"""The command: its JSON contract, its help, and bad input in one line with exit code 2."""

import subprocess
import sys

import pytest

from command_line import printed, refused, typed
from multiadvisor.cli import COMMANDS, main

SHORT = ("--eval-every", "2000", "--eval-episodes", "5")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "a"
    assert main(["train", "pac-boy", "--steps", "6000", *SHORT, "--out", str(folder)]) == 0
    return folder


def test_train_json(capsys, tmp_path):
    flags = ["--planning", "empathic", "--gamma", "0.9", "--steps", "6000", *SHORT, "--seed", "4"]
    result = printed(capsys, "train", "pac-boy", *flags, "--out", tmp_path / "a")
    assert {"task", "planning", "gamma", "seed", "steps", "steps_per_second", "evaluations"} <= set(result)
    assert (result["task"], result["planning"], result["gamma"], result["seed"]) == ("pac-boy", "empathic", 0.9, 4)
    assert result["steps"] == 6000
    keys = {"steps", "score", "length", "terminated", "metrics", "advisors"}
    assert [set(e) for e in result["evaluations"]] == [keys] * 3
    assert [e["steps"] for e in result["evaluations"]] == [2000, 4000, 6000]


def test_evaluate_json(capsys, trained):
    result, again = (printed(capsys, "evaluate", trained, "--episodes", "7") for _ in range(2))
    assert {"episodes", "score", "length", "terminated", "metrics", "advisors"} <= set(result)
    assert result["episodes"] == 7
    assert len(result["advisors"]) == 77
    assert again == result != printed(capsys, "evaluate", trained, "--episodes", "7", "--seed", "1")
    refused(capsys, "episodes is 0", "evaluate", trained, "--episodes", "0")


def test_resume_and_text_output(capsys, trained):
    code, out, _ = typed(capsys, "train", "pac-boy", "--steps", "8000", *SHORT, "--out", trained, "--resume")
    assert code == 0
    assert "8,000 steps" in out
    assert "mean return of the advisors" in typed(capsys, "evaluate", trained)[1]
    listing = typed(capsys, "tasks")[1]
    assert "pac-boy" in listing
    assert "--rules" in listing
    assert printed(capsys, "tasks")["pac-boy"]["options"]["rules"]["default"] == "paper"


def test_train_without_ghosts_has_no_touches(capsys):
    flags = ["--no-ghosts", "--steps", "500", "--eval-every", "500", "--eval-episodes", "2"]
    assert printed(capsys, "train", "pac-boy", *flags)["evaluations"][0]["metrics"] == {}


@pytest.mark.slow
def test_benchmark_kernel_json(capsys):
    result = printed(capsys, "benchmark", "kernel", "--rounds", "1")
    for key in ("steps_per_second", "ratio_to_native"):
        assert set(result[key]) == {"egocentric", "agnostic", "empathic", "noisy"}
    assert result["identical_tables"]


@pytest.mark.slow
def test_reproduce(capsys, tmp_path):
    plan = ["--seeds", "2", "--epochs", "2", "--workers", "0", "--out", tmp_path / "report"]
    result = printed(capsys, "reproduce", "pac-boy", *plan)
    rows = {row["setting"]: row for row in result["table"]}
    assert -90 < rows["random player"]["score"] < -70
    assert {"linear Q-learning", "empathic 0.9", "DQN-clipped"} <= set(rows)
    assert result["machine"]["stages"]["tabular runs"]["steps_per_second"] > 0
    assert {"report.html", "report.md", "claims.json", "results.jsonl", "machine.json"} <= {
        path.name for path in (tmp_path / "report").iterdir()
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("sing", "unknown command 'sing'"),
        ("trian", "did you mean 'train'"),
        ("train", "required: TASK"),
        ("train pacboy", "did you mean 'pac-boy'"),
        ("train pac-boy --planning selfish", "unknown planning 'selfish'"),
        ("train pac-boy --plannin empathic", "did you mean '--planning'"),
        ("train pac-boy --gama 0.3", "did you mean '--gamma'"),
        ("train pac-boy --rhythm 3", "unknown flag '--rhythm': see multiadvisor train --help"),
        (
            "train pac-boy --learner dqn --hidden 64,,64",
            "'64,,64' is not a list of integers separated by commas, such as 64,64",
        ),
        ("train pac-boy --weights fruits=1,,ghosts=2", "'fruits=1,,ghosts=2' is not of the form"),
        ("solve three-fruits --out x.gif", "a figure is saved as PNG and SVG, not as .gif: name it x.png"),
        ("explain nowhere --step 1 --out x.pdf", "not as .pdf: name it x.png"),
        ("sweep plot nowhere --out x.JPG", "not as .JPG: name it x.png"),
        ("train pac-boy --gamma 1.5", "gamma is 1.5"),
        ("train pac-boy --gamma -0.1", "gamma is -0.1"),
        ("train pac-boy --gamma nan", "gamma is nan"),
        ("train pac-boy --gamma 1e999", "gamma is inf"),
        ("train pac-boy --gamma high", "invalid float value: 'high'"),
        ("train pac-boy --seed -3", "seed is -3"),
        ("train pac-boy --seed 1.5", "is not an integer"),
        ("train pac-boy --steps 0", "steps is 0"),
        ("train pac-boy --rules chess", "unknown rules 'chess'"),
        ("train pac-boy --rule hra", "did you mean '--rules'"),
        ("train pac-boy --maze no-such-file.txt", "No such file"),
        ("train pac-boy extra", "not expected here"),
        ("train three-fruits --width 3", "unknown flag '--width'"),
        ("train bridge --learner dqn --buffer-size 100000000000000", "give an integer of at most"),
        ("train bridge --learner dqn --n-envs 100000000000", "envs is 100000000000: give an integer of at most 100000"),
        ("train bridge --learner dqn --eval-episodes 1000000000000", "eval_episodes is 1000000000000: give an integer"),
        ("train bridge --seed 99999999999999999999", "give an integer of at most 9223372036854775807"),
        ("train bridge --resume", "name its folder"),
        ("train bridge --weights self=1", "no advisor or group is called 'self'"),
        ("train bridge --weights =1", "has a name twice or none at all"),
        ("train pac-boy --weights ghosts=1,ghosts=5", "has a name twice or none at all"),
        ("train fishwood-v0 --learner dqn --components fish,", "give a list of names"),
        ("train fishwood-v0 --learner dqn --components fish,fish", "two advisors are called 'fish'"),
        ("train gymnasium:no_such_module:Foo-v0", "cannot be made: ModuleNotFoundError"),
        ("train pac-boy --learner dqn --planning estimate", "is for tables"),
        ("train pac-boy --learner linear --planning estimate", "linear Q-learning has none"),
        ("train NoSuch-v0", "no environment 'NoSuch-v0'"),
        ("train Pendulum-v1 --learner linear", "is for a finite choice of actions"),
        ("train pac-boy --out .", "holds no run"),
        ("evaluate no-such-run", "no run in 'no-such-run'"),
        ("evaluate", "required: RUN"),
        ("evaluate . --episodes 3", "no run in '.'"),
        ("check nothing", "unknown task 'nothing'"),
        ("check two-goal --steps 0", "steps is 0"),
        ("benchmark stairs", "invalid choice: 'stairs'"),
        ("reproduce --seeds 0", "seeds is 0"),
        ("reproduce nothing", "unknown study 'nothing'"),
        ("reproduce --reading literal", "--reading is for value-function"),
        ("reproduce --out .", "holds no report"),
        ("reproduce --rules chess", "unknown rules 'chess'"),
        ("reproduce noise --epochs 0", "epochs is 0"),
        ("reproduce value-function --rules hra", "--rules is for the paper's experiments"),
        ("reproduce value-function --reading odd", "unknown reading 'odd'"),
        ("train pac-boy --learner quadratic", "unknown learner 'quadratic'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, tmp_path, monkeypatch, arguments, message):
    (tmp_path / "something").write_text("of somebody's")
    monkeypatch.chdir(tmp_path)
    assert refused(capsys, message, *arguments.split()).startswith("multiadvisor")
    assert [path.name for path in tmp_path.iterdir()] == ["something"]


def test_help_loads_nothing_heavy():
    """What makes --help answer in a tenth of a second: none of the slow modules is imported for it."""
    program = (
        "import sys\nfrom multiadvisor.cli import main\nmain(['--help'])\n"
        "print([m for m in ('numba', 'matplotlib', 'jax', 'rich', 'torch', 'safetensors') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(command in done.stdout for command in COMMANDS)
