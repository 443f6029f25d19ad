"""One plain sentence on one action against another, in the words of the aggregation that decided.

`sentence_of(explanation)` is the only place where these sentences are made: the command line, reports, figures, videos
and the page all show them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from multiadvisor.core.aggregations import PlanAggregation, majority, maximum, weighted_sum
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.explain.ablation import alone
from multiadvisor.explain.leads import FollowedPlan, best_plan, wishing
from multiadvisor.explain.msx import msx

if TYPE_CHECKING:
    from multiadvisor.explain.explanation import Explanation

COMPASS = dict(zip(DIRECTIONS, ("North", "West", "South", "East"), strict=True))
_NAMED = 3  # this many of a group are named in a sentence, the others counted
_SEEN = 0.005  # what a group adds, to be named
_NOISE = 1e-6  # of all gains: who loses less is not said to object


# ---- words and numbers -----------------------------------------------------------------------------------------------
def action_text(action: np.ndarray) -> str:
    """A continuous action, for people.

    >>> action_text(np.array([0.5, -0.25]))
    '(0.50, -0.25)'
    """
    return f"({', '.join(f'{number:.2f}' for number in np.ravel(action))})"


def action_word(name: str) -> str:
    """An action of a finite choice, for people: points of the compass in full."""
    return COMPASS.get(name, name)


_Members = Sequence[int] | np.ndarray  # places among the active advisors


def join(parts: Sequence[str]) -> str:
    """The parts as people list them: with commas, and `and` before the last."""
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
        parts.append(f"{kind if len(places) == 1 else group}{at} {join(shown)}".rstrip())
    parts = _first(parts, len(names) - sum(len(places) for places in list(crowds.values())[:_NAMED]) + _NAMED)
    return join(parts) if len(crowds) == len(names) else ", and ".join(parts)


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


def _one(value: float) -> str:
    return numbers(value, math.inf)[0]


def _two(first: float, second: float) -> tuple[str, str]:
    """Two wishes: those that are equal up to rounding look equal."""
    if math.isclose(first, second, rel_tol=1e-9):
        return _one(first), _one(second)
    return numbers(first, second)


def figure(value: float, sign: str = "") -> str:
    """A number with three decimals, or in powers of ten."""
    return f"{value:{sign}.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:{sign}.1e}"


def _votes(value: float) -> str:
    """Votes as people count them: 5, or 2.5."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _verb(subject: _Members, verb: str) -> str:
    return f"{verb}s" if len(subject) == 1 else verb


class _Words:
    """The actions and advisors of an explanation in words."""

    def __init__(self, why: Explanation) -> None:
        self.moves = why.actions == tuple(DIRECTIONS)  # whether the actions are the points of the compass
        self.would, self.away = ("would go", "elsewhere") if self.moves else ("would choose", "otherwise")
        self._actions, self._groups = why.actions, why.groups
        advisors = len(why.names) - why.beside
        self._names = [
            term(name, why.actions) if j < advisors else f"{name} (no advisor)" for j, name in enumerate(why.names)
        ]
        wall = self.moves and why.here.leaves is not None and not why.here.leaves[why.chosen]
        self.does = f"{'goes' if self.moves else 'chooses'} {self.action(why.chosen)}{', into the wall' * wall}"
        self.comma = "," * wall

    def action(self, place: int | None) -> str:
        """An action as people say it."""
        assert place is not None
        return action_word(self._actions[place]) if self.moves else self._actions[place]

    def crowd(self, members: _Members) -> str:
        """Advisors."""
        return who([self._names[j] for j in members], [self._groups[j] for j in members])


def _strongest(why: Explanation, sign: int, among: np.ndarray | None = None) -> np.ndarray:
    """Those who speak for the action (1) or for the other (-1), the strongest first."""
    order = np.argsort(-np.abs(why.difference), kind="stable")
    if among is not None:
        order = order[np.isin(order, among)]
    return order[sign * why.difference[order] > 0]


# ---- the sentence ----------------------------------------------------------------------------------------------------
def sentence_of(why: Explanation) -> str:
    """One plain sentence: `Explanation.sentence`."""
    words = _Words(why)
    if why.other is None:
        return f"{words.does}: there is no other action"
    if not why.names:
        return f"{words.does}: no advisor has a say, so all actions tie"
    if why.tie:
        start, side = f"tie between {words.action(why.chosen)} and {words.action(why.other)}", 0
    elif why.advantage < 0:
        start, side = f"{words.action(why.chosen)} would be worse than {words.action(why.other)}", -1
    else:
        start, side = f"{words.does}{words.comma} rather than {words.action(why.other)}", 1
    if why.caveat:  # networks say what they expect, and not what follows
        start, words.does = (f"{one}, as its networks expect" for one in (start, words.does))
    kinds = [aggregation for aggregation, _ in why.aggregator.parts]
    unsummed = [kind for kind in kinds if kind is not weighted_sum]
    if why.by_group:
        return _grouped(why, start, side)
    if not unsummed or (unsummed == [maximum] and why.lead is None):
        return _summed(why, words, start, side)
    if unsummed == [maximum]:
        return _compared(why, words, start) if why.asked or side < 1 else _led(why, words)
    if len(unsummed) == len(why.plans) == 1:
        plan = why.plans[0]
        if why.asked or side < 1 or (plan.margin is not None and plan.margin < -why.tolerance):
            return _plans_compared(why, words, start, plan)
        return _planned(why, words, plan)
    return _voted(why, words, start, side) if kinds == [majority] else _otherwise(why, words, start, side)


def explored_sentence(actions: Sequence[str], action: int) -> str:
    """Of a step that was taken at random.

    >>> explored_sentence(["N", "W", "S", "E"], 1), explored_sentence(["wait", "go"], 1)
    ('goes West to explore, at random', 'chooses go to explore, at random')
    """
    name = actions[action]
    return f"{f'goes {COMPASS[name]}' if name in COMPASS else f'chooses {name}'} to explore, at random"


def _both(why: Explanation) -> tuple[float, float]:
    """What the two actions come to."""
    assert why.other is not None
    return float(why.totals[why.chosen]), float(why.totals[why.other])


def _summed(why: Explanation, words: _Words, start: str, side: int) -> str:
    """Whose gains outweigh whose losses."""
    difference = why.difference
    if side == 0:
        gains, losses = _strongest(why, 1), _strongest(why, -1)
        if not len(gains) or not len(losses):
            return f"{start}: they are the same to everybody"
        a, b = numbers(float(difference[gains].sum()), float(difference[losses].sum()))
        return f"{start}: {words.crowd(gains)}, {a}, {_verb(gains, 'balance')} {words.crowd(losses)}, {b}"
    gains, losses, reasons = _strongest(why, side), _strongest(why, -side), msx(side * difference).plus
    total = float(difference[reasons].sum())
    losses = losses[np.abs(difference[losses]) > _NOISE * np.abs(difference[gains]).sum()]
    if not len(losses):
        return f"{start}: {words.crowd(reasons)}, {_one(total)}, and nobody objects"
    a, b = numbers(total, float(difference[losses].sum()))
    return f"{start}: {words.crowd(reasons)}, {a}, {_verb(reasons, 'outweigh')} {words.crowd(losses)}, {b}"


def _grouped(why: Explanation, start: str, side: int) -> str:
    """What the lead loses without each group, or whoever is in none, the strongest first: for hundreds of advisors."""
    mine, its = _both(why)
    if side == 0:
        return f"{start}, {mine:.2f} each"
    lost, of = {}, np.array([group or name for name, group in zip(why.names, why.groups, strict=True)])
    for group in dict.fromkeys(of.tolist()):
        without = why.aggregator.prefer(why.advice, np.where(of == group, 0.0, why.weights))
        lost[group] = why.advantage - float(without[why.chosen] - without[why.other])
    order = sorted(lost, key=lambda name: -abs(lost[name]))
    sides = [
        " and ".join(f"{term(name, why.actions)} ({lost[name]:+.2f})" for name in order if sign * lost[name] >= _SEEN)
        for sign in (1, -1)
    ]
    verbs = (f"speak for {why.action}", "against it" if sides[0] else f"speak against {why.action}")
    said = ", ".join(f"{part} {verb}" for part, verb in zip(sides, verbs, strict=True) if part)
    return f"{start}, {mine:.2f} against {its:.2f}" + (f": {said}" if said else "")


def _besides(why: Explanation, words: _Words, others: np.ndarray) -> str:
    """Those who are summed beside a maximum or plans, where they speak for one of the two."""
    shared = why.weights[others] * (why.advice[others, why.chosen] - why.advice[others, why.other])
    gap = float(shared.sum())
    if abs(gap) <= why.tolerance:
        return ""
    speaking = _strongest(why, 1 if gap > 0 else -1, others)
    side = "for" if gap > 0 else "against"
    return f"; {words.crowd(speaking)}, {_one(gap)}, {_verb(speaking, 'speak')} {side} {words.action(why.chosen)}"


def _wished(why: Explanation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whose wish for each action is strongest [A], how strong it is [A], and who is summed beside them."""
    members = wishing(why.advice, why.weights, why.aggregator)
    wished = why.weights[members, None] * why.advice[members]
    return members[wished.argmax(axis=0)], wished.max(axis=0), np.setdiff1d(np.arange(len(why.names)), members)


def _compared(why: Explanation, words: _Words, start: str) -> str:
    """The strongest wish for each of two actions."""
    first, top, others = _wished(why)
    assert why.other is not None
    mine, its = first[why.chosen], first[why.other]
    x, y = _two(float(top[why.chosen]), float(top[why.other]))
    if mine == its:
        text = f"{start}: {words.crowd([mine])} has the strongest wish for both, {x} and {y}"
    else:
        text = (
            f"{start}: the strongest wish for {words.action(why.chosen)} is {words.crowd([mine])}, {x}, for "
            f"{words.action(why.other)} {words.crowd([its])}, {y}"
        )
    return text + _besides(why, words, others)


def _led(why: Explanation, words: _Words) -> str:
    """Who has the strongest wish, over whom; and the others where they change the decision."""
    lead, action = why.lead, why.chosen
    assert lead is not None
    if why.weights[lead.advisor] * why.advice[lead.advisor, action] >= lead.value - why.tolerance:
        text = f"{words.does}: {words.crowd([lead.advisor])}"
        if lead.next is None or lead.next_value is None:
            return f"{text}, {_one(lead.value)}, is the strongest wish, and nobody {words.would} {words.away}"
        x, y = _two(lead.value, lead.next_value)
        next_one = f"the next, {words.crowd([lead.next])}, {y}, {words.would} {words.action(lead.next_action)}"
        return f"{text}, {x}, is the strongest wish; {next_one}"
    first, top, others = _wished(why)
    gain = why.weights[others] * (why.advice[others, action] - why.advice[others, lead.action])
    order = np.argsort(-np.abs(gain), kind="stable")
    winning = others[order[gain[order] > 0]]
    x, y = numbers(float(gain.sum()), lead.value)
    text = (
        f"{words.does}: {words.crowd(winning)}, {x}, {_verb(winning, 'outweigh')} the strongest wish, "
        f"{words.crowd([lead.advisor])}, {y}, which {words.would} {words.action(lead.action)}"
    )
    if first[action] == lead.advisor:
        return text
    best = _two(float(top[action]), lead.value)[0]
    return f"{text}; the strongest for {words.action(action)} is {words.crowd([first[action]])}, {best}"


def _plans(why: Explanation) -> PlanAggregation:
    return next(kind for kind, _ in why.aggregator.parts if isinstance(kind, PlanAggregation))


def _plans_compared(why: Explanation, words: _Words, start: str, plan: FollowedPlan) -> str:
    """The best plan for each of two actions."""
    assert why.other is not None
    members = np.flatnonzero([name in plan.worth for name in why.names])
    (mine, x), (its, y) = (best_plan(_plans(why), why.weights[members], a) for a in (why.chosen, why.other))
    a, b = _two(x, y)
    one, other = (who([planner.name], [planner.group]) for planner in (mine, its))
    if one == other:
        text = f"{start}: the plan of {one} is the best for both, {a} and {b}"
    else:
        text = (
            f"{start}: the best plan for {words.action(why.chosen)} is that of {one}, {a}, for "
            f"{words.action(why.other)} that of {other}, {b}"
        )
    return text + _besides(why, words, np.setdiff1d(np.arange(len(why.names)), members))


def _planned(why: Explanation, words: _Words, plan: FollowedPlan) -> str:
    """Whose plan is followed, what it is worth to whom, and the best of those that are not."""
    groups = {planner.name: planner.group for planner in _plans(why).planners}
    least = _NOISE * sum(map(abs, plan.worth.values()))
    shown = {name: value for name, value in plan.worth.items() if abs(value) > least}
    shares = [f"{_one(value)} to {words.crowd([why.names.index(name)])}" for name, value in shown.items()][:_NAMED]
    if rest := list(shown.values())[_NAMED:]:
        shares.append(f"{_one(sum(rest))} to {len(rest)} more")
    if plan.next is None or plan.next_action is None or plan.next_value is None:
        worth, tail = _one(plan.value), f", and no plan {words.would} {words.away}"
    else:
        worth, behind = _two(plan.value, plan.next_value)
        does = f"{words.would} {words.action(why.actions.index(plan.next_action))}"
        tail = f"; the next, that of {who([plan.next], [groups[plan.next]])}, {behind}, {does}"
    to_whom = f" ({join(shares)})" if shares else ""
    mine = who([plan.advisor], [groups[plan.advisor]])
    return f"{words.does}: the plan of {mine} is worth most, {worth}{to_whom}{tail}"


def _voted(why: Explanation, words: _Words, start: str, side: int) -> str:
    """How many votes, and whose."""
    mine, its = map(_votes, _both(why))
    of = _votes(float(why.weights.sum()))
    if side == 0:
        return f"{start}: {mine} of {of} votes each"
    if side < 0:
        return f"{start}: {mine} of {of} votes against {its}"
    share = alone(majority, 0.0, why.advice, why.weights)[:, why.chosen]
    order = np.argsort(-share, kind="stable")
    voters = words.crowd(order[share[order] > 0])
    return f"{words.does}: {mine} of {of} votes ({voters}); {words.action(why.other)} has {its}"


def _otherwise(why: Explanation, words: _Words, start: str, side: int) -> str:
    """Any other aggregation: the two preferences, and who would be missed."""
    mine, its = _both(why)
    if side == 0:
        return f"{start}, {_one(mine)} each by {why.aggregation}"
    a, b = numbers(mine, its)
    text = f"{start}, {a} against {b} by {why.aggregation}"
    least = _NOISE * np.abs(why.difference).max()
    sides = [(_strongest(why, sign), word) for sign, word in ((1, "for"), (-1, "against"))]
    said = [
        f"{words.crowd(loud)} {_verb(loud, 'speak')} {word} {words.action(why.chosen)}"
        for found, word in sides
        if len(loud := found[np.abs(why.difference[found]) > least])
    ]
    return f"{text}: {', and '.join(said)}" if said else text
