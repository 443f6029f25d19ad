"""The benchmark of single questions measures what it says."""

import json

import pytest

from measures import act as benchmark_act
from multiadvisor.cli import main


@pytest.mark.slow
def test_a_small_measurement_runs(capsys, monkeypatch):
    monkeypatch.setattr(benchmark_act, "SIZES", (5, 50))
    monkeypatch.setattr(benchmark_act, "_BLOCK_SECONDS", 1e-4)
    assert main(["benchmark", "act", "--rounds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["advisors"] for row in found["rows"]] == [77, 5, 50]
    assert [row["active"] for row in found["rows"][1:]] == [5, 50]
    assert all(row[f"{name}_us"] > 0 for row in found["rows"] for name in ("act", "advice", "explain"))
    assert len(benchmark_act.describe("act", found).splitlines()) == 4


def test_a_call_is_timed_by_the_processor_clock(monkeypatch):
    """With a clock of our own, which every call moves on by 50 microseconds."""
    now = [0.0]
    monkeypatch.setattr(benchmark_act.time, "process_time", lambda: now[0])

    def work():
        now[0] += 50e-6

    assert round(benchmark_act._microseconds(work), 6) == 50.0
