"""What an environment gives, checked: first observations, steps, rewards, whole episodes, and local states."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from multiadvisor.errors import BadInput, short
from multiadvisor.task import Advisor, Transition

LONGEST_EPISODE = 1_000_000  # steps; an episode that takes longer is given up


# ---- resets and steps ------------------------------------------------------------------------------------------------
def begin_episode(env: Any, seed: int | None = None) -> Any:
    """Reset, with this seed where one is given: the first observation."""
    try:
        result = env.reset() if seed is None else env.reset(seed=seed)
    except TypeError:
        if seed is None or _takes_seed(env):
            raise
        raise BadInput(
            "the environment's reset takes no seed: let it be reset(self, *, seed=None, options=None), as Gymnasium "
            "asks for"
        ) from None
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        return result[0]
    raise BadInput(
        f"the environment's reset gave {_form(result)} where an observation and a dict of info are expected: bring it "
        "to the API of Gymnasium"
    )


def five(result: Any) -> Any:
    """What a step gave, if it is a step of today's Gymnasium: observation, reward, terminated, truncated and info."""
    if isinstance(result, tuple) and len(result) == 5:
        return result
    raise BadInput(
        f"a step of the environment gave {len(result) if isinstance(result, tuple) else 'no'} values where "
        "observation, reward, terminated, truncated and info are expected: follow the Gymnasium API"
    )


def _takes_seed(env: Any) -> bool:
    """Whether the environment's reset, and that of each of its wrappers, takes a seed."""
    while True:
        try:
            inspect.signature(env.reset).bind(seed=0)
        except TypeError:
            return False
        except ValueError:  # nothing is known of it
            return True
        inner = getattr(env, "env", env)
        if inner is env:
            return True
        env = inner


def _form(result: Any) -> str:
    """What was returned, by its types."""
    if isinstance(result, tuple):
        return f"({', '.join(type(part).__name__ for part in result)})"
    return f"a value of type {type(result).__name__}"


def copied(given: Any) -> Any:
    """A part of a step that the environment cannot change any more; itself, where it cannot be copied."""
    if type(given) is np.ndarray and not given.dtype.hasobject:
        return given.copy()
    try:
        return copy.deepcopy(given)
    except Exception:  # whatever a class of others may raise
        if isinstance(given, dict):  # one entry that cannot be copied is no reason to keep the others as they are
            return {name: copied(part) for name, part in given.items()}
        return given


# ---- rewards ---------------------------------------------------------------------------------------------------------
def finite_reward(paid: Any) -> float:
    """The environment's own reward, or an error where it is not a finite number."""
    try:
        reward = float(paid)
    except (TypeError, ValueError):
        raise no_reward(paid) from None
    if math.isfinite(reward):
        return reward
    raise BadInput(f"the reward of the environment is {reward}: let it be a finite number")


def no_reward(paid: Any, advisor: Advisor | None = None) -> BadInput:
    """The complaint about a reward that is no number."""
    whose = "the environment" if advisor is None else f"advisor {advisor.name!r}"
    return BadInput(f"the reward of {whose} is {short(repr(paid))}: let it be what it was declared to be")


# ---- episodes --------------------------------------------------------------------------------------------------------
def one_episode(env: Any, seed: int | None, act: Callable[[Any], Any]) -> Iterator[Transition]:
    """An episode in an environment, without advisors; `act` chooses the environment's own actions by the observation.

    >>> import gymnasium
    >>> env = gymnasium.make("CliffWalking-v1", max_episode_steps=3)
    >>> [(step.observation, step.next_observation) for step in one_episode(env, 0, lambda seen: 0)]
    [(36, 24), (24, 12), (12, 0)]
    """
    seen = copied(begin_episode(env, seed))
    for _ in range(LONGEST_EPISODE):
        action = act(seen)
        done = copied(action)  # whoever plays may keep the step, and the environment may change all of it in place
        after, reward, terminated, truncated, info = map(copied, five(env.step(action)))
        yield Transition(seen, done, reward, after, bool(terminated), bool(truncated), info)
        if terminated or truncated:
            return
        seen = after
    raise endless(str(env))


def endless(name: str) -> BadInput:
    """The complaint about an episode that does not end."""
    return BadInput(
        f"an episode of {name!r} did not end in {LONGEST_EPISODE} steps: give it a limit (TimeLimit in Gymnasium)"
    )
