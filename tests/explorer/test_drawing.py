"""Pictures through the server as it is typed: what an environment's drawing does can cost a picture, and no more."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import multiadvisor as mad
from explorer.typed import Server
from patience import PATIENCE

FALLS = """
import os, signal
import gymnasium
import numpy as np

class Falls(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.observation_space, self.action_space = gymnasium.spaces.Discrete(9), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at += 1
        return self.at, 1.0, self.at == 8, False, {}

    def render(self):
        if self.at == 3:
            os.kill(os.getpid(), signal.SIGSEGV)
        return np.full((4, 4, 3), self.at, np.uint8)

gymnasium.register("Falls-v0", Falls)
"""


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "multiadvisor", "explore", *arguments, "--no-browser", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield Server(process, json.loads(process.stdout.readline())["address"])
            assert process.poll() in (None, -signal.SIGKILL)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def divers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two runs of one environment that draws with pygame, one of which never arrives."""
    folder = tmp_path_factory.mktemp("divers")
    for seed, steps in ((0, 20_000), (1, 10), (2, 10)):
        task = mad.make("deep-sea-treasure-v0", max_episode_steps=60)
        mad.MultiAdvisor(task, gamma=0.9, seed=seed).learn(steps, progress=False).save(folder / str(seed))
    return [str(folder / str(seed)) for seed in range(3)]


@pytest.mark.slow
def test_two_runs_of_one_environment_are_drawn_in_step(divers: list[str]) -> None:
    with served(*divers) as server:
        seen = [server.pictures(run, 0, first) for run, first in ((1, 0), (0, 0), (1, 12), (0, 12), (1, 24))]
    assert [one["reason"] for one in seen] == [""] * 5
    assert seen[-1]["shown"] > 24


@pytest.mark.slow
def test_two_runs_of_one_environment_are_drawn_at_the_same_time(divers: list[str]) -> None:
    with served(*divers[1:]) as server, ThreadPoolExecutor(30) as many:
        paths = [
            path.format(run)
            for run in server.runs
            for path in (
                "runs/{}/episodes/0",
                "runs/{}/episodes/1",
                "insight/{}",
                *(f"pictures/{{}}/{episode}/{first}" for episode in range(5) for first in (0, 12)),
                "live/{}/0",
                "runs/{}",
            )
        ]
        assert len(paths) == 30
        list(many.map(server.ask, paths))
        reasons = [server.pictures(run, episode)["reason"] for run in range(2) for episode in range(5)]
    assert reasons == [""] * 10


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    told = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in told.stdout.splitlines()]
    return [int(pid) for pid, parent, state in rows if int(parent) == process and not state.startswith("Z")]


def gone(process: int) -> bool:
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return told.stdout.strip()[:1] in ("", "Z")


@pytest.mark.slow
def test_who_draws_can_be_killed_and_ends_with_the_server(divers: list[str]) -> None:
    with served(divers[1]) as server:
        whole = server.pictures(0, 0)
        (first,) = children(server.process.pid)
        os.kill(first, signal.SIGKILL)
        assert server.pictures(0, 0, 12)["reason"] == ""
        assert server.pictures(0, 0)["bytes"] >= whole["bytes"]
        (second,) = children(server.process.pid)
        server.process.kill()
        server.process.wait()
        until = time.monotonic() + PATIENCE
        while not gone(second):
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.mark.slow
def test_a_crash_costs_a_picture(divers: list[str], tmp_path: Path) -> None:
    (tmp_path / "falls.py").write_text(FALLS)
    run, own = str(tmp_path / "run"), str(tmp_path / "falls.py")
    training = ["Falls-v0", "--import", own, "--steps", "50", "--eval-every", "50", "--out", run]
    subprocess.run([sys.executable, "-m", "multiadvisor", "train", *training], check=True, capture_output=True)
    with served(run, divers[0], "--import", own) as server:
        while not (seen := server.pictures(0, 0))["reason"]:  # slow ones come later
            assert seen["shown"] <= 3
        assert (seen["shown"], seen["count"]) == (3, 9)
        assert "the process that draws it was killed by SIGSEGV" in seen["reason"]
        assert server.pictures(1, 0)["reason"] == ""
        insight = json.loads(server.ask(f"insight/{server.runs[0]}"))
        assert insight["moments"]
