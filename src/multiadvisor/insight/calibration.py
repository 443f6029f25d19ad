"""Does it get what it expects? Each advisor's value of the action taken, against the return that followed.

The return is discounted with the advisor's own gamma and goes on as long as it has a part. What a value means depends
on the planning: who plans empathically or by Sarsa expects what is really done, and a bias is an error of learning; who
plans egocentrically expects to have its way, and its bias is what it hopes for and does not get.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

MEANINGS = {
    "egocentric": "that its own best actions follow",
    "tempered": "that its own nearly best actions follow",
    "agnostic": "that any action follows, at random",
    "empathic": "what the aggregator does",
    "estimate": "what it has seen the aggregator do",
    "sarsa": "what is really done, exploration included",
    "expected_sarsa": "what is really done, exploration included",
}
"""What an advisor with this planning expects."""
ACTOR = "what the actor does, its noise included"
ACTOR_SUM = "the rewards and the actor's entropy together, which no critic tells apart"
"""And where actions are real numbers."""
LEFT = 0.01
"""A turn counts only where what was cut off with the game has at most this weight in its return; where there is no such
turn, the advisor's own value at the cut stands for what was cut off."""


class Calibration(NamedTuple):
    """Of one advisor, over the turns that count."""

    turns: int
    completed: bool  # whether its own value stands for what was cut off with the games
    predicted: float | None  # the mean of its values of the actions taken, and ...
    followed: float | None  # ... of the returns that followed; None where no turn counts
    bias: float | None  # their difference: above 0 where it expects too much
    error: float | None  # the standard error of the bias, from game to game; None where there is one game
    correlation: float | None  # None where one of them never varies

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict()


def returns(paid: np.ndarray, active: np.ndarray, gamma: float) -> np.ndarray:
    """[T] discounted sums of the rewards [T] of one game that follow each turn, up to the end of the advisor's part.

    >>> returns(np.array([0.0, 0.0, 1.0]), np.ones(3, bool), 0.5)
    array([0.25, 0.5 , 1.  ])
    """
    found, later = np.zeros(len(paid)), 0.0
    for turn in range(len(paid) - 1, -1, -1):
        later = paid[turn] + gamma * later if active[turn] else 0.0
        found[turn] = later
    return found


def counts(active: np.ndarray, gamma: float, finished: bool) -> np.ndarray:
    """[T] bool: the turns of one game whose returns are known, as little or nothing of them was cut off with it."""
    turns = len(active)
    if finished or gamma == 0.0:
        return active.copy()
    left = np.arange(turns, 0, -1.0)  # turns until the cut, this one included
    ended = np.zeros(turns, bool)  # its part ended before the cut
    over = False
    for turn in range(turns - 1, -1, -1):
        over = over or not active[turn]
        ended[turn] = over
    return active & (ended | (left * math.log(gamma) <= math.log(LEFT)))


def calibration(
    predicted: np.ndarray, paid: np.ndarray, active: np.ndarray, first: np.ndarray, finished: np.ndarray, gamma: float
) -> Calibration:
    """Of one advisor: its values of the actions taken [T], its rewards [T], and where it has a part [T].

    first [G + 1] is the first turn of each game and, last, the number of turns; finished [G] which ended by themselves.
    """
    pairs, completed = [], False
    for completed in (False, True):
        for game, ends in enumerate(finished.tolist()):
            span = slice(int(first[game]), int(first[game + 1]))
            known, came = counts(active[span], gamma, ends), paid[span]
            if completed:
                known, came = active[span].copy(), came.copy()
                known[-1], came[-1] = False, predicted[span][-1]
            if known.any():
                pairs.append((predicted[span][known], returns(came, active[span], gamma)[known]))
        if pairs:
            break
    if not pairs:
        return Calibration(0, False, None, None, None, None, None)
    guessed = [guess for guess, _ in pairs]
    biases = [float((guess - came).sum()) for guess, came in pairs]
    guess, came = np.concatenate(guessed), np.concatenate([came for _, came in pairs])
    bias = float((guess - came).mean())
    sizes, games = np.array([len(part) for part in guessed]), len(guessed)
    spread = np.array(biases) - bias * sizes  # of a ratio, as games differ in length
    error = math.sqrt(games / (games - 1) * float((spread**2).sum())) / len(guess) if games > 1 else None
    varies = guess.std() > 1e-12 * max(1.0, np.abs(guess).max()) and came.std() > 1e-12 * max(1.0, np.abs(came).max())
    correlation = float(np.corrcoef(guess, came)[0, 1]) if varies else None
    return Calibration(len(guess), completed, float(guess.mean()), float(came.mean()), bias, error, correlation)
