"""Who draws episodes: processes of their own, in which whatever goes wrong costs a picture, and no more.

Many environments, when they are closed, close a library for the whole process (`pygame.quit`), and some crash. So a
process has one of them open at a time, and can be started anew. It makes the task again by its name and options. A
task for which that does not do is drawn here: one at a time as well, and always in the same thread.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import faulthandler
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import numpy as np

from multiadvisor.core import plugins
from multiadvisor.core.identity import same
from multiadvisor.errors import BadInput
from multiadvisor.runs.drawing import Order, Scene, scenes
from multiadvisor.task import Task

_PATIENCE = 60  # seconds for a picture, after which its process is ended
_PROCESSES = 2  # so many episodes are drawn at once: a page shows two side by side
_drawing = threading.RLock()
_thread = ThreadPoolExecutor(1, "drawing")
_Made = TypeVar("_Made")


class Gone(BadInput):
    """The process that drew has ended before its time."""


class _Unmade(Exception):
    """A process of its own cannot make the task."""


def in_one_thread(draw: Callable[[], _Made]) -> _Made:
    """Draw, always in the same thread: in another one OpenGL shows the same picture again and again, without a word.

    On a Mac only the first thread may draw, and does so where it asks for it.
    """
    if sys.platform == "darwin" and threading.current_thread() is threading.main_thread():
        with _drawing:
            return draw()
    return _thread.submit(draw).result()


class _Artist:
    """Draws one episode at a time, in this process."""

    owner: object = None
    """Whose episode that is, as long as there is more of it."""
    busy = False
    used = 0.0
    _left = 0
    _scenes: Any = None

    def take_up(self, task: Task, owner: object, order: Order) -> None:
        """Leave the episode before, and begin this one."""
        self.owner = None
        self._begin(task, order)
        self.owner, self._left = owner, len(order.actions) + 1

    def scene(self) -> Scene:
        """The next one of the episode."""
        found = self._next()
        self._left -= 1
        if not self._left:
            self.owner = None
        return found

    def give_up(self) -> None:
        """Leave the episode in the middle of a scene."""
        self.owner = None

    def _begin(self, task: Task, order: Order) -> None:
        def change() -> None:
            if self._scenes is not None:
                self._scenes.close()
            self._scenes = scenes(task, order)

        in_one_thread(change)

    def _next(self) -> Scene:
        found: Scene = in_one_thread(lambda: next(self._scenes))
        return found


class _Away(_Artist):
    """Draws in a process of its own, which is started when it is first wanted, and again where it has ended."""

    _pipe: Connection

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._task = ""
        atexit.register(self._end)

    def _start(self) -> None:
        self._end()  # what is left of the one before
        self._pipe, theirs = Pipe()
        # what Python finds here it finds there; Ctrl-C is for this process alone
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "multiadvisor.runs.artists", str(theirs.fileno()), *plugins.IMPORTED],
            stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            pass_fds=(theirs.fileno(),), process_group=0,
        )  # fmt: skip
        theirs.close()

    def _begin(self, task: Task, order: Order) -> None:
        self._task = task.name
        if self.process is None or self.process.poll() is not None:
            self._start()
        actions = np.asarray(order.actions)
        plain = order._replace(actions=(actions.dtype.str, actions.shape))._asdict()
        if not self._asked([*_known(task), plain], actions.tobytes())["made"]:
            raise _Unmade

    def _next(self) -> Scene:
        found = self._asked(None)
        raw, reward, numbers = (self._read() for _ in range(3))
        shape = found["shape"]
        drawn = raw.decode() if shape is None else np.frombuffer(raw, np.uint8).reshape(shape)
        return Scene(drawn, np.frombuffer(reward), found["gain"], np.frombuffer(numbers, np.float32))

    def give_up(self) -> None:
        super().give_up()
        self._end()  # an answer may be on its way

    def _asked(self, what: Any, *more: bytes) -> dict[str, Any]:
        """The answer, or the complaint that was one."""
        try:
            for part in (json.dumps(what).encode(), *more):
                self._pipe.send_bytes(part)
        except OSError:
            raise self._gone() from None
        found: dict[str, Any] = json.loads(self._read())
        if "complaint" in found:
            raise BadInput(found["complaint"])
        return found

    def _read(self) -> bytes:
        try:
            if self._pipe.poll(_PATIENCE):
                return self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise self._gone() from None
        raise self._gone(f"gave no picture for {_PATIENCE} seconds")

    def _gone(self, how: str = "") -> Gone:
        """The complaint about its end; without `how`, it came by itself."""
        if not how and self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_PATIENCE)
        code = self._end()
        if not how:
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return Gone(f"task {self._task!r} cannot be drawn: the process that draws it {how}")

    def _end(self) -> int:
        """Whatever it does: its exit code."""
        if self.process is None:
            return 0
        self.process.kill()
        self._pipe.close()
        code, self.process = self.process.wait(), None
        return code


_here: list[_Artist] = [_Artist()]
_away: list[_Artist] = [_Away() for _ in range(_PROCESSES)]
_unmade: set[str] = set()
_change = threading.Condition()


@contextlib.contextmanager
def replayed(task: Task, owner: object, order: Order) -> Iterator[tuple[Callable[[], Scene], bool]]:
    """What gives the scenes of an episode, one after the other, and whether it begins with the first.

    Else it goes on where the same owner stopped: whoever drew it has not been asked for another episode since.
    """
    kind = json.dumps(_known(task)) if task.maker else ""
    for artists in (_away, _here) if kind and kind not in _unmade else (_here,):
        with _taken(artists, owner) as artist:
            fresh = artist.owner is not owner
            try:
                if fresh:
                    artist.take_up(task, owner, order)
            except _Unmade:
                _unmade.add(kind)
                continue
            yield artist.scene, fresh
            return


def end_idle() -> None:
    """End the processes that draw nothing at this moment; whoever wants a picture starts one again."""
    for artist in _away:
        with _change:
            if artist.busy:
                continue
            artist.busy = True
        artist.give_up()
        with _change:
            artist.busy = False
            _change.notify_all()


@contextlib.contextmanager
def _taken(artists: list[_Artist], owner: object) -> Iterator[_Artist]:
    """One of them for a while: who has the owner's episode, or no episode, or whose episode was wanted longest ago."""
    with _change:
        _change.wait_for(lambda: not all(one.busy for one in artists))
        free = [one for one in artists if not one.busy]
        artist = min(free, key=lambda one: (one.owner is not owner, one.used if one.owner else -one.used))
        artist.busy = True
    try:
        yield artist
    except BadInput:  # which was an answer
        artist.owner = None
        raise
    except BaseException:
        artist.give_up()
        raise
    finally:
        with _change:
            artist.busy, artist.used = False, time.monotonic()
            _change.notify_all()


# ---- the process -----------------------------------------------------------------------------------------------------
def _serve(pipe: Connection, names: Sequence[str]) -> None:
    """Answer until nobody asks any more: a list begins an episode, its actions follow; null asks for a scene."""
    faulthandler.enable()
    os.dup2(2, 1)  # what is printed is for people
    asked = queue.SimpleQueue[bytes]()

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                asked.put(pipe.recv_bytes())
        os._exit(0)  # who asked is gone, even if something is still being drawn

    threading.Thread(target=listen, daemon=True).start()
    for name in names:
        plugins.import_own(name)
    going: Any = iter(())
    while True:
        wanted, parts = json.loads(asked.get()), []
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
                actions: Any = np.frombuffer(asked.get(), kind).reshape(shape)
                actions = list(actions) if actions.dtype.kind == "f" else actions.tolist()
                task = _again(*wanted[:4])
                head = {"made": task is not None}
                going = None if task is None else scenes(task, Order(**{**wanted[4], "actions": actions}))
        except BadInput as error:
            head = {"complaint": str(error)}
        for part in (json.dumps(head).encode(), *parts):
            pipe.send_bytes(part)


def _known(task: Task) -> list[Any]:
    """What a task is made again from, and known again by; no picture depends on its weights."""
    return [task.name, task.maker, task.options, {**task.identity, "weights": None}]


def _again(name: str, maker: str, options: dict[str, Any], identity: dict[str, Any]) -> Task | None:
    """The task, where it is the same one: who registers something in a program of his own does so there alone."""
    from multiadvisor.envs.builtin import make

    try:
        task = dataclasses.replace(make(maker, **options), name=name)
    except Exception:  # whatever a maker of the user's may raise
        return None
    return task if same(_known(task)[3], identity) else None


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])), sys.argv[2:])
