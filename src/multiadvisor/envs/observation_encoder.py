"""Observations, or states of a compiled world, as the rows of numbers that a network sees."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.errors import BadInput, short
from multiadvisor.task import Advisor, Task, World


class ObservationEncoder(NamedTuple):
    """How observations become a network's input."""

    shape: tuple[int, ...]  # [features], or [channels, height, width]
    dtype: np.dtype[Any]
    scale: float
    masks: tuple[tuple[int, ...], ...]  # for each advisor, 1 where it sees the feature or channel
    convert: Callable[[Any], np.ndarray]  # one observation -> [F], checked
    convert_all: Callable[[Any], np.ndarray] | None = None  # states [N, size] -> [N, F], where that is faster

    def rows(self, states: Any) -> np.ndarray:
        """States [N] as rows [N, F]."""
        if self.convert_all is not None:
            return self.convert_all(states)
        if len(states) == 1:
            return self.convert(states[0])[None]
        return np.stack([self.convert(state) for state in states])


def encoder_of(task: Task, image: bool = False) -> ObservationEncoder:
    """How a task's states are seen by a network; `image`: it has convolutions."""
    if task.world is not None:
        return _world_encoder(task, task.world, image)
    assert task.adapter is not None
    return encoder_of_space(task.adapter.space, task.advisors, image)


def _world_encoder(task: Task, world: World, image: bool) -> ObservationEncoder:
    """The image of a world's board, or its numbers as one-hot vectors."""
    from gymnasium import spaces

    board = task.board if world.size > 1 else None  # one number says it all, and in fewer inputs
    if board is not None:
        space: Any = spaces.Box(0, 1, (4, *board.shape), np.uint8)
    elif world.sizes is not None:
        space = spaces.MultiDiscrete(list(world.sizes))
    else:
        raise BadInput(f"the world of task {task.name!r} gives no `sizes` of its states: a network cannot see it")
    plain = encoder_of_space(space, task.advisors, image)

    def rows(x: np.ndarray) -> np.ndarray:
        return plain.rows(x) if board is None else board.planes(x).reshape(len(x), -1)

    return plain._replace(convert=lambda state: rows(world.checked(state, task.name)[None])[0], convert_all=rows)


def check_finite(seen: np.ndarray, observation: Any) -> None:
    """Refuse what would spoil a network for ever."""
    if not np.isfinite(seen).all():
        raise BadInput(f"the observation {short(repr(observation))} has a number that is not finite: correct it")


def _plain(space: Any) -> tuple[tuple[int, ...], np.dtype, float, Callable[[Any], np.ndarray]]:
    from gymnasium import spaces

    if isinstance(space, spaces.Box) and space.shape:
        if 0 in space.shape:
            raise BadInput(f"observations are {space}, in which there is nothing to see: wrap the environment")
        shape: tuple[int, ...] = space.shape
        byte = space.dtype == np.uint8
        dtype = np.dtype(np.uint8 if byte else np.float32)
        turned = len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4)

        def convert(observation: Any) -> np.ndarray:
            try:
                seen = np.asarray(observation).astype(dtype, copy=False)
            except (TypeError, ValueError) as error:
                raise BadInput(f"the observation {short(repr(observation))} is no array of numbers: {error}") from None
            if seen.shape != shape:
                raise BadInput(f"an observation of the shape {seen.shape} was given where {shape} is expected")
            if not byte:
                check_finite(seen, observation)
            return (seen.transpose(2, 0, 1) if turned else seen).reshape(-1)

        size = (math.prod(shape),) if len(shape) != 3 else (shape[2], *shape[:2]) if turned else shape
        return size, dtype, 1.0 / 255.0 if byte and space.high.max() > 1 else 1.0, convert
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        start = np.atleast_1d(space.start).ravel()
        sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).ravel()
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])

        def one_hot(observation: Any) -> np.ndarray:
            numbers = np.atleast_1d(observation).ravel()
            if numbers.shape != sizes.shape or not np.issubdtype(numbers.dtype, np.integer):
                raise BadInput(f"an observation of {len(sizes)} integers was expected, not {observation!r}")
            numbers = numbers - start
            if ((numbers < 0) | (numbers >= sizes)).any():
                raise BadInput(f"the observation {observation!r} is outside of its space {space}")
            row = np.zeros(int(sizes.sum()), np.uint8)
            row[offsets + numbers] = 1
            return row

        return (int(sizes.sum()),), np.dtype(np.uint8), 1.0, one_hot
    try:
        width = int(spaces.flatdim(space))
    except (NotImplementedError, ValueError):
        raise BadInput(f"observations are {space}, which have no fixed length: wrap the environment") from None

    def flatten(observation: Any) -> np.ndarray:
        try:
            row = np.asarray(spaces.flatten(space, observation), np.float32)
        except (TypeError, ValueError, KeyError, IndexError, AssertionError):
            row = np.zeros(0, np.float32)
        if row.shape != (width,):
            raise BadInput(f"an observation does not fit its space {short(str(space), 200)}: correct one of them")
        check_finite(row, observation)
        return row

    return (width,), np.dtype(np.float32), 1.0, flatten


def _blocks(space: Any, shape: tuple[int, ...], image: bool) -> list[slice]:
    """Where each component of an observation lies; a number shown as one-hot, or a flat channel, takes many places."""
    from gymnasium import spaces

    sizes = [1 if image else math.prod(shape[1:])] * shape[0]
    if isinstance(space, spaces.MultiDiscrete):
        sizes = space.nvec.ravel().tolist()
    ends = np.cumsum(sizes)
    return [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]


def _numbers(function: Callable[[Any], Any], observation: Any) -> np.ndarray:
    """What a state function gives, as numbers for the network."""
    state = function(observation)
    try:
        return np.asarray(state, np.float32).reshape(-1)
    except (TypeError, ValueError):
        raise BadInput(
            f"a state function gave {state!r}, which a network cannot see: return a number, or several"
        ) from None


def encoder_of_space(space: Any, advisors: Sequence[Advisor], image: bool) -> ObservationEncoder:
    """How n advisors see observations of a space; `image`: the network has convolutions."""
    shape, dtype, scale, convert = _plain(space)
    blocks = _blocks(space, shape, image)
    if len(shape) == 3 and not image:
        shape = (math.prod(shape),)
    if image and len(shape) != 3:
        raise BadInput(f"convolutions need images, and the observations are {space}: leave convolutions out")
    functions = list(dict.fromkeys(advisor.state for advisor in advisors if callable(advisor.state)))
    if functions and len(shape) == 3:
        raise BadInput("an advisor with a state function cannot look at an image: name the channels it sees, or none")
    parts = [shape[0]]
    if functions:
        own = copy.deepcopy(space)  # whoever draws from the environment's own space goes on undisturbed
        own.seed(0)
        sample = own.sample()
        for function in functions:
            parts.append(_numbers(function, sample).size)
    starts = np.concatenate([[0], np.cumsum(parts)])
    masks = []
    for advisor in advisors:
        mask = np.zeros(int(starts[-1]), int)
        if callable(advisor.state):
            k = 1 + functions.index(advisor.state)
            mask[starts[k] : starts[k + 1]] = 1
        elif advisor.state is None or isinstance(advisor.state, str):
            mask[: parts[0]] = 1
        else:
            for k in [advisor.state] if isinstance(advisor.state, int) else advisor.state:
                if not isinstance(k, int | np.integer):
                    raise BadInput(f"advisor {advisor.name!r} picks {advisor.state}: give integers")
                if not -len(blocks) <= k < len(blocks):
                    what = "channels" if image or len(getattr(space, "shape", None) or ()) == 3 else "components"
                    raise BadInput(f"{advisor.name!r} picks {what} {advisor.state} of an observation of {len(blocks)}")
                mask[blocks[k]] = 1
        masks.append(tuple(mask.tolist()))
    if not functions:
        return ObservationEncoder(shape, dtype, scale, tuple(masks), convert)

    def several(observation: Any) -> np.ndarray:
        seen = [convert(observation).astype(np.float32) * np.float32(scale)]
        for function, size in zip(functions, parts[1:], strict=True):
            part = _numbers(function, observation)
            if part.size != size:
                raise BadInput(f"a state function gave {part.size} numbers where it gave {size} before")
            seen.append(part)
        return np.concatenate(seen)

    return ObservationEncoder((int(starts[-1]),), np.dtype(np.float32), 1.0, tuple(masks), several)
