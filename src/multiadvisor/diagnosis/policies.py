"""Anyone's policy as one function: of this package, of Stable-Baselines3 or SBX, or a plain function."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.envs.stepping import copied
from multiadvisor.errors import BadInput, short

_ROUNDING = 1e-4  # of the range of an action: how far outside its space it may be, and is clipped


class Policy(NamedTuple):
    """A policy that was tried: the environment's own action for each of its observations."""

    act: Callable[[Any], Any]
    random: bool
    """Whether it gives different actions in the same state."""


def as_policy(policy: Any) -> Callable[[Any], Any]:
    """The function observation -> action of whatever acts.

    An agent of this package acts greedily; a model with `predict` (Stable-Baselines3, SBX) deterministically; a
    function acts as it likes.
    """
    if isinstance(policy, MultiAdvisor):
        return policy.act
    if hasattr(policy, "predict"):
        return lambda observation: policy.predict(observation, deterministic=True)[0]
    if callable(policy):
        return cast("Callable[[Any], Any]", policy)
    raise BadInput(
        f"a policy is a function of the observation, a model with .predict, or a MultiAdvisor, and this is "
        f"{short(repr(policy))}: wrap it in a function"
    )


def checked(act: Callable[[Any], Any], space: Any) -> Callable[[Any], Any]:
    """The same policy, whose every action is one of the space's, or an error that says what it gave."""
    box = hasattr(space, "low")

    def acting(observation: Any) -> Any:
        action = act(copied(observation))  # a policy that writes into its observation changes nothing here
        if not box:
            whole = action.item() if isinstance(action, np.ndarray) and action.size == 1 and not space.shape else action
            if not space.contains(whole):
                raise BadInput(f"the policy gave the action {short(repr(action))}, which is not in {space}")
            return whole
        given = np.asarray(action, float)
        if given.shape != space.shape:
            raise BadInput(f"the policy gave an action of shape {given.shape}, and {space} has {space.shape}")
        if not np.isfinite(given).all():
            raise BadInput(f"the policy gave the action {short(str(given))}: let every number be finite")
        slack = _ROUNDING * np.where(np.isfinite(space.high - space.low), space.high - space.low, 1.0)
        if (given < space.low - slack).any() or (given > space.high + slack).any():
            raise BadInput(f"the policy gave the action {short(str(given))}, outside {space}: clip it")
        return np.clip(given, space.low, space.high).astype(space.dtype)

    return acting


def tried(act: Callable[[Any], Any], observations: list[Any], seed: int) -> Policy:
    """Whether the policy is random, and an error where it depends on what it was asked before.

    Asked twice of the same observations with the same random numbers it must say the same; where it does so only with
    the same numbers, it is random.
    """
    seed_everything(seed)
    first = [act(one) for one in observations]
    seed_everything(seed)
    again = [act(one) for one in observations]
    seed_everything(seed + 1)
    other = [act(one) for one in observations]
    if not _same(first, again):
        raise BadInput(
            "the policy gives different actions for the same observations and random numbers: it keeps a state of its "
            "own, or draws from a generator of its own; give a function of the observation that draws from numpy.random"
        )
    return Policy(act, not _same(first, other))


def _same(first: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(one, two) for one, two in zip(first, other, strict=True))


def seed_everything(seed: int) -> None:
    """Seed the generators that policies draw from: Python's, NumPy's and, where it is loaded, PyTorch's."""
    random.seed(seed)
    np.random.seed(seed % (1 << 32))  # noqa: NPY002 a stranger's policy draws from it
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
