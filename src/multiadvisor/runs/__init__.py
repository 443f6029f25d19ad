"""Running: training, traces, jobs with their ledger, driver and engines, and sweeps."""
