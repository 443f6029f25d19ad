"""The paper's DQN-clipped baseline with many seeds in one program, on whatever JAX finds: a processor or a GPU.

    python benchmarks/dqn_clipped.py --seeds 16 --epochs 50 --out dqn-clipped.jsonl

Writes the file that `reproduce` judges by: how it was made, then a line for each seed. What is done so far is there
after every epoch, and at the end how far the scores are from the shipped ones. Products are rounded to 32 bits on a GPU
too, so that other machines come close.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import hashlib
import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from multiadvisor.agent import MultiAdvisor
from multiadvisor.envs.registry import make
from multiadvisor.learners.dqn.backend import jax
from multiadvisor.learners.dqn.dqn_learner import Cohort
from multiadvisor.settings import Schedule, Settings
from multiadvisor.studies.paper.dqn_clipped import MEASURES, SETTINGS, SHIPPED, shipped
from multiadvisor.studies.paper.episode_study import recorded
from multiadvisor.studies.study import curve_of

EARLY = tuple(range(1_280, 5_121, 256))  # steps after which the loss is noted


class Trained(NamedTuple):
    """What all seeds in one program gave so far."""

    curves: list[dict[str, list[float]]]
    """For each seed, each of `MEASURES` after every epoch."""
    losses: list[float]
    """Of the last updates of the first seed, after each of the steps in `EARLY`: they tell equal runs from others."""
    cohort: Cohort


def train(seeds: Sequence[int], schedule: Schedule, settings: Settings = SETTINGS) -> Iterator[Trained]:
    """All seeds in one program; after every epoch, what they gave until then."""
    task = make("pac-boy")
    found = Trained([{name: [] for name in MEASURES} for _ in seeds], [], Cohort(task, settings, seeds))
    cohort = found.cohort
    for epoch in range(1, schedule.evaluations + 1):
        due = schedule.due(epoch)
        for steps in EARLY:
            if cohort.steps < steps <= due:
                cohort.learn(steps - cohort.steps)
                found.losses.extend(cohort.learner.last_losses().values())
        cohort.learn(max(due - cohort.steps, 0))
        for curve, episodes in zip(found.curves, cohort.evaluate(schedule.eval_episodes, epoch), strict=True):
            touches = task.metrics(episodes.returns)["touches"]
            figures = (episodes.score, episodes.length, episodes.terminated, touches)
            for name, each in zip(MEASURES, figures, strict=True):
                curve[name].append(float(each.mean()))
        yield found


def from_shipped(curves: Sequence[dict[str, list[float]]], path: Path = SHIPPED) -> float:
    """The largest difference from the shipped scores, over the seeds and epochs that both have."""
    pairs = zip(curves, (curve_of(run, "score") for run in shipped(path).runs), strict=False)
    return max(abs(one - other) for curve, kept in pairs for one, other in zip(curve["score"], kept, strict=False))


def first_episode(found: Trained, evaluation: int) -> dict[str, Any]:
    """An episode of the first seed, for its video."""
    cohort = found.cohort
    agent = MultiAdvisor(cohort.task, cohort.settings_of(0))
    agent._learner.restore(cohort.tensors_of(0))
    return recorded(agent, evaluation)


def write(path: Path, about: dict[str, Any], found: Trained, episode: dict[str, Any] | None = None) -> None:
    """The file; its first line has the SHA-256 of the others."""
    seeds = [{"seed": seed, **curve} for seed, curve in enumerate(found.curves)]
    rest = "".join(json.dumps(line) + "\n" for line in (*seeds, *([] if episode is None else [{"episode": episode}])))
    digest = hashlib.sha256(rest.encode()).hexdigest()
    part = path.with_suffix(".part")
    part.write_text(json.dumps({**about, "sha256": digest}) + "\n" + rest, "utf-8")
    part.replace(path)  # whole, or not at all: the run may be stopped at any moment


def main() -> None:
    """Train, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    jax.config.update("jax_default_matmul_precision", "highest")
    start = time.perf_counter()
    about: dict[str, Any] = {
        "command": f"python benchmarks/dqn_clipped.py --seeds {given.seeds} --epochs {given.epochs}",
        "device": jax.devices()[0].device_kind, "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(), "jax": jax.__version__, "date": f"{datetime.date.today()}",
        "settings": dataclasses.asdict(SETTINGS), "early_steps": EARLY,
    }  # fmt: skip
    for found in train(range(given.seeds), Schedule(steps=given.epochs * 20_000)):
        scores = [curve["score"] for curve in found.curves]
        epoch = len(scores[0])
        about |= {"epochs": epoch, "seconds": round(time.perf_counter() - start, 1), "early_losses": found.losses}
        print(f"epoch {epoch}: mean score {sum(one[-1] for one in scores) / len(scores):.2f} after "
              f"{about['seconds']:.0f} s", file=sys.stderr, flush=True)  # fmt: skip
        if given.out is not None:
            write(given.out, about, found)
    if given.out is not None:
        write(given.out, about, found, first_episode(found, given.epochs))
    told = {key: value for key, value in about.items() if key != "settings"}
    print(json.dumps({**told, "from_shipped": from_shipped(found.curves)}))


if __name__ == "__main__":
    main()
