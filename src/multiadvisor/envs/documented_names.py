"""What the documentation of Gymnasium and MO-Gymnasium calls the actions, observations and rewards of their
environments, which don't say it themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


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
