"""The sweep's benchmark measures what it says."""

import pytest

from measures import sweep as benchmark_sweep


def test_overhead_is_what_the_workers_did_not_work(monkeypatch):
    """With a clock and jobs of our own: 2 workers for 10 s, of which 12 s were work, lose 8 s."""
    walls = iter([(1.0, 0.0, 0.0), (10.0, 12.0, 3.0)])
    monkeypatch.setattr(benchmark_sweep, "_wall", lambda folder, engine, jobs: next(walls))
    found = benchmark_sweep.measure("local", 1000)
    assert found["overhead_ms"] == pytest.approx(8.0)
    assert found["overhead_ms_without_start"] == pytest.approx(6.0)
    assert found["work_ms"] == pytest.approx(12.0)
    assert found["driver_cpu_ms"] == pytest.approx(3.0)


@pytest.mark.slow
def test_a_small_measurement_runs():
    found = benchmark_sweep.measure("local", 30)
    assert found["work_ms"] >= 1.0
    assert found["wall_seconds"] > 0
    run = {"what": "a run", "seconds": 1.0, "result_bytes": 10.0}
    result = {"machine": "a machine", "engines": {"local": found}, "training_run": run}
    lines = benchmark_sweep.describe("sweep", result).splitlines()
    assert "30 runs" in lines[1]
    assert len(lines) == 3
