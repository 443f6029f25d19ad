"""Environments that draw themselves, in processes of their own: whatever goes wrong there costs a picture, and no more.

Many environments, when they are closed, close a library for the whole process (`pygame.quit`), and some crash. So a
process has one of them open at a time, and can be started anew. It makes the task again by its name and options. A
task for which that does not do is drawn here: one at a time as well, and always in the same thread.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import copy
import dataclasses
import faulthandler
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from multiadvisor.analysis.recording import numbers_of
from multiadvisor.core import plugins
from multiadvisor.core.identity import same
from multiadvisor.envs.rollout import EvaluationEpisodes
from multiadvisor.envs.step import Step
from multiadvisor.errors import BadInput, fault_of_environment, short
from multiadvisor.task import Task

_LONGEST_TEXT = 20_000  # characters
_NO_SCREEN = "offscreen"  # with the driver "dummy", which any SDL has, highway-env gives black pictures
_MODES = ("rgb_array", "ansi")
_PATIENCE = 60  # seconds for a picture, after which its process is ended
_PROCESSES = 2  # so many episodes are drawn at once: a page shows two side by side
_drawing = threading.RLock()
_artist = ThreadPoolExecutor(1, "drawing")
_Made = TypeVar("_Made")


class Order(NamedTuple):
    """An episode that is to be played again."""

    draws: int
    seed: int
    episode: int
    actions: Sequence[Any]  # [T] as a source of episodes takes them
    numbers: bool  # whether the observations are wanted
    first: int  # no picture is wanted before this step

    def packed(self) -> dict[str, Any]:
        """As plain data, of which not a bit gets lost."""
        done = np.asarray(self.actions)
        code = [done.dtype.str, done.shape, base64.b64encode(done.tobytes()).decode()]
        return {**self._asdict(), "actions": code}

    @classmethod
    def unpacked(cls, data: dict[str, Any]) -> Order:
        """From plain data."""
        kind, shape, code = data["actions"]
        done = np.frombuffer(base64.b64decode(code), kind).reshape(shape)
        return cls(**{**data, "actions": list(done) if done.dtype.kind == "f" else done.tolist()})


class Scene(NamedTuple):
    """Where an episode stands before a step, or at its end."""

    drawn: np.ndarray | str  # a picture [height, width, 3] of bytes, or a text; empty where none is wanted
    reward: np.ndarray  # [n] what the step before it paid
    gain: float  # and what that added to the score
    numbers: np.ndarray  # [d] what is observed; empty where nobody asks


class Gone(BadInput):
    """The process that drew has ended before its time."""


class _Unmade(Exception):
    """A process of its own cannot make the task."""


# ---- drawing ---------------------------------------------------------------------------------------------------------
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


def _environment(task: Task) -> Any:
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


def _drawn(env: Any) -> np.ndarray | str:
    try:
        return looks(env.render())
    except BadInput:
        raise
    except Exception as error:  # whatever its drawing may raise
        raise BadInput(f"it stopped drawing itself: {short(' '.join(str(error).split()), 200)}") from None


def _stepped(source: EvaluationEpisodes, action: Any) -> Step:
    try:
        return source.step(action)
    except BadInput:
        raise
    except Exception as error:  # whatever an environment of the user's may raise
        fault = fault_of_environment(error)
        if fault is None:  # it is ours, and we want to hear of it
            raise
        raise BadInput(f"the environment raised {fault}") from None


def _scenes(task: Task, order: Order) -> Iterator[Scene]:
    """The episode, in an environment of its own that is open from the first scene to the last."""
    env = _environment(task)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = EvaluationEpisodes(task, order.draws, order.seed, env=env)
            state, reward, gain = source.reset(order.episode), np.zeros(task.n), 0.0
            for step, action in enumerate([*order.actions, None]):
                seen = numbers_of(state) if order.numbers else np.zeros(0, np.float32)
                scene = Scene(_drawn(env) if step >= order.first else "", reward, gain, seen)
                if step == len(order.actions):
                    break
                yield scene
                came = _stepped(source, action)
                state, reward, gain = came.next_state, came.reward, came.gain
    finally:
        with contextlib.suppress(Exception):
            env.close()
    yield scene


# ---- who draws -------------------------------------------------------------------------------------------------------
def in_one_thread(draw: Callable[[], _Made]) -> _Made:
    """Draw, always in the same thread: in another one OpenGL shows the same picture again and again, without a word.

    On a Mac only the first thread may draw, and does so where it asks for it.
    """
    if sys.platform == "darwin" and threading.current_thread() is threading.main_thread():
        with _drawing:
            return draw()
    return _artist.submit(draw).result()


class _Artist:
    """Draws one episode at a time."""

    owner: object = None
    """Whose episode that is, as long as there is more of it."""
    busy = False
    used = 0.0
    _left = 0

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
        raise NotImplementedError

    def _next(self) -> Scene:
        raise NotImplementedError


class _Here(_Artist):
    """Draws in this process."""

    def __init__(self) -> None:
        self._scenes: Any = None

    def _begin(self, task: Task, order: Order) -> None:
        def change() -> None:
            if self._scenes is not None:
                self._scenes.close()
            self._scenes = _scenes(task, order)

        in_one_thread(change)

    def _next(self) -> Scene:
        return in_one_thread(lambda: next(self._scenes))


class _Away(_Artist):
    """Draws in a process of its own, which is started when it is first wanted, and again where it has ended."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._task = ""
        atexit.register(self._end)

    def _begin(self, task: Task, order: Order) -> None:
        self._task = task.name
        if self.process is None or self.process.poll() is not None:
            self._end()  # what is left of it
            # what Python finds here it finds there; Ctrl-C is for this process alone
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "multiadvisor.runs.drawing", *plugins.IMPORTED], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, bufsize=0, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                process_group=0,
            )  # fmt: skip
        if not self._asked([*_known(task), order.packed()])["made"]:
            raise _Unmade

    def _next(self) -> Scene:
        found = self._asked(None)
        raw, reward, numbers = (self._read(size) for size in found["bytes"])
        shape = found["shape"]
        drawn: Any = raw.decode() if shape is None else np.frombuffer(raw, np.uint8).reshape(shape)
        return Scene(drawn, np.frombuffer(reward), found["gain"], np.frombuffer(numbers, np.float32))

    def give_up(self) -> None:
        super().give_up()
        self._end()  # an answer may be on its way

    def _asked(self, what: Any) -> dict[str, Any]:
        """The answer, or the complaint that was one."""
        assert self.process is not None
        assert self.process.stdin is not None
        line = memoryview(json.dumps(what).encode() + b"\n")
        try:
            while line:
                line = line[self.process.stdin.write(line) :]
        except OSError:
            raise self._gone() from None
        found: dict[str, Any] = json.loads(self._read(int.from_bytes(self._read(8), "little")))
        if "complaint" in found:
            raise BadInput(found["complaint"])
        return found

    def _read(self, size: int) -> bytes:
        assert self.process is not None
        assert self.process.stdout is not None
        parts = bytearray()
        while len(parts) < size:
            ready, _, _ = select.select([self.process.stdout], [], [], _PATIENCE)
            if not ready:
                raise self._gone(f"gave no picture for {_PATIENCE} seconds")
            part = self.process.stdout.read(size - len(parts))
            if not part:
                raise self._gone()
            parts += part
        return bytes(parts)

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
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        code, self.process = self.process.wait(), None
        return code


_here: list[_Artist] = [_Here()]
_away: list[_Artist] = [_Away() for _ in range(_PROCESSES)]
_unmade: set[str] = set()
_change = threading.Condition()


@contextlib.contextmanager
def replayed(task: Task, owner: object, order: Order) -> Iterator[tuple[Callable[[], Scene], bool]]:
    """What gives the scenes of an episode, one after the other, and whether it begins with the first.

    Else it goes on where the same owner stopped: whoever drew it has not been asked for another episode since.
    """
    kind = json.dumps(_known(task)) if task.maker else ""
    if kind and kind not in _unmade:
        with _taken(_away, owner) as artist:
            fresh = artist.owner is not owner
            try:
                if fresh:
                    artist.take_up(task, owner, order)
            except _Unmade:
                _unmade.add(kind)
            else:
                yield artist.scene, fresh
                return
    with _taken(_here, owner) as artist:
        fresh = artist.owner is not owner
        if fresh:
            artist.take_up(task, owner, order)
        yield artist.scene, fresh


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
def _serve(names: Sequence[str]) -> None:
    """Answer until nobody asks any more: a line of JSON is an episode to begin, or null for its next scene."""
    faulthandler.enable()
    out, asked = os.fdopen(os.dup(1), "wb"), queue.SimpleQueue[Any]()
    os.dup2(2, 1)  # what is printed must not be taken for an answer

    def listen() -> None:
        for line in sys.stdin.buffer:
            asked.put(json.loads(line))
        os._exit(0)  # who asked is gone, even if something is still being drawn

    threading.Thread(target=listen, daemon=True).start()
    for name in names:
        plugins.import_own(name)
    scenes: Any = iter(())
    while True:
        wanted, parts = asked.get(), []
        try:
            if wanted is None:
                scene = next(scenes)
                text = isinstance(scene.drawn, str)
                raw = scene.drawn.encode("utf-8", "replace") if text else np.ascontiguousarray(scene.drawn).tobytes()
                parts = [raw, scene.reward.tobytes(), scene.numbers.tobytes()]
                shape = None if text else scene.drawn.shape
                head = {"shape": shape, "gain": scene.gain, "bytes": [len(part) for part in parts]}
            else:
                if hasattr(scenes, "close"):
                    scenes.close()
                task = _again(*wanted[:4])
                head = {"made": task is not None}
                scenes = None if task is None else _scenes(task, Order.unpacked(wanted[4]))
        except BadInput as error:
            head = {"complaint": str(error)}
        said = json.dumps(head).encode()
        for part in (len(said).to_bytes(8, "little"), said, *parts):
            out.write(part)
        out.flush()


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
    _serve(sys.argv[1:])
