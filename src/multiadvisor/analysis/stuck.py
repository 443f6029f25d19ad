"""Stuck, in any environment: an episode that goes on and on in the same few places and earns nothing.

A place is a local state, or a cell of a real-valued observation. The detector looks at episodes that did not end by
themselves, from their end backwards: the places must come again and again, and no way from a place back to itself may
have paid. Since when it is stuck, who holds it there and what might help follow from the steps in these places.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.analysis.episodes import CELLS, Episodes
from multiadvisor.core.aggregator import Team, plannings_of
from multiadvisor.core.plannings import PLANNINGS
from multiadvisor.explain.ablation import contributions, rounding
from multiadvisor.explain.sentences import join
from multiadvisor.learners.kinds import learner_settings, own_settings

LEAST = 16
"""An episode that has been in the same places for fewer steps than this may just be slow."""
REPEATS = 4
"""So often, on average, the places come again; where the same action leads to different ones, so often as ..."""
REPEATS_BY_CHANCE = 40
"""... this: an environment that moves by chance comes back to many places without being stuck."""
_SELDOM = 0.02  # of the steps: where it has been less often is on the way
_SURE = 0.9  # the share of steps in which the same action in the same place leads to the same place
_SHARE = 1e-3  # of the strongest: who holds less is not named
_EQUAL = 0.01  # relative: learned values of ways out that are worth the same
_PAYS = 1e-9  # relative: what a way round earns by rounding alone
_VARIES = 0.25  # of what a step pays: where all steps pay the same up to this, none is cheaper than another


class Stay(NamedTuple):
    """Steps of one episode that are spent in a few places."""

    since: int  # the first step from which on it is in these places but for short excursions, ...
    until: int  # ... and the first one in which it no longer is: the number of steps where it stays to the end
    places: tuple[int, ...]  # in the order they are met
    kind: str


def resting(
    walk: np.ndarray, choice: np.ndarray, gain: np.ndarray, finished: bool, progress: np.ndarray | None = None
) -> Stay | None:
    """The rest in which an episode ends, or the longest one; None where there is none.

    walk [L + 1] are its places, choice [L] its actions, gain [L] what each step earned, all weighted and summed, and
    progress [L] bool the steps in which something was done for good. Rests that such steps ended count where they took
    a third of the episode together.

    >>> still = np.zeros(30, int)
    >>> resting(np.concatenate([[7, 8], still]), np.ones(31, int), np.zeros(31), finished=False)
    Stay(since=2, until=31, places=(0,), kind='stands still')
    >>> resting(still, np.ones(29, int), np.ones(29), finished=False) is None  # it is paid for standing there
    True
    """
    if finished:
        return None
    length = len(choice)
    done = [] if progress is None else np.flatnonzero(progress[:-1]).tolist()
    ends = [length, *(step + 1 for step in reversed(done))]
    rests = []
    for end, start in zip(ends, [*ends[1:], 0], strict=True):
        rest = _rest(walk[start : end + 1], choice[start:end], gain[start:end])
        if rest is not None:
            rests.append(rest._replace(since=rest.since + start, until=rest.until + start))
            if end == length:
                return rests[0]
    lengths = [rest.until - rest.since for rest in rests]
    return rests[lengths.index(max(lengths))] if rests and 3 * sum(lengths) >= length else None


def cheapest(met: np.ndarray, gain: np.ndarray, rest: Stay) -> bool:
    """Whether staying costs least of all that was met [T] in all episodes, in an episode that gained this [L]: that is
    where one should be.

    >>> swung, upright = np.full(30, -9.0), np.full(90, -0.1)
    >>> gain = np.concatenate([swung, upright])
    >>> cheapest(gain, gain, Stay(30, 120, (1,), "stands still")), cheapest(gain, gain, Stay(0, 30, (0,), ""))
    (True, False)
    """
    low, high = np.quantile(met, [0.05, 0.95])
    varies = high - low > _VARIES * np.abs(gain).mean()
    return bool(varies and gain[rest.since : rest.until].mean() > (low + high) / 2)


def _rest(walk: np.ndarray, choice: np.ndarray, gain: np.ndarray) -> Stay | None:
    """The rest in which these steps end; what leads out of it at the very end is left off."""
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
    return Stay(since + dry, until + dry, tuple(dict.fromkeys(walk[since:until].tolist())), kind)


def _since(often: np.ndarray) -> int | None:
    """The first step, in a place where it is often, from which on it never was elsewhere for a third of the time.

    >>> _since(np.array([0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1], bool))
    4
    """
    ahead = np.concatenate([[0], np.cumsum(np.where(often, 1, -2))])  # [L + 1]
    lowest = np.minimum.accumulate(ahead[::-1])[::-1]
    found = np.flatnonzero(often & (ahead[:-1] <= lowest[1:]))
    return int(found[0]) if len(found) else None


def _unpaid_from(walk: np.ndarray, gain: np.ndarray) -> int:
    """The first step from which on no way from a place back to itself is paid."""
    total = np.concatenate([[0.0], np.cumsum(gain)])  # [L + 1] before each step
    slack = _PAYS * max(1.0, float(np.abs(gain).sum()))
    highest: dict[int, float] = {}
    for step in range(len(walk) - 1, -1, -1):
        place, so_far = int(walk[step]), float(total[step])
        if highest.get(place, so_far) - so_far > slack:
            return step + 1
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

    episode: int
    since: int
    """The step of the episode, counted from 0."""
    steps: int
    """How long it lasted, until it went on or the episode was cut off."""
    kind: str
    where: str
    """The state in which it is most of the time, and how many other places there are."""
    held_by: dict[str, float]
    """Who speaks for what it does there, against the best action that it never takes there: how much, on average (of
    several that are about as good, the mean)."""
    leaves: dict[str, float]
    """Who would rather have had that action, and how much."""
    advice: str
    """What may help."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @property
    def found(self) -> str:
        """Since when, where, and by whom: all but what may help."""
        named = list(self.held_by)
        shown = [*named[:3], *([f"{len(named) - 3} more"] if len(named) > 3 else [])]
        who = f"held by {join(shown)}" if named else "nobody prefers to be there"
        away = f"; {join(list(self.leaves)[:2])} would rather leave" if self.leaves else ""
        return f"{self.kind} since step {self.since} ({self.steps} steps) at {self.where}; {who}{away}"

    def __str__(self) -> str:
        return f"{self.found}; {self.advice}"


def ends_of_parts(active: np.ndarray) -> np.ndarray:
    """[L] bool: the steps after which some advisor has no part in the episode any more, from who has one [L, n].

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


def find_stuck(episodes: Episodes) -> list[Stuck]:
    """The episodes that are stuck at their end."""
    found = (_stuck(episodes, episode) for episode in range(len(episodes)))
    return [one for one in found if one is not None]


def _walks(episodes: Episodes, episode: int) -> list[np.ndarray]:
    """The ways to look at an episode [L + 1]: each view that at least half of the advisors share, and all together."""
    places = episodes.places[episodes.walk(episode)]  # [L + 1, V]
    together = np.unique(places, axis=0, return_inverse=True)[1].reshape(-1)
    applied = episodes.applied[episodes.span(episode)] != 0  # [L, n]
    shares = (episodes.views[:, None, :] & applied).sum(axis=(1, 2)) / max(int(applied.sum()), 1)
    order = [v for v in np.argsort(-shares, kind="stable").tolist() if shares[v] >= 0.5]
    return [*(places[:, v] for v in order if len(shares) > 1), together]


def _stuck(episodes: Episodes, episode: int) -> Stuck | None:
    span = episodes.span(episode)
    choice, gain, progress = episodes.moves[span], episodes.gain[span], ends_of_parts(episodes.asked[span])
    for walk in _walks(episodes, episode):
        rest = resting(walk, choice, gain, bool(episodes.terminated[episode]), progress)
        if rest is not None and (episodes.gain.max() > 0 or not cheapest(episodes.gain, gain, rest)):
            held_by, leaves, undecided = _holders(episodes, span, walk, rest)
            others = len(rest.places) - 1
            near = f" and {others} other place{'' if others == 1 else 's'}" if others else ""
            where = episodes.label(episode, _most_often(walk, rest)) + near
            advice = _way_out(episodes, leaves, undecided)
            return Stuck(episode, rest.since, rest.until - rest.since, rest.kind, where, held_by, leaves, advice)
    return None


def _most_often(walk: np.ndarray, rest: Stay) -> int:
    """The first step in the place where most steps of a rest are spent."""
    steps = walk[rest.since : rest.until].tolist()
    return int(rest.since + steps.index(max(rest.places, key=steps.count)))


def _holders(
    episodes: Episodes, span: slice, walk: np.ndarray, rest: Stay
) -> tuple[dict[str, float], dict[str, float], bool]:
    """Who speaks for what is done in these places and who for the way out; and whether nobody prefers anything."""
    choice = episodes.choice[span]
    here = np.arange(rest.since, rest.until)
    taken = {place: np.unique(choice[here[walk[here] == place]]) for place in rest.places}
    total, counted, tied = np.zeros(len(episodes.advisors)), 0, 0
    for step in here[-256:].tolist():
        at = span.start + step
        never = np.setdiff1d(np.arange(len(episodes.header["actions"])), taken[int(walk[step])])
        who = np.flatnonzero(episodes.applied[at])
        if not len(never) or not len(who):
            continue
        advice, weights = episodes.advice[at, who], episodes.applied[at, who]
        aggregator = episodes.aggregator._replace(of=episodes.aggregator.of[who])
        ways, slack = episodes.preferences[at, never], rounding(advice, weights, aggregator)
        outs = never[ways >= ways.max() - max(slack, _EQUAL * float(np.abs(ways).max()))].tolist()
        for out in outs:
            total[who] += contributions(advice, weights, aggregator, int(choice[step]), out) / len(outs)
        tied += bool(episodes.preferences[at, choice[step]] - ways.max() <= slack)
        counted += 1
    mean = total / max(counted, 1)
    least = _SHARE * max(float(np.abs(mean).max(initial=0.0)), 1e-300)
    order = np.argsort(-np.abs(mean), kind="stable").tolist()
    held_by = {episodes.names[j]: float(mean[j]) for j in order if mean[j] > least}
    leaves = {episodes.names[j]: float(-mean[j]) for j in order if mean[j] < -least}
    return held_by, leaves, counted == 0 or 2 * tied > counted


def _way_out(episodes: Episodes, leaves: dict[str, float], undecided: bool) -> str:
    """What may help, by the settings and by who is at odds."""
    settings, own = episodes.settings, own_settings(episodes.settings)
    if undecided:
        return f"no action is better than another there: learn longer, {own.explores}, or raise gamma"
    if own.summed:
        return f"learn longer, or {own.explores}"
    plans = plannings_of(Team(episodes.task.name, episodes.advisors), settings.planning)
    if known := [plan.when_stuck for plan in PLANNINGS.values() if plan in plans and plan.when_stuck]:
        return known[0].format(gamma=settings.gamma)
    if paid := [name for name in leaves if name in episodes.task.names or not own.entropy]:  # entropy has no gamma
        more = "a larger gamma for " + ", ".join(paid[:2])
        return f"the way out is worth less than what is feared or paid on it: learn longer, or {more}"
    return f"nobody sees a way out that pays: learn longer, {own.explores}, or raise gamma (it is {settings.gamma:g})"


# ---- in a trace ------------------------------------------------------------------------------------------------------
def stuck_at(trace: Episodes, episode: int, step: int) -> bool | None:
    """Whether a step of a greedy episode lies in a rest that lasted until the episode was cut off; None if not known.

    Where there are no states, places are told apart by the advice given in them.
    """
    if not trace.advised or trace.header["epsilon"] > 0:
        return None
    if trace.terminated[episode]:
        return False
    span = trace.span(episode)
    asked, advice = trace.asked[span], trace.advice[span].copy()
    if learner_settings(trace.header["settings"]["learner"]).network:  # which never says the same twice
        low, high = advice[asked].min(axis=0), advice[asked].max(axis=0)
        advice[asked] = np.floor((advice[asked] - low) / np.maximum(high - low, 1e-9) * CELLS)
    keys = [(who.tobytes(), row.tobytes()) for who, row in zip(asked, advice, strict=True)]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    walk, length = np.array([places[key] for key in keys]), len(keys) - 1
    gain = trace.gain[span][:length]
    rest = resting(walk, trace.choice[span][:length], gain, False, ends_of_parts(asked)[:length])
    return True if rest is not None and rest.until == length and step >= rest.since else None
