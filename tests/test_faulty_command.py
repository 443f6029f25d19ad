"""A faulty environment on the command line: one line, exit code 2; the whole with --traceback."""

from pathlib import Path

import pytest

import faulty_rings
from multiadvisor.cli import main

PLACE = Path(faulty_rings.__file__)


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


def line_of(mark):
    return next(k for k, line in enumerate(PLACE.read_text().splitlines(), 1) if line.endswith(f"# {mark}"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("OldReset", "reset gave a value of type ndarray"),
        ("NoSeed", "reset takes no seed"),
        ("Lists", "is of the type list where Box"),
        ("Rich", "no longer finite"),
    ],
)
def test_a_faulty_environment_ends_in_one_line(name, message, capsys):
    code, shown = train(name, capsys)
    last = shown.splitlines()[-1]
    assert code == 2
    assert "Traceback" not in shown
    assert len([line for line in shown.splitlines() if not line.startswith("compiling for")]) == 1
    assert last.startswith("multiadvisor train: ")
    assert message in last


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OldReset", "NoSeed", "Rich"])
def test_and_so_it_does_with_a_network(name, capsys):
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
def test_what_an_environment_raises_is_told_with_its_place(name, message, mark, function, capsys):
    place = f"({PLACE}:{line_of(mark)}, in {function})"
    code, shown = train(name, capsys)
    expected = f"multiadvisor train: the environment raised {message} {place}; --traceback shows more"
    assert (code, shown.splitlines()[-1]) == (2, expected)
    assert "Traceback" not in shown
    code, shown = train(name, capsys, "--traceback")
    assert code == 2
    assert "Traceback (most recent call last)" in shown
    assert f"multiadvisor train: the environment raised {message} {place}\n" in shown


def test_the_traceback_of_a_sentence_shows_what_it_was_made_of(capsys):
    code, shown = train("Unmade", capsys)
    assert (code, "Traceback" in shown) == (2, False)
    code, shown = train("Unmade", capsys, "--traceback")
    assert code == 2
    assert 'raise OSError("no such board")' in shown


def test_a_fault_of_ours_is_not_blamed_on_the_environment(capsys, monkeypatch):
    monkeypatch.setattr("multiadvisor.commands.train.from_flags", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        train("Raising", capsys)
