"""Pictures through the server as it is typed: what an environment's drawing does can cost a picture, and no more."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import multiadvisor as mad
from explorer.typed import served
from processes import alive, children, wait_for

pytestmark = pytest.mark.slow

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


@pytest.fixture(scope="module")
def divers(tmp_path_factory):
    """Two runs of one environment that draws with pygame, one of which never arrives."""
    folder = tmp_path_factory.mktemp("divers")
    for seed, steps in ((0, 20_000), (1, 10), (2, 10)):
        task = mad.make("deep-sea-treasure-v0", max_episode_steps=60)
        mad.MultiAdvisor(task, gamma=0.9, alpha=0.1, epsilon=0.05, seed=seed).learn(steps, progress=False).save(
            folder / str(seed)
        )
    return [str(folder / str(seed)) for seed in range(3)]


def test_two_runs_of_one_environment_are_drawn_in_step(divers):
    with served(*divers) as server:
        seen = [server.pictures(run, 0, first) for run, first in ((1, 0), (0, 0), (1, 12), (0, 12), (1, 24))]
    assert [one["reason"] for one in seen] == [""] * 5
    assert seen[-1]["shown"] > 24


def test_two_runs_of_one_environment_are_drawn_at_the_same_time(divers):
    with served(*divers[1:]) as server, ThreadPoolExecutor(30) as many:
        kinds = ["runs/{}/episodes/0", "runs/{}/episodes/1", "insight/{}", "live/{}/0", "runs/{}"]
        kinds += [f"pictures/{{}}/{episode}/{first}" for episode in range(5) for first in (0, 12)]
        paths = [path.format(run) for run in server.runs for path in kinds]
        assert len(paths) == 30
        list(many.map(server.ask, paths))
        reasons = [server.pictures(run, episode)["reason"] for run in range(2) for episode in range(5)]
    assert reasons == [""] * 10


def test_who_draws_can_be_killed_and_ends_with_the_server(divers):
    with served(divers[1]) as server:
        whole = server.pictures(0, 0)
        (first,) = children(server.process.pid)
        os.kill(first, signal.SIGKILL)
        assert server.pictures(0, 0, 12)["reason"] == ""
        assert server.pictures(0, 0)["bytes"] >= whole["bytes"]
        (second,) = children(server.process.pid)
        server.process.kill()
        server.process.wait()
        wait_for(lambda: not alive(second))


def test_a_crash_costs_a_picture(divers, tmp_path):
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
