"""What an environment's actions, observations and rewards are called: in its own words, its documentation's, or by
numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multiadvisor.envs.step import wrappers_of
from multiadvisor.errors import BadInput, short
from multiadvisor.task import Task


# ---- what is documented ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Names:
    """Of one environment; nothing where nobody has named it."""

    actions: tuple[str, ...] = ()
    """A finite choice, in order."""
    numbers: tuple[str, ...] = ()
    """The numbers that a continuous action consists of."""
    observation: tuple[str, ...] = ()
    """The components of an observation."""
    rewards: tuple[str, ...] = ()
    """The components of a vector reward."""


_LANDER = Names(
    ("nothing", "left engine", "main engine", "right engine"), ("main engine", "side engines"),
    ("x", "y", "velocity x", "velocity y", "angle", "angular velocity", "left leg", "right leg"),
)  # fmt: skip
_CAR = Names(("push left", "coast", "push right"), ("force",), ("position", "velocity"))
_CELL = ("row", "column")
_UP_FIRST = ("up", "down", "left", "right")
_ITEMS = tuple(f"item {k}" for k in range(1, 13))

# By the beginning of an environment's name, of which the longest counts.
DOCUMENTED = {
    "Acrobot": Names(
        ("torque -1", "torque 0", "torque +1"), (),
        ("cos theta 1", "sin theta 1", "cos theta 2", "sin theta 2", "velocity 1", "velocity 2"),
    ),
    "BipedalWalker": Names(numbers=("hip 1", "knee 1", "hip 2", "knee 2")),
    "Blackjack": Names(("stick", "hit"), (), ("player's sum", "dealer's card", "usable ace")),
    "CarRacing": Names(numbers=("steering", "gas", "brake")),
    "CartPole": Names(("left", "right"), (), ("position", "velocity", "angle", "angular velocity")),
    "CliffWalking": Names(("up", "right", "down", "left"), (), ("cell",)),
    "FrozenLake": Names(("left", "down", "right", "up"), (), ("cell",)),
    "LunarLander": _LANDER,
    "MountainCar": _CAR,
    "Pendulum": Names((), ("torque",), ("cos theta", "sin theta", "angular velocity")),
    "Taxi": Names(("south", "north", "east", "west", "pick up", "drop off"), (), ("state",)),
    "breakable-bottles": Names(("left", "right", "pick up"), rewards=("time", "delivered", "potential")),
    "deep-sea-treasure": Names(_UP_FIRST, (), _CELL, ("treasure", "time")),
    "fishwood": Names(("fish", "collect wood"), (), ("in the woods",)),
    "four-room": Names(
        ("left", "up", "right", "down"), (), (*_CELL, *_ITEMS), ("blue square", "green triangle", "red circle")
    ),
    "fruit-tree": Names(
        ("left", "right"), (), ("level", "node"),
        ("protein", "carbohydrates", "fats", "vitamins", "minerals", "water"),
    ),
    "minecart": Names(
        ("mine", "left", "right", "accelerate", "brake", "nothing"), (),
        ("x", "y", "speed", "sin angle", "cos angle", "first ore", "second ore"), ("first ore", "second ore", "fuel"),
    ),
    "mo-highway": Names(
        ("lane left", "idle", "lane right", "faster", "slower"), rewards=("speed", "right lane", "collision")
    ),
    "mo-lunar-lander": replace(_LANDER, rewards=("landing", "shaping", "main engine", "side engine")),
    "mo-mountaincar": replace(_CAR, rewards=("time", "reverse", "forward")),
    "mo-mountaincar-3d": replace(_CAR, rewards=("time", "move", "speed")),
    "mo-mountaincar-timemove": replace(_CAR, rewards=("time", "move")),
    "mo-mountaincar-timespeed": replace(_CAR, rewards=("time", "speed")),
    "mo-reacher": Names(rewards=("target 1", "target 2", "target 3", "target 4")),
    "resource-gathering": Names(_UP_FIRST, (), (*_CELL, "has gold", "has diamond"), ("death", "gold", "diamond")),
    "water-reservoir": Names(rewards=("flooding", "demand")),
}  # fmt: skip


def documented(spec: Any) -> Names:
    """The names of an environment with this specification; none of one that nobody has documented.

    >>> import gymnasium
    >>> documented(gymnasium.spec("FrozenLake8x8-v1")).actions
    ('left', 'down', 'right', 'up')
    """
    fitting = [start for start in DOCUMENTED if spec is not None and spec.name.startswith(start)]
    return DOCUMENTED[max(fitting, key=len)] if fitting else Names()


# ---- the components of a vector reward -------------------------------------------------------------------------------
def reward_components(env: Any) -> int:
    """The length of the environment's vector reward; 0 where it is a number."""
    space = getattr(env.unwrapped, "reward_space", None)
    if space is None and one_of(env) is not env and reward_components(one_of(env)):
        raise BadInput(
            "the episodes of the vector environment pay vectors, and it expects numbers: use "
            "mo_gymnasium.wrappers.vector.MOSyncVectorEnv in its place"
        )
    return int(space.shape[-1]) if space is not None and space.shape else 0


def one_of(env: Any) -> Any:
    """One of a vector environment's episodes, where it shows them; another environment itself."""
    episodes = getattr(env.unwrapped, "envs", None)
    return episodes[0] if hasattr(env, "single_action_space") and episodes else env


def component_names(env: Any) -> list[str]:
    """The names of the reward's components: the environment's own, those its documentation gives, or numbers."""
    count = reward_components(env)
    env = one_of(env)
    names, spec = getattr(env.unwrapped, "reward_names", None), getattr(env, "spec", None)
    if (names is None or len(names) != count) and spec is not None and _as_registered(spec):
        names = documented(spec).rewards
    numbers = [f"reward {k}" for k in range(count)]
    return numbers if names is None or len(names) != count else [str(name) for name in names]


def _as_registered(spec: Any) -> bool:
    """Whether an environment was made without options of its own: some of them change what the reward consists of."""
    import gymnasium

    known = gymnasium.registry.get(spec.id)
    own = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    if known is None or own.keys() != known.kwargs.keys():
        return False
    return all(np.array_equal(value, known.kwargs[name]) for name, value in own.items())


def refuse_numbers_for_names(task: Task) -> None:
    """Refuse a vector reward whose components nobody has named: who could tell what drives an action?"""
    if task.adapter is None or task.adapter.components < 2:
        return
    if all(advisor.name == f"reward {k}" for k, advisor in enumerate(task.advisors)):
        raise BadInput(
            f"the reward of {task.name!r} has {task.n} components without names: give --components with "
            f"{task.n} names, separated by commas"
        )


# ---- actions and observations ----------------------------------------------------------------------------------------
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
    if any(isinstance(wrapper, gymnasium.ActionWrapper) for wrapper in wrappers_of(env)):
        return numbers  # whose actions are others than the environment's
    inner = env.unwrapped
    task = getattr(inner, "task", None)
    own = task.actions if isinstance(task, Task) else getattr(inner, "action_names", None)
    if own is None and callable(meanings := getattr(inner, "get_action_meanings", None)):
        own = [str(word).lower() for word in meanings()]
    documents = _documented(env)
    names = tuple(str(name) for name in own) if own is not None else documents.numbers if box else documents.actions
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
    shape = (len(space.spaces),) if isinstance(space, spaces.Tuple) else space.shape
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
