"""How the ghosts of Ms. Pac-Man move, beside her: the numbers that `multiadvisor.envs.worlds.atari.ms_pacman` is set
by.

python benchmarks/ms_pacman_ghosts.py runs/pacman --episodes 5
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from multiadvisor import load
from multiadvisor.envs.worlds.atari import ram

NAMES = {ram.HUNTING: "hunting", ram.EDIBLE: "edible"}


def main() -> None:
    """Play some episodes of a saved run and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--episodes", type=int, default=5)
    given = parser.parse_args()
    cells, steps, back, own = Counter[int](), Counter[int](), Counter[int](), [0, 0]
    ticks, timed = 0, 0
    bank = load(given.run).decider
    for step in (step for episode in range(given.episodes) for step in bank.play(episode, 0)):
        before, after = step.state, step.next_state
        if before[ram.LIVES] != after[ram.LIVES] or (after[ram.PELLET] > before[ram.PELLET]).any():
            continue
        own[0] += int(before[ram.CELL] != after[ram.CELL])
        own[1] += 1
        if 0 < after[ram.TIMER] <= before[ram.TIMER]:
            ticks += int(before[ram.TIMER] - after[ram.TIMER])
            timed += 1
        for k in range(ram.GHOSTS):
            state = int(before[ram.GHOST_STATE][k])
            rows, columns = np.divmod([before[ram.GHOST_CELL][k], after[ram.GHOST_CELL][k]], ram.COLUMNS)
            far = int(abs(np.diff(rows)[0]) + abs(np.diff(columns)[0]))
            if state == ram.AWAY or after[ram.GHOST_STATE][k] != state or far > 6:  # a tunnel
                continue
            cells[state] += far
            steps[state] += 1
            turned = int(after[ram.GHOST_DIRECTION][k] - before[ram.GHOST_DIRECTION][k]) % ram.DIRECTIONS
            back[state] += int(turned == 2)
    print(f"Ms. Pac-Man: {own[0] / own[1]:.2f} cells a step, {own[1]:,} steps")
    for state, name in NAMES.items():
        speed = cells[state] / max(steps[state], 1)
        print(f"{name}: {speed:.2f} cells a step, turned back {back[state]} times in {steps[state]:,} steps")
    print(f"the timer goes down by {ticks / max(timed, 1):.2f} a step")


if __name__ == "__main__":
    main()
