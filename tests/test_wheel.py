"""The wheel is small and whole: unpacked into a folder, it learns and shows what it learned far from the checkout."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from test_documents import ROOT

PROGRAM = """\
import multiadvisor as mad
from multiadvisor.cli import main

agent = mad.MultiAdvisor(mad.make("three-fruits"), planning="empathic", gamma=0.9, seed=0)
print(agent.learn(1_000, progress=False).evaluate(episodes=8))
agent.save("runs/first")
print(mad.load("runs/first").steps, mad.__file__)
print(mad.make("pac-boy").n, main(["explore", "runs/first", "--export", "episode.html"]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling, which builds the wheel, is not installed: it is in the extra test")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
               "--disable-pip-version-check", "--wheel-dir", str(folder), str(ROOT)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [file] = folder.glob("multiadvisor-*.whl")
    return file


@pytest.mark.slow
def test_it_holds_the_page_the_c_file_and_nothing_large(wheel: Path) -> None:
    assert wheel.stat().st_size < 3_000_000
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    page = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("static/*") if path.is_file()}
    assert page
    assert page <= names
    shipped = "multiadvisor/studies/paper/dqn-clipped.jsonl"
    assert {"multiadvisor/py.typed", "multiadvisor/envs/worlds/maze.py", shipped} <= names
    assert not any(name.startswith(("tests/", "docs/")) for name in names)


@pytest.mark.slow
def test_it_works_far_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONWARNINGS": "ignore", "NUMBA_OPT": "0",
                   "NUMBA_CACHE_DIR": str(tmp_path / "cache")}  # fmt: skip

    def run(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], cwd=elsewhere, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    played, loaded, exported, made = run("-c", PROGRAM).splitlines()
    assert played == "8 episodes: score 3.00 [3.00, 3.00], 10.0 steps, 100% terminated"
    assert loaded == f"1000 {site / 'multiadvisor' / '__init__.py'}"
    assert exported.startswith("episode.html: ")
    assert made == "77 0"
    assert "--export FILE" in run("-m", "multiadvisor", "explore", "--help")
    assert b"three-fruits" in (elsewhere / "episode.html").read_bytes()
