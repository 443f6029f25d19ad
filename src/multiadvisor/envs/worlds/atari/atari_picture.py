"""The game's own picture with what the advisors want drawn into it."""

from __future__ import annotations

import numpy as np

from multiadvisor.envs.worlds.atari import ram

LEFT, DOWN = -9, 5  # from a position in the memory to the screen
WISH, FEAR = (80, 255, 80), (255, 40, 40)
_HALF = 5  # points


def mark(picture: np.ndarray, cell: int, strength: float) -> None:
    """Draw a frame around a cell into a picture [210, 160, 3]: green for a wish, red for a fear, from faint to bright.

    >>> picture = np.zeros((210, 160, 3), np.uint8)
    >>> mark(picture, 16 * ram.COLUMNS + 18, 0.5)
    >>> picture[98 + DOWN - 5, 88 + LEFT].tolist()
    [40, 127, 40]
    """
    x, y = ram.middle_of(cell)
    x, y = x + LEFT, y + DOWN
    top, bottom = max(y - _HALF, 0), min(y + _HALF, picture.shape[0] - 1)
    left, right = max(x - _HALF, 0), min(x + _HALF, picture.shape[1] - 1)
    colour = np.array(WISH if strength > 0 else FEAR, float)
    share = min(abs(strength), 1.0)
    for part in (
        (top, slice(left, right + 1)), (bottom, slice(left, right + 1)),
        (slice(top, bottom + 1), left), (slice(top, bottom + 1), right),
    ):  # fmt: skip
        picture[part] = (share * colour + (1 - share) * picture[part]).astype(np.uint8)
