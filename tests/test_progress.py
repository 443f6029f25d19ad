"""Progress on stderr: written over on a terminal, a line now and then elsewhere."""

import pytest

from multiadvisor.core import progress
from multiadvisor.core.progress import JobsBar, Status


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_without_a_terminal_a_line_is_printed_now_and_then(capsys, clock):
    with Status(terminal=False, every=30.0, clock=clock) as tell:
        for second in range(95):
            clock.now = 100.0 + second
            tell(f"step {second}")
    out, error = capsys.readouterr()
    assert out == ""
    assert error.splitlines() == ["step 30 (30 s)", "step 60 (60 s)", "step 90 (90 s)"]


def test_on_a_terminal_each_text_is_written_over_the_one_before(capsys, clock):
    with Status(terminal=True, clock=clock) as tell:
        tell("one")
        tell("two")
    assert capsys.readouterr().err == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"


def test_jobs_are_counted_in_a_log(capsys, monkeypatch, clock):
    """Jobs that run on and on are heard of as well, though nothing changes."""
    monkeypatch.setattr(progress, "Status", lambda terminal: Status(terminal, clock=clock))
    with JobsBar(10, 2, None, "runs") as bar:
        bar.running(2)
        bar.done(1)
        clock.now += 40
        bar.running(2)
        clock.now += 40
        bar.failed(1)
    assert capsys.readouterr().err.splitlines() == [
        "runs: 3 of 10 done, 2 running (40 s)", "runs: 3 of 10 done, 2 running, 1 failed (80 s)",
    ]  # fmt: skip


def test_who_wants_no_progress_has_none(capsys, monkeypatch, clock):
    monkeypatch.setattr(progress, "Status", lambda terminal: Status(terminal, every=0.0, clock=clock))
    with JobsBar(10, 0, False) as bar:
        bar.done(1)
    assert capsys.readouterr().err == ""
