"""DQN-clipped on Pac-Boy, the paper's baseline: one advisor, an image of four planes, rewards clipped to [-1, 1].

The ingredients are those of Mnih et al. (2015), scaled to an 11 x 11 board: convolutions, replay, a target network, a
Huber loss, one update in four transitions, exploration that falls over the first twentieth of the run. The paper names
no figures; those below are ours.

Full-length runs take hours on a processor: dqn-clipped.jsonl, beside this file, holds some that the script
benchmarks/dqn_clipped.py made, and reports judge by these. With --full they are made again. A network on the features
of linear Q-learning, which the paper tried too, is shipped likewise (benchmarks/deep_features.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.optional_dependencies import missing
from multiadvisor.envs.registry import make
from multiadvisor.errors import BadInput
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.runs.jobs import Job, Tell, kind
from multiadvisor.runs.training import begin_job
from multiadvisor.settings import Schedule, Settings
from multiadvisor.studies.study import Evidence, MissingResult, Plan, Table, curve_of, final_of, many

SHIPPED, ON_FEATURES = (Path(__file__).with_name(f"{name}.jsonl") for name in ("dqn-clipped", "deep-features"))
MEASURES = ("score", "length", "terminated", "touches")
NETWORK = DQN(
    split="none", clip_rewards=True, convolutions=(32, 64), strides=(1, 2), hidden=(256,), learning_rate=1e-4,
    batch_size=32, buffer_size=100_000, learning_starts=1_000, train_freq=4, updates_at_once=8,
    target_update_interval=500, double=False, loss="huber", epsilon_start=1.0, epsilon_steps=50_000, n_envs=32,
)  # fmt: skip
SETTINGS = Settings(gamma=0.85, epsilon=0.05, learner=NETWORK)


def differences() -> Table:
    """What Mnih et al. (2015) had, which the paper calls standard, and what is here."""
    of = NETWORK
    filters = ", ".join(f"{n} of 3 x 3, stride {by}" for n, by in zip(of.convolutions, of.strides, strict=True))
    return (
        ("DQN", "Mnih et al. (2015)", "here"),
        ("input", "four frames of 84 x 84", "four planes of 11 x 11, as in the paper"),
        ("convolutions", "32 of 8 x 8, stride 4, 64 of 4 x 4, stride 2, 64 of 3 x 3, stride 1", filters),
        ("hidden units", "512", ", ".join(map(str, of.hidden))),
        ("gamma", "0.99", f"{SETTINGS.gamma:g}"),
        ("optimiser and learning rate", "RMSProp, 0.00025", f"Adam, {of.learning_rate:g}"),
        ("transitions in the replay buffer", "1,000,000", f"{of.buffer_size:,}"),
        ("transitions before the first update", "50,000", f"{of.learning_starts:,}"),
        ("updates between copies to the target network", "10,000", f"{of.target_update_interval:,}"),
        ("exploration", "from 1 to 0.1 over 1,000,000 frames",
         f"from {of.epsilon_start:g} to {SETTINGS.epsilon:g} over {of.epsilon_steps:,} transitions"),
        ("episodes side by side", "1", str(of.n_envs)),
        ("updates at once, one for 4 transitions", "1", str(of.updates_at_once)),
        ("evaluation", "epsilon 0.05", "greedy"),
    )  # fmt: skip


# ---- the shipped runs ------------------------------------------------------------------------------------------------
class ShippedRuns(NamedTuple):
    """What a script in benchmarks wrote."""

    about: dict[str, Any]
    """How they were made: command, device, machine, date, epochs, early losses."""
    runs: list[dict[str, Any]]
    """For each seed its evaluations; of the first also an episode after them, once there is one."""

    @property
    def origin(self) -> str:
        """How many there are, and where they come from."""
        length = f"{many(len(self.runs), 'seed')} of {many(self.about['epochs'], 'epoch')}"
        made = f"`{self.about['command']}` on {self.about['machine']}, device {self.about['device']}"
        return f"{length}, made by {made}, {self.about['date']}"


@cache
def shipped(path: Path = SHIPPED) -> ShippedRuns:
    """The runs in a file, if they have the checksum in its first line."""
    try:
        first, _, rest = path.read_text("utf-8").partition("\n")
        about = json.loads(first)
        if about["sha256"] != hashlib.sha256(rest.encode()).hexdigest():
            raise ValueError("another checksum")
        runs, episode = [], None
        for line in map(json.loads, rest.splitlines()):
            if "episode" in line:
                episode = line["episode"]
                continue
            rows = zip(*(line[name] for name in MEASURES), strict=True)
            runs.append({"evaluations": [dict(zip(MEASURES, row, strict=True)) for row in rows]})
        runs[0] |= {} if episode is None else {"episode": episode}
    except (OSError, ValueError, LookupError, TypeError) as error:
        made = f"{str(path)!r} is not as benchmarks/{path.stem.replace('-', '_')}.py wrote it"
        raise BadInput(f"{made} ({error}): install the package again") from None
    return ShippedRuns(about, runs)


def shipped_job(path: Path) -> Job:
    """The runs in this file."""
    about = shipped(path).about
    schedule = Plan().schedule(about["epochs"])
    return Job("shipped-runs", {"file": path.name, "sha256": about["sha256"], "schedule": schedule})


@kind("shipped-runs")
def shipped_work(config: dict[str, Any]) -> dict[str, Any]:
    """The runs in a shipped file, with how they were made."""
    return shipped({path.name: path for path in (SHIPPED, ON_FEATURES)}[config["file"]])._asdict()


# ---- what a report asks for ------------------------------------------------------------------------------------------
def dqn_jobs(plan: Plan) -> list[Job]:
    """The shipped runs, which are of the paper's rules; with --full new ones, where JAX is installed."""
    if plan.full:
        config = {"schedule": plan.schedule(), "rules": plan.rules}
        return [Job("dqn-clipped", {"seed": seed, **config}) for seed in range(plan.dqn_seeds)] if available() else []
    return [shipped_job(SHIPPED)] if plan.rules == "paper" else []


def features_jobs(plan: Plan) -> list[Job]:
    """The shipped runs of a network on the features of linear Q-learning."""
    return [shipped_job(ON_FEATURES)] if plan.rules == "paper" else []


def runs_of(evidence: Evidence, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The result of each seed, shipped or new."""
    if not jobs:
        raise MissingResult("DQN is not in this report: with other rules it needs --full and the extra deep")
    return [run for job in jobs for result in (evidence.result(job),) for run in result.get("runs", [result])]


def dqn_curve(evidence: Evidence, measure: str = "score") -> np.ndarray:
    """[seeds, epochs] of one measure of DQN-clipped."""
    return np.array([curve_of(run, measure) for run in runs_of(evidence, dqn_jobs(evidence.plan))])


def dqn_final(evidence: Evidence, measure: str = "score") -> np.ndarray:
    """[seeds]: the mean of the last epochs."""
    return np.array([final_of(run, measure) for run in runs_of(evidence, dqn_jobs(evidence.plan))])


def features_final(evidence: Evidence) -> np.ndarray:
    """[seeds]: the same of the network on the features."""
    return np.array([final_of(run) for run in runs_of(evidence, features_jobs(evidence.plan))])


# ---- one seed as a job -----------------------------------------------------------------------------------------------
def available() -> bool:
    """Whether networks can be trained here: JAX is an extra."""
    return not missing("deep")


@kind("dqn-clipped", lease=1800.0)
def work(config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """Train one seed, resumed from its folder where it was stopped; its evaluations, and the first episode of the
    last one."""
    from multiadvisor.studies.paper.episode_study import recorded

    schedule = Schedule(**config["schedule"])
    settings = replace(SETTINGS, seed=config["seed"])
    training = begin_job(make("pac-boy", rules=config["rules"]), settings, schedule, folder)
    training.run(lambda now: tell(len(training.evaluations) / schedule.evaluations))
    return {"evaluations": training.evaluations, "episode": recorded(training.agent, schedule.evaluations)}
