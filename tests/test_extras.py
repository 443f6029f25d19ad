"""What is missing is known before anything starts, and named with a command that works."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from multiadvisor.cli import main
from multiadvisor.core import optional_dependencies

ROOT = Path(__file__).resolve().parents[1]
GRID = 'task = "two-goal"\nseeds = 1\n[schedule]\nsteps = 50\neval_every = 50\neval_episodes = 1\n'
COMMANDS = [
    ("tensorboard", "sweep grid.toml --workers 0 --tensorboard --out made"),
    ("ray", "sweep grid.toml --engine ray --out made"),
    ("search", "sweep ranges.toml --workers 0 --search optuna --out made"),
    ("deep", "sweep deep.toml --workers 0 --out made"),
    ("parquet", "sweep results nowhere --format parquet --out made"),
    ("plots", "sweep plot nowhere --out made.png"),
    ("deep", "train two-goal --learner dqn --steps 50 --eval-every 50 --out made"),
    ("plots", "solve three-fruits --out made.png"),
    ("plots", "explain nowhere --step 1 --out made.png"),
    ("explorer", "explore nowhere --no-browser"),
    ("plots", "reproduce --out made"),
    ("video", "reproduce --out made"),
    ("deep", "reproduce --out made"),
    ("plots", "reproduce value-function --out made"),
    ("deep", "reproduce value-function --out made"),
    ("mo", "benchmark gymnasium --rounds 1"),
    ("atari", "train ms-pacman --out made"),
    ("atari", "reproduce ms-pacman --out made"),
    ("video", "evaluate nowhere --video made.gif"),
]


@pytest.mark.parametrize(("extra", "command"), COMMANDS)
def test_a_missing_extra_is_named_before_anything_starts(extra, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(GRID)
    Path("deep.toml").write_text(GRID + '[learner]\nname = "dqn"\nhidden = [8]\n')
    Path("ranges.toml").write_text(GRID + "[settings]\ngamma = {low = 0.1, high = 0.9}\n")
    before = sorted(tmp_path.rglob("*"))
    for module in optional_dependencies.EXTRAS[extra].modules:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    assert main(command.split()) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert len(error.splitlines()) == 1
    assert f"install the extra {extra} with " in error
    assert f"{ROOT}[{extra}]" in error
    assert sorted(tmp_path.rglob("*")) == before, "nothing was begun"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hidden", "task", "words"),
    [
        ("mo_gymnasium", "mo-lunar-lander-v3", "can be made: environments of MO-Gymnasium need mo_gymnasium"),
        ("mo_gymnasium", "deep-sea-treasure-v0", "doesn't exist; and environments of MO-Gymnasium need mo_gymnasium"),
        ("Box2D", "LunarLander-v3", "can be made: environments of MO-Gymnasium need Box2D"),
    ],
)
def test_a_missing_mo_is_named_and_nothing_else_is_meant(hidden, task, words):
    """In a process of its own, as MO-Gymnasium registers its environments once and for all."""
    program = f"import sys; sys.modules[{hidden!r}] = None; from multiadvisor.cli import command; command()"
    command = [sys.executable, "-W", "ignore", "-c", program, "train", f"{task}", "--learner", "dqn"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert "install the extra mo with " in done.stderr
    assert "did you mean" not in done.stderr.lower()


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(optional_dependencies.EXTRAS) == set(project) - {"test", "docs"}
    documented = (
        (ROOT / "docs" / "installing.md").read_text().partition("| extra | adds | for |")[2].partition("\n\n")[0]
    )
    for extra in project:
        assert f"`{extra}`" in documented


def test_the_command_that_installs_is_that_of_this_checkout(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv" / "bin" / "python"))
    monkeypatch.chdir(ROOT)
    assert optional_dependencies.install("plots") == ".venv/bin/python -m pip install -e '.[plots]'"
    monkeypatch.chdir(tmp_path)
    assert optional_dependencies.install("plots") == f"{ROOT}/.venv/bin/python -m pip install -e '{ROOT}[plots]'"
    monkeypatch.setattr(optional_dependencies.shutil, "which", lambda name: sys.executable)
    assert optional_dependencies.install("plots") == f"python -m pip install -e '{ROOT}[plots]'"
    monkeypatch.setattr(
        optional_dependencies, "__file__", str(tmp_path / "site-packages" / "multiadvisor" / "extras.py")
    )
    assert optional_dependencies.install("plots") == "python -m pip install 'multiadvisor[plots]'", (
        "installed from a package"
    )


def test_what_is_there_but_broken_says_why():
    error = optional_dependencies.lacking("plots", ImportError("libfreetype.so is missing"))
    assert "figures need matplotlib (libfreetype.so is missing): install the extra plots with " in str(error)
