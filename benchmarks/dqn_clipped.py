"""The paper's DQN-clipped baseline with many seeds in one program: how long it takes, and what it scores.

    python benchmarks/dqn_clipped.py --seeds 16 --epochs 50 --out dqn-clipped.json

Runs on whatever JAX finds: one core of a processor, or a GPU. The seconds are for all seeds together, with compiling
and with the 80 greedy episodes after each epoch.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

import numpy as np

from multiadvisor.core.intervals import interval
from multiadvisor.learners.dqn.backend import jax
from multiadvisor.settings import Schedule
from multiadvisor.studies.paper.dqn_clipped import SETTINGS, train


def main() -> None:
    """Train and time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--strides", type=int, nargs=2)
    parser.add_argument("--updates-at-once", type=int)
    parser.add_argument("--envs", type=int)
    given = parser.parse_args()
    changes = {
        name: value for name in ("strides", "updates_at_once", "envs") if (value := getattr(given, name)) is not None
    }
    settings = dataclasses.replace(SETTINGS, learner=dataclasses.replace(SETTINGS.learner_settings, **changes))
    start = time.perf_counter()

    def tell(steps: int, epoch: int, score: float) -> None:
        print(f"epoch {epoch}: mean score {score:.2f} after {time.perf_counter() - start:.0f} s", file=sys.stderr)

    curves = train(range(given.seeds), Schedule(steps=given.epochs * 20_000), settings, tell=tell)
    seconds = time.perf_counter() - start
    last = np.array([curve[-1]["score"] for curve in curves])
    result = {
        "device": jax.devices()[0].device_kind, "seeds": given.seeds, "epochs": given.epochs, "seconds": seconds,
        "steps_per_second": given.seeds * given.epochs * 20_000 / seconds,
        "score_at_the_end": float(last.mean()), "interval": interval(last),
        "settings": dataclasses.asdict(settings), "curves": curves,
    }  # fmt: skip
    if given.out is not None:
        given.out.write_text(json.dumps(result))
    print(json.dumps({key: value for key, value in result.items() if key not in ("curves", "settings")}))


if __name__ == "__main__":
    main()
