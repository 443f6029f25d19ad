"""What a task is, as plain data: what a checkpoint must agree with, and in what another task differs, in words.

What functions do inside cannot be known; that they are there, and of what, can.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from multiadvisor.errors import short

if TYPE_CHECKING:
    from multiadvisor.task import Advisor, Task

_LISTED = 10_000  # numbers of an array that are kept one by one
_REAL = ("weight", "gamma", "alpha", "mapped_alpha")


class NotPlain(Exception):
    """Why something is no plain data."""


def plain(value: Any, what: str) -> Any:
    """A value as JSON has it, tuples as lists; or NotPlain."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [plain(part, what) for part in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: plain(part, what) for name, part in value.items()}
    raise NotPlain(f"{what} is a {type(value).__name__}, which is no plain data")


def known(value: Any) -> Any:
    """What can be known of a value: itself, or of which kind it is."""
    try:
        return plain(value, "")
    except NotPlain:
        if isinstance(value, float):
            return str(value)  # JSON knows no infinity
        if isinstance(value, np.ndarray) and value.dtype != object:
            return {"array": _numbers(value), "shape": list(value.shape)}
        if bins := getattr(value, "as_bins", None):
            return {"bins": bins()}
        return {"kind": "function" if callable(value) else type(value).__name__}


def advisor_data(advisor: Advisor) -> dict[str, Any]:
    """All that can be known of an advisor, but for what is as usual, and for its weight."""
    data: dict[str, Any] = {}
    for item in dataclasses.fields(advisor):
        value = getattr(advisor, item.name)
        if item.name in _REAL and value is not None:
            value = float(value)
        if item.name != "weight" and (item.name == "name" or known(value) != item.default):
            data[item.name] = known(value)
    return data


# ---- spaces ----------------------------------------------------------------------------------------------------------
def space_data(space: Any) -> Any:
    """A Gymnasium space in full.

    >>> from gymnasium.spaces import Box, Discrete
    >>> space_data(Discrete(3, start=-1)), space_data(Box(0, np.inf, (2,)))["high"]
    ({'kind': 'Discrete', 'n': 3, 'start': -1}, 'inf')
    """
    kind: dict[str, Any] = {"kind": type(space).__name__}
    if isinstance(space, spaces.Discrete):
        return {**kind, "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.Box):
        return {**kind, "low": _numbers(space.low), "high": _numbers(space.high), **_array_of(space)}
    if isinstance(space, spaces.MultiDiscrete):
        return {**kind, "nvec": space.nvec.tolist(), "start": space.start.tolist(), **_array_of(space)}
    if isinstance(space, spaces.MultiBinary):
        return {**kind, **_array_of(space)}
    if isinstance(space, spaces.Text):
        length = {"min_length": int(space.min_length), "max_length": int(space.max_length)}
        return {**kind, **length, "characters": "".join(sorted(space.character_set))}
    if isinstance(space, spaces.Dict):  # in the order in which they are flattened
        return {**kind, "parts": [[str(name), space_data(part)] for name, part in space.spaces.items()]}
    if isinstance(space, spaces.Tuple):
        return {**kind, "parts": [space_data(part) for part in space.spaces]}
    return {**kind, "text": repr(space)}


def _array_of(space: Any) -> dict[str, Any]:
    return {"shape": list(space.shape), "dtype": np.dtype(space.dtype).name}


def _numbers(array: np.ndarray) -> Any:
    """One number where all are the same, else all of them, as texts; of very many a digest."""
    if array.size and (array == array.flat[0]).all():
        return str(array.flat[0].item())
    if array.size > _LISTED:
        return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return [str(number) for number in array.ravel().tolist()]


# ---- tasks -----------------------------------------------------------------------------------------------------------
def identity(task: Task) -> dict[str, Any]:
    """All that can be known of a task; its weights stand apart, as some agents do not depend on them."""
    found: dict[str, Any] = {
        "name": task.name, "limit": task.limit, "advisors": [advisor_data(advisor) for advisor in task.advisors],
        "weights": {advisor.name: float(advisor.weight) for advisor in task.advisors},
    }  # fmt: skip
    if task.world is not None:
        world = task.world
        functions = [name for name in ("advises", "pseudo", "going") if getattr(world, name) is not None]
        sizes = None if world.sizes is None else [int(size) for size in world.sizes]
        found["actions"] = list(task.actions)
        found["world"] = {
            "constants": _digest_of(world.constants), "size": int(world.size), "sizes": sizes, "joins": world.joins,
            "functions": functions,
        }  # fmt: skip
        targets = [
            [known(advisor.target(state)) for state in range(advisor.states or 0)]
            for advisor in task.advisors
            if advisor.target is not None
        ]
        if targets:
            found["targets"] = hashlib.sha256(json.dumps(targets).encode()).hexdigest()
    if task.adapter is not None:
        # what an environment's actions are called is for people, and changes nothing of what was learned
        env, single = task.adapter.env, "single_" if task.adapter.vector else ""
        for what in ("action", "observation"):
            found[f"{what} space"] = space_data(getattr(env, f"{single}{what}_space"))
        found["rewards"] = task.adapter.components
    if task.goals is not None:
        found["goals"] = {item.name: known(getattr(task.goals, item.name)) for item in dataclasses.fields(task.goals)}
    if task.known:
        found["known"] = task.known
    if task.extra_advisor is not None:
        found["extra advisor"] = advisor_data(task.extra_advisor)
    return found


def _digest_of(constants: Any) -> str:
    """Of the constants of a compiled world: two mazes, or two tables of rewards, are two tasks."""
    digest = hashlib.sha256()

    def take(part: Any) -> None:
        if isinstance(part, tuple):
            digest.update(f"tuple of {len(part)} ".encode())
            for inner in part:
                take(inner)
            return
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype} {array.shape} ".encode())
        if not array.dtype.hasobject:  # of other objects nothing is known but that they are there
            digest.update(array.tobytes())

    take(constants)
    return digest.hexdigest()


# ---- comparing -------------------------------------------------------------------------------------------------------
def same(one: Any, other: Any) -> bool:
    """Whether two are the same as JSON: 1, 1.0 and true are three things."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def difference(saved: Any, given: Any, where: str = "") -> str:
    """The first thing in which two data differ, in words; empty where they do not.

    >>> difference({"a": {"n": [2, 3]}}, {"a": {"n": [2, 4]}})
    'a, n 1 was 3, and is 4'
    """
    if same(saved, given):
        return ""
    pairs: list[tuple[str, Any, Any]] = []
    if isinstance(saved, dict) and isinstance(given, dict):
        names = sorted({*saved, *given}, key=lambda name: (name != "kind", name))
        pairs = [(f"{where}, {name}" if where else name, saved.get(name, _ABSENT), given.get(name, _ABSENT))
                 for name in names]  # fmt: skip
    elif isinstance(saved, list) and isinstance(given, list) and len(saved) == len(given):
        pairs = [(f"{where} {k}", *pair) for k, pair in enumerate(zip(saved, given, strict=True))]
    for place, was, now in pairs:
        if _ABSENT in (was, now):
            return _change(place, was, now)
        if found := difference(was, now, place):
            return found
    return _change(where, saved, given)


_ABSENT = object()


def _change(where: str, saved: Any, given: Any) -> str:
    shown = ["not given" if value is _ABSENT else short(repr(value), 40) for value in (saved, given)]
    return f"{short(where, 120)} was {shown[0]}, and is {shown[1]}"


def only_in_weights(was: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether two identities differ, and in their weights alone."""
    given = was.get("weights")
    if not isinstance(given, dict) or not all(type(weight) is float for weight in given.values()):
        return False
    names = [sorted(weights) for weights in (given, now["weights"])]
    return not same(was, now) and same({**was, "weights": names[0]}, {**now, "weights": names[1]})


def other_task(saved: dict[str, Any], task: Task, reweighted: bool) -> str:
    """In what a task differs from what `Task.as_data` gave, in words; empty where it is the same, or `reweighted`."""
    if not reweighted and not same(saved["identity"], task.identity):
        return difference(saved["options"], task.options) or difference(saved["identity"], task.identity)
    return difference(_own_data(saved), _own_data(task.as_data()))


def _own_data(saved: dict[str, Any]) -> dict[str, Any]:
    """What is not in the identity; options only of who is made by hand, as others may say the same in other words."""
    found = {name: saved[name] for name in ("name", "maker", "by_hand")}
    own = {} if saved["maker"] else saved["options"]
    return {**found, "options": {k: v for k, v in own.items() if k not in ("weights", "gammas", "alphas")}}
