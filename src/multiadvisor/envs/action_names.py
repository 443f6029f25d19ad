"""What people call an environment's actions and observation: its own words, its documentation's, or numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from multiadvisor.envs.components import one_of
from multiadvisor.errors import BadInput, short
from multiadvisor.task import Task

_CARS = ("push left", "coast", "push right")
_CAR = ("position", "velocity")
_ENGINES = ("nothing", "left engine", "main engine", "right engine")
_LANDER = ("x", "y", "velocity x", "velocity y", "angle", "angular velocity", "left leg", "right leg")
_UP_FIRST = ("up", "down", "left", "right")
_ITEMS = tuple(f"item {k}" for k in range(1, 13))

# By the environment's name without its version, as the documentation has them; Atari's environments say it themselves.
ACTIONS: dict[str, tuple[str, ...]] = {
    "Acrobot": ("torque -1", "torque 0", "torque +1"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("left", "right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "CliffWalkingSlippery": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "FrozenLake8x8": ("left", "down", "right", "up"),
    "LunarLander": _ENGINES,
    "MountainCar": _CARS,
    "Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
    "breakable-bottles": ("left", "right", "pick up"),
    "deep-sea-treasure": _UP_FIRST,
    "deep-sea-treasure-concave": _UP_FIRST,
    "deep-sea-treasure-mirrored": _UP_FIRST,
    "fishwood": ("fish", "collect wood"),
    "four-room": ("left", "up", "right", "down"),
    "fruit-tree": ("left", "right"),
    "minecart": ("mine", "left", "right", "accelerate", "brake", "nothing"),
    "minecart-deterministic": ("mine", "left", "right", "accelerate", "brake", "nothing"),
    "minecart-rgb": ("mine", "left", "right", "accelerate", "brake", "nothing"),
    "mo-highway": ("lane left", "idle", "lane right", "faster", "slower"),
    "mo-highway-fast": ("lane left", "idle", "lane right", "faster", "slower"),
    "mo-lunar-lander": _ENGINES,
    "mo-mountaincar": _CARS,
    "mo-mountaincar-3d": _CARS,
    "mo-mountaincar-timemove": _CARS,
    "mo-mountaincar-timespeed": _CARS,
    "resource-gathering": _UP_FIRST,
}
# The numbers that a continuous action consists of; MuJoCo's models say it themselves.
_THROTTLES = ("main engine", "side engines")
NUMBERS: dict[str, tuple[str, ...]] = {
    "BipedalWalker": ("hip 1", "knee 1", "hip 2", "knee 2"),
    "BipedalWalkerHardcore": ("hip 1", "knee 1", "hip 2", "knee 2"),
    "CarRacing": ("steering", "gas", "brake"),
    "LunarLander": _THROTTLES,
    "LunarLanderContinuous": _THROTTLES,
    "MountainCarContinuous": ("force",),
    "Pendulum": ("torque",),
    "mo-lunar-lander-continuous": _THROTTLES,
    "mo-mountaincarcontinuous": ("force",),
}
OBSERVATIONS: dict[str, tuple[str, ...]] = {
    "Acrobot": ("cos theta 1", "sin theta 1", "cos theta 2", "sin theta 2", "velocity 1", "velocity 2"),
    "Blackjack": ("player's sum", "dealer's card", "usable ace"),
    "CartPole": ("position", "velocity", "angle", "angular velocity"),
    "CliffWalking": ("cell",),
    "CliffWalkingSlippery": ("cell",),
    "FrozenLake": ("cell",),
    "FrozenLake8x8": ("cell",),
    "LunarLander": _LANDER,
    "LunarLanderContinuous": _LANDER,
    "MountainCar": _CAR,
    "MountainCarContinuous": _CAR,
    "Pendulum": ("cos theta", "sin theta", "angular velocity"),
    "Taxi": ("state",),
    "deep-sea-treasure": ("row", "column"),
    "deep-sea-treasure-concave": ("row", "column"),
    "deep-sea-treasure-mirrored": ("row", "column"),
    "fishwood": ("in the woods",),
    "four-room": ("row", "column", *_ITEMS),
    "fruit-tree": ("level", "node"),
    "minecart": ("x", "y", "speed", "sin angle", "cos angle", "first ore", "second ore"),
    "minecart-deterministic": ("x", "y", "speed", "sin angle", "cos angle", "first ore", "second ore"),
    "mo-lunar-lander": _LANDER,
    "mo-lunar-lander-continuous": _LANDER,
    "mo-mountaincar": _CAR,
    "mo-mountaincar-3d": _CAR,
    "mo-mountaincar-timemove": _CAR,
    "mo-mountaincar-timespeed": _CAR,
    "mo-mountaincarcontinuous": _CAR,
    "resource-gathering": ("row", "column", "has gold", "has diamond"),
}


def _wrappers(env: Any) -> list[Any]:
    """The wrappers of an environment, from the outside."""
    import gymnasium

    found = []
    while isinstance(env, gymnasium.Wrapper):
        found.append(env)
        env = env.env
    return found


def _documented(env: Any, table: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What the table has for one of Gymnasium's or MO-Gymnasium's own environments; nothing for any other."""
    spec = getattr(env.unwrapped, "spec", None) or getattr(env, "spec", None)
    if spec is None or not str(spec.entry_point).startswith(("gymnasium.", "mo_gymnasium.")):
        return ()
    return table.get(spec.name, ())


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
    names = tuple(str(name) for name in own) if own is not None else _documented(env, NUMBERS if box else ACTIONS)
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
    names = tuple(str(name) for name in own) if own is not None else _documented(env, OBSERVATIONS)
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
