"""Episodes as moving pictures: a recorded episode in, frames out, MP4 and GIF of them; the same bytes every time.

The maze is drawn by `worlds.render`; over it lines lead from Pac-Boy to the advisors that decided the step, and below
it stand step, score and touches.
"""

from __future__ import annotations

import functools
import io
import math
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.analysis.episodes import Episodes
from multiadvisor.core.optional_dependencies import needed
from multiadvisor.envs.render import picture
from multiadvisor.errors import BadInput, short
from multiadvisor.runs.pictures import SIGNATURE, pixels
from multiadvisor.storage.files import write_atomically
from multiadvisor.task import Task

with needed("video"):
    from PIL import Image, ImageDraw, ImageFont

SPEED = 8  # steps a second
HOLD = 12  # frames that the last picture stays
PAPER, INK, QUIET = (250, 250, 247), (25, 28, 40), (105, 110, 125)
FOR, AGAINST = (86, 180, 233), (230, 159, 0)  # sky blue and orange: told apart by colour-blind readers as well
_COLOURS = 64  # of a GIF


def states(task: Task, trace: dict[str, Any]) -> Iterator[np.ndarray]:
    """The states x of a recorded episode, the last one included; fruit goes where Pac-Boy has been."""
    places = task.grid.item_cells
    left = np.isin(places, trace["fruit"])
    for movers in trace["movers"]:
        left = left & (places != movers[0])
        yield np.concatenate([movers, left.astype(np.int64)])


def frames(task: Task, trace: dict[str, Any], title: str, cell: int = 24) -> Iterator[np.ndarray]:
    """The pictures [height, width, 3] of a recorded episode.

    The trace has `movers` (the cells of Pac-Boy and the ghosts before each step, and at the end), `fruit` (cells),
    `actions`, `rewards` and `advisors` (the strongest of each step with their say) of each step.
    """
    score, touches, facing = 0.0, 0, "W"
    steps = len(trace["actions"])
    for step, x in enumerate(states(task, trace)):
        say = trace["advisors"][step] if step < steps else []
        if step < steps:
            facing = task.actions[trace["actions"][step]]
        lines = [f"step {step}   score {score:g}   touches {touches}"]
        lines += [f"{name}  {value:+.3f}" for name, value in say]
        yield _frame(task, x, facing, title, lines, say, cell)
        if step < steps:
            score += trace["rewards"][step]
            # a touch costs ten and a fruit pays one, so that the tens of a loss are touches
            touches += round(max(0.0, 1.0 - trace["rewards"][step]) // 10) if trace["rewards"][step] < 0 else 0


def _frame(
    task: Task, x: np.ndarray, facing: str, title: str, lines: Sequence[str], say: Sequence[Sequence[Any]], cell: int
) -> np.ndarray:
    maze = picture(task, x, cell=cell, facing=facing)
    size = max(10, round(cell * 0.62))
    step = round(size * 1.35)
    head, foot = step + cell // 4, 4 * step + cell // 3
    height, width, _ = maze.shape
    image = Image.new("RGB", (width, _even(height + head + foot)), PAPER)
    image.paste(Image.fromarray(maze), (0, head))
    brush = ImageDraw.Draw(image)
    for name, value in reversed(say):
        _draw_say(brush, task, x, name, value, cell, head)
    font = _font(size)
    brush.text((cell // 4, cell // 8), title, INK, font)
    for k, line in enumerate(lines[:4]):
        colour = INK if k == 0 else QUIET
        at = head + height + cell // 6 + k * step
        if k > 0:
            mark = FOR if say[k - 1][1] > 0 else AGAINST
            brush.rectangle((cell // 4, at + size // 4, cell // 4 + size // 2, at + size), fill=mark)
        brush.text((cell // 4 + (size if k else 0), at), line, colour, font)
    return np.asarray(image)


def _draw_say(
    brush: Any, task: Task, x: np.ndarray, name: str, value: float, cell: int, head: int
) -> None:  # fmt: skip
    """A line from Pac-Boy to what the advisor looks at."""
    j, grid = task.names.index(name), task.grid
    player, *ghosts = grid.movers(x)
    there = ghosts[j] if j < len(ghosts) else grid.item_cells[j - len(ghosts)]
    ends = [tuple((grid.cells[c][::-1] + 0.5) * cell + (0, head)) for c in (player, there)]
    colour = FOR if value > 0 else AGAINST
    brush.line(ends, colour, max(1, cell // 9))
    (a, b), reach = ends[1], 0.42 * cell
    brush.ellipse((a - reach, b - reach, a + reach, b + reach), outline=colour, width=max(1, cell // 12))


@functools.lru_cache(maxsize=8)
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _even(size: int) -> int:
    """Video wants even sides."""
    return size + size % 2


def _alike(pictures: Iterable[np.ndarray]) -> list[np.ndarray]:
    """The pictures in one size, that of the largest: paper to the right and below; a video has no other frames."""
    found = list(pictures)
    if not found:
        raise BadInput("a video needs at least one picture")
    height, width = (max(one.shape[side] for one in found) for side in (0, 1))
    for k, one in enumerate(found):
        if one.shape[:2] != (height, width):
            found[k] = np.full((height, width, 3), PAPER, np.uint8)
            found[k][: one.shape[0], : one.shape[1]] = one
    return found


def gif(pictures: Iterable[np.ndarray], speed: int = SPEED) -> bytes:
    """An animated GIF, which plays anywhere, for ever."""
    images = [Image.fromarray(one) for one in _alike(pictures)]
    apart = math.ceil(math.sqrt(len(images) / 8))  # of all pictures as many pixels as eight of them have
    parts = [np.asarray(one)[::apart, ::apart].reshape(-1, 3) for one in images]
    marks = [np.full((16 * images[0].width, 3), colour, np.uint8) for colour in (FOR, AGAINST)]  # seldom, always told
    sample = np.concatenate([*parts, *marks])[None]
    palette = Image.fromarray(sample).quantize(_COLOURS, Image.Quantize.MEDIANCUT)
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    pause = 10 * round(100 / speed)  # a GIF counts hundredths of a second
    content = io.BytesIO()
    flat[0].save(
        content, "GIF", save_all=True, append_images=flat[1:], loop=0, disposal=1, optimize=False,
        duration=[pause] * (len(flat) - 1) + [pause * HOLD],
    )  # fmt: skip
    return content.getvalue()


def mp4(pictures: Iterable[np.ndarray], speed: int = SPEED) -> bytes:
    """An MP4 (H.264) by the ffmpeg that comes with imageio-ffmpeg: one thread and no dates, so that it repeats."""
    with needed("video"):
        import imageio_ffmpeg
    images = [np.ascontiguousarray(one) for one in _alike(pictures)]
    images += [images[-1]] * HOLD
    height, width, _ = images[0].shape
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(speed), "-i", "-"]
    plain = ["-threads", "1", "-bitexact", "-map_metadata", "-1", "-movflags", "+faststart"]
    coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "26", "-preset", "medium", *plain]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "episode.mp4"
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", *raw, *coded, str(path)]
        done = subprocess.run(
            command, input=b"".join(one.tobytes() for one in images), capture_output=True, check=False
        )
        if done.returncode != 0:
            reason = " ".join(done.stderr.decode(errors="replace").split())[-200:]
            raise BadInput(f"the video could not be made: {reason or 'ffmpeg failed'}")
        return path.read_bytes()


def poster(episodes: Sequence[Sequence[np.ndarray]], moments: Sequence[float] = (0.0, 0.35, 0.7, 1.0)) -> bytes:
    """A grid as PNG: a row for each episode, and in it the pictures at these parts of its length."""
    gap = 8
    rows = []
    for pictures in episodes:
        chosen = [pictures[round(part * (len(pictures) - 1))] for part in moments]
        spaced = [part for one in chosen for part in (one, np.full((len(one), gap, 3), 255, np.uint8))][:-1]
        rows.append(np.concatenate(spaced, axis=1))
        rows.append(np.full((gap, rows[0].shape[1], 3), 255, np.uint8))
    image = Image.fromarray(np.concatenate(rows[:-1], axis=0)).quantize(_COLOURS, Image.Quantize.MEDIANCUT)
    content = io.BytesIO()
    image.save(content, "PNG", optimize=True)
    return content.getvalue()


# ---- any episode of a trace ------------------------------------------------------------------------------------------
_WIDE = 480  # pixels, at least
_TERMS = 6  # lines of the caption


def trace_frames(
    trace: Episodes, episode: int, steps: Sequence[int] | None = None, title: str = ""
) -> Iterator[np.ndarray]:
    """The pictures of one episode, each above what its terms have paid so far; of all steps, or of these."""
    if trace.pictures is None:
        raise BadInput("the trace has no pictures: record it with them")
    span, returns, rewards = trace.span(episode), trace.returns(episode), trace.reward[trace.span(episode)]
    length, advisors = span.stop - span.start, trace.header["advisors"]
    names, groups = ([one.get(what) or one["name"] for one in advisors] for what in ("name", "group"))
    shown = names if len(names) <= _TERMS else groups
    terms = list(dict.fromkeys(shown))[:_TERMS]
    members = [[j for j, name in enumerate(shown) if name == term] for term in terms]
    most = max(float(np.abs(returns[:, part].sum(axis=1)).max()) for part in members) or 1.0
    for step in range(length + 1) if steps is None else steps:
        action = trace.action_text(span.start + step) if step < length else "the end"
        score = float(trace.gain[span][:step].sum())
        head = f"{title}step {step}: {short(action, 48)}   score {score:g}"
        lines = []
        for term, part in zip(terms, members, strict=True):
            now = float(rewards[step, part].sum()) if step < length else 0.0
            lines.append((term, float(returns[step, part].sum()), now))
        yield _captioned(_seen(trace.pictures[span.start + episode + step]), head, lines, most)


def _seen(content: bytes) -> Any:
    """A picture, or a text as one."""
    if content.startswith(SIGNATURE):
        image = Image.fromarray(pixels(content))
    else:
        rows = re.sub(r"\x1b\[[\d;]*m", "", content.decode("utf-8", "replace")).splitlines() or [""]
        wide, tall = 12, 20
        image = Image.new("RGB", (wide * (2 + max(map(len, rows))), tall * (1 + len(rows))), PAPER)
        brush = ImageDraw.Draw(image)
        for at, row in enumerate(rows):
            for k, sign in enumerate(row):
                brush.text((wide * (1 + k), tall * at + 8), sign, INK, _font(16))
    larger = -(-_WIDE // image.width)
    return image.resize((image.width * larger, image.height * larger), Image.Resampling.NEAREST)


def _captioned(image: Any, head: str, lines: Sequence[tuple[str, float, float]], most: float) -> np.ndarray:
    step, size = 24, 15
    width, height = _even(image.width), _even(image.height + step * (len(lines) + 1) + 12)
    canvas = Image.new("RGB", (width, height), PAPER)
    canvas.paste(image, (0, 0))
    brush, font = ImageDraw.Draw(canvas), _font(size)
    brush.text((8, image.height + 6), head, INK, font)
    middle, reach = round(width * 0.62), round(width * 0.3)
    for k, (name, total, now) in enumerate(lines, start=1):
        at = image.height + 8 + k * step
        paid = f"  {now:+.3g}" if now else ""
        brush.text((8, at), f"{name}  {total:g}{paid}", QUIET, font)
        end = middle + round(reach * total / most)
        brush.rectangle((min(middle, end), at + 4, max(middle, end), at + size), fill=FOR if total >= 0 else AGAINST)
        brush.line((middle, at + 1, middle, at + size + 3), INK)
    return np.asarray(canvas)


def save_video(pictures: Iterable[np.ndarray], path: Path, speed: int = SPEED) -> None:
    """As a GIF or an MP4, by the name's ending; `speed`: so many a second."""
    coder = {".gif": gif, ".mp4": mp4}.get(path.suffix.lower())
    if coder is None:
        raise BadInput(f"{str(path)!r} is not the name of a video: end it in .mp4 or .gif")
    write_atomically(path, coder(pictures, speed))


def save_episode(task: Task, trace: dict[str, Any], title: str, base: Path) -> list[np.ndarray]:
    """The episode as `base`.gif and `base`.mp4; the pictures of the GIF."""
    small = list(frames(task, trace, title, cell=16))
    write_atomically(Path(f"{base}.gif"), gif(small))
    write_atomically(Path(f"{base}.mp4"), mp4(frames(task, trace, title, cell=32)))
    return small
