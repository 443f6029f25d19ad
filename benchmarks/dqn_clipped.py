"""The paper's DQN-clipped baseline with many seeds in one program, on whatever JAX finds: a processor or a GPU.

    python benchmarks/dqn_clipped.py --seeds 16 --epochs 50 --out dqn-clipped.jsonl

Writes the file that `reproduce` judges by: how it was made, then a line for each seed; and says at the end how far the
scores are from the shipped ones. Seeds in one program are rounded together, so that `--together` is part of how a run was
made; whole programs that the file already has are kept. Products are rounded to 32 bits on a GPU too, so that other
machines come close.
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


def kept(
    path: Path | None, about: dict[str, Any], together: int
) -> tuple[list[dict[str, list[float]]], dict[str, Any]]:
    """The seeds of whole programs that a file has, where it was made in the same way, and what it says of them."""
    if path is None or not path.exists():
        return [], {}
    first, *lines = map(json.loads, path.read_text("utf-8").splitlines())
    same = ("device", "machine", "jax", "settings", "together", "epochs")
    if any(json.loads(json.dumps(about[name])) != first.get(name) for name in same):
        return [], {}
    curves = [{name: line[name] for name in MEASURES} for line in lines if "seed" in line]
    return curves[: len(curves) // together * together], first | {"episode": lines[-1].get("episode")}


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
    parser.add_argument("--together", type=int, default=8, help="so many seeds share a program")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    jax.config.update("jax_default_matmul_precision", "highest")
    start = time.perf_counter()
    about: dict[str, Any] = {
        "command": f"python benchmarks/dqn_clipped.py --seeds {given.seeds} --epochs {given.epochs}",
        "together": given.together, "device": jax.devices()[0].device_kind,
        "machine": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
        "jax": jax.__version__, "date": f"{datetime.date.today()}", "settings": dataclasses.asdict(SETTINGS),
        "early_steps": EARLY, "epochs": given.epochs,
    }  # fmt: skip
    done, before = kept(given.out, about, given.together)
    about |= {name: before[name] for name in ("early_losses", "seconds") if name in before}
    episode, spent = before.get("episode"), before.get("seconds", 0.0)
    for begin in range(len(done), given.seeds, given.together):
        for found in train(range(begin, min(begin + given.together, given.seeds)), Schedule(given.epochs * 20_000)):
            epoch = len(found.curves[0]["score"])
            about["seconds"] = round(spent + time.perf_counter() - start, 1)
            print(f"seeds from {begin}, epoch {epoch}: mean score "
                  f"{sum(one['score'][-1] for one in found.curves) / len(found.curves):.2f} after "
                  f"{about['seconds']:.0f} s", file=sys.stderr, flush=True)  # fmt: skip
        done = done + found.curves
        if begin == 0:
            about["early_losses"], episode = found.losses, first_episode(found, given.epochs)
        if given.out is not None:
            write(given.out, about, found._replace(curves=done), episode)
    told = {key: value for key, value in about.items() if key != "settings"}
    print(json.dumps({**told, "from_shipped": from_shipped(done)}))


if __name__ == "__main__":
    main()
