"""The paper's five videos: one game of each setting at the 50th epoch, recorded for drawing."""

from __future__ import annotations

from typing import Any

from multiadvisor.experiments.pac_boy import ADVISORS, DQN, Setting, dqn_jobs, run_config, with_rules
from multiadvisor.experiments.parts import Evidence, Part, Plan, Video
from multiadvisor.runs.jobs import Job


def trace_job(setting: Setting, plan: Plan) -> Job:
    """The first game of the last evaluation of the first seed."""
    return Job("trace", {"run": run_config(with_rules(setting, plan), 0, plan)})


def jobs(plan: Plan) -> list[Job]:
    """One game of each setting."""
    return [*(trace_job(setting, plan) for setting in ADVISORS), *dqn_jobs(plan)[:1]]


def described(trace: dict[str, Any], epoch: int) -> str:
    """What is to be seen, in numbers."""
    turns, eaten = len(trace["actions"]), sum(reward > -5 and reward % 10 == 1 for reward in trace["rewards"])
    score = sum(trace["rewards"])
    end = "cut off" if turns >= 300 else "all fruit eaten"
    return f"Epoch {epoch}, first game: score {score:g}, {eaten} of {len(trace['fruit'])} fruits, {turns} turns, {end}."


def videos(evidence: Evidence) -> list[Video]:
    """The games that were recorded."""
    plan, found = evidence.plan, []
    for setting in ADVISORS:
        trace = evidence.result(trace_job(setting, plan))
        found.append(Video(setting.name.replace(" ", "-"), setting.name, described(trace, plan.epochs), trace))
    if games := dqn_jobs(plan):
        trace = evidence.result(games[0])["game"]
        found.append(Video(DQN, DQN, described(trace, plan.dqn_epochs), trace))
    return found


PART = Part("videos", "One game of each setting", 60, jobs, videos=videos)
