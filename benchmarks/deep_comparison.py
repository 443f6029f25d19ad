"""Deep multi-advisor learning against single-advisor DQN: the same network and budget, several seeds, intervals.

python benchmarks/deep_comparison.py lunar-lander --seeds 5 --out deep-lunar-lander.json
python benchmarks/deep_comparison.py fruit-grid --seeds 5 --out deep-fruit-grid.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

import numpy as np

from multiadvisor.benchmark import machine
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


def main() -> None:
    """Train every method and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    case = CASES[given.case]
    name, options = case["task"]
    result = {"case": given.case, "machine": machine(), "seeds": given.seeds, "gamma": case["gamma"], "methods": {}}
    result |= {key: case[key] for key in ("epochs", "transitions", "games")}
    result["deep"] = dataclasses.asdict(case["deep"])
    for method, (planning, split) in METHODS.items():
        settings = Settings(planning, gamma=case["gamma"], deep=dataclasses.replace(case["deep"], split=split))
        cohort = Cohort(make(name, **options), settings, range(given.seeds))
        curve, start = [], time.process_time()
        for epoch in range(1, case["epochs"] + 1):
            cohort.learn(epoch * case["transitions"] - cohort.turns)
            curve.append([float(played.score.mean()) for played in cohort.evaluate(case["games"], epoch)])
            print(f"{method} epoch {epoch}: {np.mean(curve[-1]):.2f}", file=sys.stderr)
        scores = np.array(curve)  # [epochs, seeds]
        last, whole = scores[-3:].mean(axis=0), scores.mean(axis=0)
        result["methods"][method] = {
            "last": float(last.mean()), "last_interval": interval(last), "whole": float(whole.mean()),
            "whole_interval": interval(whole), "curve": curve, "cpu_seconds": time.process_time() - start,
        }  # fmt: skip
        row = result["methods"][method]
        low, high = row["last_interval"]
        print(f"{method:12} last 3 of {case['epochs']} epochs {row['last']:8.2f} [{low:.2f}, {high:.2f}], "
              f"all epochs {row['whole']:8.2f}, {row['cpu_seconds']:.0f} s")  # fmt: skip
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
