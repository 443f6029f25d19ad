"""The Ray engine on real Ray: two raylets on this machine, one of them killed in the middle; a Ray of its own."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.grid_sweep import run_sweep
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.ledger import read_rows
from multiadvisor.runs.sweep_grid import read_grid
from patience import PATIENCE

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None or importlib.util.find_spec("ray.cluster_utils") is None,
    reason="Ray is not installed: pip install 'multiadvisor[ray]'",
)

CLUSTER = """
import os, signal, sys, threading, time, json
from pathlib import Path
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from ray.cluster_utils import Cluster
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job

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

jobs = [Job("rehearsal", {"number": k, "seconds": 0.6, "steps": 6}) for k in range(20)]
schedule = {"epochs": 2, "transitions": 200, "episodes": 2}
train = [Job("train", {"task": "three-fruits", "settings": {"seed": s}, "schedule": schedule}) for s in range(4)]
faults = [{"number": 100, "then": "kill", "faults": 1}, {"number": 101, "then": "raise"},
          {"number": 102, "then": "kill"}, {"number": 103, "then": "hang", "faults": 1}]
faulty = [Job("rehearsal", fault) for fault in faults]
thread = threading.Thread(target=kill_one)
thread.start()
first = run_jobs(folder, [*jobs, *train], engine="ray", address=cluster.address)
thread.join()
more = {"engine": "ray", "address": cluster.address, "allow_failures": True}
run_jobs(folder, faulty[3:], lease=30.0, **more)  # whether it hangs only its lease can tell, and a busy machine is slow
second = run_jobs(folder, [*jobs, *train, *faulty], **more)
from multiadvisor.cli import main
code = main(["sweep", sys.argv[2], "--out", sys.argv[3], "--engine", "ray", "--address", cluster.address, "--json"])
cluster.shutdown()
print(json.dumps({"first": len(first), "failed": second.failed, "done": len(second), "code": code}))
"""


@pytest.mark.slow
def test_a_node_of_the_cluster_dies_in_the_middle(tmp_path):
    """24 jobs and 4 faulty ones on two nodes of one core each; results are those of the local engine, byte for byte."""
    diary, grid = tmp_path / "diary", tmp_path / "grid.toml"
    grid.write_text('task = "bridge"\nseeds = 3\n[schedule]\nepochs = 2\ntransitions = 50\nepisodes = 1\n')
    environment = {**os.environ, "MULTIADVISOR_REHEARSAL_DIARY": str(diary), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, str(tmp_path / "a"), str(grid), str(tmp_path / "swept")], env=environment,
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["first"] == 24
    assert report["code"] == 0
    alone = read_grid(grid)[0]
    by_hand = run_sweep(tmp_path / "local", alone, "", workers=1)
    for job in by_hand.jobs:
        assert by_hand.path(job).read_bytes() == (tmp_path / "swept" / "results" / f"{job.id}.json").read_bytes()
    executed = [int(line.split()[0]) for line in diary.read_text().splitlines()]
    assert len([k for k in executed if k < 100]) > 20, "the node took a running job with it, which ran again"
    assert set(executed) >= set(range(20)), "nothing was left out"
    rows = {row.id: row for row in read_rows(tmp_path / "a")}
    states = {json.loads(row.config).get("number"): (row.state, row.tries) for row in rows.values()}
    # how often a fault costs a try is not ours to say: in a task that it shared with others nobody could tell whose it
    # was, and that was no try; a worker that Ray itself lost, or that was too slow to start, costs one more
    assert (states[100][0], states[103][0]) == ("done", "done")
    assert states[101] == ("failed", 3)
    assert states[102] == ("failed", 3)
    assert sorted(rows[name].error.splitlines()[-1][:40] for name in report["failed"]) == [
        "RuntimeError: as rehearsed", "the worker of the Ray task died: The wor",
    ]  # fmt: skip
    jobs = [rows[name].job for name, row in rows.items() if row.state == "done" and states.get(row.id, 0) == 0]
    plain = [job for job in jobs if "then" not in job.config]
    assert len(plain) == 24
    local = run_jobs(tmp_path / "b", plain, workers=1)
    for job in plain:
        assert local.path(job).read_bytes() == (tmp_path / "a" / "results" / f"{job.id}.json").read_bytes()


OWN = """
import json, os, sys
from pathlib import Path
from multiadvisor.runs import driver, ray_engine
from multiadvisor.runs.jobs import Job

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

engine = ray_engine.RayEngine(2, None)
session = os.path.basename(ray_engine.ray._private.worker._global_node.get_session_dir_path()).encode()
print(json.dumps(sorted(set(listening()))))
jobs = [Job("rehearsal", {"number": k}) for k in range(300)]
results = driver.run_jobs(Path(sys.argv[1]), jobs, engine="ray", workers=2)
print(sum(result["number"] for result in results.values()))
engine.stop()
"""


@pytest.mark.slow
def test_a_ray_of_its_own_listens_on_loopback_only(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-c", OWN, str(tmp_path / "a")], env={**environment, "PYTHONWARNINGS": "ignore"},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    *_, places, total = done.stdout.splitlines()
    assert json.loads(places), "nothing was found to listen: the test looks at the wrong processes"
    assert set(json.loads(places)) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert int(total) == sum(range(300))


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_one_line(tmp_path):
    (tmp_path / "grid.toml").write_text('task = "bridge"\n[schedule]\nepochs = 1\ntransitions = 10\nepisodes = 1\n')
    line = [sys.executable, "-m", "multiadvisor", "sweep", "grid.toml", "--engine", "ray", "--address", "nonsense"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "cannot reach the Ray cluster at 'nonsense'" in done.stderr


def test_without_ray_the_engine_says_what_to_install(tmp_path, monkeypatch):
    import multiadvisor as mad
    from multiadvisor.runs import ray_engine

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(mad.BadInput, match="install the extra ray"):
        run_jobs(tmp_path / "a", [Job("rehearsal", {"number": 1})], engine="ray")
    assert ray_engine.ray is None
