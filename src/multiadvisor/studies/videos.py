"""The paper's five videos: one episode of each setting at the 50th epoch, recorded for drawing."""

from __future__ import annotations

from typing import Any

from multiadvisor.runs.jobs import Job
from multiadvisor.studies.pac_boy_study import ADVISORS, DQN, Setting, dqn_jobs, run_config, with_rules
from multiadvisor.studies.parts import Evidence, Part, Plan, Video


def trace_job(setting: Setting, plan: Plan) -> Job:
    """The first episode of the last evaluation of the first seed."""
    return Job("trace", {"run": run_config(with_rules(setting, plan), 0, plan)})


def jobs(plan: Plan) -> list[Job]:
    """One episode of each setting."""
    return [*(trace_job(setting, plan) for setting in ADVISORS), *dqn_jobs(plan)[:1]]


def described(trace: dict[str, Any], epoch: int) -> str:
    """What is to be seen, in numbers."""
    steps, fruits, score = len(trace["actions"]), set(trace["fruit"]), sum(trace["rewards"])
    eaten = len(fruits & {cell for cell, *_ in trace["movers"]})
    end = "cut off" if eaten < len(fruits) else "all fruit eaten"
    return f"Epoch {epoch}, first episode: score {score:g}, {eaten} of {len(fruits)} fruits, {steps} steps, {end}."


def videos(evidence: Evidence) -> list[Video]:
    """The episodes that were recorded."""
    plan, found = evidence.plan, []
    for setting in ADVISORS:
        trace = evidence.result(trace_job(setting, plan))
        found.append(Video(setting.name.replace(" ", "-"), setting.name, described(trace, plan.epochs), trace))
    if episodes := dqn_jobs(plan):
        trace = evidence.result(episodes[0])["episode"]
        found.append(Video(DQN, DQN, described(trace, plan.dqn_epochs), trace))
    return found


PART = Part(
    "videos",
    "One episode of each setting",
    60,
    jobs,
    videos=videos,
    about="one episode of each setting, as MP4 and GIF",
)
