"""What a policy is worth by each term, V_k(s): fitted to its own episodes, and believed only where it forecasts others.

Least squares (LSTD) on random features of the observation, in closed form; no network, so that nothing has to be
installed for it and the same sample gives the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multiadvisor.diagnosis.sample import LARGE, Sample, SampledEpisode

FEATURES = 400
LAMBDA = 0.95
RIDGE = 1e-2
CALIBRATED = 0.8
"""The correlation between forecast and return on episodes that were not fitted, from which on a value is quoted."""
_KNOWN = 0.05  # a return is known as far as at most this share of it lies beyond the end of what was played
_FOLDS = 4
_VARIES = 1e-3  # of a return: by less than this it does not vary
_PIECE = 4096  # steps whose features are held at a time


@dataclass(frozen=True)
class RandomFeatures:
    """Random cosines of the observation's numbers, after these were brought to one scale; and a constant."""

    middle: np.ndarray  # [d]
    scale: np.ndarray  # [d]
    directions: np.ndarray  # [d, F]
    phases: np.ndarray  # [F]

    def __call__(self, observed: np.ndarray) -> np.ndarray:
        """From numbers [T, d] to features [T, F + d + 1]."""
        scaled = np.clip((observed - self.middle) / self.scale, -5, 5)
        waves = np.cos(scaled @ self.directions + self.phases) * np.sqrt(2 / len(self.phases))
        return np.concatenate([waves, scaled, np.ones((len(observed), 1))], axis=1)


def features_for(observed: np.ndarray, seed: int) -> RandomFeatures:
    """Features for observations like these [T, d]."""
    generator = np.random.default_rng([seed, 7])
    dimension = observed.shape[1]
    widths = generator.choice([0.5, 1.0, 2.0], size=FEATURES) / np.sqrt(dimension)
    directions = generator.normal(size=(dimension, FEATURES)) * widths
    spread = observed.std(axis=0)
    return RandomFeatures(
        observed.mean(axis=0),
        np.where(spread > 1e-9, spread, 1.0),
        directions,
        generator.uniform(0, 2 * np.pi, FEATURES),
    )


@dataclass(frozen=True)
class TermValues:
    """V_k of a policy as a linear function of features."""

    features: RandomFeatures
    coefficients: np.ndarray  # [features, K]
    level: np.ndarray  # [K] the mean over the states it was fitted to

    def __call__(self, observed: np.ndarray) -> np.ndarray:
        """From numbers [T, d] to values [T, K]."""
        pieces = np.split(observed, range(_PIECE, len(observed), _PIECE))
        return np.concatenate([self.features(one) @ self.coefficients for one in pieces])


@dataclass(frozen=True)
class Closing:
    """What closes a short branch: the values of the state that it leads to."""

    values: TermValues
    space: Any
    """Of the observations."""
    varies: np.ndarray
    """[K] bool; a term that does not vary gets a constant: the fit's error would look like an effect."""
    known: np.ndarray
    """[K] bool; where values forecast nothing, 0."""

    def __call__(self, observation: Any) -> np.ndarray:
        """[K] for one observation."""
        seen = numbers([observation], self.space)
        assert seen is not None
        return np.where(self.varies, np.where(self.known, self.values(seen)[0], 0.0), self.values.level)


@dataclass(frozen=True)
class TermCalibration:
    """How far the forecasts of a term hold on episodes that were not fitted."""

    correlation: float
    bias: float
    """Forecast minus return, in standard deviations of the returns."""
    steps: int

    @property
    def holds(self) -> bool:
        """Whether values of this term may be quoted."""
        return self.steps >= 50 and self.correlation >= CALIBRATED and abs(self.bias) < 0.5


def numbers(observations: Sequence[Any], space: Any) -> np.ndarray | None:
    """Observations as rows of numbers [T, d]; None where they are pictures, or have no numbers."""
    from gymnasium import spaces

    if not spaces.utils.is_space_dtype_shape_equiv(space, space) or spaces.flatdim(space) > LARGE:
        return None
    return np.array([spaces.flatten(space, one) for one in observations], float)


def rows_of_numbers(sample: Sample, least: int = 2) -> list[np.ndarray] | None:
    """The observations of each episode as rows of numbers; None where they have none, or of fewer episodes."""
    rows = [numbers(one.observations, sample.space) for one in sample.episodes]
    known = [one for one in rows if one is not None]
    return None if len(known) < max(len(rows), least) else known


def fit(observed: Sequence[np.ndarray], episodes: Sequence[SampledEpisode], gamma: float, seed: int) -> TermValues:
    """V_k from episodes whose observations are rows of numbers [T + 1, d] each: LSTD(lambda) in closed form."""
    features = features_for(np.concatenate(observed), seed)
    count, terms = FEATURES + observed[0].shape[1] + 1, episodes[0].terms.shape[1]
    matrix, right, total = RIDGE * np.eye(count), np.zeros((count, terms)), np.zeros(count)
    for numbers_seen, episode in zip(observed, episodes, strict=True):
        trace, length = np.zeros(count), len(episode.actions)
        for first in range(0, length, _PIECE):
            last = min(first + _PIECE, length)
            seen = features(numbers_seen[first : last + 1])
            following = gamma * seen[1:]
            if episode.terminated and last == length:
                following[-1] = 0.0
            traces = _traces(seen[:-1], gamma * LAMBDA, trace)
            trace = traces[-1]
            matrix += traces.T @ (seen[:-1] - following)
            right += traces.T @ episode.terms[first:last]
            total += seen[:-1].sum(axis=0)
        total += features(numbers_seen[-1:])[0]
    coefficients = np.linalg.solve(matrix, right)
    return TermValues(features, coefficients, total / sum(map(len, observed)) @ coefficients)


def _traces(seen: np.ndarray, decay: float, trace: np.ndarray) -> np.ndarray:
    """Eligibility traces [T, F] of features [T, F], after a trace [F]."""
    found = np.empty_like(seen)
    for t, row in enumerate(seen):
        trace = decay * trace + row
        found[t] = trace
    return found


def discounted(terms: np.ndarray, gamma: float, after: np.ndarray | float = 0.0) -> np.ndarray:
    """The discounted returns [T, K] of terms [T, K], and of what comes after them [K].

    >>> discounted(np.ones((3, 1)), 0.5).ravel().tolist(), discounted(np.ones((1, 1)), 0.5, 2.0).ravel().tolist()
    ([1.75, 1.5, 1.0], [2.0])
    """
    found = np.empty_like(terms)
    ahead = np.zeros(terms.shape[1]) + after
    for t in range(len(terms) - 1, -1, -1):
        ahead = terms[t] + gamma * ahead
        found[t] = ahead
    return found


def calibrate(sample: Sample, observed: Sequence[np.ndarray], gamma: float, seed: int) -> list[TermCalibration]:
    """For each term, how values fitted to other episodes forecast the returns of an episode."""
    whole = len(sample.episodes)
    pairs = []
    for fold in range(min(_FOLDS, whole)):
        inside = [k for k in range(whole) if k % _FOLDS != fold]
        if not inside:
            continue
        values = fit([observed[k] for k in inside], [sample.episodes[k] for k in inside], gamma, seed)
        pairs += [_forecast(values, sample.episodes[k], observed[k], gamma) for k in range(fold, whole, _FOLDS)]
    return _calibrations(pairs, len(sample.terms.advisors))


def forecasting(
    values: TermValues, sample: Sample, observed: Sequence[np.ndarray], gamma: float
) -> list[TermCalibration]:
    """For each term, how these values forecast the returns of episodes that they were not fitted to."""
    pairs = [_forecast(values, *one, gamma) for one in zip(sample.episodes, observed, strict=True)]
    return _calibrations(pairs, len(sample.terms.advisors))


def _forecast(
    values: TermValues, episode: SampledEpisode, observed: np.ndarray, gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and returns [T, K] of the steps of an episode whose returns are known."""
    known = max(len(episode.actions) if episode.terminated else len(episode.actions) - _steps_known(gamma), 0)
    after = 0.0 if episode.terminated else values(observed[-1:])[0]
    return values(observed[:known]), discounted(episode.terms, gamma, after)[:known]


def _calibrations(pairs: list[tuple[np.ndarray, np.ndarray]], count: int) -> list[TermCalibration]:
    """Of each term, from forecasts and returns [T, K] of each episode."""
    if not any(len(one) for one, _ in pairs):
        return [TermCalibration(float("nan"), float("nan"), 0)] * count
    forecast, paid = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return [_calibration(forecast[:, k], paid[:, k]) for k in range(count)]


def _steps_known(gamma: float) -> int:
    """How many last steps of an episode that was cut off have a return that nobody knows."""
    return int(np.ceil(np.log(_KNOWN) / np.log(gamma))) if 0 < gamma < 1 else 0


def _calibration(forecast: np.ndarray, paid: np.ndarray) -> TermCalibration:
    spread = float(paid.std())
    if spread <= _VARIES * float(np.abs(paid).max()):  # nothing varies, so that there is nothing to forecast
        return TermCalibration(float("nan"), 0.0, len(paid))
    return TermCalibration(
        float(np.corrcoef(forecast, paid)[0, 1]), float((forecast - paid).mean() / spread), len(paid)
    )
