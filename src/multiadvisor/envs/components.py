"""The components of a vector reward, and what they are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiadvisor.envs.documented_names import documented
from multiadvisor.errors import BadInput
from multiadvisor.task import Task


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
    own = getattr(env.unwrapped, "reward_names", None)
    if own is not None and len(own) == count:
        return [str(name) for name in own]
    spec = getattr(env, "spec", None)
    if spec is not None and _as_registered(spec):
        names = documented(spec).rewards
        if len(names) == count:
            return list(names)
    return [f"reward {k}" for k in range(count)]


def _as_registered(spec: Any) -> bool:
    """Whether an environment was made without options of its own: some of them change what the reward consists of."""
    import gymnasium

    known = gymnasium.registry.get(spec.id)
    own = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    return (
        known is not None
        and own.keys() == known.kwargs.keys()
        and all(np.array_equal(own[name], known.kwargs[name]) for name in own)
    )


def refuse_numbers_for_names(task: Task) -> None:
    """Refuse a vector reward whose components nobody has named: who could tell what drives an action?"""
    if task.adapter is None or task.adapter.components < 2:
        return
    if all(advisor.name == f"reward {k}" for k, advisor in enumerate(task.advisors)):
        raise BadInput(
            f"the reward of {task.name!r} has {task.n} components without names: give --components with "
            f"{task.n} names, separated by commas"
        )
