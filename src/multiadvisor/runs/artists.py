"""Who draws episodes: processes of their own, in which whatever goes wrong costs a picture, and no more.

Many environments, when they are closed, close a library for the whole process (`pygame.quit`), and some crash. So a
process has one of them open at a time, and can be started anew. It makes the task again by its name and options. A
task for which that does not do is drawn here: one at a time as well, and always in the same thread.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from multiadvisor.core.identity import same
from multiadvisor.envs.registry import make
from multiadvisor.errors import BadInput
from multiadvisor.runs.child_process import Child, messages
from multiadvisor.runs.drawing import DrawingOrder, Scene, scenes
from multiadvisor.task import Task

_PATIENCE = 60  # seconds for a picture, after which its process is ended
_PROCESSES = 2  # so many episodes are drawn at once: a page shows two side by side
_drawing = threading.RLock()
_thread = ThreadPoolExecutor(1, "drawing")
_Result = TypeVar("_Result")


class DrawingEnded(BadInput):
    """The process that drew has ended before its time."""


class _NotMade(Exception):
    """A process of its own cannot make the task."""


def in_one_thread(draw: Callable[[], _Result]) -> _Result:
    """Draw, always in the same thread: in another one OpenGL shows the same picture again and again, without a word.

    On a Mac only the first thread may draw, and does so where it asks for it.
    """
    if sys.platform == "darwin" and threading.current_thread() is threading.main_thread():
        with _drawing:
            return draw()
    return _thread.submit(draw).result()


class _Artist:
    """Draws one episode at a time: here, or in a process that is started when it is first wanted, or has ended."""

    def __init__(self, away: bool) -> None:
        self.away = away
        self.child: Child | None = None
        self.going: Generator[Any] | None = None
        """The scenes of an episode, as long as there is more of it."""
        self.lock, self.used = threading.Lock(), 0.0
        atexit.register(self.end)

    def begin(self, task: Task, order: DrawingOrder) -> Iterator[Scene]:
        """Leave the episode before, and begin this one."""
        self.leave()
        self.going = found = (self._elsewhere if self.away else self._here)(task, order)
        next(found)  # it has begun
        return found

    def leave(self) -> None:
        """Leave the episode, wherever it is."""
        if self.going is not None:
            self.going.close()
        self.going = None

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.child is not None:
            self.child.close()
            self.child = None

    def _here(self, task: Task, order: DrawingOrder) -> Generator[Any]:
        own = scenes(task, order)
        try:
            yield None
            for _ in order.actions:
                yield in_one_thread(lambda: next(own))
            last = in_one_thread(lambda: next(own))
        finally:
            in_one_thread(own.close)
            self.going = None
        yield last

    def _elsewhere(self, task: Task, order: DrawingOrder) -> Generator[Any]:
        if self.child is None or self.child.process.poll() is not None:
            self.end()  # what is left of the one before
            self.child = Child("multiadvisor.runs.artists")
        actions = np.asarray(order.actions)
        plain = order._replace(actions=(actions.dtype.str, actions.shape))._asdict()
        try:
            if not self._asked(task, [*_known(task), plain], actions.tobytes())["made"]:
                raise _NotMade
            yield None
            for _ in order.actions:
                yield self._scene(task)
            last = self._scene(task)
        except (BadInput, _NotMade, GeneratorExit):
            raise
        except BaseException:
            self.end()  # an answer may be on its way
            raise
        finally:
            self.going = None
        yield last

    def _scene(self, task: Task) -> Scene:
        """The next one, from the process."""
        found = self._asked(task, None)
        raw, reward, numbers = (self._read(task) for _ in range(3))
        shape = found["shape"]
        drawn = raw.decode() if shape is None else np.frombuffer(raw, np.uint8).reshape(shape)
        return Scene(drawn, np.frombuffer(reward), found["gain"], np.frombuffer(numbers, np.float32))

    def _asked(self, task: Task, what: Any, *more: bytes) -> dict[str, Any]:
        """The answer, or the complaint that was one."""
        assert self.child is not None
        try:
            for part in (json.dumps(what).encode(), *more):
                self.child.pipe.send_bytes(part)
        except OSError:
            raise self._gone(task) from None
        found: dict[str, Any] = json.loads(self._read(task))
        if "complaint" in found:
            raise BadInput(found["complaint"])
        return found

    def _read(self, task: Task) -> bytes:
        assert self.child is not None
        try:
            if self.child.pipe.poll(_PATIENCE):
                return self.child.pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._gone(task) from None
        raise self._gone(task, f"gave no picture for {_PATIENCE} seconds")

    def _gone(self, task: Task, how: str = "") -> DrawingEnded:
        """The complaint about its end; without `how`, it came by itself."""
        assert self.child is not None
        how = how or self.child.last_words()
        self.end()
        return DrawingEnded(f"task {task.name!r} cannot be drawn: the process that draws it {how}")


_here = [_Artist(away=False)]
_away = [_Artist(away=True) for _ in range(_PROCESSES)]
_unmade: set[str] = set()


@contextlib.contextmanager
def replayed(task: Task, order: DrawingOrder, going: Iterator[Scene] | None = None) -> Iterator[Iterator[Scene]]:
    """The scenes of an episode: those that are `going`, if whoever draws them has not been asked for others since."""
    kind = json.dumps(_known(task)) if task.maker else ""
    for artists in (_away, _here) if kind and kind not in _unmade else (_here,):
        with _taken(artists, going) as artist:
            try:
                stopped = going is None or artist.going is not going
                found = artist.begin(task, order) if stopped else going
            except _NotMade:
                _unmade.add(kind)
                continue
            assert found is not None
            yield found
            return


def end_idle() -> None:
    """End the processes that draw nothing at this moment; whoever wants a picture starts one again."""
    for artist in _away:
        if artist.lock.acquire(blocking=False):
            try:
                artist.leave()
                artist.end()
            finally:
                artist.lock.release()


@contextlib.contextmanager
def _taken(artists: list[_Artist], going: object) -> Iterator[_Artist]:
    """One of them for a while: who is at this episode, or at none, or whose episode was wanted longest ago."""
    artist = min(artists, key=lambda one: (one.going is not going, one.lock.locked(), one.used if one.going else -1.0))
    with artist.lock:
        try:
            yield artist
        finally:
            artist.used = time.monotonic()


# ---- the process -----------------------------------------------------------------------------------------------------
def _serve(number: str, *names: str) -> None:
    """Answer until nobody asks any more: a list begins an episode, its actions follow; null asks for a scene."""
    pipe, asked = messages(number, *names)
    going: Any = iter(())
    for content in asked:
        wanted, parts = json.loads(content), []
        try:
            if wanted is None:
                scene = next(going)
                text = isinstance(scene.drawn, str)
                raw = scene.drawn.encode("utf-8", "replace") if text else np.ascontiguousarray(scene.drawn).tobytes()
                parts = [raw, scene.reward.tobytes(), scene.numbers.tobytes()]
                head: dict[str, Any] = {"shape": None if text else scene.drawn.shape, "gain": scene.gain}
            else:
                if hasattr(going, "close"):
                    going.close()
                kind, shape = wanted[4]["actions"]
                actions: Any = np.frombuffer(next(asked), kind).reshape(shape)
                actions = list(actions) if actions.dtype.kind == "f" else actions.tolist()
                task = _again(*wanted[:4])
                head = {"made": task is not None}
                going = None if task is None else scenes(task, DrawingOrder(**{**wanted[4], "actions": actions}))
        except BadInput as error:
            head = {"complaint": str(error)}
        for part in (json.dumps(head).encode(), *parts):
            pipe.send_bytes(part)


def _known(task: Task) -> list[Any]:
    """What a task is made again from, and known again by; no picture depends on its weights."""
    return [task.name, task.maker, task.options, {**task.identity, "weights": None}]


def _again(name: str, maker: str, options: dict[str, Any], identity: dict[str, Any]) -> Task | None:
    """The task, where it is the same one: who registers something in a program of his own does so there alone."""
    try:
        task = dataclasses.replace(make(maker, **options), name=name)
    except Exception:  # whatever a maker of the user's may raise
        return None
    return task if same(_known(task)[3], identity) else None


if __name__ == "__main__":
    _serve(*sys.argv[1:])
