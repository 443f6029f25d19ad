"""Does it get what it expects? Each advisor's value of the action taken, against the return that followed.

The return is discounted with the advisor's own gamma and goes on as long as it has a part. What a value means depends
on the planning: who plans empathically or by Sarsa expects what is really done, and a bias is an error of learning; who
plans egocentrically expects to have its way, and its bias is what it hopes for and does not get. The episodes of a
report are played without exploration and without an actor's noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

ACTOR = "what the actor does, its noise included (these episodes were played without it)"
ACTOR_SUM = "the rewards and the actor's entropy together, which no critic tells apart"
"""What advisors expect if actions are real numbers; else their planning says it."""
LEFT = 0.01
"""A step counts only where what was cut off with the episode has at most this weight in its return; where there is no
such step, the advisor's own value at the cut stands for what was cut off."""


class Calibration(NamedTuple):
    """Of one advisor, over the steps that count."""

    steps: int
    completed: bool  # whether its own value stands for what was cut off with the episodes
    predicted: float | None  # the mean of its values of the actions taken, and ...
    followed: float | None  # ... of the returns that followed; None where no step counts
    bias: float | None  # their difference: above 0 where it expects too much
    error: float | None  # the standard error of the bias, from episode to episode; None where there is one episode
    correlation: float | None  # None where one of them never varies
    miss: float | None = None  # how far a value is from the return that followed: the root of the mean square


def returns(paid: np.ndarray, ended: np.ndarray, gamma: float) -> np.ndarray:
    """[T] discounted sums of the rewards [T] of one episode that follow each step, up to the end of the advisor's part.

    ended [T] bool are the steps that ended it; where the advisor has a part again later, that is another one.

    >>> returns(np.array([0.0, 0.0, 1.0, 1.0]), np.array([False, False, True, False]), 0.5)
    array([0.25, 0.5 , 1.  , 1.  ])
    """
    found, later = np.zeros(len(paid)), 0.0
    for step in range(len(paid) - 1, -1, -1):
        later = paid[step] + (0.0 if ended[step] else gamma * later)
        found[step] = later
    return found


def counts(asked: np.ndarray, ended: np.ndarray, gamma: float, finished: bool) -> np.ndarray:
    """[T] bool: the steps of one episode whose returns are known, as little or nothing of them was cut off with it."""
    if finished or gamma == 0.0:
        return asked.copy()
    left = np.arange(len(asked), 0, -1.0)  # steps until the cut, this one included
    over = np.logical_or.accumulate(ended[::-1])[::-1]  # its part ended before the cut
    return asked & (over | (left * math.log(gamma) <= math.log(LEFT)))


def compared(
    predicted: np.ndarray, paid: np.ndarray, asked: np.ndarray, ended: np.ndarray, first: np.ndarray,
    finished: np.ndarray, gamma: float,
) -> tuple[list[tuple[np.ndarray, np.ndarray]], bool]:  # fmt: skip
    """Of each episode in which steps count, the values and the returns that followed; and whether they were
    completed."""
    pairs, completed = [], False
    for completed in (False, True):
        for episode, ends in enumerate(finished.tolist()):
            span = slice(int(first[episode]), int(first[episode + 1]))
            here, came, over = asked[span], paid[span], ended[span]
            known = counts(here, over, gamma, ends)
            if completed and here.any():  # the last value that it gave stands for all that follows
                last = int(np.flatnonzero(here)[-1])
                known, came, over = here.copy(), came.copy(), over.copy()
                known[last], came[last], over[last] = False, predicted[span][last], True
            if known.any():
                pairs.append((predicted[span][known], returns(came, over, gamma)[known]))
        if pairs:
            break
    return pairs, completed


def calibration(
    predicted: np.ndarray, paid: np.ndarray, asked: np.ndarray, ended: np.ndarray, first: np.ndarray,
    finished: np.ndarray, gamma: float,
) -> Calibration:  # fmt: skip
    """Of one advisor: its values of the actions taken [T], its rewards [T], where it was asked and its part ended [T].

    first [G + 1] is the first step of each episode and, last, the number of steps; finished [G] which ended by
    themselves. Where it has a part and is not asked, as it is silent, there is no value, and the return goes on.
    """
    pairs, completed = compared(predicted, paid, asked, ended, first, finished, gamma)
    if not pairs:
        return Calibration(0, False, None, None, None, None, None)
    guessed = [guess for guess, _ in pairs]
    biases = [float((guess - came).sum()) for guess, came in pairs]
    guess, came = np.concatenate(guessed), np.concatenate([came for _, came in pairs])
    bias = float((guess - came).mean())
    sizes, episodes = np.array([len(part) for part in guessed]), len(guessed)
    spread = np.array(biases) - bias * sizes  # of a ratio, as episodes differ in length
    error = math.sqrt(episodes / (episodes - 1) * float((spread**2).sum())) / len(guess) if episodes > 1 else None
    varies = guess.std() > 1e-12 * max(1.0, np.abs(guess).max()) and came.std() > 1e-12 * max(1.0, np.abs(came).max())
    correlation = float(np.corrcoef(guess, came)[0, 1]) if varies else None
    return Calibration(len(guess), completed, float(guess.mean()), float(came.mean()), bias, error, correlation,
                       math.sqrt(float(((guess - came) ** 2).mean())))  # fmt: skip
