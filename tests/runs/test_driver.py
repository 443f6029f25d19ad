"""run_jobs: every job once, whatever happens to workers, driver, disk and clock."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import rehearsal
from forging import flipped
from rehearsal import executed, rehearsals

import multiadvisor as mad
from multiadvisor.runs import driver
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.engines.engine import Event
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.ledger import driver_of, finished_ids, open_ledger, read_log, read_running
from multiadvisor.storage import files
from patience import PATIENCE
from processes import alive, children, environment, wait_for
from refusal import refused


def starts(folder):
    """How often each job was begun."""
    return [one.starts for one in read_log(folder).values()]


@pytest.fixture
def executions(tmp_path, monkeypatch):
    path = tmp_path / "diary"
    monkeypatch.setenv("MULTIADVISOR_REHEARSAL_DIARY", str(path))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_every_job_once_and_in_order(tmp_path, executions, workers):
    jobs = rehearsals(40)
    results = run_jobs(tmp_path / "a", jobs, workers=workers)
    assert [results[job]["square"] for job in jobs] == [k * k for k in range(40)]
    assert list(results) == [job.id for job in jobs]
    assert sorted(executed(executions)) == list(range(40))
    assert finished_ids(tmp_path / "a") == set(results)
    assert all(one.done and one.starts == 1 for one in read_log(tmp_path / "a").values())
    assert not list((tmp_path / "a").rglob("*.part"))


@pytest.mark.slow
def test_only_what_is_missing_runs(tmp_path, executions):
    first = run_jobs(tmp_path / "a", rehearsals(5) * 3, workers=1)
    assert len(executed(executions)) == 5, "the same job twice is one"
    before = {path: path.read_bytes() for path in map(first.path, first.jobs)}
    assert len(run_jobs(tmp_path / "a", rehearsals(8), workers=1)) == 8
    assert sorted(executed(executions)) == list(range(8))
    assert before == {path: path.read_bytes() for path in before}
    (tmp_path / "a" / "jobs.log").unlink()
    next(iter(before)).unlink()
    assert len(run_jobs(tmp_path / "a", rehearsals(8), workers=1)) == 8
    assert len(executed(executions)) == 9, "a lost log costs nothing, a lost result is computed"


def test_what_a_killed_driver_left_of_a_finished_job_is_put_away(tmp_path):
    jobs = rehearsals(2)
    run_jobs(tmp_path / "a", jobs, workers=0)
    scratch = tmp_path / "a" / "scratch"
    for name in (jobs[0].id, "f" * 16):
        (scratch / name).mkdir(parents=True)
        (scratch / name / "agent.json").write_text("{}")
    run_jobs(tmp_path / "a", jobs, workers=0)
    assert [path.name for path in scratch.iterdir()] == ["f" * 16], "what is not known to be finished stays"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("then", "words"),
    [("raise", "RuntimeError: as rehearsed"), ("kill", "killed by SIGKILL"), ("exit", "exit code 3")],
)
def test_a_job_that_always_crashes_fails_after_three_tries_and_the_others_finish(tmp_path, executions, then, words):
    jobs = rehearsals(47)
    bad = Job("rehearsal", {"number": 1000, "then": then})
    with pytest.raises(mad.BadInput, match=words) as caught:
        run_jobs(tmp_path / "a", [*jobs[:20], bad, *jobs[20:]], workers=2)
    assert bad.id in str(caught.value)
    log = read_log(tmp_path / "a")
    assert (log[bad.id].done, log[bad.id].tries) == (False, 3)
    assert words in log[bad.id].error
    assert finished_ids(tmp_path / "a") == {job.id for job in jobs}
    assert executed(executions).count(1000) == 3
    assert all(executed(executions).count(k) == 1 for k in range(47))
    if then == "raise":
        results = run_jobs(tmp_path / "a", [*jobs, bad], workers=2, allow_failures=True)
        assert len(results) == 47
        assert list(results.failed) == [bad.id]
        assert executed(executions).count(1000) == 6, "calling again tries it anew"


@pytest.mark.slow
def test_a_hung_worker_is_killed_and_its_job_tried_again_as_after_two_faults(tmp_path):
    faulty = [{"number": 8, "then": "kill", "faults": 2}, {"number": 9, "then": "hang", "faults": 1}]
    jobs = [*rehearsals(4, seconds=0.3, steps=6), *(Job("rehearsal", fault) for fault in faulty)]
    assert len(run_jobs(tmp_path / "a", jobs, workers=2, lease=4.0)) == 6
    log = read_log(tmp_path / "a")
    assert [log[job.id].starts for job in jobs] == [1, 1, 1, 1, 3, 2]


@pytest.mark.slow
def test_a_slow_job_that_gives_signs_of_life_is_left_alone(tmp_path):
    jobs = rehearsals(1, seconds=4.5, steps=15)
    assert len(run_jobs(tmp_path / "a", jobs, workers=1, lease=3.0)) == 1
    assert starts(tmp_path / "a") == [1]


class LosesNodes:
    """An engine whose machine dies as often as it is told to, with the job begun; the one after that works."""

    def __init__(self, losses):
        self.losses, self.orders, self.killed = losses, [], []

    def __call__(self, crew, jobs):
        return self

    def take(self, waiting, draw):
        self.orders += [draw() for _ in range(waiting)]

    def poll(self, seconds):
        if not self.orders:
            return []
        order = self.orders.pop(0)
        self.losses -= 1
        time.sleep(0.05)
        last = Event("done", order.id, result={"square": 0}) if self.losses < 0 else Event("returned", order.id)
        return [Event("begun", order.id), last]

    def kill(self, job):
        self.killed.append(job)

    def stop(self):
        pass


def test_a_job_whose_machine_died_has_not_been_tried_and_is_not_watched_while_it_waits(tmp_path, monkeypatch):
    engine = LosesNodes(8)
    monkeypatch.setattr(driver, "engine_class", lambda crew: engine)
    jobs = rehearsals(3)
    assert len(run_jobs(tmp_path / "a", jobs, lease=0.12)) == 3, "none has failed, and some were begun four times"
    assert sum(starts(tmp_path / "a")) == 11
    assert engine.killed == [], "nobody is silent who does not run"


def test_numbers_that_are_not_finite_are_no_result(tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsal, "rehearse", lambda config, folder, tell: {"x": float("nan")})
    refused("not JSON compliant", run_jobs, tmp_path / "a", rehearsals(1), workers=0)
    assert not list((tmp_path / "a" / "results").iterdir())


# ---- drivers ---------------------------------------------------------------------------------------------------------
PROGRAM = """
import sys
from pathlib import Path
from multiadvisor.runs.driver import run_jobs
from rehearsal import rehearsals
jobs = rehearsals({count}, seconds={seconds}, steps=4)
print("begun", flush=True)
run_jobs(Path({folder!r}), jobs, workers=2, lease={lease})
"""


def drive(folder, count=48, seconds=0.05, lease=None):
    program = PROGRAM.format(folder=str(folder), count=count, seconds=seconds, lease=lease)
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )


@pytest.mark.slow
def test_a_second_driver_is_told_who_holds_the_folder(tmp_path):
    folder = tmp_path / "a"
    first = drive(folder, 1, 2 * PATIENCE)
    wait_for(lambda: f"process {first.pid}" in str(driver_of(folder)))
    try:
        refused(rf"in use by process {first.pid} on {os.uname().nodename}", run_jobs, folder, rehearsals(1), workers=0)
        wait_for(lambda: read_running(folder))
        [worker] = children(first.pid)
    finally:
        first.kill()
        first.communicate()
    assert driver_of(folder) is None
    wait_for(lambda: not alive(worker))  # long before it would have something to say: nobody is left behind
    assert len(run_jobs(folder, rehearsals(1), workers=0)) == 1


def test_ctrl_c_while_the_disk_is_slow_leaves_nothing_running(tmp_path, monkeypatch):
    """Pressed while a batch of results is waited for: they are done, and the ledger says so."""
    wait, calls = driver.wait, []

    def interrupted(futures):
        calls.append(futures)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return wait(futures)

    monkeypatch.setattr(driver, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(tmp_path, [Job("rehearsal", {"number": k}) for k in range(3)], workers=0)
    log = read_log(tmp_path)
    assert finished_ids(tmp_path) == {name for name, one in log.items() if one.done} != set()
    assert not (tmp_path / "running.json").exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_leaves_no_worker(tmp_path):
    folder = tmp_path / "a"
    process = drive(folder, 400, 0.1)
    wait_for(lambda: len(list((folder / "results").glob("*.json"))) > 3)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=PATIENCE)
    assert error.strip().splitlines()[-1] == "KeyboardInterrupt"
    assert len(workers) == 2
    wait_for(lambda: not any(map(alive, workers)))
    assert len(finished_ids(folder)) == sum(one.done for one in read_log(folder).values()) < 400
    assert not read_running(folder)


def test_workers_that_cannot_start_are_an_error_and_no_loop(tmp_path, monkeypatch):
    monkeypatch.setattr("multiadvisor.runs.child_process.environment", lambda: {"PYTHONHOME": "/nowhere"})
    refused("workers die before they start", run_jobs, tmp_path / "a", rehearsals(3), workers=2)


# ---- disks and clocks ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("at", [1, 2, 3, 5])
def test_a_full_disk_leaves_the_old_state_or_the_new_one(tmp_path, monkeypatch, at):
    """The at-th fsync finds no space: nothing half-written counts, and calling again finishes."""
    folder, calls, real = tmp_path / "a", [], os.fsync

    def full(handle):
        calls.append(handle)
        if len(calls) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(files.os, "fsync", full)
    refused("No space left on device", run_jobs, folder, rehearsals(6), workers=0)
    monkeypatch.undo()
    assert {name for name, one in read_log(folder).items() if one.done} <= finished_ids(folder)
    assert not list(folder.rglob("*.part"))
    assert len(run_jobs(folder, rehearsals(6), workers=0)) == 6


@pytest.mark.slow
def test_a_file_size_limit_stops_a_real_driver_in_one_line(tmp_path):
    """Not a mock: the kernel refuses to let the log grow."""
    program = PROGRAM.format(folder=str(tmp_path / "a"), count=400, seconds=0.0, lease=None)
    limited = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + program.replace(
        "run_jobs(", "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\nrun_jobs("
    )
    done = subprocess.run(
        [sys.executable, "-c", limited], env=environment(), capture_output=True, text=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "multiadvisor.errors.BadInput: cannot write" in done.stderr.strip().splitlines()[-1]
    results = run_jobs(tmp_path / "a", rehearsals(400, seconds=0.0, steps=4), workers=1)
    assert [result["number"] for result in results.values()] == list(range(400))


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("mine")
    refused("is a file", run_jobs, tmp_path / "file", rehearsals(1))
    refused("cannot write", run_jobs, Path("/proc/nowhere"), rehearsals(1))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "precious.txt").write_text("mine")
    refused("holds no jobs", run_jobs, tmp_path / "b", rehearsals(1))


@pytest.mark.slow
def test_a_clock_that_runs_backwards_does_no_harm(tmp_path, monkeypatch):
    now = [time.time()]

    def backwards():
        now[0] -= 1e6
        return now[0]

    monkeypatch.setattr(time, "time", backwards)
    assert len(run_jobs(tmp_path / "a", rehearsals(8, seconds=0.2, steps=4), workers=2, lease=10.0)) == 8
    assert set(starts(tmp_path / "a")) == {1}
    for path in (tmp_path / "a").rglob("*"):
        os.utime(path, (2e10, 2e10))  # files from the future
    assert len(run_jobs(tmp_path / "a", rehearsals(9, seconds=0.2, steps=4), workers=2)) == 9


@pytest.mark.slow
@pytest.mark.parametrize("everybody", [False, True])
def test_a_driver_that_slept_does_not_take_its_workers_for_hung(tmp_path, everybody):
    """The driver alone is stopped for longer than the lease; or all of them, as when a laptop is closed."""
    folder = tmp_path / "a"
    process = drive(folder, 2, 2.0, lease=3.0)
    wait_for(lambda: read_running(folder))
    stopped = [process.pid, *(children(process.pid) if everybody else [])]
    assert len(stopped) == (3 if everybody else 1)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in stopped:
            os.kill(pid, number)
        time.sleep(3.6 if number == signal.SIGSTOP else 0.0)
    process.communicate(timeout=PATIENCE)
    assert [(one.done, one.starts) for one in read_log(folder).values()] == [(True, 1)] * 2


# ---- damage ----------------------------------------------------------------------------------------------------------
def test_every_flipped_bit_of_a_result_is_refused(tmp_path):
    results = run_jobs(tmp_path / "a", rehearsals(1), workers=0)
    path = results.path(results.jobs[0])
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        path.write_bytes(flipped(whole, bit))
        with pytest.raises(mad.BadInput, match=r"changed|upgrade|no result|what made it") as caught:
            results[results.jobs[0]]
        assert path.name in str(caught.value)
    path.write_bytes(whole)
    assert results[results.jobs[0]]["number"] == 0


def test_flipped_bits_of_the_log_cost_what_one_line_said(tmp_path):
    run_jobs(tmp_path / "a", rehearsals(30), workers=0)
    path, generator = tmp_path / "a" / "jobs.log", random.Random(1)
    whole, good = path.read_bytes(), read_log(tmp_path / "a")
    for _ in range(400):
        path.write_bytes(flipped(whole, generator.randrange(8 * len(whole))))
        found = read_log(tmp_path / "a")
        assert sum(found.get(name) != one for name, one in good.items()) <= 2  # an end that is lost joins two lines
        assert {one.seconds for one in found.values()} <= {0.0, *(one.seconds for one in good.values())}
    assert len(run_jobs(tmp_path / "a", rehearsals(30), workers=0)) == 30


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_a_torn_tail_of_the_log_costs_nothing(tmp_path, executions, share):
    """Cut anywhere, as after a power cut: it is older, and the results make up for it."""
    run_jobs(tmp_path / "a", rehearsals(30), workers=0)
    log = tmp_path / "a" / "jobs.log"
    log.write_bytes(log.read_bytes()[: int(share * log.stat().st_size)])
    assert len(run_jobs(tmp_path / "a", rehearsals(31), workers=0)) == 31
    assert len(executed(executions)) == 31
    assert len(read_log(tmp_path / "a")) >= 1 + int(share * 29)


def test_a_result_that_no_log_knows_is_looked_at_before_it_counts(tmp_path):
    results = run_jobs(tmp_path / "a", rehearsals(1), workers=0)
    path = results.path(results.jobs[0])
    path.write_bytes(path.read_bytes()[:-9])
    (tmp_path / "a" / "jobs.log").unlink()
    refused(f"{path.name}.* is damaged or was changed", run_jobs, tmp_path / "a", rehearsals(1), workers=0)


def test_the_lock_is_held_against_this_very_process_too(tmp_path):
    caught = []

    def second():
        try:
            run_jobs(tmp_path / "a", rehearsals(1), workers=0)
        except mad.BadInput as error:
            caught.append(str(error))

    with open_ledger(tmp_path / "a"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert f"process {os.getpid()}" in caught[0]
