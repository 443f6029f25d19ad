"""What games looked like: the games of a trace, played again in an environment of their own that draws itself.

The game itself is recorded without pictures, as ever; afterwards its actions are repeated from the same seed in another
instance of the environment, which was made with a render mode. So nothing that drawing does can change a game, and an
instance that goes another way is found out by its rewards.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from multiadvisor.errors import BadInput, short
from multiadvisor.filming import draw_wishes
from multiadvisor.runs.png import SIGNATURE, png, shrunk, size_of
from multiadvisor.task import Task
from multiadvisor.worlds.episode import games_of
from multiadvisor.worlds.render import picture as board_picture

if TYPE_CHECKING:
    from multiadvisor.runs.trace_file import Trace

LIMIT = 10_000_000
"""Bytes of the pictures of one trace."""
WIDEST, _NARROWEST = 640, 64  # pixels
_LONGEST_TEXT = 20_000  # characters
_LONG = 0.4  # seconds
_NO_SCREEN = "offscreen"  # with the driver "dummy", which any SDL has, highway-env gives black pictures
_MODES = ("rgb_array", "ansi")
_drawing = threading.RLock()
_artist = ThreadPoolExecutor(1, "drawing")
_Made = TypeVar("_Made")


def in_one_thread(draw: Callable[[], _Made]) -> _Made:
    """Draw, always in the same thread: in another one OpenGL shows the same picture again and again, without a word.

    On a Mac only the first thread may draw, and does so where it asks for it.
    """
    if sys.platform == "darwin" and threading.current_thread() is threading.main_thread():
        with _drawing:
            return draw()
    return _artist.submit(draw).result()


@dataclass(frozen=True, eq=False)
class Pictures:
    """A picture before each of the T turns in G games, and one after the last turn of each."""

    content: tuple[bytes, ...]  # each once: PNG, or text in UTF-8
    of: np.ndarray  # [T + G] which of them

    def __getitem__(self, at: int) -> bytes:
        return self.content[int(self.of[at])]

    def tensors(self) -> dict[str, np.ndarray]:
        """For a file."""
        return {
            "pictures": np.frombuffer(b"".join(self.content), np.uint8),
            "picture_ends": np.cumsum([len(one) for one in self.content]).astype(np.int64),
            "picture_of": self.of.astype(np.int32),
        }

    @classmethod
    def decoded(cls, tensors: dict[str, np.ndarray], count: int) -> Pictures | None:
        """From a file; any inconsistency raises."""
        if "pictures" not in tensors:
            return None
        content, ends, of = (tensors[name] for name in ("pictures", "picture_ends", "picture_of"))
        starts = np.concatenate([[0], ends[:-1]])
        if of.shape != (count,) or of.min() < 0 or of.max() >= len(ends) or (ends <= starts).any():
            raise ValueError("pictures")
        if ends[-1] != len(content) or content.dtype != np.uint8:
            raise ValueError("pictures")
        whole = content.tobytes()
        return cls(tuple(whole[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)), of.astype(np.int64))


def facts_of(content: Any, count: int, repeated: int) -> dict[str, Any]:
    """Of pictures, of which so many places show the one before once more."""
    drawn = [size_of(one) for one in content if one.startswith(SIGNATURE)]
    return {
        "kind": "picture" if drawn else "text", "bytes": sum(map(len, content)), "shown": count, "different":
        len(content), "repeated": repeated, "largest": list(max(drawn)) if drawn else None,
        "smallest": list(min(drawn)) if drawn else None, "limit": LIMIT,
    }  # fmt: skip


# ---- an environment that draws itself --------------------------------------------------------------------------------
def _quiet() -> None:
    """Without a screen, and without a loudspeaker: SDL would look for both, and MuJoCo for the first."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("SDL_VIDEODRIVER", _NO_SCREEN)
        os.environ.setdefault("MUJOCO_GL", "egl")


def _made(env: Any, mode: str) -> Any:
    """Another instance of an environment, with a render mode."""
    import gymnasium

    if env.spec is not None:
        return gymnasium.make(env.spec, render_mode=mode, disable_env_checker=True)
    if getattr(env, "render_mode", None) != mode:
        raise BadInput(f"register it with Gymnasium, or make it with render_mode={mode!r}")
    return copy.deepcopy(env)


def drawing_environment(task: Task) -> Any:
    """An instance of the task's environment that draws itself, for this alone; or why there is none."""
    assert task.adapter is not None
    env, reason = task.adapter.env, "it has no render mode that gives a picture or a text"
    offered = [mode for mode in _MODES if mode in (env.metadata.get("render_modes") or ())]
    _quiet()
    while offered:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = _made(env, offered[0])
                found.reset(seed=0)
                looks(found.render())
                return found
            except Exception as error:  # whatever an environment, or a package it misses, may raise
                reason = short(" ".join(str(error).split()) or type(error).__name__, 200)
        if f"{_NO_SCREEN} not available" in reason and os.environ.get("SDL_VIDEODRIVER") == _NO_SCREEN:
            os.environ["SDL_VIDEODRIVER"] = "dummy"
        else:
            offered = offered[1:]
    raise BadInput(f"task {task.name!r} cannot be drawn: {reason}")


def looks(drawn: Any) -> np.ndarray | str:
    """What `render` gave: a picture [height, width, 3] of bytes, or a text."""
    if isinstance(drawn, list) and drawn:
        drawn = drawn[-1]
    if isinstance(drawn, str) or hasattr(drawn, "getvalue"):
        text = drawn if isinstance(drawn, str) else drawn.getvalue()
        return text[:_LONGEST_TEXT]
    image = np.asarray(drawn)
    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, axis=2)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (3, 4) or min(image.shape[:2]) < 1:
        raise BadInput(f"render gave {type(drawn).__name__}, which is neither a picture of bytes nor a text")
    return image[..., :3]


# ---- the games of a trace, drawn -------------------------------------------------------------------------------------
class Painting:
    """The pictures of one game of a trace, made in order, some at a time, within a limit of bytes."""

    def __init__(self, trace: Trace, game: int, task: Task, limit: int = LIMIT) -> None:
        self.trace, self.game, self.task, self.limit = trace, game, task, limit
        self.content: list[bytes] = []
        self.of: list[int] = []  # [turns made]
        self.used = self.repeated = 0
        self.count = int(trace.turns[game]) + 1
        self.reason = ""
        """Why there are no pictures, or no more."""
        self._seen: dict[bytes, int] = {}
        self._factor = 0
        self._steps: Any = None
        self._lock = threading.Lock()

    @property
    def done(self) -> bool:
        """Whether no more will come."""
        return len(self.of) == self.count or bool(self.reason)

    def advance(self, until: int, least: int | None = None) -> None:
        """Make pictures up to this turn; where it takes long, only up to the turn `least`, if that is given."""
        with self._lock:
            if len(self.of) < min(until + 1, self.count) and not self.reason:
                in_one_thread(lambda: self._advance(until, until if least is None else least))

    def _advance(self, until: int, least: int) -> None:
        since = time.monotonic()
        try:
            if self._steps is None:
                self._steps = self._states()
            while len(self.of) < min(until + 1, self.count) and not self.reason:
                if len(self.of) > least and time.monotonic() - since > _LONG:
                    return
                self._add(next(self._steps))
        except BadInput as error:
            self.reason = str(error)
        if self.done:
            self._steps.close()  # and the environment, in the thread that has drawn it

    def look_at(self, turn: int) -> bytes | None:
        """The picture of one turn, for itself: what lies before it is played, but not drawn."""
        if turn < len(self.of):
            return self.content[self.of[turn]]
        return in_one_thread(lambda: self._alone(turn))

    def _alone(self, turn: int) -> bytes | None:
        with contextlib.suppress(BadInput), contextlib.closing(self._states(only=turn)) as states:
            for at, drawn in enumerate(states):
                if at == turn:
                    return _coded(drawn, 1 if isinstance(drawn, str) else -(-drawn.shape[1] // 240))
        return None

    def _states(self, only: int | None = None) -> Any:
        """What the game looks like before each turn, and at its end."""
        trace, task = self.trace, self.task
        if task.world is not None:
            if task.board is None:
                raise BadInput(f"task {task.name!r} cannot be drawn: it has no board")
            for x in trace.states(self.game):
                yield board_picture(task, x)
            return
        env = drawing_environment(task)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield from self._replayed(env, only)
        finally:
            with contextlib.suppress(Exception):
                env.close()

    def _replayed(self, env: Any, only: int | None) -> Any:
        trace, header = self.trace, self.trace.header
        source: Any = games_of(self.task, header["draws"], header["seed"], env=env)
        state = source.deal(self.game)
        paid, span = trace.rewards(self.game), trace.span(self.game)  # [turns, n]
        # [turns + 1, d]
        seen = None if trace.observed is None else trace.observed[span.start + self.game : span.stop + self.game + 1]
        for turn, action in enumerate(trace.steps(self.game)):
            yield self._marked(_drawn(env), turn) if only in (None, turn) else ""
            step = source.step(state, action)
            state, reward = step.after, np.zeros(self.task.n)
            reward[step.advisors] = step.reward
            same = np.array_equal(reward, paid[turn]) and (
                trace.gain is None or trace.gain[span.start + turn] == step.gain
            )
            if seen is not None:
                same = same and np.array_equal(numbers_of(state), seen[turn + 1], equal_nan=True)
            if not same:
                raise BadInput(f"task {self.task.name!r} is not reproducible from turn {turn} on: run check_task")
        yield _drawn(env)

    def _marked(self, drawn: np.ndarray | str, turn: int) -> np.ndarray | str:
        """With the strongest wishes and fears of a turn drawn in, where the advisors point at places."""
        trace, goals = self.trace, self.task.goals
        if isinstance(drawn, str) or trace.goals is None or goals is None or goals.mark is None:
            return drawn
        seen, action = trace.turn(self.game, turn), int(trace.choice[trace.span(self.game)][turn])
        assert seen.goals is not None
        assert seen.advice is not None
        assert seen.weights is not None
        picture = np.array(drawn)
        draw_wishes(goals.mark, picture, seen.goals, seen.weights * seen.advice[:, action])
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
        coded = _coded(drawn, self._factor)
        while self.used + left * len(coded) > self.limit:
            if isinstance(drawn, str) or drawn.shape[1] < _NARROWEST * (self._factor + 1):
                break
            self._factor += 1
            coded = _coded(drawn, self._factor)
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


def numbers_of(observation: Any) -> np.ndarray:
    """An observation as a row of numbers."""
    parts = list(observation.values()) if isinstance(observation, dict) else observation
    return np.ravel(np.asarray(parts, float)).astype(np.float32)


def _drawn(env: Any) -> np.ndarray | str:
    try:
        return looks(env.render())
    except BadInput:
        raise
    except Exception as error:  # whatever its drawing may raise
        raise BadInput(f"it stopped drawing itself: {short(' '.join(str(error).split()), 200)}") from None


def _coded(drawn: np.ndarray | str, factor: int) -> bytes:
    return drawn.encode("utf-8", "replace") if isinstance(drawn, str) else png(shrunk(drawn, factor))


def with_pictures(trace: Trace, task: Task, limit: int = LIMIT) -> Trace:
    """The same trace with a picture of every turn; all of them together have at most `limit` bytes."""
    if task.adapter is not None and task.adapter.vector:
        raise BadInput(f"task {task.name!r} is a vector environment: draw a single one")
    content: list[bytes] = []
    place: list[np.ndarray] = []
    total, repeated = int(trace.turns.sum()) + len(trace), 0
    for game in range(len(trace)):
        painting = Painting(trace, game, task, limit * (int(trace.turns[game]) + 1) // total)
        painting.advance(painting.count)
        if painting.reason:
            raise BadInput(painting.reason)
        place.append(np.array(painting.of) + len(content))
        content, repeated = content + painting.content, repeated + painting.repeated
    header = {**trace.header, "pictures": facts_of(content, total, repeated)}
    return dataclasses.replace(trace, header=header, pictures=Pictures(tuple(content), np.concatenate(place)))
