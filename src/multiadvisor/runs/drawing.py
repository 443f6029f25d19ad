"""An episode played again in an environment that draws itself, scene by scene."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import warnings
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from multiadvisor.analysis.episodes import numbers_of
from multiadvisor.envs.rollout import EvaluationEpisodes
from multiadvisor.envs.step import Step
from multiadvisor.errors import BadInput, fault_of_environment, short
from multiadvisor.task import Task

_LONGEST_TEXT = 20_000  # characters
_NO_SCREEN = "offscreen"  # with the driver "dummy", which any SDL has, highway-env gives black pictures
_MODES = ("rgb_array", "ansi")


class DrawingOrder(NamedTuple):
    """An episode that is to be played again."""

    draws: int
    seed: int
    episode: int
    actions: Sequence[Any]  # [T] as a source of episodes takes them
    numbers: bool  # whether the observations are wanted
    first: int  # no picture is wanted before this step


class Scene(NamedTuple):
    """Where an episode stands before a step, or at its end."""

    drawn: np.ndarray | str  # a picture [height, width, 3] of bytes, or a text; empty where none is wanted
    reward: np.ndarray  # [n] what the step before it paid
    gain: float  # and what that added to the score
    numbers: np.ndarray  # [d] what is observed; empty where nobody asks


def _quiet() -> None:
    """Without a screen, and without a loudspeaker: SDL would look for both, and MuJoCo for the first."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("SDL_VIDEODRIVER", _NO_SCREEN)
        os.environ.setdefault("MUJOCO_GL", "egl")


def _made(env: Any, mode: str) -> Any:
    """Another instance of an environment, with a render mode."""
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


def scenes(task: Task, order: DrawingOrder) -> Generator[Scene]:
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
