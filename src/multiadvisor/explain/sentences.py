"""One plain sentence on one action against another, in the words of the aggregation that decided."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from multiadvisor.core.aggregations import majority, maximum, weighted_sum
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.explain.ablation import Lead, PlanLead, alone, best_plan, wishing
from multiadvisor.explain.shortest_reason import msx
from multiadvisor.learners.tabular.rules.gpi import GPIAggregation
from multiadvisor.task import Advisor

COMPASS = dict(zip(DIRECTIONS, ("North", "West", "South", "East"), strict=True))
_NAMED = 3  # so many of a group are named in a sentence, the others counted
_NOISE = 1e-6  # of all gains: who loses less is not said to object


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


def term(name: str, actions: Sequence[str]) -> str:
    """An advisor as it is called beside actions, one of which may have the same name.

    >>> term("main engine", ["nothing", "main engine"]), term("fuel", ["nothing", "main engine"])
    ('the term main engine', 'fuel')
    """
    called = {word.lower() for action in actions for word in (action, COMPASS.get(action, action))}
    return f"the term {name}" if name.lower() in called else name


def numbers(first: float, second: float) -> tuple[str, str]:
    """Two sums with two decimals, or as many more as it takes to tell their sizes apart."""
    for digits in range(2, 7):
        a, b = f"{first:.{digits}f}", f"{second:.{digits}f}"
        if a.strip("-0.") and b.strip("-0.") and (a.lstrip("-") != b.lstrip("-") or first == -second):
            return a, b
    return f"{first:.4g}", f"{second:.4g}"


def _two(first: float, second: float) -> tuple[str, str]:
    """Two wishes: those that are equal up to rounding look equal."""
    if math.isclose(first, second, rel_tol=1e-9):
        return numbers(first, math.inf)[0], numbers(second, math.inf)[0]
    return numbers(first, second)


def figure(value: float, sign: str = "") -> str:
    """A number with three decimals, or in powers of ten."""
    return f"{value:{sign}.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:{sign}.1e}"


def _votes(value: float) -> str:
    """Votes as people count them: 5, or 2.5."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _verb(subject: Sequence[int] | np.ndarray, verb: str) -> str:
    return f"{verb}s" if len(subject) == 1 else verb


def _of(advisor: Advisor) -> str:
    """An advisor in words."""
    return who([advisor.name], [advisor.group])


class Choice(NamedTuple):
    """All that a sentence needs to know."""

    names: tuple[str, ...]
    groups: tuple[str, ...]
    actions: tuple[str, ...]
    advice: np.ndarray  # [m, A]
    weights: np.ndarray  # [m]
    aggregator: Aggregator  # of these m
    aggregation: str
    leaves: np.ndarray | None
    """[A] bool: the actions that lead elsewhere; None if not known."""
    action: int
    other: int | None
    asked: bool
    """Whether the other action was asked about; else it is the next best."""
    preferences: np.ndarray  # [A]
    difference: np.ndarray  # [m] what each contributes to the action over the other
    lead: Lead | None
    plans: tuple[PlanLead, ...]
    tolerance: float

    # ---- words ---------------------------------------------------------------------------------------------------
    @property
    def moves(self) -> bool:
        """Whether the actions are the points of the compass."""
        return self.actions == tuple(DIRECTIONS)

    def word(self, action: int) -> str:
        """An action as people say it."""
        name = self.actions[action]
        return COMPASS[name] if self.moves else name

    def crowd(self, members: Sequence[int] | np.ndarray) -> str:
        """Advisors in words."""
        return who([self.names[j] for j in members], [self.groups[j] for j in members])

    @property
    def does(self) -> str:
        """'goes South, into the wall'."""
        wall = self.moves and self.leaves is not None and not self.leaves[self.action]
        return f"{'goes' if self.moves else 'chooses'} {self.word(self.action)}{', into the wall' * wall}"

    def strongest(self, sign: int, among: np.ndarray | None = None) -> np.ndarray:
        """Those who speak for the action (1) or for the other (-1), the strongest first."""
        order = np.argsort(-np.abs(self.difference), kind="stable")
        if among is not None:
            order = order[np.isin(order, among)]
        return order[sign * self.difference[order] > 0]

    # ---- the sentence --------------------------------------------------------------------------------------------
    def sentence(self) -> str:
        """One plain sentence."""
        if self.other is None:
            return f"{self.does}: there is no other action"
        if not self.names:
            return f"{self.does}: nobody has a say, so that all actions are a tie"
        advantage = float(self.preferences[self.action] - self.preferences[self.other])
        if abs(advantage) <= self.tolerance:
            start, side = f"tie between {self.word(self.action)} and {self.word(self.other)}", 0
        elif advantage < 0:
            start, side = f"{self.word(self.action)} would be worse than {self.word(self.other)}", -1
        else:
            wall = "," if self.does.endswith("wall") else ""
            start, side = f"{self.does}{wall} rather than {self.word(self.other)}", 1
        kinds = [aggregation for aggregation, _ in self.aggregator.parts]
        unsummed = [kind for kind in kinds if kind is not weighted_sum]
        if not unsummed:
            return self._summed(start, side)
        if unsummed == [maximum]:
            return self._summed(start, side) if self.lead is None else self._led(start, side)
        if len(unsummed) == len(self.plans) == 1:
            return self._planned(start, side, self.plans[0])
        return self._voted(start, side) if kinds == [majority] else self._heard(start, side)

    def _summed(self, start: str, side: int) -> str:
        """Whose gains outweigh whose losses."""
        difference = self.difference
        if side == 0:
            gains, losses = self.strongest(1), self.strongest(-1)
            if not len(gains) or not len(losses):
                return f"{start}: they are the same to everybody"
            a, b = numbers(float(difference[gains].sum()), float(difference[losses].sum()))
            return f"{start}: {self.crowd(gains)}, {a}, {_verb(gains, 'balance')} {self.crowd(losses)}, {b}"
        gains, losses, reasons = self.strongest(side), self.strongest(-side), msx(side * difference).plus
        total = float(difference[reasons].sum())
        losses = losses[np.abs(difference[losses]) > _NOISE * np.abs(difference[gains]).sum()]
        a, b = numbers(total, float(difference[losses].sum()))
        if not len(losses):
            return f"{start}: {self.crowd(reasons)}, {numbers(total, math.inf)[0]}, and nobody objects"
        return f"{start}: {self.crowd(reasons)}, {a}, {_verb(reasons, 'outweigh')} {self.crowd(losses)}, {b}"

    def _led(self, start: str, side: int) -> str:
        """Who has the strongest wish, over whom; and the others where they change the decision."""
        assert self.other is not None
        assert self.lead is not None
        would, away = ("would go", "elsewhere") if self.moves else ("would choose", "otherwise")
        members = wishing(self.advice, self.weights, self.aggregator)
        wished = self.weights[members, None] * self.advice[members]
        others = np.setdiff1d(np.arange(len(self.names)), members)
        shared = (self.weights[others, None] * self.advice[others]).sum(axis=0)  # [A]
        first, top = members[wished.argmax(axis=0)], wished.max(axis=0)  # [A] for each action
        lead, action, other = self.lead, self.action, self.other
        if self.asked or side < 1:
            x, y = _two(float(top[action]), float(top[other]))
            if first[action] == first[other]:
                text = f"{start}: {self.crowd(first[[action]])} has the strongest wish for both, {x} and {y}"
            else:
                text = (
                    f"{start}: the strongest wish for {self.word(action)} is {self.crowd(first[[action]])}, {x}, for "
                    f"{self.word(other)} {self.crowd(first[[other]])}, {y}"
                )
            return text + self._besides(others, float(shared[action] - shared[other]))
        leader = members.tolist().index(lead.advisor)
        if wished[leader, action] >= lead.value - self.tolerance:
            text = f"{self.does}: {self.crowd([lead.advisor])}"
            if lead.next is None or lead.next_action is None or lead.next_value is None:
                return f"{text}, {numbers(lead.value, math.inf)[0]}, is the strongest wish, and nobody {would} {away}"
            x, y = _two(lead.value, lead.next_value)
            return (
                f"{text}, {x}, is the strongest wish; the next, {self.crowd([lead.next])}, {y}, {would} "
                f"{self.word(lead.next_action)}"
            )
        gain = self.weights[others] * (self.advice[others, action] - self.advice[others, lead.action])
        order = np.argsort(-np.abs(gain), kind="stable")
        winning = others[order[gain[order] > 0]]
        x, y = numbers(float(shared[action] - shared[lead.action]), lead.value)
        text = (
            f"{self.does}: {self.crowd(winning)}, {x}, {_verb(winning, 'outweigh')} the strongest wish, "
            f"{self.crowd([lead.advisor])}, {y}, which {would} {self.word(lead.action)}"
        )
        if first[action] == lead.advisor:
            return text
        best = _two(float(top[action]), lead.value)[0]
        return f"{text}; the strongest for {self.word(action)} is {self.crowd(first[[action]])}, {best}"

    def _planned(self, start: str, side: int, plan: PlanLead) -> str:
        """Whose plan is followed, what it is worth to whom, and the best of those that are not."""
        assert self.other is not None
        others = np.setdiff1d(np.arange(len(self.names)), plan.members)
        if self.asked or side < 1 or not plan.best:
            part = next(kind for kind, _ in self.aggregator.parts if isinstance(kind, GPIAggregation))
            (mine, x), (its, y) = (best_plan(part, self.weights[plan.members], a) for a in (self.action, self.other))
            shared = self.weights[others] * (self.advice[others, self.action] - self.advice[others, self.other])
            a, b = _two(x, y)
            text = (
                f"{start}: the best plan for {self.word(self.action)} is that of {_of(mine)}, {a}, for "
                f"{self.word(self.other)} that of {_of(its)}, {b}"
            )
            if mine.name == its.name:
                text = f"{start}: the plan of {_of(mine)} is the best for both, {a} and {b}"
            return text + self._besides(others, float(shared.sum()))
        order = np.argsort(-np.abs(plan.worth), kind="stable")
        order = order[np.abs(plan.worth[order]) > _NOISE * np.abs(plan.worth).sum()]
        named, rest = order[:_NAMED], order[_NAMED:]
        shares = [f"{numbers(float(plan.worth[k]), math.inf)[0]} to {self.crowd(plan.members[[k]])}" for k in named]
        if len(rest):
            shares.append(f"{numbers(float(plan.worth[rest].sum()), math.inf)[0]} to {len(rest)} more")
        would, away = ("would go", "elsewhere") if self.moves else ("would choose", "otherwise")
        if plan.next is None or plan.next_action is None or plan.next_value is None:
            worth, tail = numbers(plan.value, math.inf)[0], f", and no plan {would} {away}"
        else:
            worth, least = _two(plan.value, plan.next_value)
            tail = f"; the next, that of {_of(plan.next)}, {least}, {would} {self.word(plan.next_action)}"
        to_whom = f" ({_join(shares)})" if shares else ""
        return f"{self.does}: the plan of {_of(plan.planner)} is worth most, {worth}{to_whom}{tail}"

    def _besides(self, others: np.ndarray, gap: float) -> str:
        """Those who are summed, where they speak for one of the two."""
        if abs(gap) <= self.tolerance:
            return ""
        speaking = self.strongest(1 if gap > 0 else -1, others)
        x = numbers(gap, math.inf)[0]
        side = "for" if gap > 0 else "against"
        return f"; {self.crowd(speaking)}, {x}, {_verb(speaking, 'speak')} {side} {self.word(self.action)}"

    def _voted(self, start: str, side: int) -> str:
        """How many votes, and whose."""
        assert self.other is not None
        mine, its = (_votes(float(self.preferences[a])) for a in (self.action, self.other))
        of = _votes(float(self.weights.sum()))
        if side == 0:
            return f"{start}: {mine} of {of} votes each"
        if side < 0:
            return f"{start}: {mine} of {of} votes against {its}"
        share = alone(majority, 0.0, self.advice, self.weights)[:, self.action]
        order = np.argsort(-share, kind="stable")
        voters = order[share[order] > 0]
        return f"{self.does}: {mine} of {of} votes ({self.crowd(voters)}); {self.word(self.other)} has {its}"

    def _heard(self, start: str, side: int) -> str:
        """Any other aggregation: the two preferences, and who would be missed."""
        assert self.other is not None
        mine, its = float(self.preferences[self.action]), float(self.preferences[self.other])
        if side == 0:
            return f"{start}, {numbers(mine, math.inf)[0]} each by {self.aggregation}"
        a, b = numbers(mine, its)
        text = f"{start}, {a} against {b} by {self.aggregation}"
        least = _NOISE * np.abs(self.difference).max()
        sides = [(self.strongest(sign), word) for sign, word in ((1, "for"), (-1, "against"))]
        said = [
            f"{self.crowd(loud)} {_verb(loud, 'speak')} {word} {self.word(self.action)}"
            for found, word in sides
            if len(loud := found[np.abs(self.difference[found]) > least])
        ]
        return f"{text}: {', and '.join(said)}" if said else text
