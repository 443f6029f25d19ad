"""What people call an environment's actions and observation: its own words, its documentation's, or numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from multiadvisor.envs.components import one_of
from multiadvisor.envs.documented_names import Names, documented
from multiadvisor.errors import BadInput, short
from multiadvisor.task import Task


def _wrappers(env: Any) -> list[Any]:
    """The wrappers of an environment, from the outside."""
    import gymnasium

    found = []
    while isinstance(env, gymnasium.Wrapper):
        found.append(env)
        env = env.env
    return found


def _documented(env: Any) -> Names:
    """What is documented of one of Gymnasium's or MO-Gymnasium's own environments; nothing of any other."""
    spec = getattr(env.unwrapped, "spec", None) or getattr(env, "spec", None)
    ours = spec is not None and str(spec.entry_point).startswith(("gymnasium.", "mo_gymnasium."))
    return documented(spec) if ours else Names()


def action_names(env: Any, count: int, first: int = 0, box: bool = False) -> tuple[str, ...]:
    """Names [A] of the actions, of which `first` is the first one's number.

    They are the environment's own (`action_names`, or `get_action_meanings()`), or as its documentation has them.

    >>> import gymnasium
    >>> action_names(gymnasium.make("CartPole-v1"), 2)
    ('left', 'right')
    """
    import gymnasium

    env, numbers = one_of(env), tuple(f"action[{k}]" if box else f"action {first + k}" for k in range(count))
    if any(isinstance(wrapper, gymnasium.ActionWrapper) for wrapper in _wrappers(env)):
        return numbers  # whose actions are others than the environment's
    inner = env.unwrapped
    task = getattr(inner, "task", None)
    own = task.actions if isinstance(task, Task) else getattr(inner, "action_names", None)
    if own is None and callable(meanings := getattr(inner, "get_action_meanings", None)):
        own = [str(word).lower() for word in meanings()]
    said = _documented(env)
    names = tuple(str(name) for name in own) if own is not None else said.numbers if box else said.actions
    if not names and box:
        names = motors(inner)
    return names if len(names) == count == len(set(names)) else numbers


def observation_names(env: Any) -> tuple[str, ...]:
    """Names of the components of a flat observation, or of its parts; none where nobody has named them.

    >>> import gymnasium
    >>> observation_names(gymnasium.make("MountainCar-v0"))
    ('position', 'velocity')
    """
    from gymnasium import spaces

    space = getattr(env, "single_observation_space", env.observation_space)
    env = one_of(env)
    if isinstance(space, spaces.Dict):
        return tuple(str(name) for name in space.spaces)
    own = getattr(env.unwrapped, "observation_names", None)
    names = tuple(str(name) for name in own) if own is not None else _documented(env).observation
    names = names or joints(env.unwrapped)
    if isinstance(space, spaces.Tuple):
        size = len(space.spaces)
    else:
        shape = getattr(space, "shape", None)
        size = 1 if shape == () else shape[0] if shape and len(shape) == 1 else -1
    return names if len(names) == size else ()


# ---- MuJoCo ----------------------------------------------------------------------------------------------------------
_PLACES = {0: ("x", "y", "z", "w", "i", "j", "k"), 1: ("w", "i", "j", "k")}  # of a free joint, and of a ball
_SPEEDS = {0: ("x", "y", "z", "about x", "about y", "about z"), 1: ("about x", "about y", "about z")}


def _plain(name: str) -> str:
    return name.removesuffix("_joint").replace("_", " ").strip()


def motors(env: Any) -> tuple[str, ...]:
    """The actuators of a MuJoCo model by their own names, or by those of their joints; none of any other world."""
    model: Any = getattr(env, "model", None)
    if not all(hasattr(model, part) for part in ("nu", "actuator", "joint", "actuator_trnid")):
        return ()
    found = []
    for k in range(int(model.nu)):
        joint = int(model.actuator_trnid[k, 0])
        found.append(_plain(model.actuator(k).name or model.joint(joint).name) or f"motor {k}")
    return tuple(found)


def joints(env: Any) -> tuple[str, ...]:
    """The places and speeds of a MuJoCo model's joints, where an observation is made of these."""
    model: Any = getattr(env, "model", None)
    parts = getattr(env, "observation_structure", None)
    if not isinstance(parts, dict) or not all(hasattr(model, part) for part in ("njnt", "joint", "jnt_type")):
        return ()
    places, speeds = [], []
    for k in range(int(model.njnt)):
        name, kind = _plain(model.joint(k).name) or f"joint {k}", int(model.jnt_type[k])
        places += [f"{name} {part}" for part in _PLACES.get(kind, ())] or [name]
        speeds += [f"{name} speed {part}" for part in _SPEEDS.get(kind, ())] or [f"{name} speed"]
    skipped = int(parts.get("skipped_qpos", 0))
    names = (*places[skipped:], *speeds)
    others = sum(int(size) for part, size in parts.items() if part not in ("skipped_qpos", "qpos", "qvel"))
    right = (len(places) - skipped, len(speeds)) == (parts.get("qpos"), parts.get("qvel"))
    return names if right and not others else ()


def with_action_names(task: Task, names: Any) -> Task:
    """The same task with these names [A] for its actions; None leaves them as they are."""
    if names is None:
        return task
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"action_names are {short(repr(names))}: give a list of names")
    given = tuple(name.strip() for name in names)
    if len(given) != len(task.actions):
        raise BadInput(f"{len(given)} actions were named, but task {task.name!r} has {len(task.actions)}: name each")
    for name in given:
        if not name or name.lstrip("-").isdigit() or given.count(name) > 1:
            raise BadInput(f"an action cannot be called {short(name)!r}: give each a different word")
    return dataclasses.replace(task, actions=given, options={**task.options, "action_names": list(given)})
