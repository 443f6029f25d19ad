"""A little of `make chaos`, with fixed seeds."""

import os
import subprocess
import sys
from pathlib import Path

import chaos
import forging
import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_imported")]


def test_driver_and_workers_killed_again_and_again(tmp_path):
    grid = chaos.STORM.replace("1_000_000", "300_000")
    report = chaos.kill_storm(tmp_path, grid, drivers=2, workers=4, seed=1, longest=0.3)
    assert report["runs"] >= 6
    assert (report["drivers"], report["workers"]) == (2, 4)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_inputs_end_with_0_or_2_and_one_line(tmp_path, seed):
    seen = chaos.mutated_inputs(tmp_path, 250, seed)
    assert sum(seen.values()) == 250
    assert seen["grid: exit 2"] > 10


def test_flipped_bits_are_refused(tmp_path):
    assert sum(chaos.bit_flips(tmp_path, 300, 0).values()) == 300


def test_forged_checkpoints_do_no_harm(tmp_path):
    seen = forging.forged_checkpoints(tmp_path, 60, 0)
    assert sum(count for name, count in seen.items() if name.endswith((": fine", ": refused"))) == 60
    assert sum(count for name, count in seen.items() if name.endswith(": refused")) > 30


def test_make_chaos_finds_what_its_program_imports():
    assert "\tPYTHONPATH=tests $(BIN)/python tests/runs/chaos.py" in (ROOT / "Makefile").read_text()
    paths = ["tests", *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, 'tests/runs'); import chaos"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, check=True)
