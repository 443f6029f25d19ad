"""Beyond the paper: far-sighted advisors heard by max, p-norms and blends, beside the paper's own settings."""

from __future__ import annotations

from multiadvisor.experiments.parts import Part, Plan
from multiadvisor.experiments.schemes import all_runs
from multiadvisor.experiments.tours import tours_job
from multiadvisor.runs.jobs import Job


def jobs(plan: Plan) -> list[Job]:
    """Boards without ghosts, then every run."""
    return [tours_job(min(plan.boards, 200)), *all_runs(plan)]


PART = Part("beyond", "Beyond the paper", 70, jobs, alone=True)
