"""A faulty environment on the command line: one line, exit code 2; the whole with --traceback."""

import sys

import pytest

from multiadvisor.cli import main

MODULE = """
import gymnasium
import numpy as np
from gymnasium import spaces


class Ring(gymnasium.Env):
    def __init__(self):
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(0, 4, (2,), np.int64)

    def look(self):
        return np.array([self.at, 0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.look(), {}

    def step(self, action):
        self.at = (self.at + int(action)) % 5
        return self.look(), self.pay(), self.at == 4, False, {}

    def pay(self):
        return 1.0


class OldReset(Ring):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class NoSeed(Ring):
    def reset(self):
        return super().reset()


class Lists(Ring):
    def look(self):
        return [self.at, 0]


class Rich(Ring):
    def pay(self):
        return 1e308


class Raising(Ring):
    def pay(self):
        if self.at == 3:
            raise RuntimeError("the purse\\n is empty")  # WHERE
        return 0.0


class InsideNumpy(Ring):
    def pay(self):
        return np.linalg.inv(np.zeros((2, 2)))[0, 0]  # INSIDE


class Unmade(Ring):
    def __init__(self):
        raise OSError("no such board")


for kind in (OldReset, NoSeed, Lists, Rich, Raising, InsideNumpy, Unmade):
    gymnasium.register(f"faulty/{kind.__name__}-v0", kind, max_episode_steps=50)
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faulty_rings.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    yield folder / "faulty_rings.py"
    sys.path.remove(str(folder))


def train(name, capsys, *more):
    network = (
        ("--hidden", "8", "--learning-starts", "32", "--batch-size", "16", "--updates-at-once", "1")
        if "--learner" in more
        else ()
    )
    short = ("--steps", "300", "--eval-every", "300", "--eval-episodes", "3")
    code = main(["train", f"faulty_rings:faulty/{name}-v0", *short, *more, *network])
    shown = capsys.readouterr()
    assert shown.out == ""
    return code, shown.err


def line_of(module, mark):
    return next(k for k, line in enumerate(module.read_text().splitlines(), 1) if line.endswith(f"# {mark}"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("OldReset", "reset gave a value of type ndarray"),
        ("NoSeed", "reset takes no seed"),
        ("Lists", "is of the type list where Box"),
        ("Rich", "no longer finite"),
    ],
)
def test_a_faulty_environment_ends_in_one_line(name, message, module, capsys):
    code, shown = train(name, capsys)
    last = shown.splitlines()[-1]
    assert code == 2
    assert "Traceback" not in shown
    assert len([line for line in shown.splitlines() if not line.startswith("compiling for")]) == 1
    assert last.startswith("multiadvisor train: ")
    assert message in last


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OldReset", "NoSeed", "Rich"])
def test_and_so_it_does_with_a_network(name, module, capsys):
    code, shown = train(name, capsys, "--learner", "dqn")
    assert code == 2
    assert "Traceback" not in shown
    assert shown.splitlines()[-1].startswith("multiadvisor train: ")


@pytest.mark.parametrize(
    ("name", "message", "mark", "function"),
    [
        ("Raising", "RuntimeError: the purse is empty", "WHERE", "pay"),
        ("InsideNumpy", "LinAlgError: Singular matrix", "INSIDE", "pay"),
    ],
)
def test_what_an_environment_raises_is_told_with_its_place(name, message, mark, function, module, capsys):
    place = f"({module}:{line_of(module, mark)}, in {function})"
    code, shown = train(name, capsys)
    expected = f"multiadvisor train: the environment raised {message} {place}; --traceback shows more"
    assert (code, shown.splitlines()[-1]) == (2, expected)
    assert "Traceback" not in shown
    code, shown = train(name, capsys, "--traceback")
    assert code == 2
    assert "Traceback (most recent call last)" in shown
    assert f"multiadvisor train: the environment raised {message} {place}\n" in shown


def test_the_traceback_of_a_sentence_shows_what_it_was_made_of(module, capsys):
    code, shown = train("Unmade", capsys)
    assert (code, "Traceback" in shown) == (2, False)
    code, shown = train("Unmade", capsys, "--traceback")
    assert code == 2
    assert 'raise OSError("no such board")' in shown


def test_a_fault_of_ours_is_not_blamed_on_the_environment(module, capsys, monkeypatch):
    monkeypatch.setattr("multiadvisor.commands.train.from_flags", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        train("Raising", capsys)
