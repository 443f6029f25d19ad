"""Why this action and not that one? Who wanted what, the fewest advisors that decide, and one plain sentence.

Pure functions on advice [m, A] and weights [m]; `explain` asks them of any agent that has `task`, `advice(state)` and
`act(state)`. Differences and shortest explanations follow Juozapaitis et al. (2019), "Explainable Reinforcement
Learning via Reward Decomposition", with advisors in the place of reward types.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.aggregations import weighted_sum
from multiadvisor.errors import BadInput, unknown
from multiadvisor.theory.learned import Surroundings, surroundings
from multiadvisor.worlds.board import DIRECTIONS

_COMPASS = dict(zip(DIRECTIONS, ("North", "West", "South", "East"), strict=True))
_NAMED = 3  # so many of a group are named in a sentence, the others counted
_SHOWN = 8  # so many differences are printed
_NOISE = 1e-6  # of all gains: who loses less is not said to object


# ---- numbers ---------------------------------------------------------------------------------------------------------
def differences(advice: np.ndarray, weights: np.ndarray, action: int, against: int) -> np.ndarray:
    """RDX: w_j (Q_j(action) - Q_j(against)) [m], what each advisor adds to the one action over the other.

    >>> differences(np.array([[1.0, 0.25], [0.0, 3.0]]), np.array([1.0, -0.5]), 0, 1)
    array([0.75, 1.5 ])
    """
    return weights * (advice[:, action] - advice[:, against])


class MSX(NamedTuple):
    """The shortest sufficient explanation: indices of advisors, the strongest first."""

    plus: np.ndarray
    """MSX+: the fewest whose gains together exceed all losses; empty where even all gains do not."""
    minus: np.ndarray
    """MSX-: the fewest whose losses together exceed the gains of MSX+ but for its smallest: why no member of MSX+ can
    be left out. Where losses can only equal that, all of them."""


def msx(difference: np.ndarray) -> MSX:
    """MSX+ and MSX- of differences [m], by sorting; sums are compared exactly, without rounding.

    >>> msx(np.array([0.75, -1.0, 2.0, 0.5, 0.25]))
    MSX(plus=array([2]), minus=array([1]))
    >>> msx(np.array([0.5, -0.75, 0.5, -0.125, 0.25]))
    MSX(plus=array([0, 2]), minus=array([1]))
    """
    given = np.asarray(difference, float)
    gains, losses = np.flatnonzero(given > 0), np.flatnonzero(given < 0)
    gains = gains[np.argsort(-given[gains], kind="stable")]
    losses = losses[np.argsort(given[losses], kind="stable")]
    plus = _fewest(given[gains], given[losses])
    if plus is None:
        return MSX(gains[:0], losses[:0])
    minus = _fewest(-given[losses], -given[gains[: plus - 1]])
    return MSX(gains[:plus], losses if minus is None else losses[:minus])


def _fewest(falling: np.ndarray, other: np.ndarray) -> int | None:
    """The smallest k for which the first k of `falling`, all above 0, and all of `other` sum up to more than 0."""
    sums = np.concatenate([[0.0], np.cumsum(falling)]) + other.sum()
    doubt = (len(falling) + len(other) + 2) * np.finfo(float).eps * (falling.sum() + np.abs(other).sum())

    def enough(k: int) -> bool:
        if abs(sums[k]) > doubt:
            return bool(sums[k] > 0)
        return math.fsum([*falling[:k].tolist(), *other.tolist()]) > 0  # correctly rounded, so that its sign is exact

    k = bisect_left(range(len(falling) + 1), True, key=enough)
    return k if k <= len(falling) else None


def rounding(advice: np.ndarray, weights: np.ndarray) -> float:
    """How far apart two sums of the advice may be by rounding alone."""
    precision = np.finfo(advice.dtype if np.issubdtype(advice.dtype, np.floating) else float).eps
    largest = np.abs(weights[:, None] * advice).max(axis=1, initial=0.0)  # [m]
    return float((len(advice) + 1) * precision * largest.sum())


def best(preferences: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    """[..., A] bool: the greedy actions, all of those that are equal up to the tolerance."""
    return preferences >= preferences.max(axis=-1, keepdims=True) - tolerance


def without_each(advice: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Q_Sigma [m, A] if advisor j were silent, for every j at once."""
    wished = weights[:, None] * advice  # [m, A]
    zero = np.zeros((1, advice.shape[1]))
    before = np.concatenate([zero, np.cumsum(wished, axis=0)[:-1]])[: len(wished)]
    after = np.concatenate([np.cumsum(wished[::-1], axis=0)[::-1][1:], zero])[: len(wished)]
    return before + after  # never a difference of large numbers


def influence(advice: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[m] bool: without whom the greedy actions would be others.

    >>> influence(np.array([[1.0, 0.0], [0.0, 3.0], [0.5, 0.0]]), np.ones(3))
    array([False,  True, False])
    """
    tolerance = rounding(advice, weights)
    now = best(weighted_sum(advice, weights), tolerance)
    return (best(without_each(advice, weights), tolerance) != now).any(axis=1)


def disagreement(advice: np.ndarray, weights: np.ndarray) -> float:
    """The sum of what each advisor could have at best, less the most that all can have together; never below 0.

    >>> disagreement(np.array([[1.0, 0.0], [0.0, 3.0]]), np.ones(2))
    1.0
    """
    wished = weights[:, None] * advice
    return max(float(wished.max(axis=1).sum() - weighted_sum(advice, weights).max()), 0.0)


# ---- words -----------------------------------------------------------------------------------------------------------
def _join(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _first(parts: list[str], count: int) -> list[str]:
    """The first few of the parts, and how many more there are; one more is named itself."""
    return parts if len(parts) <= _NAMED + 1 else [*parts[:_NAMED], f"{count - _NAMED} more"]


def _split(name: str) -> tuple[str, str]:
    """'fruit (2, 3)' -> 'fruit', 'at (2, 3)'; 'ghost 1' -> 'ghost', '1'."""
    found = re.fullmatch(r"(.+?) (\(.*\)|\S+)", name)
    if found is None:
        return name, ""
    return found[1], found[2]


def who(names: Sequence[str], groups: Sequence[str]) -> str:
    """Advisors in words, those of a group together, in the order given.

    >>> who(["fruit (2, 3)", "ghost 2", "fruit (2, 5)"], ["fruits", "ghosts", "fruits"])
    'fruits at (2, 3) and (2, 5), and ghost 2'
    """
    crowds: dict[tuple[str, str], list[str]] = {}
    for name, group in zip(names, groups, strict=True):
        kind, place = _split(name) if group else (name, "")
        crowds.setdefault((group, kind), []).append(place)
    parts = []
    for (group, kind), places in crowds.items():
        shown = _first(places, len(places))
        at = " at" if places[0].startswith("(") else ""
        parts.append(f"{kind if len(places) == 1 else group}{at} {_join(shown)}".rstrip())
    parts = _first(parts, len(names) - sum(len(places) for places in list(crowds.values())[:_NAMED]) + _NAMED)
    return _join(parts) if len(crowds) == len(names) else ", and ".join(parts)


def _numbers(first: float, second: float) -> tuple[str, str]:
    """Two sums with two decimals, or as many more as it takes to tell their sizes apart."""
    for digits in range(2, 7):
        a, b = f"{first:.{digits}f}", f"{second:.{digits}f}"
        if a.strip("-0.") and b.strip("-0.") and (a.lstrip("-") != b.lstrip("-") or first == -second):
            return a, b
    return f"{first:.4g}", f"{second:.4g}"


def _figure(value: float, sign: str = "") -> str:
    return f"{value:{sign}.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:{sign}.1e}"


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why the aggregator prefers one action to another in one state."""

    task: str
    action: str
    against: str | None
    """The action it is compared with, by default the best other one; None where there is no other."""
    greedy: tuple[str, ...]
    """The best actions: several where they tie."""
    advantage: float
    """Q_Sigma of the action less that of the other."""
    tie: bool
    """Whether the two are equal, up to rounding."""
    msx_plus: tuple[str, ...]
    """The fewest advisors whose gains outweigh all losses, strongest first; empty unless the action is better."""
    msx_minus: tuple[str, ...]
    """The fewest whose losses show that no one of them can be left out."""
    influence: dict[str, tuple[str, ...]]
    """The advisors without whom other actions would be greedy, the strongest first, and which these are."""
    disagreement: float
    """What all advisors together lose by having to act as one."""
    attractor: bool | None
    """Whether this state is an attractor by the agent's own values; None where nobody knows, or planning is not
    egocentric."""
    stable: bool | None
    margin: float | None
    stuck: bool | None
    """Whether the greedy walk from here never earns and never ends; ghosts are taken to stay where they are."""
    sentence: str
    names: tuple[str, ...] = field(repr=False)
    """The active advisors [m]."""
    actions: tuple[str, ...] = field(repr=False)
    advice: np.ndarray = field(repr=False)
    """[m, A]"""
    weights: np.ndarray = field(repr=False)
    """[m]"""
    first: int = field(default=0, repr=False)
    """The number of the first action."""

    @property
    def preferences(self) -> dict[str, float]:
        """Q_Sigma of each action."""
        return dict(zip(self.actions, weighted_sum(self.advice, self.weights).tolist(), strict=True))

    @property
    def differences(self) -> dict[str, float]:
        """RDX: what each advisor adds to the action over the other, by name, the largest magnitude first."""
        return self.table(self.action, self.against)

    def table(self, action: str | int, against: str | int | None) -> dict[str, float]:
        """RDX between any two actions."""
        if against is None:
            return {}
        pair = (self.actions.index(action_named(self.actions, name, self.first)) for name in (action, against))
        found = differences(self.advice, self.weights, *pair)
        return {self.names[j]: float(found[j]) for j in np.argsort(-np.abs(found), kind="stable")}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "task": self.task, "action": self.action, "against": self.against, "greedy": list(self.greedy),
            "preferences": self.preferences, "advantage": self.advantage, "tie": self.tie,
            "differences": self.differences, "msx_plus": list(self.msx_plus), "msx_minus": list(self.msx_minus),
            "influence": {name: list(actions) for name, actions in self.influence.items()},
            "disagreement": self.disagreement, "attractor": self.attractor, "stable": self.stable,
            "margin": self.margin, "stuck": self.stuck, "sentence": self.sentence,
        }  # fmt: skip

    def __str__(self) -> str:
        marks = {name: "*" if name in self.greedy else "" for name in self.actions}
        lines = [self.sentence, "", "  ".join(f"{a} {_figure(q)}{marks[a]}" for a, q in self.preferences.items())]
        if self.against is not None and self.names:
            lines.append(f"what speaks for {self.action} over {self.against}, {_figure(self.advantage, '+')} in all:")
            decisive = set(self.msx_plus), set(self.msx_minus)
            rows = list(self.differences.items())
            for name, value in rows[:_SHOWN]:
                note = "  MSX+" if name in decisive[0] else "  MSX-" if name in decisive[1] else ""
                lines.append(f"  {name:24} {_figure(value, '+')}{note}")
            if len(rows) > _SHOWN:
                rest = sum(value for _, value in rows[_SHOWN:])
                lines.append(f"  {f'{len(rows) - _SHOWN} more':24} {_figure(rest, '+')}")
        changed = [f"{name} ({' or '.join(actions)})" for name, actions in self.influence.items()]
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        lines.append(f"without whom it would act otherwise: {', '.join(changed[:_NAMED]) or 'nobody'}{more}")
        lines.append(f"disagreement: {_figure(self.disagreement)}")
        if self.attractor is not None:
            kind = "a stable attractor" if self.stable else "an attractor, but not a stable one"
            margin = "" if self.margin is None else f" (staying against leaving: {_figure(self.margin, '+')})"
            lines.append(f"this state is {kind if self.attractor else 'no attractor'}{margin}")
        if self.stuck is not None:
            lines.append(f"as things stand, the greedy walk from here {'never earns' if self.stuck else 'goes on'}")
        return "\n".join(lines)


# ---- putting it together ---------------------------------------------------------------------------------------------
def action_named(actions: Sequence[str], action: str | int, first: int = 0) -> str:
    """An action by name, by compass point, or by number, counted from `first` as the environment does."""
    if action in actions:
        return str(action)
    if isinstance(action, str):
        for name in actions:
            if action.lower() in (name.lower(), _COMPASS.get(name, name).lower()):
                return name
    if re.fullmatch(r"-?[0-9]{1,18}", str(action)) and 0 <= int(action) - first < len(actions):
        return actions[int(action) - first]
    raise unknown("action", action, actions)


def explain_advice(
    names: Sequence[str], advice: Any, weights: Any, actions: Sequence[str], *, action: str | int | None = None,
    against: str | int | None = None, groups: Sequence[str] | None = None, task: str = "",
    first: int = 0, here: Surroundings | None = None,
) -> Explanation:  # fmt: skip
    """Explain from advice [m, A] and weights [m] alone, as a trace keeps them; `first` is the first action's number.

    >>> advice = np.array([[2.0, 0.5], [-0.5, 0.0]])
    >>> explain_advice(["speed", "fuel"], advice, np.ones(2), ["fast", "slow"]).sentence
    'chooses fast rather than slow: speed, 1.50, outweighs fuel, -0.50'
    """
    names, actions = list(names), list(actions)
    advice, weights = np.asarray(advice).reshape(len(names), len(actions)), np.asarray(weights, float)
    tolerance, advice = rounding(advice, weights), advice.astype(float)
    if not (np.isfinite(advice).all() and np.isfinite(weights).all()):
        raise BadInput(f"the advice in this state of {task!r} is not finite: there is nothing to explain")
    preferences = weighted_sum(advice, weights)
    greedy = best(preferences, tolerance)
    chosen = int(preferences.argmax()) if action is None else actions.index(action_named(actions, action, first))
    others = [a for a in range(len(actions)) if a != chosen]
    other = None
    if against is not None:
        other = actions.index(action_named(actions, against, first))
        if other == chosen:
            raise BadInput(f"action {actions[chosen]!r} is compared with itself: name another one")
    elif others:
        other = max(others, key=lambda a: preferences[a])
    difference = np.zeros(len(names)) if other is None else differences(advice, weights, chosen, other)
    advantage = 0.0 if other is None else float(preferences[chosen] - preferences[other])
    tie = other is not None and abs(advantage) <= tolerance
    deciding = msx(difference[:0] if tie else difference)
    silent = best(without_each(advice, weights), tolerance)  # [m, A]
    order = np.argsort(-np.abs(difference), kind="stable")
    changes = order[(silent != greedy).any(axis=1)[order]].tolist()
    spoken = _Spoken(tuple(names), tuple(groups or [""] * len(names)), tuple(actions), here)
    return Explanation(
        task=task, action=actions[chosen], against=None if other is None else actions[other],
        greedy=tuple(actions[a] for a in np.flatnonzero(greedy).tolist()), advantage=advantage, tie=tie,
        msx_plus=tuple(names[j] for j in deciding.plus.tolist()),
        msx_minus=tuple(names[j] for j in deciding.minus.tolist()),
        influence={names[j]: tuple(actions[a] for a in np.flatnonzero(silent[j]).tolist()) for j in changes},
        disagreement=disagreement(advice, weights), attractor=None if here is None else here.attractor,
        stable=None if here is None else here.stable, margin=None if here is None else here.margin,
        stuck=None if here is None else here.stuck, sentence=spoken.sentence(chosen, other, difference, advantage, tie),
        names=tuple(names), actions=tuple(actions), advice=advice, weights=weights, first=first,
    )  # fmt: skip


class _Spoken(NamedTuple):
    """What a sentence needs to know."""

    names: tuple[str, ...]
    groups: tuple[str, ...]
    actions: tuple[str, ...]
    here: Surroundings | None

    @property
    def moves(self) -> bool:
        """Whether the actions are the points of the compass."""
        return self.actions == tuple(DIRECTIONS)

    def word(self, action: int) -> str:
        """An action as people say it."""
        name = self.actions[action]
        return _COMPASS[name] if self.moves else name

    def crowd(self, members: np.ndarray) -> str:
        """Advisors in words."""
        return who([self.names[j] for j in members], [self.groups[j] for j in members])

    def sentence(self, action: int, other: int | None, difference: np.ndarray, advantage: float, tie: bool) -> str:
        """One plain sentence."""
        does = f"{'goes' if self.moves else 'chooses'} {self.word(action)}"
        if self.moves and self.here is not None and not self.here.leaves[action]:
            does += ", into the wall,"
        if other is None:
            return f"{does.rstrip(',')}: there is no other action"
        if not self.names:
            return f"{does.rstrip(',')}: nobody has a say, so that all actions are a tie"
        strength = np.argsort(-np.abs(difference), kind="stable")
        gains, losses = strength[difference[strength] > 0], strength[difference[strength] < 0]
        if tie:
            pair = f"tie between {self.word(action)} and {self.word(other)}"
            if not len(gains) or not len(losses):
                return f"{pair}: they are the same to everybody"
            a, b = _numbers(float(difference[gains].sum()), float(difference[losses].sum()))
            return f"{pair}: {self.crowd(gains)}, {a}, {_verb(gains, 'balance')} {self.crowd(losses)}, {b}"
        if advantage < 0:
            start = f"{self.word(action)} would be worse than {self.word(other)}"
            gains, losses, reasons = losses, gains, msx(-difference).plus
        else:
            start, reasons = f"{does} rather than {self.word(other)}", msx(difference).plus
        total = float(difference[reasons].sum())
        losses = losses[np.abs(difference[losses]) > _NOISE * np.abs(difference[gains]).sum()]
        a, b = _numbers(total, float(difference[losses].sum()))
        if not len(losses):
            return f"{start}: {self.crowd(reasons)}, {_numbers(total, math.inf)[0]}, and nobody objects"
        return f"{start}: {self.crowd(reasons)}, {a}, {_verb(reasons, 'outweigh')} {self.crowd(losses)}, {b}"


def _verb(subject: np.ndarray, verb: str) -> str:
    return f"{verb}s" if len(subject) == 1 else verb


def explain(agent: Any, state: Any, action: str | int | None = None, against: str | int | None = None) -> Explanation:
    """Why the agent takes this action, by default the greedy one, rather than another, by default the next best.

    >>> import multiadvisor as mad
    >>> task = mad.make("three-fruits")
    >>> agent = mad.theory.exact_agent(task, "egocentric", 0.6)
    >>> print(explain(agent, task.deal(), against="North").sentence)
    goes South, into the wall, rather than North: fruits at (2, 0) and (2, 4), 0.29, outweigh fruit at (0, 2), -0.24
    """
    task = agent.task
    if getattr(agent.settings, "aggregation", "sum") != "sum":
        raise BadInput(
            f"differences and reasons are those of a sum, and the advice of this agent is aggregated by "
            f"{agent.settings.aggregation!r}: look at agent.advice(state) and agent.preferences(state)"
        )
    names, advice = agent.advice(state)
    foci = {focus.name: focus for focus in getattr(agent, "advisors", task.foci)}
    if action is None:
        action = int(agent.act(state))
    return explain_advice(
        names, advice, np.array([foci[name].weight for name in names]), task.actions, action=action, against=against,
        groups=[foci[name].group for name in names], task=task.name, first=task.first_action,
        here=surroundings(agent, state),
    )  # fmt: skip
