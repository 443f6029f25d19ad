"""Where a policy is diagnosed: an environment, the terms of its reward, and how an agent is asked there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from multiadvisor.diagnosis.policies import Policy, as_policy, batch_of, checked
from multiadvisor.diagnosis.sample import RewardTerms
from multiadvisor.envs.world_envs import WorldEnv
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, Task, Transition

_SINGLE = 12  # advisors of a compiled world up to which each is a term; of more, each group is one


@dataclass(frozen=True)
class Playground:
    """An environment and the terms of its reward."""

    task: Task
    env: Any
    terms: RewardTerms

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else plays in it meanwhile, and whoever trains in it has to find its way back."""
        if self.task.adapter is None:
            yield
            return
        with self.task.adapter.lock as lock:
            lock.user = None
            yield

    def state(self, observation: Any) -> Any:
        """An observation as an agent of the task takes it."""
        return np.atleast_1d(observation) if self.task.adapter is None else observation

    def policy(self, given: Any) -> Policy:
        """Anyone's policy, asked as an agent of the task is, and checked."""
        act, space = as_policy(given), self.env.action_space
        if self.task.adapter is None:
            return Policy(checked(lambda observation: act(self.state(observation)), space))
        return Policy(checked(act, space), batch_of(given, space))


def playground(env: Any, advisors: Any = None) -> Playground:
    """The environment of a task, an environment, or its id; a compiled world is played as its own environment."""
    task = env if isinstance(env, Task) else Task.from_gymnasium(env, advisors=advisors)
    if task.adapter is None:
        return Playground(task, WorldEnv(task), RewardTerms(_world_terms(task)))
    if task.adapter.vector:
        raise BadInput(f"{task.name!r} is a vector environment, and states of single ones are gone back to: give one")
    return Playground(task, task.adapter.env, RewardTerms(task.advisors))


def _world_terms(task: Task) -> tuple[Advisor, ...]:
    """What a compiled world pays each advisor or, where there are many, each group."""
    names = list(task.names) if task.n <= _SINGLE else [one.group or one.name for one in task.advisors]
    return tuple(
        Advisor(name, reward=_paid(np.where([one == name for one in names], task.weights, 0.0)))
        for name in dict.fromkeys(names)
    )


def _paid(weights: np.ndarray) -> Callable[[Transition], float]:
    """What advisors with these weights are paid [n]."""
    return lambda transition: float(weights @ np.fromiter(transition.info["rewards"].values(), float, len(weights)))
