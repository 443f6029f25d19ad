"""Answers where the environment is not at hand: taught by short branches that were played while it was.

A layer of random features of the observation, whose outputs are linear in what two actions differ by: no more is
learned than fits in closed form. How far it agrees with whole branches, in episodes that it was not taught by, is
measured and told; what does not agree is withheld.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.core.progress import LearningBar
from multiadvisor.diagnosis.branches import another, correlations, horizon_of, spread_over
from multiadvisor.diagnosis.consequences import (
    STEPS,
    STRONG,
    TRIALS,
    Consequence,
    Consequences,
    Precision,
    Trial,
    ceiling,
    tried_out,
)
from multiadvisor.diagnosis.sample import LARGE, Watch, gather
from multiadvisor.diagnosis.term_values import RandomFeatures, features_for
from multiadvisor.errors import BadInput
from multiadvisor.settings import whole_number
from multiadvisor.storage.files import check_replaceable, write_atomically
from multiadvisor.storage.sealed import read_sealed, seal

PAIRS = 3_000
KIND, FORMAT = "multiadvisor taught answers", 1
_RIDGE = 1.0


@dataclass(frozen=True)
class Taught:
    """What an action brings, by term, that another would not, without trying it; `teach` makes one.

    >>> import multiadvisor as mad
    >>> from multiadvisor.diagnosis.consequences import consequences
    >>> lift = mad.Advisor("lift", reward=lambda t: float(t.next_observation[0]))
    >>> push = lambda seen: 2 if seen[1] > 0 else 0
    >>> asked = consequences("MountainCar-v0", push, [lift], gamma=0.5, steps=600, trials=8, progress=False)
    >>> answers = teach(asked, pairs=300, trials=20, progress=False)
    >>> bool(answers.compare([-0.5, 0.0], 2, 0).difference[0] > 0)  # to the right
    True
    """

    names: tuple[str, ...]
    features: RandomFeatures
    coefficients: np.ndarray  # [F, A, K]
    choices: tuple[tuple[int, int] | None, tuple[int, int] | None]
    """Of observations and actions: the first one and how many there are, where they are no numbers."""
    precision: tuple[Precision, ...]
    """Agreement with whole branches, of values and ranks, in other episodes."""
    error: np.ndarray
    """[K] the root of the mean squared difference from these."""
    length: int
    """Steps of the branches that it was taught by."""
    pairs: int
    seconds: float
    """CPU time that teaching took."""
    agent: str = ""
    """The saved agent of ours whose answers these are; empty of another policy."""

    def compare(self, observation: Any, action: Any, against: Any) -> Consequence:
        """What the action brings in the state with this observation that the other one would not."""
        start = time.process_time()
        seen = _numbers([observation], self.choices[0])
        found = self.said(seen, _apart([action], [against], self.choices[1]))[0]
        seconds = time.process_time() - start
        return Consequence(
            self.names, action, against, found, self.error, self.precision, self.length, 0, seconds, self.pairs
        )

    def said(self, seen: np.ndarray, apart: np.ndarray) -> np.ndarray:
        """The differences [B, K] for observations [B, d] and what two actions differ by [B, A]."""
        return np.asarray(np.einsum("bf,ba,fak->bk", self.features(seen), apart, self.coefficients, optimize=True))

    def save(self, place: Path) -> None:
        """Write it into a file."""
        own = {**vars(self), "features": {name: one.tolist() for name, one in vars(self.features).items()},
               "coefficients": self.coefficients.tolist(), "error": self.error.tolist(),
               "precision": [one.written() for one in self.precision]}  # fmt: skip
        write_atomically(place, seal(KIND, FORMAT, own))

    def as_dict(self) -> dict[str, Any]:
        """How it was taught and how far it holds, for JSON."""
        terms = {
            name: {**one.as_dict(), "holds": one.holds} for name, one in zip(self.names, self.precision, strict=True)
        }
        return {"pairs": self.pairs, "length": self.length, "seconds": self.seconds, "terms": terms}

    def __str__(self) -> str:
        lines = [f"taught by {self.pairs:,} pairs of {self.length} steps in {self.seconds:.1f} s of CPU time"]
        for name, one in zip(self.names, self.precision, strict=True):
            told = "" if one.holds else ": withheld"
            lines.append(f"{name}: agrees with whole branches of other episodes at {one.agreement:.2f} (ranks "
                         f"{one.ranks:.2f}){told}")  # fmt: skip
        return "\n".join(lines)


def read_taught(place: Path) -> Taught:
    """What `save` wrote."""
    own = read_sealed(place, KIND, FORMAT, "teach it again")
    try:
        own["features"] = RandomFeatures(**{name: np.array(one) for name, one in own["features"].items()})
        own["precision"] = tuple(map(Precision.read, own["precision"]))
        own["choices"] = tuple(one and tuple(one) for one in own["choices"])
        return Taught(
            **{**own, "names": tuple(own["names"]), **{k: np.array(own[k]) for k in ("coefficients", "error")}}
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadInput(f"{str(place)!r} does not hold what was taught: teach it again") from None


def check_place(place: Path) -> None:
    """Refuse a file that cannot be written, or that is none of ours, before anything is played."""
    is_ours = lambda content: KIND.encode() in content  # noqa: E731
    check_replaceable(place, "save what is taught to", "a file of taught answers", is_ours, 1 << 28)


def teach(
    asked: Consequences, pairs: int = PAIRS, *, steps: int = STEPS, trials: int = 2 * TRIALS, seed: int = 0,
    progress: bool | None = None,
) -> Taught:  # fmt: skip
    """Teach answers by so many pairs of short branches, in episodes of `steps` steps, and compare them with whole ones
    in `trials` states of others.

    The action taken is compared with what it is usually compared with in half of them, and with any other in the rest.
    """
    pairs, trials = whole_number("pairs", pairs, 1), whole_number("trials", trials, 4)
    start, brancher, env = time.process_time(), asked.brancher, asked.place.env
    choices = _choices(env.observation_space), _choices(env.action_space)

    def rival(seen: Any, action: Any, chance: np.random.Generator) -> Any:
        usual = chance.random() < 0.5
        return asked.rival(seen, action, chance) if usual else another(env.action_space, action, chance)

    with asked.place.held(), LearningBar(pairs, progress, "teaching") as bar:
        play, once = (brancher.simulator, brancher.policy.act, brancher.terms), replace(brancher, draws=1)
        sample = gather(*play, max(steps, pairs), seed + 2_000_000, Watch())
        parts = []
        for number, count in Counter(number for number, _ in spread_over(sample, pairs, seed)).items():
            own = replace(sample, episodes=sample.episodes[number : number + 1])  # whose states alone are held
            found = tried_out(once, own, rival, count, seed + number, Watch(bar.advance))
            parts.append((*_rows(found, choices), found.effects[:, 0]))
        whole = replace(brancher, horizon=horizon_of(brancher.gamma, asked.longest), close=None)
        other = gather(*play, max(steps // 2, trials), seed + 3_000_000, Watch())
        trial = tried_out(whole, other, rival, trials, seed, Watch())
    seen, apart, effects = (np.concatenate(part) for part in zip(*parts, strict=True))
    features = features_for(seen, seed)
    made = Taught(brancher.terms.names, features, _fitted(features(seen), apart, effects), choices, (), np.zeros(0),
                  brancher.horizon, len(seen), 0.0)  # fmt: skip
    said, truth = made.said(*_rows(trial, choices)), trial.effects.mean(axis=1)
    agreement, ranks = correlations(said, truth)
    strong = np.quantile(np.abs(said), STRONG, axis=0)
    known = np.stack([agreement, ranks, agreement / ceiling(trial.effects), strong], axis=1)
    return replace(
        made, precision=tuple(Precision(*one) for one in known.tolist()),
        error=np.sqrt(((said - truth) ** 2).mean(axis=0)), seconds=time.process_time() - start,
    )  # fmt: skip


def _rows(trial: Trial, choices: Any) -> tuple[np.ndarray, np.ndarray]:
    """The observations [B, d] of the states that were tried, and what the actions differ by [B, A]."""
    seen = _numbers([one.observation for one in trial.moments], choices[0])
    return seen, _apart([one for one, _ in trial.compared], [other for _, other in trial.compared], choices[1])


def _fitted(seen: np.ndarray, apart: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """[F, A, K] of features [B, F], what actions differ by [B, A] and effects [B, K]: ridge regression on the products,
    solved for the weights of the pairs, of which there are fewer than of products."""
    size = np.sqrt((apart**2).mean(axis=0))
    scaled = apart / np.where(size > 0, size, 1.0) ** 2
    weights = np.linalg.solve((seen @ seen.T) * (scaled @ apart.T) + _RIDGE * np.eye(len(seen)), effects)
    return np.asarray(np.einsum("bf,ba,bk->fak", seen, scaled, weights, optimize=True))


def _choices(space: Any) -> tuple[int, int] | None:
    """The first of a few and how many there are; None of numbers."""
    if hasattr(space, "n"):
        return int(getattr(space, "start", 0)), int(space.n)
    if not hasattr(space, "low") or np.prod(space.shape) > LARGE:
        raise BadInput(f"answers cannot be taught here: {space} is neither a few numbers nor one of a few choices")
    return None


def _numbers(given: Sequence[Any], choices: tuple[int, int] | None) -> np.ndarray:
    """Rows of numbers [B, d]: as they are, or of choices a 1 among zeros."""
    if choices is None:
        return np.array([np.ravel(one) for one in given], float)
    first, count = choices
    return np.asarray(np.eye(count)[np.array(given, int).ravel() - first])


def _apart(actions: Sequence[Any], against: Sequence[Any], choices: tuple[int, int] | None) -> np.ndarray:
    """What actions differ by [B, A]; of numbers in their squares as well."""
    one, other = _numbers(actions, choices), _numbers(against, choices)
    return one - other if choices else np.concatenate([one - other, one**2 - other**2], axis=1)
