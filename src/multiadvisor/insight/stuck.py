"""Stuck, in any environment: a game that goes on and on in the same few places and earns nothing.

A place is a local state, or a cell of a real-valued observation. The detector looks at games that did not end by
themselves, from their end backwards: the places must come again and again, and no way from a place back to itself may
have paid. Since when it is stuck, who holds it there and what might help follow from the turns in these places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.committee import Team, plannings_of
from multiadvisor.insight.games import Games
from multiadvisor.silence import contributions, rounding

LEAST = 16
"""A game that has been in the same places for fewer turns than this may just be slow."""
REPEATS = 4
"""So often, on average, the places come again; where the same action leads to different ones, so often as ..."""
REPEATS_BY_CHANCE = 40
"""... this: an environment that moves by chance comes back to many places without being stuck."""
_SELDOM = 0.02  # of the turns: where it has been less often is on the way
_SURE = 0.9  # the share of turns in which the same action in the same place leads to the same place
_SHARE = 1e-3  # of the strongest: who holds less is not named
_EQUAL = 0.01  # relative: learned values of ways out that are worth the same
_PAYS = 1e-9  # relative: what a way round earns by rounding alone


class Rest(NamedTuple):
    """Turns of one game that are spent in a few places."""

    since: int  # the first turn from which on it is in these places but for short excursions, ...
    until: int  # ... and the first one in which it no longer is: the number of turns where it stays to the end
    places: tuple[int, ...]  # in the order they are met
    kind: str


def resting(
    walk: np.ndarray, choice: np.ndarray, gain: np.ndarray, finished: bool, progress: np.ndarray | None = None
) -> Rest | None:
    """The rest in which a game ends, or the longest one; None where there is none.

    walk [L + 1] are its places, choice [L] its actions, gain [L] what each turn earned, all weighted and summed, and
    progress [L] bool the turns in which something was done for good. Rests that such turns ended count where they took
    a third of the game together.

    >>> still = np.zeros(30, int)
    >>> resting(np.concatenate([[7, 8], still]), np.ones(31, int), np.zeros(31), finished=False)
    Rest(since=2, until=31, places=(0,), kind='stands still')
    >>> resting(still, np.ones(29, int), np.ones(29), finished=False) is None  # it is paid for standing there
    True
    """
    if finished:
        return None
    length = len(choice)
    done = [] if progress is None else np.flatnonzero(progress[:-1]).tolist()
    ends = [length, *(turn + 1 for turn in reversed(done))]
    rests = []
    for end, start in zip(ends, [*ends[1:], 0], strict=True):
        rest = _rest(walk[start : end + 1], choice[start:end], gain[start:end])
        if rest is not None:
            rests.append(rest._replace(since=rest.since + start, until=rest.until + start))
            if end == length:
                return rests[0]
    lengths = [rest.until - rest.since for rest in rests]
    return rests[lengths.index(max(lengths))] if rests and 3 * sum(lengths) >= length else None


def _rest(walk: np.ndarray, choice: np.ndarray, gain: np.ndarray) -> Rest | None:
    """The rest in which these turns end; what leads out of it at the very end is left off."""
    dry = _unpaid_from(walk, gain)
    walk, choice = walk[dry:], choice[dry:]
    length = len(choice)
    if length < LEAST:
        return None
    _, which, times = np.unique(walk[:length], return_inverse=True, return_counts=True)
    often = times[which.reshape(-1)] >= max(REPEATS, _SELDOM * length)  # [L] bool
    since = _since(often)
    if since is None:
        return None
    until = int(np.flatnonzero(often)[-1]) + 1
    seen, counts = np.unique(walk[since:until], return_counts=True)
    core = seen[counts >= max(2.0, _SELDOM * (until - since))]
    if until - since < max(LEAST, REPEATS * len(seen)):
        return None
    certain = _certain(walk[since : until + 1], choice[since:until])
    if not certain and len(core) > 1 and len(core) * REPEATS_BY_CHANCE > until - since:
        return None
    kinds = {1: "stands still", 2: "goes to and fro"}
    kind = kinds.get(len(core), "goes in circles" if certain else "wanders about")
    return Rest(since + dry, until + dry, tuple(dict.fromkeys(walk[since:until].tolist())), kind)


def _since(often: np.ndarray) -> int | None:
    """The first turn, in a place where it is often, from which on it never was elsewhere for a third of the time.

    >>> _since(np.array([0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1], bool))
    4
    """
    ahead = np.concatenate([[0], np.cumsum(np.where(often, 1, -2))])  # [L + 1]
    lowest = np.minimum.accumulate(ahead[::-1])[::-1]
    found = np.flatnonzero(often & (ahead[:-1] <= lowest[1:]))
    return int(found[0]) if len(found) else None


def _unpaid_from(walk: np.ndarray, gain: np.ndarray) -> int:
    """The first turn from which on no way from a place back to itself is paid."""
    total = np.concatenate([[0.0], np.cumsum(gain)])  # [L + 1] before each turn
    slack = _PAYS * max(1.0, float(np.abs(gain).sum()))
    highest: dict[int, float] = {}
    for turn in range(len(walk) - 1, -1, -1):
        place, so_far = int(walk[turn]), float(total[turn])
        if highest.get(place, so_far) - so_far > slack:
            return turn + 1
        highest[place] = max(highest.get(place, so_far), so_far)
    return 0


def _certain(walk: np.ndarray, choice: np.ndarray) -> bool:
    """Whether the same action in the same place nearly always leads to the same place."""
    led: dict[tuple[int, int], dict[int, int]] = {}
    for place, action, then in zip(walk[:-1].tolist(), choice.tolist(), walk[1:].tolist(), strict=True):
        ways = led.setdefault((place, action), {})
        ways[then] = ways.get(then, 0) + 1
    return sum(max(ways.values()) for ways in led.values()) >= _SURE * max(len(choice), 1)


@dataclass(frozen=True)
class Stuck:
    """Where, since when, who holds it there, and what may help."""

    game: int
    since: int
    """The turn of the game, counted from 0."""
    turns: int
    """How long it lasted, until it went on or the game was cut off."""
    kind: str
    where: str
    """The state in which it is most of the time, and how many other places there are."""
    holds: dict[str, float]
    """Who speaks for what it does there, against the best action that it never takes there: how much, on average (of
    several that are about as good, the mean)."""
    leaves: dict[str, float]
    """Who would rather have had that action, and how much."""
    advice: str
    """What may help."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "game": self.game, "since": self.since, "turns": self.turns, "kind": self.kind, "where": self.where,
            "holds": self.holds, "leaves": self.leaves, "advice": self.advice,
        }  # fmt: skip

    def __str__(self) -> str:
        named = list(self.holds)
        who = f"held by {', '.join(named[:3])}" if named else "nobody prefers to be there"
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        away = f", {' and '.join(list(self.leaves)[:2])} would rather leave" if self.leaves else ""
        start = f"{self.kind} since turn {self.since} ({self.turns} turns) at {self.where}"
        return f"{start}; {who}{more}{away}; {self.advice}"


def ends_of_parts(active: np.ndarray) -> np.ndarray:
    """[L] bool: the turns after which some advisor has no part in the game any more, from who has one [L, n].

    Who was away before for as long as it is at the end may come back.

    >>> ends_of_parts(np.array([[1, 1], [1, 0], [1, 1], [0, 0], [0, 1], [0, 0]], bool)).nonzero()[0].tolist()
    [2]
    """
    found, length = np.zeros(len(active), bool), len(active)
    for own in active.T:
        there = np.flatnonzero(own)
        if len(there) and length - there[-1] > np.diff(there, prepend=there[0]).max():
            found[there[-1]] = True
    found[-1] = False
    return found


def find_stuck(games: Games) -> list[Stuck]:
    """The games that are stuck at their end."""
    found = (_stuck(games, game) for game in range(len(games)))
    return [one for one in found if one is not None]


def _walks(games: Games, game: int) -> list[np.ndarray]:
    """The ways to look at a game [L + 1]: each view that at least half of the advisors share, and all together."""
    places = games.places[games.walk(game)]  # [L + 1, V]
    together = np.unique(places, axis=0, return_inverse=True)[1].reshape(-1)
    heard = games.heard[games.span(game)] != 0  # [L, n]
    shares = (games.views[:, None, :] & heard).sum(axis=(1, 2)) / max(int(heard.sum()), 1)
    order = [v for v in np.argsort(-shares, kind="stable").tolist() if shares[v] >= 0.5]
    return [*(places[:, v] for v in order if len(shares) > 1), together]


def _stuck(games: Games, game: int) -> Stuck | None:
    span = games.span(game)
    choice, gain, progress = games.moves[span], games.gain[span], ends_of_parts(games.asked[span])
    for walk in _walks(games, game):
        rest = resting(walk, choice, gain, bool(games.finished[game]), progress)
        if rest is not None:
            holds, leaves, undecided = _holders(games, span, walk, rest)
            others = len(rest.places) - 1
            near = f" and {others} other place{'' if others == 1 else 's'}" if others else ""
            where = games.label(game, _most_often(walk, rest)) + near
            turns = rest.until - rest.since
            return Stuck(
                game, rest.since, turns, rest.kind, where, holds, leaves, _way_out(games, holds, leaves, undecided)
            )
    return None


def _most_often(walk: np.ndarray, rest: Rest) -> int:
    """The first turn in the place where most turns of a rest are spent."""
    turns = walk[rest.since : rest.until].tolist()
    return rest.since + turns.index(max(rest.places, key=turns.count))


def _holders(
    games: Games, span: slice, walk: np.ndarray, rest: Rest
) -> tuple[dict[str, float], dict[str, float], bool]:
    """Who speaks for what is done in these places and who for the way out; and whether nobody prefers anything."""
    choice = games.choice[span]
    here = np.arange(rest.since, rest.until)
    taken = {place: np.unique(choice[here[walk[here] == place]]) for place in rest.places}
    total, counted, tied = np.zeros(len(games.advisors)), 0, 0
    for turn in here[-256:].tolist():
        at = span.start + turn
        never = np.setdiff1d(np.arange(len(games.actions)), taken[int(walk[turn])])
        who = np.flatnonzero(games.heard[at])
        if not len(never) or not len(who):
            continue
        advice, weights = games.advice[at, who], games.heard[at, who]
        voices = games.voices._replace(of=games.voices.of[who])
        ways, slack = games.preferences[at, never], rounding(advice, weights, voices)
        outs = never[ways >= ways.max() - max(slack, _EQUAL * float(np.abs(ways).max()))].tolist()
        for out in outs:
            total[who] += contributions(advice, weights, voices, int(choice[turn]), out) / len(outs)
        tied += bool(games.preferences[at, choice[turn]] - ways.max() <= slack)
        counted += 1
    mean = total / max(counted, 1)
    least = _SHARE * max(float(np.abs(mean).max(initial=0.0)), 1e-300)
    order = np.argsort(-np.abs(mean), kind="stable").tolist()
    holds = {games.names[j]: float(mean[j]) for j in order if mean[j] > least}
    leaves = {games.names[j]: float(-mean[j]) for j in order if mean[j] < -least}
    return holds, leaves, counted == 0 or 2 * tied > counted


def _way_out(games: Games, holds: dict[str, float], leaves: dict[str, float], undecided: bool) -> str:
    """What may help, by the settings and by who is at odds."""
    settings, tables = games.settings, games.settings.deep is None
    if undecided:
        return "no action is better than another there: learn longer, explore more (epsilon), or raise gamma"
    if getattr(settings, "learner", "advisors") == "linear":
        return "learn longer, or explore more (epsilon)"
    plans = {planning.name for planning in plannings_of(Team(games.task.name, games.advisors), settings.planned)}
    if "egocentric" in plans or "tempered" in plans:
        return (
            f"each hopes to have its way later and none gives in now: plan empathically, lower gamma (it is "
            f"{settings.gamma:g}), or let the strongest wish decide (aggregation max)"
        )
    if "agnostic" in plans:
        return "who expects actions at random fears too much: plan empathically, or lower gamma"
    if leaves:
        more = "a larger gamma for " + ", ".join(list(leaves)[:2])
        return f"the way out is worth less than what is feared or paid on it: learn longer, or {more}"
    kept = "explore more (epsilon)" if tables else "explore longer (epsilon_turns)"
    if settings.continuous is not None:
        kept = "leave more to chance (temperature)"
    return f"nobody sees a way out that pays: learn longer, {kept}, or raise gamma (it is {settings.gamma:g})"
