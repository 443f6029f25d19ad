"""What a step brings, what an environment is, and what one gives, checked: the same for compiled worlds, Python and
vector environments."""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from multiadvisor.errors import BadInput, short
from multiadvisor.task import Advisor, Task, Transition


class Step(NamedTuple):
    """What one step brought. An environment steps N episodes at once, and has their axis [N] in front of all others."""

    state: Any  # where it began: x [size], or an observation
    action: Any  # counted from 0, or an array from -1 to 1
    advisors: np.ndarray  # [n] bool: who was active there
    reward: np.ndarray  # [n] 0 where an advisor was not active
    ended: np.ndarray  # [n] bool: whose own part it ended
    terminated: Any  # bool
    truncated: Any  # bool
    next_state: Any  # where it led, also where that was the end of an episode
    next_advisors: np.ndarray  # [n] bool: who is active there, where the environment was asked for it
    begun: Any = False  # bool: it was no step at all, only the beginning of an episode
    gain: float = 0.0  # what it adds to the score; filled in by `EvaluationEpisodes`

    @property
    def over(self) -> Any:
        """Whether it was the episode's last."""
        return self.terminated | self.truncated

    def single(self) -> Step:
        """That of the only episode, without its axis."""
        state, action, advisors, reward, ended, terminated, truncated, next_state, next_advisors, _, _ = self
        return Step(
            state[0], action[0], advisors[0], reward[0], ended[0], bool(terminated[0]), bool(truncated[0]),
            next_state[0], next_advisors[0],
        )  # fmt: skip


class Env(Protocol):
    """N episodes of a task, side by side."""

    task: Task
    waits: bool
    """Whether a new episode begins with a step of its own, `begun`."""

    @property
    def state(self) -> Any:
        """[N] where the episodes are."""

    @property
    def active(self) -> np.ndarray:
        """[N, n] bool: who is active there."""

    def reset(self, which: np.ndarray | None = None) -> Any:
        """Begin an episode in every place, or in those of `which` [N] bool: where the episodes are."""

    def step(self, actions: np.ndarray, playing: np.ndarray | None = None) -> Step:
        """A step of every episode; those not in `playing` [N] bool may wait."""

    def encode(self, states: Any) -> np.ndarray:
        """States [N] as a network sees them, [N, F]."""


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
        f"the environment's reset gave {form_of(result)} where an observation and a dict of info are expected: bring "
        "it to the API of Gymnasium"
    )


def five(result: Any) -> Any:
    """What a step gave, if it is a step of today's Gymnasium: observation, reward, terminated, truncated and info."""
    if isinstance(result, tuple) and len(result) == 5:
        return result
    raise BadInput(
        f"a step of the environment gave {len(result) if isinstance(result, tuple) else 'no'} values where "
        "observation, reward, terminated, truncated and info are expected: follow the Gymnasium API"
    )


def check_ends(*ends: Any) -> None:
    """Refuse `terminated` and `truncated` where they are not true or false."""
    for name, given in zip(("terminated", "truncated"), ends, strict=True):
        if np.ndim(given) or np.asarray(given).dtype.kind not in "biuf":
            raise BadInput(f"a step of the environment gave {name} as {short(repr(given))}: give True or False")


def wrappers_of(env: Any) -> list[Any]:
    """The wrappers of an environment, from the outside."""
    import gymnasium

    return [env, *wrappers_of(env.env)] if isinstance(env, gymnasium.Wrapper) else []


def _takes_seed(env: Any) -> bool:
    """Whether the environment's reset, and that of each of its wrappers, takes a seed."""
    for each in (*wrappers_of(env), env.unwrapped):
        with contextlib.suppress(ValueError):  # nothing is known of it
            try:
                inspect.signature(each.reset).bind(seed=0)
            except TypeError:
                return False
    return True


def form_of(result: Any) -> str:
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
    except (TypeError, ValueError, OverflowError):
        raise no_reward(paid) from None
    if math.isfinite(reward):
        return reward
    raise BadInput(f"the reward of the environment is {reward}: let it be a finite number")


def no_reward(paid: Any, advisor: Advisor | None = None) -> BadInput:
    """The complaint about a reward that is no number."""
    whose = "the environment" if advisor is None else f"advisor {advisor.name!r}"
    what = "what it was declared to be" if advisor is None else "a number"
    return BadInput(f"the reward of {whose} is {short(repr(paid))}: let it be {what}")


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
        step = one_step(env, seen, act(seen))
        yield step
        if step.terminated or step.truncated:
            return
        seen = step.next_observation
    raise endless(str(env))


def one_step(env: Any, observation: Any, action: Any) -> Transition:
    """A step of an environment, with copies of all that it gave and was given: it may change these in place."""
    after, reward, terminated, truncated, info = map(copied, five(env.step(copied(action))))
    return Transition(observation, copied(action), reward, after, bool(terminated), bool(truncated), info)


def endless(name: str) -> BadInput:
    """The complaint about an episode that does not end."""
    return BadInput(f"an episode of {name!r} did not end in {LONGEST_EPISODE} steps: give it a limit (TimeLimit)")
