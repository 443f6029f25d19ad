"""Pictures of the decisive steps: their episodes are played once more, in an environment that draws itself."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.diagnosis.diagnosis import DecisiveStep, Diagnosis
from multiadvisor.diagnosis.sample import SampledEpisode
from multiadvisor.envs.step import begin_episode
from multiadvisor.runs.artists import in_one_thread
from multiadvisor.runs.pictures import encode

_WIDEST = 320  # pixels
DATA = "data:image/png;base64,"


def with_pictures(found: Diagnosis, env: Any) -> Diagnosis:
    """The diagnosis with a picture of each decisive step; a note says why there is none."""
    if not found.decisive:
        return found
    try:
        decisive = in_one_thread(lambda: _drawn(found, env))
    except Exception as error:  # whatever drawing may raise where there is no screen
        note = f"decisive steps are not drawn: {type(error).__name__} {error}"
        return replace(found, notes=(*found.notes, " ".join(note.split())))
    return replace(found, decisive=decisive)


def _drawn(found: Diagnosis, env: Any) -> tuple[DecisiveStep, ...]:
    import gymnasium

    if env.spec is None:
        raise ValueError("the environment is not registered")
    drawing = gymnasium.make(env.spec, render_mode="rgb_array", disable_env_checker=True)
    try:
        return tuple(replace(one, picture=_picture(drawing, found.sample.episodes[one.episode], one.step))
                     for one in found.decisive)  # fmt: skip
    finally:
        drawing.close()


def _picture(env: Any, episode: SampledEpisode, place: int) -> str:
    """A data address; empty where the episode went another way this time."""
    seen = begin_episode(env, episode.seed)
    for action in episode.actions[:place]:
        seen = env.step(action)[0]
    if not np.array_equal(seen, episode.observations[place]):
        return ""
    frame = env.render()
    return DATA + base64.b64encode(encode(frame, -(-frame.shape[1] // _WIDEST))).decode()
