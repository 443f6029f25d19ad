"""Reward terms that an environment puts into `info`: which there are, and what a step pays by them.

An advisor names a term as `info:KEY`. The parts of a nested key are joined with dots, and a whole number picks an
entry of a list or array: `info:rewards.collision`, `info:vector_reward.0`. `REMAINDER` is what the other advisors
leave of the reward.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from multiadvisor.envs.env_lock import lock_of
from multiadvisor.envs.step import begin_episode, five
from multiadvisor.errors import BadInput, short
from multiadvisor.task import REMAINDER, Advisor, Transition

PREFIX = "info:"
_NUMBERS = "biuf"  # kinds of NumPy's types
_SHOWN = 12  # so many keys are named in a complaint


# ---- one term --------------------------------------------------------------------------------------------------------
def key_of(reward: Any) -> str | None:
    """The key that an advisor' reward names; None where it names none."""
    return reward.removeprefix(PREFIX) if isinstance(reward, str) and reward.startswith(PREFIX) else None


def _found(info: Any, key: str) -> Any:
    """The entry of a step's info; LookupError or ValueError where there is none."""
    if isinstance(info, Mapping):
        if key in info:
            return info[key]
        first = key.partition(".")[0]
        for name in (first, *info) if first in info else info:  # names may be numbers, or have dots in them
            if str(name) == key:
                return info[name]
            if key.startswith(f"{name}."):
                with contextlib.suppress(LookupError, ValueError):
                    return _found(info[name], key[len(str(name)) + 1 :])
        raise LookupError(key)
    if not isinstance(info, list | tuple | np.ndarray):
        raise LookupError(key)
    part, dot, rest = key.partition(".")
    return _found(info[int(part)], rest) if dot else info[int(part)]


def term(advisor: Advisor, key: str, info: Any) -> float:
    """What a step's info pays to an advisor."""
    try:
        value = _found(info, key)
    except (LookupError, ValueError):
        raise BadInput(
            f"advisor {advisor.name!r} takes {PREFIX}{key}, which the info of a step lacks ({_listed(info)}): name a "
            "key that every step has, or give a function of the transition"
        ) from None
    given = np.asarray(value)
    if given.dtype.kind not in _NUMBERS:
        raise BadInput(f"advisor {advisor.name!r} takes {PREFIX}{key}, which is {short(repr(value))}: name a number")
    if given.ndim:
        raise BadInput(
            f"advisor {advisor.name!r} takes {PREFIX}{key}, which is an array of the shape {given.shape}: name one of "
            f"its numbers, such as {PREFIX}{key}.0, or give advisors='{PREFIX}{key}' for an advisor each"
        )
    return float(given)


def reward_function(advisor: Advisor) -> Callable[[Transition], Any] | None:
    """The reward as a function of the transition, where it is one or stands in info."""
    key = key_of(advisor.reward)
    if key is not None:
        return lambda transition: term(advisor, key, transition.info)
    return advisor.reward if callable(advisor.reward) else None


def _listed(info: Any) -> str:
    names = list(dict(_terms(info))) if isinstance(info, Mapping) else []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"it has {', '.join(short(name) for name in names[:_SHOWN])}{more}" if names else "it has no number at all"


# ---- what the advisors are paid --------------------------------------------------------------------------------------
class Terms:
    """Fills the signals of those advisors that are paid by info, and of the one that takes the rest."""

    def __init__(self, advisors: Sequence[Advisor], source: np.ndarray, components: int) -> None:
        """`source` [n]: the place of each advisor' reward among the signals."""
        self._named: list[tuple[int, str, Advisor]] = []
        for place, advisor in zip(source.tolist(), advisors, strict=True):
            if key := key_of(advisor.reward):
                self._named.append((place, key, advisor))
            elif isinstance(advisor.reward, str) and advisor.reward != REMAINDER:
                raise BadInput(
                    f"the reward of advisor {advisor.name!r} is {short(advisor.reward)!r}: write {PREFIX}KEY for a "
                    f"term in info, or {REMAINDER!r} for what the other advisors leave"
                )
        rest = [j for j, advisor in enumerate(advisors) if advisor.reward == REMAINDER]
        if len(rest) > 1:
            raise BadInput(
                f"{advisors[rest[0]].name!r} and {advisors[rest[1]].name!r} both take the remainder: let one of them"
            )
        if rest and components:
            raise BadInput(
                f"advisor {advisors[rest[0]].name!r} takes the rest of the reward, which is a vector of {components}: "
                "name its components instead"
            )
        self._rest = int(source[rest[0]]) if rest else -1
        self._others = np.delete(source, rest)
        ways = [key.split(".") for _, key, _ in self._named]
        self._tops = frozenset(".".join(way[: k + 1]) for way in ways for k in range(len(way)))
        self.any = bool(self._named or rest)

    def fill(self, signals: np.ndarray, info: Any) -> None:
        """signals [size + n], in which everything else stands already."""
        for place, key, advisor in self._named:
            try:
                value = info[key]
            except (LookupError, TypeError):
                value = None
            signals[place] = value if type(value) is float else term(advisor, key, info)
        if self._rest >= 0:
            signals[self._rest] = signals[0] - signals[self._others].sum()

    def of_episode(self, infos: dict[str, Any], episode: int) -> dict[str, Any]:
        """What is looked at, of one episode, in the info of a vector environment."""
        looked = {key: part for key, part in infos.items() if self._tops & {str(key), str(key).removeprefix("_")}}
        return episode_info(looked, episode)


def episode_info(infos: Mapping[str, Any], episode: int) -> dict[str, Any]:
    """One episode's info of a vector environment's: entries [N, ...], each beside a mask [N] of who has it.

    >>> episode_info({"cost": np.array([1.0, 2.0]), "_cost": np.array([True, False])}, 0)
    {'cost': np.float64(1.0)}
    >>> episode_info({"cost": np.array([1.0, 2.0]), "_cost": np.array([True, False])}, 1)
    {}
    """
    own: dict[str, Any] = {}
    names = {str(key) for key in infos}  # a mask is named after its entry, which may be a number
    for key, value in infos.items():
        mask = infos.get(f"_{key}")
        is_mask = isinstance(key, str) and key.startswith("_") and key[1:] in names
        if is_mask or (mask is not None and not mask[episode]):
            continue
        if isinstance(value, Mapping):
            own[key] = episode_info(value, episode)
        elif np.ndim(value) and len(value) > episode:
            own[key] = value[episode]
    return own


# ---- finding them ----------------------------------------------------------------------------------------------------
def first_info(env: Any) -> dict[str, Any]:
    """The info of the first step of an episode, with a random action; of a vector environment, that of its first
    episode.

    Whoever plays afterwards begins an episode of his own.
    """
    actions = copy.deepcopy(env.action_space)  # whoever draws from the environment's own space goes on undisturbed
    actions.seed(0)
    with lock_of(env) as lock:
        lock.user = None  # whoever plays in it already has to find its way back
        begin_episode(env, 0)
        info = five(env.step(actions.sample()))[4]
    return episode_info(info, 0) if hasattr(env, "single_action_space") else info


def _terms(info: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Every number, and every array of numbers, with its key."""
    for name, value in info.items():
        key = f"{before}{name}"
        if isinstance(value, Mapping):
            yield from _terms(value, f"{key}.")
            continue
        try:
            array = np.asarray(value)
        except ValueError:  # a list of lists of different lengths
            continue
        if array.dtype.kind in _NUMBERS and array.ndim < 2:
            yield key, array


def found_advisors(pattern: str, info: Mapping[str, Any]) -> list[Advisor]:
    """An advisor for each term that a pattern `info:KEY` fits, in which * stands for any letters but a dot.

    It is named after what * stands for, or without one after the key; of an array, each number gets an advisor.

    >>> found_advisors("info:reward_*", {"x": 0.3, "reward_forward": 1.0, "reward_ctrl": -0.1})
    [Advisor('forward', reward='info:reward_forward'), Advisor('ctrl', reward='info:reward_ctrl')]
    >>> found_advisors("info:pair", {"pair": np.zeros(2)})
    [Advisor('pair 0', reward='info:pair.0'), Advisor('pair 1', reward='info:pair.1')]
    """
    key = key_of(pattern)
    if not key:
        raise BadInput(f"advisors are {short(pattern)!r}: write {PREFIX}KEY, for example '{PREFIX}reward_*'")
    fits = re.compile(re.escape(key).replace(r"\*", "([^.]*)"))
    advisors = []
    for name, value in _terms(info):
        if match := fits.fullmatch(name):
            called = " ".join(filter(None, match.groups())) or name.rpartition(".")[2]
            parts = [("", "")] if value.ndim == 0 else [(f" {k}", f".{k}") for k in range(len(value))]
            advisors += [Advisor(f"{called}{number}", reward=f"{PREFIX}{name}{place}") for number, place in parts]
    if not advisors and any(name.startswith(f"{key}.") for name, _ in _terms(info)):
        return found_advisors(f"{pattern}.*", info)  # of a dictionary, all of it
    if not advisors:
        raise BadInput(f"no number in info fits {PREFIX}{short(key)} ({_listed(info)}): name another key")
    return advisors
