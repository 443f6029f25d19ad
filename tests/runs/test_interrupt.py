"""Ctrl-C: heard at a consistent moment, and nothing torn is saved."""

import os
import signal
import subprocess
import sys
import time

import pytest

import multiadvisor as mad
from multiadvisor.agent import load_with_record
from multiadvisor.core import interrupt
from multiadvisor.core.interrupt import AtOnce, Terminated, deferred_interrupt
from multiadvisor.runs import training
from multiadvisor.settings import Schedule, Settings
from patience import PATIENCE


def press():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_impatient_hand_changes_nothing():
    heard = []

    def block():
        with deferred_interrupt() as stop:
            for _ in range(3):
                press()
            heard.append(stop.requested)

    with pytest.raises(KeyboardInterrupt) as caught:
        block()
    assert heard == [True]
    assert not isinstance(caught.value, AtOnce)


def test_a_sigterm_is_taken_like_ctrl_c_and_told_from_it():
    before = signal.getsignal(signal.SIGTERM)
    interrupt.take_sigterm_like_ctrl_c()
    try:
        for number, kind in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)):
            with pytest.raises(KeyboardInterrupt) as caught, deferred_interrupt():
                os.kill(os.getpid(), number)
            assert caught.type is kind
        with pytest.raises(Terminated):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_who_insists_is_heard_at_once(monkeypatch):
    monkeypatch.setattr(interrupt, "_PATIENCE", 0.01)

    def block():
        with deferred_interrupt():
            press()
            time.sleep(0.05)
            press()
            raise AssertionError("the block went on")

    with pytest.raises(AtOnce):
        block()


def test_what_is_torn_is_not_saved(tmp_path, monkeypatch):
    """Somebody insists between a step of the environment and what is learned from it."""
    monkeypatch.setattr(interrupt, "_PATIENCE", 0.0)
    task = mad.make("FrozenLake-v1")
    run = training.begin(task, Settings(seed=1), Schedule(600, 200, 2), tmp_path / "a", False)
    step, env = task.adapter.env.step, task.adapter.env

    def insist(action):
        result = step(action)
        if run.evaluations:
            press()
            time.sleep(0.01)
            press()
        return result

    monkeypatch.setenv("MULTIADVISOR_SAVE_SECONDS", "0")
    env.step = insist
    with pytest.raises(AtOnce):
        run.run()
    agent, record = load_with_record(tmp_path / "a", task)
    assert (agent.steps, len(record["evaluations"])) == (200, 1), "what was saved after the first evaluation"


@pytest.mark.slow
def test_ctrl_c_is_heard_soon_where_a_step_takes_long():
    program = """
import os, signal, time, gymnasium, multiadvisor as mad
env = gymnasium.make("FrozenLake-v1")
step, steps = env.step, 0
def slow(action):
    global steps
    time.sleep(0.01)
    steps += 1
    if steps == 150:
        os.kill(os.getpid(), signal.SIGINT)
    return step(action)
env.step = slow
agent = mad.MultiAdvisor(mad.Task.from_gymnasium(env))
try:
    agent.learn(100_000, progress=False)
except KeyboardInterrupt:
    print(steps)
"""
    line = [sys.executable, "-c", program]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert 150 <= int(done.stdout) < 1_000, "some steps more, not thousands"
