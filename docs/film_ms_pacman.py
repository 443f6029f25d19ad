"""docs/images/ms-pacman.gif: some steps of an episode of a saved run, small enough for a page.

python docs/film_ms_pacman.py RUN [SEED [FIRST [STEPS]]]
"""

from __future__ import annotations

import sys
from pathlib import Path

import multiadvisor as mad
from multiadvisor.viz import video
from multiadvisor.viz.goal_overlays import film

FOLDER = Path(__file__).parent / "images"
BOARD = 172  # points from the top: below are lives and the score


def main(run: str, seed: int = 0, first: int = 100, steps: int = 220) -> None:
    """Write the GIF, and say what it shows."""
    seen = film(mad.load(run), episodes=1, seed=seed, scale=1)
    pictures = [picture[:BOARD].repeat(2, axis=0).repeat(2, axis=1) for picture in seen.pictures[first : first + steps]]
    content = video.gif(pictures, speed=15)
    (FOLDER / "ms-pacman.gif").write_bytes(content)
    print(f"{len(pictures)} steps of an episode of {seen.score:,.0f} points, {len(content):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
