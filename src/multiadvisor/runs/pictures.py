"""What episodes looked like: the episodes of a trace, played again in an environment of their own that draws itself.

The episode itself is recorded without pictures, as ever; afterwards its actions are repeated from the same seed in
another instance of the environment, which was made with a render mode. So nothing that drawing does can change an
episode, and an instance that goes another way is found out by its rewards.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from multiadvisor.analysis.episodes import Episodes, Pictures
from multiadvisor.core.optional_dependencies import needed
from multiadvisor.envs.render import picture as board_picture
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf.gvf_spec import mark_of
from multiadvisor.runs.artists import DrawingEnded, replayed
from multiadvisor.runs.drawing import DrawingOrder, Scene
from multiadvisor.task import Task

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LIMIT = 10_000_000
"""Bytes of the pictures of one trace."""
WIDEST, _NARROWEST = 640, 64  # pixels
_LONG = 0.4  # seconds
WISHES, FEARS = 6, 4  # at most so many are drawn in


# ---- one picture -----------------------------------------------------------------------------------------------------
def encode(drawn: np.ndarray | str, factor: int = 1) -> bytes:
    """A picture [height, width, 3] of bytes as PNG, its sides `factor` times shorter; a text as UTF-8.

    >>> pixels(encode(np.full((4, 6, 3), 7, np.uint8), 2)).tolist()[0]
    [[7, 7, 7], [7, 7, 7], [7, 7, 7]]
    """
    if isinstance(drawn, str):
        return drawn.encode("utf-8", "replace")
    image = _pillow().fromarray(drawn).reduce(factor)
    codes = np.asarray(image) @ np.array([1 << 16, 1 << 8, 1])  # [height, width]
    colours, places = np.unique(codes, return_inverse=True)
    if len(colours) <= 256:  # as most environments draw: a palette takes less room
        image = _pillow().fromarray(places.reshape(codes.shape).astype(np.uint8))
        image.putpalette(b"".join(int(colour).to_bytes(3, "big") for colour in colours))
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def pixels(picture: bytes) -> np.ndarray:
    """The picture [height, width, 3] of bytes that a PNG shows."""
    with _pillow().open(io.BytesIO(picture)) as image:
        return np.asarray(image.convert("RGB"))


def _pillow() -> Any:
    """Pillow's `Image`, or what to install."""
    with needed("video"):
        from PIL import Image
    return Image


def facts_of(content: Any, count: int, repeated: int) -> dict[str, Any]:
    """Of pictures, of which so many places show the one before once more."""
    drawn = [_pillow().open(io.BytesIO(one)).size for one in content if one.startswith(SIGNATURE)]
    return {
        "kind": "picture" if drawn else "text", "bytes": sum(map(len, content)), "shown": count, "different":
        len(content), "repeated": repeated, "largest": list(max(drawn)) if drawn else None,
        "smallest": list(min(drawn)) if drawn else None, "limit": LIMIT,
    }  # fmt: skip


def draw_wishes(
    mark: Callable[[np.ndarray, int, float], None], picture: np.ndarray, goals: np.ndarray, said: np.ndarray
) -> None:
    """Draw the strongest wishes and fears into a picture, from the goals pointed at [m] and what each adds [m].

    The strongest comes last, on top; places below 0 are none.
    """
    for sign, most in ((1, WISHES), (-1, FEARS)):
        of_kind = np.flatnonzero((goals >= 0) & (said * sign > 0))
        chosen = of_kind[np.argsort(-np.abs(said[of_kind]), kind="stable")][:most]
        for k in chosen[::-1].tolist():
            mark(picture, int(goals[k]), float(sign * (0.25 + 0.75 * abs(said[k] / said[chosen[0]]))))


# ---- the episodes of a trace, drawn ----------------------------------------------------------------------------------
class Painting:
    """The pictures of one episode of a trace, made in order, some at a time, within a limit of bytes."""

    def __init__(self, trace: Episodes, episode: int, task: Task, limit: int = LIMIT) -> None:
        self.trace, self.episode, self.task, self.limit = trace, episode, task, limit
        self.content: list[bytes] = []
        self.of: list[int] = []  # [steps made]
        self.used = self.repeated = 0
        self.count = int(trace.length[episode]) + 1
        self.reason = ""
        """Why there are no pictures, or no more."""
        self._seen: dict[bytes, int] = {}
        self._factor = 0
        self._scenes: Any = None
        self._going: Any = None
        self._gone = -1
        self._lock = threading.Lock()

    @property
    def done(self) -> bool:
        """Whether no more will come."""
        return len(self.of) == self.count or bool(self.reason)

    def advance(self, until: int, least: int | None = None) -> None:
        """Make pictures up to this step; where it takes long, only up to the step `least`, if that is given."""
        enough, since = min(until + 1, self.count), time.monotonic()

        def late() -> bool:
            return least is not None and len(self.of) > least and time.monotonic() - since > _LONG

        with self._lock:
            while len(self.of) < enough and not self.reason and not late():
                try:
                    with self._drawn(len(self.of), going=self._going) as (going, states):
                        if going is None or going is not self._going:
                            self._going, self._scenes = going, states
                        while len(self.of) < enough and not late():
                            self._add(next(self._scenes))
                except DrawingEnded as error:  # once is an accident: another process goes on from here
                    if self._gone == len(self.of):
                        self.reason = str(error)
                    self._gone = len(self.of)
                except BadInput as error:
                    self.reason = str(error)

    def look_at(self, step: int) -> bytes | None:
        """The picture of one step, for itself: what lies before it is played, but not drawn."""
        if step < len(self.of):
            return self.content[self.of[step]]
        with contextlib.suppress(BadInput), self._drawn(step, step) as (_, states):
            if (drawn := next(states, None)) is None:
                return None
            return encode(drawn, 1 if isinstance(drawn, str) else -(-drawn.shape[1] // 240))
        return None

    @contextlib.contextmanager
    def _drawn(self, first: int, last: int | None = None, going: Any = None) -> Iterator[tuple[Any, Iterator[Any]]]:
        """What the episode looks like before each step from `first` to `last`, and at its end; and what that is made
        of: where that is what was `going`, pictures made of it before go on."""
        trace, task = self.trace, self.task
        if task.world is not None:
            if task.board is None:
                raise BadInput(f"task {task.name!r} cannot be drawn: it has no board")
            yield None, (board_picture(task, x) for x in trace.states(self.episode)[first:])
            return
        header, steps = trace.header, trace.actions_of(self.episode)[:last]
        order = DrawingOrder(header["draws"], header["seed"], self.episode, steps, trace.observed is not None, first)
        with replayed(task, order, going) as found:
            yield found, self._checked(found, first)

    def _checked(self, replayed: Iterator[Scene], first: int) -> Iterator[np.ndarray | str]:
        """The pictures from a step on, as long as the episode goes the same way as before."""
        trace, span = self.trace, self.trace.span(self.episode)
        paid = trace.reward[span]  # [steps, n]
        seen = None if trace.observed is None else trace.observed[trace.walk(self.episode)]  # [steps + 1, d]
        for step, now in enumerate(replayed):
            before = step - 1
            if step and not (
                np.array_equal(now.reward, paid[before])
                and np.isclose(trace.gain[span.start + before], now.gain)
                and (seen is None or np.array_equal(now.numbers, seen[step], equal_nan=True))
            ):
                raise BadInput(f"task {self.task.name!r} is not reproducible from step {before} on: run check_task")
            if step >= first:
                yield self._marked(now.drawn, step) if step < self.count - 1 else now.drawn

    def _marked(self, drawn: np.ndarray | str, step: int) -> np.ndarray | str:
        """With the strongest wishes and fears of a step drawn in, where the advisors point at places."""
        trace, mark = self.trace, mark_of(self.task)
        if isinstance(drawn, str) or trace.goals is None or mark is None:
            return drawn
        seen, action = trace.step(self.episode, step), int(trace.choice[trace.span(self.episode)][step])
        assert seen.goals is not None
        assert seen.advice is not None
        assert seen.weights is not None
        picture = np.array(drawn)
        draw_wishes(mark, picture, seen.goals, seen.weights * seen.advice[:, action])
        return picture

    def _add(self, drawn: np.ndarray | str) -> None:
        raw: Any = drawn.encode("utf-8", "replace") if isinstance(drawn, str) else np.ascontiguousarray(drawn)
        seen = hashlib.blake2b(raw, digest_size=16).digest()
        if seen in self._seen:
            self.of.append(self._seen[seen])
            return
        left = self.count - len(self.of)
        if not self._factor:
            self._factor = 1 if isinstance(drawn, str) else -(-drawn.shape[1] // WIDEST)
        coded = encode(drawn, self._factor)
        while self.used + left * len(coded) > self.limit:
            if isinstance(drawn, str) or drawn.shape[1] < _NARROWEST * (self._factor + 1):
                break
            self._factor += 1
            coded = encode(drawn, self._factor)
        due = self.limit * (len(self.of) + 1) / self.count
        if self.of and self.used + len(coded) > due:
            self.of.append(self.of[-1])  # too large: the one before stays a little longer
            self.repeated += 1
            return
        self._seen[seen] = len(self.content)
        self.of.append(len(self.content))
        self.content.append(coded)
        self.used += len(coded)

    def facts(self) -> dict[str, Any]:
        """How many there are, and how large."""
        return facts_of(self.content, len(self.of), self.repeated)


def with_pictures(trace: Episodes, task: Task, limit: int = LIMIT) -> Episodes:
    """The same trace with a picture of every step; all of them together have at most `limit` bytes."""
    if task.adapter is not None and task.adapter.vector:
        raise BadInput(f"task {task.name!r} is a vector environment: draw a single one")
    content: list[bytes] = []
    place: list[np.ndarray] = []
    total, repeated = int(trace.length.sum()) + len(trace), 0
    for episode in range(len(trace)):
        painting = Painting(trace, episode, task, limit * (int(trace.length[episode]) + 1) // total)
        painting.advance(painting.count)
        if painting.reason:
            raise BadInput(painting.reason)
        place.append(np.array(painting.of) + len(content))
        content, repeated = content + painting.content, repeated + painting.repeated
    header = {**trace.header, "pictures": facts_of(content, total, repeated)}
    return dataclasses.replace(trace, header=header, pictures=Pictures(tuple(content), np.concatenate(place)))
