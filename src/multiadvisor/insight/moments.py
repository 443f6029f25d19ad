"""Decisive moments: of many games, the few turns in which most was at stake, and who was at odds.

At stake is the difference between the best and the worst action in the aggregator's eyes; at odds are advisors who lose
by the action taken what another one would have given them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from multiadvisor.committee import Voices
from multiadvisor.explain import explain_advice
from multiadvisor.explain_actor import action_text, two_actions
from multiadvisor.insight.games import CELLS, Games, _flat
from multiadvisor.sentences import term
from multiadvisor.silence import rounding

_SEEN = 0.005  # what a group adds, to be named
_LONGEST = 64  # numbers of an observation that are compared one by one
APART = 10
"""So many turns lie at least between two moments of one game: the next turn is hardly another moment."""


@dataclass(frozen=True)
class Moment:
    """One turn that mattered."""

    game: int
    turn: int
    where: str
    action: str
    stake: float
    """The preference for the best action less that for the worst."""
    disagreement: float
    """What the advisors together lose, each times its weight, by not having their own best actions."""
    reason: str
    """Why it did what it did."""
    caveat: str = ""
    """How far to trust that, where networks gave the advice."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "game": self.game, "turn": self.turn, "where": self.where, "action": self.action, "stake": self.stake,
            "disagreement": self.disagreement, "reason": self.reason, "caveat": self.caveat,
        }  # fmt: skip

    def __str__(self) -> str:
        return (
            f"game {self.game}, turn {self.turn}, at {self.where}: {self.reason} "
            f"(stake {self.stake:.2f}, disagreement {self.disagreement:.2f})"
        )


def stakes(preferences: np.ndarray) -> np.ndarray:
    """[T] what is at stake, from preferences [T, A]."""
    found: np.ndarray = preferences.max(axis=1) - preferences.min(axis=1)
    return found


def disagreements(advice: np.ndarray, heard: np.ndarray, choice: np.ndarray) -> np.ndarray:
    """[T] what the advisors lose by the actions taken [T], from advice [T, n, A] and weights [T, n].

    >>> disagreements(np.array([[[1.0, 0.0], [0.0, 3.0]]]), np.ones((1, 2)), np.array([1]))
    array([1.])
    """
    wished = heard[:, :, None] * advice
    got = np.take_along_axis(wished, choice[:, None, None], axis=2)[:, :, 0]
    found: np.ndarray = (wished.max(axis=2) - got).sum(axis=1)
    return found


def pick(
    score: np.ndarray, first: np.ndarray, alike: Callable[[int, int], bool], count: int, apart: int = APART
) -> list[int]:
    """The turns with the highest scores [T], no two of a game nearer than `apart`, and no two `alike`.

    Games begin at `first` [G + 1].
    """
    game = np.searchsorted(first, np.arange(len(score)), side="right") - 1
    picked: list[int] = []
    for turn in np.argsort(-score, kind="stable").tolist():
        if len(picked) == count:
            break
        near = ((game[turn] == game[other] and abs(turn - other) < apart) or alike(turn, other) for other in picked)
        if not any(near):
            picked.append(turn)
    return picked


def moments(games: Games, count: int = 5) -> list[Moment]:
    """The moments of the games, the most decisive first: by the ranks of stake and disagreement, added."""
    stake = stakes(games.preferences)
    # an actor may do what its critics value less than the middle of all actions: that is no matter between advisors
    best = games.choice if games.did is None else games.preferences.argmax(axis=1)
    odds = disagreements(games.advice, games.heard, best)
    ranks = [np.searchsorted(np.sort(part), part) for part in (stake, odds)]
    score = (ranks[0] + ranks[1]) / len(stake)  # [T]
    if games.advice.shape[2] < 2:
        return []
    score = np.where(games.explored, -1.0, score)  # what is done by chance has no reason
    found = []
    for at in pick(score, games.first, _alike(games), count):
        game, turn = games.where(at)
        action, reason = _reason(games, at)
        found.append(
            Moment(
                game, turn, games.label(game, turn), action, float(stake[at]), float(odds[at]), reason,
                games.settings.caveat,
            )
        )  # fmt: skip
    return found


def _alike(games: Games) -> Callable[[int, int], bool]:
    """Whether two turns are in the same state, or of real numbers in nearly the same: cells have borders anywhere."""
    here = np.arange(len(games.choice)) + np.repeat(np.arange(len(games)), games.turns)  # where each turn's place is
    first = _flat(games.states[0])
    if first.dtype.kind != "f" or len(first) > _LONGEST or games.task.goals is not None:
        places = games.places[here]
        return lambda one, other: bool((places[one] == places[other]).all())
    seen = np.array([_flat(games.states[k]) for k in here], float)  # [T, d]
    near = np.maximum(np.ptp(seen, axis=0), 1e-9) / CELLS
    return lambda one, other: bool((np.abs(seen[one] - seen[other]) < near).all())


def _reason(games: Games, at: int) -> tuple[str, str]:
    """What was done in a turn, and why."""
    who = np.flatnonzero(games.heard[at])
    names, groups = ([getattr(games.advisors[j], what) for j in who] for what in ("name", "group"))
    advice, weights = games.advice[at, who], games.heard[at, who]
    if games.did is not None:
        assert games.task.adapter is not None
        assert games.task.adapter.box is not None
        box = games.task.adapter.box
        middle = action_text(box.to_environment(np.zeros(box.size)))
        gains = weights * (advice[:, 0] - advice[:, 1])
        own = np.isfinite(games.paid[at, who])  # nobody pays for the entropy
        of = [name for name, paid in zip(names, own, strict=True) if paid]
        return games.did[at], two_actions(games.did[at], middle, of, gains[own], float(gains[~own].sum()))
    voices, action = games.voices._replace(of=games.voices.of[who]), games.actions[games.choice[at]]
    if games.task.goals is not None and len(who):
        return action, by_group(advice, weights, voices, groups, games.actions, int(games.choice[at]))
    why = explain_advice(
        names, advice, weights, games.actions, action=action, groups=groups, task=games.task.name,
        aggregation=games.settings.aggregation, voices=voices,
    )  # fmt: skip
    return why.action, why.sentence


def by_group(
    advice: np.ndarray, weights: np.ndarray, voices: Voices, groups: list[str], actions: tuple[str, ...], chosen: int
) -> str:
    """A sentence on an action against the next best: what its lead loses without each group, the strongest first.

    For committees of hundreds, from advice [m, A], weights [m], how these m are heard, and the group of each.

    >>> from multiadvisor.silence import summed
    >>> advice = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.5]])
    >>> by_group(advice, np.ones(3), summed(3), ["coins", "coins", "traps"], ("left", "right"), 0)
    'chooses left rather than right, 2.00 against 1.50: coins (+2.00) speak for left, traps (-1.50) against it'
    """
    now = voices.prefer(advice, weights)  # [A]
    other = max((a for a in range(len(actions)) if a != chosen), key=lambda a: now[a])
    lead, of = float(now[chosen] - now[other]), np.array(groups)
    mine, its = actions[chosen], actions[other]
    if abs(lead) <= rounding(advice, weights, voices):
        return f"tie between {mine} and {its}, {now[chosen]:.2f} each"
    lost = {}
    for group in dict.fromkeys(groups):
        silent = voices.prefer(advice, np.where(of == group, 0.0, weights))
        lost[group] = lead - float(silent[chosen] - silent[other])
    start = f"chooses {mine} rather than {its}" if lead > 0 else f"{mine} would be worse than {its}"
    order = sorted(lost, key=lambda name: -abs(lost[name]))
    parts = [
        " and ".join(f"{term(name, actions)} ({lost[name]:+.2f})" for name in order if sign * lost[name] >= _SEEN)
        for sign in (1, -1)
    ]
    words = (f"speak for {mine}", "against it" if parts[0] else f"speak against {mine}")
    said = ", ".join(f"{part} {word}" for part, word in zip(parts, words, strict=True) if part)
    return f"{start}, {now[chosen]:.2f} against {now[other]:.2f}" + (f": {said}" if said else "")
