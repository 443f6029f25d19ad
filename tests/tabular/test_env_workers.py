"""Several episodes at the same time while learning: one learner, a fixed order, the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_bank import Corridor, corridor

import multiadvisor as mad
from agents import in_pieces, same
from multiadvisor.core import plugins
from multiadvisor.envs.remote import Remote
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf import env_workers
from refusal import refused


class Near:
    """What `Remote` is, in this process."""

    made = 0

    def __init__(self, task):
        self._env, self._answer = Corridor(), None
        Near.made += 1

    def reset(self, seed):
        return self._env.reset(seed=seed)[0]

    def send(self, action):
        assert self._answer is None, "one step at a time"
        seen, reward, terminated, truncated, _ = self._env.step(action)
        self._answer = seen, reward, terminated, truncated

    def receive(self):
        answer, self._answer = self._answer, None
        return answer

    def close(self):
        pass


@pytest.fixture(autouse=True)
def near(monkeypatch):
    monkeypatch.setattr(env_workers, "Remote", Near)
    monkeypatch.setattr(Near, "made", 0)


def agent(count=3):
    task = corridor()
    task = replace(task, goals=replace(task.goals, emulators=count))
    return mad.MultiAdvisor(task, planning="agnostic", gamma=0.9, epsilon=0.3, seed=3)


def test_all_episodes_are_learned_from_in_one_bank():
    played = agent().learn(400)
    assert (played.steps, Near.made) == (400, 3)
    assert played.episodes > 10
    assert played._learner.rooms[0].steps == 400
    assert played.evaluate(10).terminated == 1.0
    assert not same(played, agent(2).learn(400)), "another number of episodes is another run"


def test_it_goes_on_bit_for_bit_wherever_it_was_left(tmp_path):
    parts = in_pieces(agent(), agent().task, tmp_path, 1, 7, 100, 93, 100, evaluated=True)
    assert same(parts, agent().learn(301))


def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(monkeypatch):
    stopped, plain = agent(), agent().learn(120)
    stopped.learn(50)
    calls = iter([False] * 30 + [True])

    def choose(self, *given):
        if next(calls, False):
            raise KeyboardInterrupt
        return original(self, *given)

    original = type(stopped._learner)._choose
    monkeypatch.setattr(type(stopped._learner), "_choose", choose)
    with pytest.raises(KeyboardInterrupt):
        stopped._learner.run(70)
    assert stopped.steps < 120
    stopped.learn(120 - stopped.steps)
    assert same(stopped, plain)


def test_a_task_that_has_no_name_stays_in_its_process():
    refused("cannot be made again in another process", Remote, corridor())


@pytest.mark.slow
def test_an_environment_in_another_process_is_the_same_one():
    pytest.importorskip("ale_py")
    task = mad.make("ms-pacman", limit=400)
    far, env = Remote(task), task.adapter.env
    assert np.array_equal(far.reset(5), env.reset(seed=5)[0])
    for action in (2, 2, 0, 1, 3):
        far.send(action)
        seen, reward, terminated, truncated, _ = env.step(action)
        answer = far.receive()
        assert np.array_equal(answer[0], seen)
        assert answer[1:] == (reward, terminated, truncated)
    far.close()
    with pytest.raises((BadInput, ValueError)):
        far.send(0)


SNAG = """
import gymnasium
import numpy as np


class Snag(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.int64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.array([0]), {}

    def step(self, action):
        self.at += 1
        print("this is not an answer")
        if self.at == 2:
            raise KeyError("the door is shut")
        return np.array([self.at]), 0.5, False, False, {}


gymnasium.register("Snag-v0", Snag)
"""


@pytest.mark.slow
def test_what_an_environment_raises_in_another_process_is_one_line(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(plugins, "IMPORTED", [])
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_snag.py").write_text(SNAG)
    plugins.import_own(str(tmp_path / "own_snag.py"))
    far = Remote(mad.make("Snag-v0"))
    assert far.reset(1).tolist() == [0]
    far.send(1)
    seen, *rest = far.receive()
    assert (seen.tolist(), rest) == ([1], [0.5, False, False])
    far.send(1)
    refused(r"^the environment raised KeyError: 'the door is shut' \(.*own_snag.py:\d+, in step", far.receive)
    far.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
def test_a_task_that_cannot_be_made_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "IMPORTED", [])
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_gone.py").write_text(SNAG.replace("Snag-v0", "Gone-v0"))
    plugins.import_own(str(tmp_path / "own_gone.py"))
    task = mad.make("Gone-v0")
    (tmp_path / "own_gone.py").unlink()
    far = Remote(task)
    refused(r"own_gone\.py.*there is no such file", far.reset, 1)
    far.close()
