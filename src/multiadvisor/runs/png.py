"""Pictures as PNG in a few lines: at most 256 colours, which is all that most environments draw with."""

from __future__ import annotations

import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = 256
_BITS = 5  # of each channel, by which colours are told apart


def png(image: np.ndarray) -> bytes:
    """A picture [height, width, 3] of bytes as PNG with a palette of its own.

    >>> png(np.zeros((2, 3, 3), np.uint8))[:8] == SIGNATURE
    True
    """
    height, width, _ = image.shape
    places, palette = _palette(image)
    rows = np.zeros((height, width + 1), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = places
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = {b"IHDR": head, b"PLTE": palette.tobytes(), b"IDAT": zlib.compress(rows.tobytes(), 6), b"IEND": b""}
    return SIGNATURE + b"".join(_chunk(name, body) for name, body in parts.items())


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _palette(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place [height, width] of each colour in a palette [colours, 3]: the commonest, and the nearest of them."""
    flat, drop, size = image.reshape(-1, 3), 8 - _BITS, 1 << 3 * _BITS
    red, green, blue = (flat[:, k].astype(np.uint16) >> drop for k in range(3))
    keys = (red << 2 * _BITS) | (green << _BITS) | blue  # [pixels]
    count = np.bincount(keys, minlength=size)
    there = np.flatnonzero(count)
    example = np.zeros(size, np.int64)
    example[keys] = np.arange(len(keys))
    colours = flat[example[there]].astype(np.float32)  # [colours there, 3]
    order = np.argsort(-count[there], kind="stable")
    kept, rest = order[:_COLOURS], order[_COLOURS:]
    place = np.zeros(len(there), np.uint8)
    place[kept] = np.arange(len(kept), dtype=np.uint8)
    near = (colours[kept] ** 2).sum(axis=1) - 2 * colours[rest] @ colours[kept].T  # [rest, kept] but for a constant
    place[rest] = near.argmin(axis=1)
    look = np.zeros(size, np.uint8)
    look[there] = place
    return look[keys].reshape(image.shape[:2]), colours[kept].astype(np.uint8)


def shrunk(image: np.ndarray, factor: int) -> np.ndarray:
    """A picture with sides that are `factor` times shorter: means of squares.

    >>> shrunk(np.full((4, 6, 3), 9, np.uint8), 2).shape
    (2, 3, 3)
    """
    if factor == 1:
        return image
    height, width = (max(side // factor, 1) for side in image.shape[:2])
    part = image[: height * factor, : width * factor]
    tall, wide = (side // of for side, of in zip(part.shape[:2], (height, width), strict=True))
    squares = part.reshape(height, tall, width, wide, 3).mean(axis=(1, 3))
    return np.rint(squares).astype(np.uint8)


def size_of(picture: bytes) -> tuple[int, int]:
    """Width and height of a PNG.

    >>> size_of(png(np.zeros((2, 3, 3), np.uint8)))
    (3, 2)
    """
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


def pixels(picture: bytes) -> np.ndarray:
    """A picture [height, width, 3] of bytes from what `png` wrote.

    >>> pixels(png(np.full((2, 3, 3), 7, np.uint8))).tolist()[0][0]
    [7, 7, 7]
    """
    width, height = size_of(picture)
    parts, at = {}, len(SIGNATURE)
    while at < len(picture):
        (size,) = struct.unpack(">I", picture[at : at + 4])
        parts[picture[at + 4 : at + 8]] = picture[at + 8 : at + 8 + size]
        at += 12 + size
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    found: np.ndarray = np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)[rows[:, 1:]]
    return found
