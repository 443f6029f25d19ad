"""An environment in a process of its own, so that several can be stepped at the same time.

The process makes the task by its name and options, and answers on its standard output: a command is a letter and a
number, an answer is a reward, two flags and the observation, all as bytes. Where something fails, the answer is what to
tell the user, and the process ends.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from multiadvisor.core import plugins
from multiadvisor.envs.step import begin_episode, finite_reward, five
from multiadvisor.errors import BadInput, fault_of_environment
from multiadvisor.task import Task

_COMMAND, _ANSWER = struct.Struct("<cq"), struct.Struct("<qd??")  # an answer begins with the length of a complaint
RESET, STEP = b"r", b"s"
_NO_SEED = -1


class Remote:
    """The environment of a task, elsewhere; `send` and `receive` are the two halves of a step."""

    def __init__(self, task: Task) -> None:
        assert task.adapter is not None
        space = task.adapter.env.observation_space
        if not task.maker:
            raise BadInput(f"task {task.name!r} cannot be made again in another process: {task.by_hand}")
        if not isinstance(space, gymnasium.spaces.Box):
            raise BadInput(f"task {task.name!r} has observations of the kind {type(space).__name__}: only a Box can be "
                           "sent from another process")  # fmt: skip
        self._task, self._shape, self._dtype = task.name, space.shape, space.dtype
        self._size = space.dtype.itemsize * int(np.prod(space.shape))
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "multiadvisor.envs.remote", *plugins.IMPORTED], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, process_group=0,
        )  # fmt: skip
        self._write(json.dumps([task.maker, task.options]).encode() + b"\n")

    def _write(self, content: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(content)
            self._process.stdin.flush()
        except BrokenPipeError:
            self.receive()  # it may have said why
            raise self._gone() from None

    def _gone(self) -> BadInput:
        return BadInput(f"the process of an environment of task {self._task!r} ended: start the run again")

    def reset(self, seed: int | None) -> np.ndarray:
        """A new episode: the observation."""
        self._write(_COMMAND.pack(RESET, _NO_SEED if seed is None else seed))
        return self.receive()[0]

    def send(self, action: int) -> None:
        """Begin a step."""
        self._write(_COMMAND.pack(STEP, action))

    def receive(self) -> tuple[np.ndarray, float, bool, bool]:
        """The end of it: the observation, the reward, and whether the episode terminated or was truncated."""
        complaint, reward, terminated, truncated = _ANSWER.unpack(self._read(_ANSWER.size))
        if complaint:
            raise BadInput(self._read(complaint).decode())
        seen = np.frombuffer(self._read(self._size), self._dtype).reshape(self._shape).copy()
        return seen, reward, terminated, truncated

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        content = self._process.stdout.read(size)
        if len(content) < size:
            raise self._gone()
        return content

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


def serve() -> None:
    """Answer until nobody asks any more."""
    into, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed must not be taken for an answer
    try:
        for answer in _answers(into):
            out.write(answer)
            out.flush()
    except Exception as error:  # whatever an environment of the user's may raise
        fault = str(error) if isinstance(error, BadInput) else fault_of_environment(error)
        if fault is None:  # it is ours, and we want to hear of it
            raise
        why = fault if isinstance(error, BadInput) else f"the environment raised {fault}"
        out.write(_ANSWER.pack(len(why.encode()), 0.0, False, False) + why.encode())
        out.flush()


def _answers(into: Any) -> Iterator[bytes]:
    """To every command that comes in."""
    from multiadvisor.envs.registry import make

    for name in sys.argv[1:]:
        plugins.import_own(name)
    maker, options = json.loads(into.readline())
    adapter: Any = make(maker, **options).adapter
    env, dtype = adapter.env, adapter.env.observation_space.dtype
    while content := into.read(_COMMAND.size):
        what, number = _COMMAND.unpack(content)
        if what == RESET:
            seen, paid = begin_episode(env, None if number == _NO_SEED else number), (0.0, False, False)
        else:
            seen, reward, terminated, truncated, _ = five(env.step(number))
            paid = (finite_reward(reward), bool(terminated), bool(truncated))
        yield _ANSWER.pack(0, *paid) + np.ascontiguousarray(seen, dtype).tobytes()


if __name__ == "__main__":
    serve()
