"""The command: its JSON contract, its help, and bad input in one line with exit code 2."""

import json
import subprocess
import sys

import pytest

from multiadvisor.cli import COMMANDS, main


def run(capsys, *arguments):
    code = main(list(arguments))
    out, error = capsys.readouterr()
    return code, out, error


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "a"
    short = ["--steps", "6000", "--eval-every", "2000", "--eval-episodes", "5"]
    assert main(["train", "pac-boy", *short, "--out", str(folder)]) == 0
    return folder


def test_train_json(capsys, tmp_path):
    flags = ["--planning", "empathic", "--gamma", "0.9", "--steps", "6000", "--eval-every", "2000"]
    flags += ["--eval-episodes", "5"]
    code, out, _ = run(capsys, "train", "pac-boy", *flags, "--seed", "4", "--json", "--out", str(tmp_path / "a"))
    result = json.loads(out)
    assert code == 0
    assert {"task", "planning", "gamma", "seed", "steps", "steps_per_second", "evaluations"} <= set(result)
    assert (result["task"], result["planning"], result["gamma"], result["seed"]) == ("pac-boy", "empathic", 0.9, 4)
    assert result["steps"] == 6000
    assert [set(e) for e in result["evaluations"]] == [
        {"steps", "score", "length", "terminated", "metrics", "advisors"}
    ] * 3
    assert [e["steps"] for e in result["evaluations"]] == [2000, 4000, 6000]


def test_evaluate_json(capsys, trained):
    code, out, _ = run(capsys, "evaluate", str(trained), "--episodes", "7", "--json")
    result = json.loads(out)
    assert code == 0
    assert {"episodes", "score", "length", "terminated", "metrics", "advisors"} <= set(result)
    assert result["episodes"] == 7
    assert len(result["advisors"]) == 77
    again = json.loads(run(capsys, "evaluate", str(trained), "--episodes", "7", "--json")[1])
    other = json.loads(run(capsys, "evaluate", str(trained), "--episodes", "7", "--seed", "1", "--json")[1])
    assert again == result != other


def test_resume_and_text_output(capsys, trained):
    short = ["--steps", "8000", "--eval-every", "2000", "--eval-episodes", "5"]
    code, out, _ = run(capsys, "train", "pac-boy", *short, "--out", str(trained), "--resume")
    assert code == 0
    assert "8,000 steps" in out


def test_text_outputs_are_readable(capsys, trained):
    assert "mean return of the advisors" in run(capsys, "evaluate", str(trained))[1]
    listing = run(capsys, "tasks")[1]
    assert "pac-boy" in listing
    assert "--rules" in listing
    assert json.loads(run(capsys, "tasks", "--json")[1])["pac-boy"]["options"]["rules"]["default"] == "paper"


@pytest.mark.slow
def test_check(capsys):
    code, out, _ = run(capsys, "check", "two-goal", "--json")
    assert code == 0
    assert json.loads(out)["ok"] is True


def test_train_without_ghosts_has_no_touches(capsys):
    flags = ["--no-ghosts", "--steps", "500", "--eval-every", "500", "--eval-episodes", "2", "--json"]
    code, out, _ = run(capsys, "train", "pac-boy", *flags)
    assert code == 0
    assert json.loads(out)["evaluations"][0]["metrics"] == {}


def test_train_a_gymnasium_environment(capsys, tmp_path):
    flags = ["--steps", "600", "--eval-every", "300", "--eval-episodes", "2", "--out", str(tmp_path / "a"), "--json"]
    code, out, _ = run(capsys, "train", "multiadvisor/mo-ThreeFruits-v0", *flags)
    assert code == 0
    assert len(json.loads(out)["evaluations"]) == 2
    code, out, _ = run(capsys, "evaluate", str(tmp_path / "a"), "--episodes", "3", "--json")
    assert (code, len(json.loads(out)["advisors"])) == (0, 3)


@pytest.mark.slow
def test_benchmark_kernel_json(capsys):
    code, out, _ = run(capsys, "benchmark", "kernel", "--rounds", "1", "--json")
    result = json.loads(out)
    assert code == 0
    for key in ("steps_per_second", "ratio_to_native"):
        assert set(result[key]) == {"egocentric", "agnostic", "empathic", "noisy"}
    assert result["identical_tables"]


@pytest.mark.slow
def test_reproduce(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "multiadvisor.studies.paper.dqn_clipped.available", lambda: False
    )  # as without the extra; faster
    code, out, _ = run(
        capsys, "reproduce", "pac-boy", "--seeds", "2", "--epochs", "2", "--workers", "0",
        "--out", str(tmp_path / "report"), "--json",
    )  # fmt: skip
    assert code == 0
    result = json.loads(out)
    rows = {row["setting"]: row for row in result["table"]}
    assert -90 < rows["random player"]["score"] < -70
    assert {"linear Q-learning", "empathic 0.9"} <= set(rows)
    assert result["machine"]["stages"]["tabular runs"]["steps_per_second"] > 0
    assert {"report.html", "report.md", "claims.json", "results.jsonl", "machine.json"} <= {
        path.name for path in (tmp_path / "report").iterdir()
    }


def test_reproduce_refuses_what_is_not_its_own(capsys, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    code, out, error = run(capsys, "reproduce", "pac-boy", "--out", str(tmp_path))
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert "holds no report" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


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
        ("train pac-boy --wandb", "unknown flag '--wandb': see multiadvisor train --help"),
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
        ("train pac-boy --seed 1.5", "invalid int value"),
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
        ("check two-goal --steps 0", "0 steps"),
        ("benchmark stairs", "invalid choice: 'stairs'"),
        ("reproduce --seeds 0", "0 seeds"),
        ("reproduce nothing", "unknown study 'nothing'"),
        ("reproduce --reading literal", "--reading is for value-function"),
        ("reproduce --out .", "holds no report"),
        ("reproduce --rules chess", "unknown rules 'chess'"),
        ("reproduce noise --epochs 0", "0 epochs"),
        ("reproduce value-function --rules hra", "--rules is for the paper's experiments"),
        ("reproduce value-function --reading odd", "unknown reading 'odd'"),
        ("train pac-boy --learner quadratic", "unknown learner 'quadratic'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, tmp_path, monkeypatch, arguments, message):
    (tmp_path / "something").write_text("of somebody's")
    monkeypatch.chdir(tmp_path)
    code, out, error = run(capsys, *arguments.split())
    assert code == 2
    assert out == ""
    assert len(error.splitlines()) == 1
    assert error.startswith("multiadvisor")
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == ["something"]


def test_negative_evaluations_are_refused(capsys, trained):
    code, _, error = run(capsys, "evaluate", str(trained), "--episodes", "0")
    assert (code, len(error.splitlines())) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    done = subprocess.run(
        [sys.executable, "-m", "multiadvisor", command, "--help"], capture_output=True, text=True, check=True
    )
    assert "example:" in done.stdout
    assert done.stderr == ""


def test_help_loads_nothing_heavy():
    """What makes --help answer in a tenth of a second: none of the slow modules is imported for it."""
    program = (
        "import sys\nfrom multiadvisor.cli import main\nmain(['--help'])\n"
        "print([m for m in ('numba', 'matplotlib', 'jax', 'rich', 'torch', 'safetensors') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(command in done.stdout for command in COMMANDS)
