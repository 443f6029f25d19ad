"""Deep multi-advisor learning against single-advisor DQN: the same network and budget, several seeds, intervals.

python benchmarks/deep_comparison.py lunar-lander --seeds 5 --out deep-lunar-lander.json
python benchmarks/deep_comparison.py fruit-grid --seeds 5 --out deep-fruit-grid.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import numpy as np

from multiadvisor.benchmarks.tables import machine
from multiadvisor.deep import Cohort
from multiadvisor.settings import DeepSettings, Settings
from multiadvisor.statistics import interval
from multiadvisor.worlds.builtin import make

# the weights restore the reward of LunarLander-v3: its engines cost 0.3 and 0.03
CASES = {
    "lunar-lander": {
        "task": ("gymnasium:mo-lunar-lander-v3", {"weights": {
            "landing": 1.0, "shaping": 1.0, "main engine": 0.3, "side engine": 0.03}}),
        "gamma": 0.99, "epochs": 15, "transitions": 10_000, "games": 20,
        "deep": DeepSettings(hidden=(128, 128), batch=64, learning_rate=6e-4, update_every=2, target_every=250,
                             epsilon_turns=15_000, double=True, replay=100_000),
    },
    "fruit-grid": {
        "task": ("fruit-grid", {}), "gamma": 0.9, "epochs": 15, "transitions": 10_000, "games": 50,
        "deep": DeepSettings(hidden=(128, 128), batch=64, learning_rate=6e-4, update_every=2, target_every=250,
                             epsilon_turns=15_000, double=True, replay=100_000, envs=8),
    },
}  # fmt: skip
METHODS = {
    "DQN": ("egocentric", "none"), "egocentric": ("egocentric", "advisors"), "agnostic": ("agnostic", "advisors"),
    "empathic": ("empathic", "advisors"),
}  # fmt: skip


def train(case: dict, method: str, seeds: range) -> list[list[float]]:
    """The mean score of each epoch's games, [epochs][seeds]."""
    planning, split = METHODS[method]
    name, options = case["task"]
    settings = Settings(planning, gamma=case["gamma"], deep=dataclasses.replace(case["deep"], split=split))
    cohort = Cohort(make(name, **options), settings, seeds)
    curve: list[list[float]] = []
    for epoch in range(1, case["epochs"] + 1):
        cohort.learn(epoch * case["transitions"] - cohort.turns)
        curve.append([float(played.score.mean()) for played in cohort.evaluate(case["games"], epoch)])
        print(f"{method} epoch {epoch}: {np.mean(curve[-1]):.2f}", file=sys.stderr)
    return curve


def table(result: dict) -> str:
    """The last three epochs and all of them, with intervals over the seeds."""
    lines = [f"{result['case']} on {result['machine']}: score of greedy games, mean [95% interval] over seeds"]
    for method, curve in result["curves"].items():
        scores = np.array(curve)  # [epochs, seeds]
        last, whole = scores[-3:].mean(axis=0), scores.mean(axis=0)
        shown = ["{:8.2f} [{:.2f}, {:.2f}]".format(each.mean(), *interval(each)) for each in (last, whole)]
        lines.append(f"  {method:12} last 3 epochs {shown[0]}   all {len(scores)} epochs {shown[1]}   "
                     f"{scores.shape[1]} seeds")  # fmt: skip
    return "\n".join(lines)


def merged(parts: list[dict]) -> dict:
    """One result of several that differ in methods or seeds."""
    whole = {**parts[0], "curves": {}}
    for method in METHODS:
        curves = [part["curves"][method] for part in parts if method in part["curves"]]
        if curves:
            whole["curves"][method] = np.concatenate([np.array(curve) for curve in curves], axis=1).tolist()
    return whole


def main() -> None:
    """Train the methods and print a table, or merge the results of several runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--merge", nargs="+", type=Path, help="results to put together in the place of training")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    case = CASES[given.case]
    if given.merge:
        result = merged([json.loads(path.read_text()) for path in sorted(given.merge)])
    else:
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        result = {"case": given.case, "machine": machine(), "deep": dataclasses.asdict(case["deep"])}
        result |= {key: case[key] for key in ("gamma", "epochs", "transitions", "games")}
        result["curves"] = {method: train(case, method, seeds) for method in given.methods}
    print(table(result))
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
