"""Anyone's policy as one function: of this package, of Stable-Baselines3 or SBX, or a plain function."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.envs.step import copied
from multiadvisor.errors import BadInput, failed, short, takes_one

_ROUNDING = 1e-4  # of the range of an action: how far outside its space it may be, and is clipped


class Policy(NamedTuple):
    """Who acts: the environment's own action for each of its observations."""

    act: Callable[[Any], Any]
    batch: Callable[[list[Any]], list[Any]] | None = None
    """Those for many observations at once, of a model that can be asked so."""
    random: bool = False
    """Whether it gives different actions in the same state."""

    def actions(self, observations: list[Any]) -> list[Any]:
        """The action for each observation."""
        return list(map(self.act, observations)) if self.batch is None else self.batch(observations)


def as_policy(policy: Any) -> Callable[[Any], Any]:
    """The function observation -> action of whatever acts.

    An agent of this package acts greedily; a model with `predict` (Stable-Baselines3, SBX) deterministically; a
    function acts as it likes.
    """
    if isinstance(policy, MultiAdvisor):
        return policy.act
    if hasattr(policy, "predict"):
        return lambda observation: policy.predict(observation, deterministic=True)[0]
    if callable(policy) and not takes_one(policy):
        raise BadInput("the policy is a function that does not take one argument: it is given the observation alone")
    if callable(policy):
        return cast("Callable[[Any], Any]", policy)
    raise BadInput(
        f"a policy is a function of the observation, a model with .predict, or a MultiAdvisor, and this is "
        f"{short(repr(policy))}: wrap it in a function"
    )


def batch_of(policy: Any, space: Any) -> Callable[[list[Any]], list[Any]] | None:
    """How a model is asked of many observations at once: one call costs about as much as for a single one."""
    if isinstance(policy, MultiAdvisor) or not hasattr(policy, "predict"):
        return None
    valid = _within(space)

    def predicted(observations: list[Any]) -> list[Any]:
        first = observations[0]
        named = isinstance(first, dict)
        rows = (
            {name: np.stack([one[name] for one in observations]) for name in first} if named else np.stack(observations)
        )
        return [valid(one) for one in policy.predict(rows, deterministic=True)[0]]

    return predicted


def checked(act: Callable[[Any], Any], space: Any) -> Callable[[Any], Any]:
    """The same policy, whose every action is one of the space's, or an error that says what it gave."""
    valid = _within(space)

    def acting(observation: Any) -> Any:
        try:
            action = act(copied(observation))  # one that writes into what it sees changes nothing
        except Exception as error:  # whatever a stranger's function may raise
            raise failed("the policy", error) from error
        return valid(action)

    return acting


def _within(space: Any) -> Callable[[Any], Any]:
    """An action as the space has it, or an error that says what it was."""

    def chosen(action: Any) -> Any:
        whole = action.item() if isinstance(action, np.ndarray) and action.size == 1 and not space.shape else action
        if not space.contains(whole):
            raise BadInput(f"the policy gave the action {short(repr(action))}, which is not in {space}")
        return whole

    if not hasattr(space, "low"):
        return chosen
    slack = _ROUNDING * np.where(np.isfinite(space.high - space.low), space.high - space.low, 1.0)

    def numbers(action: Any) -> np.ndarray:
        given = np.asarray(action, float)
        if given.shape != space.shape:
            raise BadInput(f"the policy gave an action of shape {given.shape}, and {space} has {space.shape}")
        if not np.isfinite(given).all():
            raise BadInput(f"the policy gave the action {short(str(given))}: let every number be finite")
        if ((given >= space.low) & (given <= space.high)).all():
            return given.astype(space.dtype)
        if (given < space.low - slack).any() or (given > space.high + slack).any():
            raise BadInput(f"the policy gave the action {short(str(given))}, outside {space}: clip it")
        return np.asarray(np.clip(given, space.low, space.high), space.dtype)

    return numbers


def tried(policy: Policy, observations: list[Any], seed: int) -> Policy:
    """The policy, with whether it is random, and an error where it depends on what it was asked before.

    Asked twice of the same observations with the same random numbers it must say the same; where it does so only with
    the same numbers, it is random. It keeps its batch if that gives the same actions, up to rounding.
    """
    seed_everything(seed)
    first = [policy.act(one) for one in observations]
    seed_everything(seed)
    again = [policy.act(one) for one in observations]
    seed_everything(seed + 1)
    other = [policy.act(one) for one in observations]
    if not _same(first, again):
        raise BadInput(
            "the policy gives different actions for the same observations and random numbers: it keeps a state of its "
            "own, or draws from a generator of its own; give a function of the observation that draws from numpy.random"
        )
    if not _same(first, other):
        return Policy(policy.act, random=True)
    if policy.batch is not None:
        with suppress(Exception):  # whatever a stranger's model may raise
            if np.allclose(policy.batch(observations), first, rtol=_ROUNDING, atol=_ROUNDING):
                return policy
    return Policy(policy.act)


def _same(first: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(one, two) for one, two in zip(first, other, strict=True))


def seed_everything(seed: int) -> None:
    """Seed the generators that policies draw from: Python's, NumPy's and, where it is loaded, PyTorch's."""
    random.seed(seed)
    np.random.seed(seed % (1 << 32))  # noqa: NPY002 a stranger's policy draws from it
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
