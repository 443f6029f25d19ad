"""Deep multi-advisor learning against single-advisor DQN: the same network and budget, several seeds, intervals.

And which of the deep learner's own choices help DQN, chosen on some seeds and told of others.

python benchmarks/deep_comparison.py lunar-lander --seeds 5 --out deep-lunar-lander.json
python benchmarks/deep_comparison.py fruit-grid --seeds 5 --out deep-fruit-grid.json
python benchmarks/deep_comparison.py cart-pole --seeds 20 --first-seed 100 --out deep-cart-pole.json
python benchmarks/deep_comparison.py cart-pole-tuned --seeds 10 --first-seed 100 --out deep-cart-pole-tuned.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import numpy as np

from measures.deep import RETURNS
from measures.tables import machine
from multiadvisor.core.intervals import interval
from multiadvisor.envs.registry import make
from multiadvisor.learners.dqn.dqn_learner import Cohort
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.settings import Schedule, Settings


def advisors(planning: str, split: str = "advisors") -> tuple[str, dict]:
    """A method that splits the task, or does not."""
    return planning, {"split": split}


def choice(random_start: bool, double: bool) -> tuple[str, dict]:
    """DQN with or without these."""
    return "egocentric", {"split": "none", "random_start": random_start, "double": double}


SPLIT = {
    "DQN": advisors("egocentric", "none"), "egocentric": advisors("egocentric"), "agnostic": advisors("agnostic"),
    "empathic": advisors("empathic"),
}  # fmt: skip
CHOICES = {
    "plain": choice(False, False), "random-start": choice(True, False), "double": choice(False, True),
    "both": choice(True, True),
}  # fmt: skip
LANDER = DQN(hidden=(128, 128), batch_size=64, learning_rate=6e-4, train_freq=2, target_update_interval=250,
                      epsilon_steps=15_000, double=True, random_start=False, buffer_size=100_000)  # fmt: skip
# the weights restore the reward of LunarLander-v3: its engines cost 0.3 and 0.03
CASES = {
    "lunar-lander": {
        "task": ("mo-lunar-lander-v3", {"weights": {
            "landing": 1.0, "shaping": 1.0, "main engine": 0.3, "side engine": 0.03}}),
        "gamma": 0.99, "steps": 150_000, "eval_every": 10_000, "eval_episodes": 20, "deep": LANDER, "methods": SPLIT,
    },
    "fruit-grid": {
        "task": ("fruit-grid", {}), "gamma": 0.9, "steps": 150_000, "eval_every": 10_000, "eval_episodes": 50,
        "deep": dataclasses.replace(LANDER, n_envs=8), "methods": SPLIT,
    },
    "cart-pole": {  # the network as it is by default
        "task": ("CartPole-v1", {}), "gamma": 0.99, "steps": 50_000, "eval_every": 5_000, "eval_episodes": 10,
        "deep": DQN(), "methods": CHOICES,
    },
    "cart-pole-tuned": {  # and with Stable-Baselines3's tuned figures
        "task": ("CartPole-v1", {}), "gamma": 0.99, "epsilon": 0.04, "steps": 50_000, "eval_every": 5_000,
        "eval_episodes": 10, "deep": RETURNS["CartPole-v1"].deep, "methods": CHOICES,
    },
}  # fmt: skip


def train(case: dict, method: str, seeds: range) -> list[list[float]]:
    """The mean score of each evaluation's episodes, [evaluations][seeds]."""
    planning, changes = case["methods"][method]
    name, options = case["task"]
    settings = Settings(planning, gamma=case["gamma"], epsilon=case.get("epsilon", 0.05),
                        learner=dataclasses.replace(case["deep"], **changes))  # fmt: skip
    cohort = Cohort(make(name, **options), settings, seeds)
    curve: list[list[float]] = []
    schedule = Schedule(*(case[name] for name in ("steps", "eval_every", "eval_episodes")))
    for number in range(1, schedule.evaluations + 1):
        cohort.learn(schedule.due(number) - cohort.steps)
        curve.append([float(played.score.mean()) for played in cohort.evaluate(schedule.eval_episodes, number)])
        print(f"{method}, {schedule.due(number):,} steps: {np.mean(curve[-1]):.2f}", file=sys.stderr)
    return curve


def table(result: dict) -> str:
    """The last three evaluations and all of them, with intervals over seeds; and what each gains on the first one."""
    first = None
    lines = [f"{result['case']} on {result['machine']}: score of greedy episodes, mean [95% interval] over seeds"]
    for method, curve in result["curves"].items():
        scores = np.array(curve)  # [evaluations, seeds]
        last, whole = scores[-3:].mean(axis=0), scores.mean(axis=0)
        shown = ["{:8.2f} [{:.2f}, {:.2f}]".format(each.mean(), *interval(each)) for each in (last, whole)]
        lines.append(f"  {method:12} last 3 evaluations {shown[0]}   all {len(scores)} evaluations {shown[1]}   "
                     f"{scores.shape[1]} seeds")  # fmt: skip
        if first is not None and whole.shape == first.shape:
            gain = whole - first  # seed by seed
            lines[-1] += "   gain, all of them {:+.2f} [{:+.2f}, {:+.2f}]".format(gain.mean(), *interval(gain))
        first = whole if first is None else first
    return "\n".join(lines)


def merged(parts: list[dict]) -> dict:
    """One result of several that differ in methods or seeds."""
    whole = {**parts[0], "curves": {}}
    for method in CASES[whole["case"]]["methods"]:
        curves = [part["curves"][method] for part in parts if method in part["curves"]]
        if curves:
            whole["curves"][method] = np.concatenate([np.array(curve) for curve in curves], axis=1).tolist()
    return whole


def main() -> None:
    """Train the methods and print a table, or merge the results of several runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--methods", nargs="+", choices=[*SPLIT, *CHOICES], help="some of the case's; not given: all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--merge", nargs="+", type=Path, help="results to merge instead of training")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    case = CASES[given.case]
    if given.merge:
        result = merged([json.loads(path.read_text()) for path in sorted(given.merge)])
    else:
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        result = {"case": given.case, "machine": machine(), "deep": dataclasses.asdict(case["deep"])}
        result |= {key: case[key] for key in ("gamma", "steps", "eval_every", "eval_episodes")}
        methods = [method for method in case["methods"] if method in (given.methods or case["methods"])]
        result["curves"] = {method: train(case, method, seeds) for method in methods}
    print(table(result))
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
