"""Do the reward terms in `info` add up to the reward in Gymnasium's MuJoCo environments, also at the end of an episode?

    python benchmarks/mujoco_terms.py [--steps 2000]

Prints a Markdown table: the terms, the largest gap over random play, and over those steps that ended an episode.
"""

from __future__ import annotations

import argparse
import warnings

import gymnasium

import multiadvisor as mad
from multiadvisor.envs.info_terms import first_info, found_advisors, reward_function

PATTERNS = {"InvertedDoublePendulum-v5": "info:reward_*,info:*_penalty"}
IDS = (
    "Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5", "InvertedDoublePendulum-v5",
    "InvertedPendulum-v5", "Pusher-v5", "Reacher-v5", "Swimmer-v5", "Walker2d-v5",
)  # fmt: skip


def gaps(name: str, pattern: str, steps: int) -> tuple[tuple[str, ...], float, float, int]:
    """The terms' names, the largest gap, the largest in a step that terminated, and how many did."""
    env = gymnasium.make(name)
    advisors = [advisor for part in pattern.split(",") for advisor in found_advisors(part, first_info(env))]
    env.reset(seed=0)
    env.action_space.seed(0)
    largest = largest_last = 0.0
    ends = 0
    for _ in range(steps):
        step = env.step(env.action_space.sample())
        transition = mad.Transition(None, 0, step[1], *step[:1], *step[2:])
        gap = abs(step[1] - sum(reward_function(advisor)(transition) for advisor in advisors))
        largest = max(largest, gap)
        if step[2]:
            ends, largest_last = ends + 1, max(largest_last, gap)
        if step[2] or step[3]:
            env.reset()
    return tuple(advisor.name for advisor in advisors), largest, largest_last, ends


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    steps = parser.parse_args().steps
    warnings.simplefilter("ignore")
    print("| environment | advisors | terms | largest gap | in steps that ended an episode |\n|---|---|---|---:|---:|")
    for name in IDS:
        pattern = PATTERNS.get(name, "info:reward_*")
        terms, largest, last, ends = gaps(name, pattern, steps)
        at_ends = f"{last:.1e} ({ends})" if ends else "no episode ended"
        print(f"| {name} | `{pattern}` | {', '.join(terms)} | {largest:.1e} | {at_ends} |", flush=True)


if __name__ == "__main__":
    main()
