"""The Ray engine on real Ray: two raylets on this machine, one of them killed in the middle; a Ray of its own."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from rehearsal import executed, rehearsals

from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.engines.engine import Crew
from multiadvisor.runs.grid_sweep import run_sweep
from multiadvisor.runs.ledger import finished_ids, read_log
from multiadvisor.runs.sweep_grid import read_grid
from patience import PATIENCE
from refusal import refused

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'multiadvisor[ray]'"
)


def environment():
    """What Python finds here it finds there; no other cluster."""
    own = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    return {**own, "PYTHONWARNINGS": "ignore", "PYTHONPATH": os.pathsep.join(sys.path)}


CLUSTER = """
import os, signal, sys, threading, time, json
from pathlib import Path
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.update(RAY_health_check_initial_delay_ms="1000", RAY_health_check_period_ms="500",
                  RAY_health_check_timeout_ms="1000", RAY_health_check_failure_threshold="3")  # else half a minute
import ray
from ray.cluster_utils import Cluster
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job
from rehearsal import rehearsals

folder, diary = Path(sys.argv[1]), Path(os.environ["MULTIADVISOR_REHEARSAL_DIARY"])
node = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=node)
second = cluster.add_node(**node)
cluster.wait_for_nodes()

def kill_one():
    # as soon as both nodes have workers that have done something, and are at something else
    counts = {}
    while sum(count >= 2 for count in counts.values()) < 2:
        time.sleep(0.05)
        pids = [line.split()[1] for line in diary.read_text().splitlines()] if diary.exists() else []
        counts = {pid: pids.count(pid) for pid in pids}
    time.sleep(0.2)
    # a machine that dies takes everything with it; here its workers would outlive their raylet for a moment
    [raylet] = [entry.process.pid for entry in second.all_processes["raylet"]]
    pids = [child for path in Path(f"/proc/{raylet}/task").glob("*/children") for child in path.read_text().split()]
    cluster.remove_node(second, allow_graceful=False)
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)

jobs = rehearsals(16, seconds=0.4, steps=4)
faults = [{"number": 100, "then": "kill", "faults": 1}, {"number": 101, "then": "raise"},
          {"number": 102, "then": "kill"}, {"number": 103, "then": "hang", "faults": 1}]
faulty = [Job("rehearsal", fault) for fault in faults]
thread = threading.Thread(target=kill_one)
thread.start()
first = run_jobs(folder, jobs, engine="ray", address=cluster.address)
thread.join()
more = {"engine": "ray", "address": cluster.address, "allow_failures": True}
run_jobs(folder, faulty[3:], lease=5.0, **more)  # whether it hangs only its lease can tell, and a busy machine is slow
second = run_jobs(folder, [*jobs, *faulty], **more)
from multiadvisor.cli import main
code = main(["sweep", sys.argv[2], "--out", sys.argv[3], "--engine", "ray", "--address", cluster.address, "--json"])
cluster.shutdown()
print(json.dumps({"first": len(first), "failed": second.failed, "done": len(second), "code": code}))
"""


@pytest.mark.slow
def test_a_node_of_the_cluster_dies_in_the_middle(tmp_path):
    """19 jobs and 4 faulty ones on two nodes of one core each; results are those of the local engine, byte for byte."""
    diary, grid = tmp_path / "diary", tmp_path / "grid.toml"
    grid.write_text('task = "bridge"\nseeds = 3\n[schedule]\nsteps = 100\neval_every = 50\neval_episodes = 1\n')
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, str(tmp_path / "a"), str(grid), str(tmp_path / "swept")],
        env={**environment(), "MULTIADVISOR_REHEARSAL_DIARY": str(diary)},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["first"] == 16
    assert report["code"] == 0
    by_hand = run_sweep(tmp_path / "local", read_grid(grid), Crew(workers=1))
    for job in by_hand.jobs:
        assert by_hand.path(job).read_bytes() == (tmp_path / "swept" / "results" / f"{job.id}.json").read_bytes()
    numbers = [k for k in executed(diary) if k < 100]
    assert len(numbers) > 16, "the node took a running job with it, which ran again"
    assert set(numbers) == set(range(16)), "nothing was left out"
    # how often a fault costs a try is not ours to say: in a task that it shared with others nobody could tell whose it
    # was, and that was no try; a worker that Ray itself lost, or that was too slow to start, costs one more
    log = read_log(tmp_path / "a")
    assert sorted((log[name].tries, log[name].error.splitlines()[-1][:40]) for name in report["failed"]) == [
        (3, "RuntimeError: as rehearsed"), (3, "the worker of the Ray task died: The wor"),
    ]  # fmt: skip
    assert len(finished_ids(tmp_path / "a")) == report["done"] == 18, "two of the faulty ones, too"
    local = run_jobs(tmp_path / "b", rehearsals(16, seconds=0.4, steps=4), workers=2)
    for job in local.jobs:
        assert local.path(job).read_bytes() == (tmp_path / "a" / "results" / f"{job.id}.json").read_bytes()


OWN = """
import json, os, sys
from pathlib import Path
from multiadvisor.runs import driver
from multiadvisor.runs.engines import engine as engines, ray_engine
from rehearsal import rehearsals

def listening():
    sockets = {}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                sockets[f"socket:[{fields[9]}]"] = fields[1].split(":")[0]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            if (b"raylet" in words or b"gcs_server" in words or b"ray::" in words) and session in words + b"ray::":
                found += [sockets[link] for link in map(os.readlink, (process / "fd").iterdir()) if link in sockets]
        except OSError:
            pass
    return found

engine = ray_engine.RayEngine(engines.Crew(2), 1)
session = os.path.basename(ray_engine.ray._private.worker._global_node.get_session_dir_path()).encode()
print(json.dumps(sorted(set(listening()))))
results = driver.run_jobs(Path(sys.argv[1]), rehearsals(300), engine="ray", workers=2)
print(sum(result["number"] for result in results.values()))
engine.stop()
"""


@pytest.mark.slow
def test_a_ray_of_its_own_listens_on_loopback_only(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", OWN, str(tmp_path / "a")], env=environment(),
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    *_, places, total = done.stdout.splitlines()
    assert json.loads(places), "nothing was found to listen: the test looks at the wrong processes"
    assert set(json.loads(places)) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert int(total) == sum(range(300))


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_one_line(tmp_path):
    (tmp_path / "grid.toml").write_text('task = "bridge"\n[schedule]\nsteps = 10\neval_every = 10\neval_episodes = 1\n')
    line = [sys.executable, "-m", "multiadvisor", "sweep", "grid.toml", "--engine", "ray", "--address", "nonsense"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "cannot reach the Ray cluster at 'nonsense'" in done.stderr


def test_without_ray_the_engine_says_what_to_install(tmp_path, monkeypatch):
    from multiadvisor.runs.engines import ray_engine

    monkeypatch.setitem(sys.modules, "ray", None)
    refused("install the extra ray", run_jobs, tmp_path / "a", rehearsals(1), engine="ray")
    assert ray_engine.ray is None
