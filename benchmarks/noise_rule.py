"""Does `multiadvisor solve TASK --noise SIGMA` name the better setting? One run of each of the two in many cases.

    python benchmarks/noise_rule.py            # some five minutes on one core
    python benchmarks/noise_rule.py --seed 701

Of every case it prints the noise up to which the rule would take egocentric advisors, the scores of both, and whether
what it named was better, equal (within a point), or worse.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import multiadvisor as mad
from multiadvisor.analysis.theory.noise_bounds import ALPHA_HALF, choose
from multiadvisor.studies.study import Plan
from studies.mazes import Maze, choice_mazes, report_mazes
from studies.schemes import EGO_MAX, EMP_MAX, Case, Scheme, run_job, run_work

NOISES = {
    "Pac-Boy": (0.01, 0.03, 0.1, 0.2, 0.3), "corridor": (0.03, 0.1, 0.3), "open": (0.03, 0.1, 0.3),
    "medium maze": (0.01, 0.03, 0.1), "large": (0.0, 0.01, 0.03, 0.1),
}  # fmt: skip


def score(scheme: Scheme, maze: Maze, noise: float, seed: int) -> float:
    """The mean of the last ten epochs of a run at the paper's length."""
    return float(run_work(run_job(scheme, Case(maze, noise), seed, Plan(full=True)).config)["last"]["score"])


def main() -> None:
    """All cases, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=700)
    seed = parser.parse_args().seed
    mazes = {**choice_mazes(), **report_mazes()}
    empathic = replace(EMP_MAX, alpha_half=ALPHA_HALF)
    for name, noises in NOISES.items():
        task = mad.make("pac-boy", **mazes[name].options)
        for noise in noises:
            named = choose(task, noise)
            one, other = (score(scheme, mazes[name], noise, seed) for scheme in (EGO_MAX, empathic))
            lead = one - other if "egocentric" in named.use else other - one
            word = "equal" if abs(lead) <= 1.0 else "better" if lead > 0 else "worse"
            print(
                f"{name}, noise {noise:g} (limit {named.limit:.2g}): egocentric {one:.1f}, empathic {other:.1f}, {word}"
            )


if __name__ == "__main__":
    main()
