"""docs/images/ms-pacman.gif: some steps of an episode of a saved run, small enough for a page.

python docs/film_ms_pacman.py RUN [SEED [FIRST [STEPS]]]
"""

from __future__ import annotations

import sys
from pathlib import Path

import multiadvisor as mad
from multiadvisor.analysis.episodes import record
from multiadvisor.runs.pictures import Painting, pixels
from multiadvisor.viz import video

FOLDER = Path(__file__).parent / "images"
BOARD = 172  # points from the top: below are lives and the score


def main(run: str, seed: int = 0, first: int = 100, steps: int = 220) -> None:
    """Write the GIF, and say what it shows."""
    agent = mad.load(run)
    trace = record(agent, 1, seed)
    painting = Painting(trace, 0, agent.task, limit=1 << 30)
    painting.advance(first + steps)
    drawn = [pixels(painting.content[k])[:BOARD] for k in painting.of[first : first + steps]]
    pictures = [picture.repeat(2, axis=0).repeat(2, axis=1) for picture in drawn]
    content = video.gif(pictures, speed=15)
    (FOLDER / "ms-pacman.gif").write_bytes(content)
    print(f"{len(pictures)} steps of an episode of {trace.score[0]:,.0f} points, {len(content):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
