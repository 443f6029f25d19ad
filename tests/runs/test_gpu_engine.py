"""The GPU engine on lanes that the processor emulates: the same results as one run after the other, byte for byte."""

import sys

import pytest

from emulated_device import Emulated
from multiadvisor.errors import BadInput
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.engines import gpu_engine
from multiadvisor.runs.jobs import Job
from refusal import refused

SCHEDULE = {"steps": 900, "eval_every": 400, "eval_episodes": 3}


def job(task="three-fruits", **changes):
    return Job("train", {"task": task, "settings": {"seed": 1}, "schedule": SCHEDULE, **changes})


DIFFERENT = [
    job(),
    job(settings={"seed": 2, "planning": "egocentric", "gamma": 0.4}),
    job(settings={"seed": 3, "epsilon": 0.5, "alpha": 0.9, "alpha_half": 50}, weights={"fruit (0, 2)": 3.0}),
    job(schedule={**SCHEDULE, "eval_episodes": 0}),
]
REST = [job("Taxi-v4", schedule={**SCHEDULE, "steps": 30})]


@pytest.fixture
def emulated(monkeypatch):
    """There is a GPU, so it seems; the emulator, whose memory may be changed."""
    device = Emulated()
    monkeypatch.setattr(gpu_engine, "find_device", lambda: device)
    return device


def run(folder, jobs, engine="gpu", **more):
    return {one.id: result for one, result in zip(jobs, _values(folder, jobs, engine, more), strict=True)}


def _values(folder, jobs, engine, more):
    results = run_jobs(folder, jobs, engine=engine, workers=0, progress=False, **more)
    return [results[one] for one in jobs]


def test_results_are_those_of_one_run_after_the_other(tmp_path, emulated, capsys):
    """Those that lanes cannot take come back as well."""
    jobs = [*DIFFERENT, *REST]
    assert run(tmp_path / "gpu", jobs) == run(tmp_path / "local", jobs, "local")
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "launch" in line or "Taxi" in line] == said
    assert sum("three-fruits: 3 runs of" in line and line.endswith(": 1 launch") for line in said) == 1
    assert sum("three-fruits: 1 run of" in line for line in said) == 1  # without episodes
    assert len(said) == 3
    files = [
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("results/*")} for name in ("gpu", "local")
    ]
    assert files[0] == files[1]


def test_what_does_not_fit_goes_into_further_launches(tmp_path, emulated, capsys):
    jobs = [job(settings={"seed": seed}) for seed in range(5)]
    emulated.memory = 14_000
    found = run(tmp_path / "small", jobs)
    assert "three-fruits: 5 runs of 3 KiB, room for 0 MiB: 2 launches" in capsys.readouterr().err
    emulated.memory = 1000
    assert run(tmp_path / "none", jobs) == found
    assert "too little, the local engine does them" in capsys.readouterr().err


def test_without_a_gpu_a_line_says_so_and_the_local_engine_runs(tmp_path, monkeypatch, capsys):
    def nothing():
        raise BadInput("no CUDA GPU is found on this machine")

    monkeypatch.setattr(gpu_engine, "find_device", nothing)
    found = run(tmp_path / "gpu", DIFFERENT[:2])
    assert capsys.readouterr().err == "gpu: no CUDA GPU is found on this machine; the local engine does the runs\n"
    assert found == run(tmp_path / "local", DIFFERENT[:2], "local")


def test_without_numba_cuda_the_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("multiadvisor.runs.engines.cuda_device.find_spec", lambda name: None)
    monkeypatch.setattr("multiadvisor.core.optional_dependencies.find_spec", lambda name: None)
    refused("the engine gpu needs numba_cuda: install the extra gpu with", gpu_engine.find_device)


def test_a_world_that_cannot_be_compiled_there_runs_here(tmp_path, emulated, monkeypatch, capsys):
    def fails(function, loop):
        raise RuntimeError("no such function on this device")

    monkeypatch.setattr(emulated, "compile", fails)
    found = run(tmp_path / "gpu", DIFFERENT[:2])
    assert "three-fruits: RuntimeError: no such function on this device: the local engine goes on" in (
        capsys.readouterr().err
    )
    assert found == run(tmp_path / "local", DIFFERENT[:2], "local")


def test_a_run_that_fails_fails_alone(tmp_path, emulated, monkeypatch):
    real = gpu_engine._seen

    def broken(lane, episodes):
        if lane.run.settings.seed == 2:
            raise BadInput("a value is no longer finite")
        return real(lane, episodes)

    monkeypatch.setattr(gpu_engine, "_seen", broken)
    monkeypatch.setattr("multiadvisor.runs.training.evaluation_record", broken)  # where it is tried again
    results = run_jobs(tmp_path, DIFFERENT[:2], engine="gpu", workers=0, progress=False, allow_failures=True)
    assert list(results) == [DIFFERENT[0].id]
    assert list(results.failed) == [DIFFERENT[1].id]


def test_interrupted_in_a_launch_it_goes_on_to_the_same_bytes(tmp_path, emulated, monkeypatch):
    launches = []
    real = gpu_engine.LaneBatch.run

    def stopped(batch, steps):
        launches.append(steps)
        if len(launches) == 2:
            raise KeyboardInterrupt
        return real(batch, steps)

    monkeypatch.setattr(gpu_engine.LaneBatch, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "gpu", DIFFERENT[:2])
    assert run(tmp_path / "gpu", DIFFERENT[:2]) == run(tmp_path / "local", DIFFERENT[:2], "local")
    assert launches == [400, 400, 400, 400, 100]
    assert sys.exc_info() == (None, None, None)
