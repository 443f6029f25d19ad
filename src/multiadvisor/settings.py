"""One frozen dataclass is the library's configuration, the command's flags and the record of the run."""

from __future__ import annotations

import dataclasses
import math
import numbers
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from multiadvisor.core.aggregations import Aggregation, aggregation_named
from multiadvisor.core.aggregator import by_name, in_words
from multiadvisor.core.plannings import Planning, planning_named
from multiadvisor.core.validation import MOST_STEPS
from multiadvisor.errors import BadInput, short
from multiadvisor.learners.registry import AUTO, LEARNERS, LearnerSettings, learner_settings


def option(default: Any, text: str, *, searched: bool = False) -> Any:
    """A field whose text is also the flag's help; `searched`: a sweep may search a range of its values."""
    return dataclasses.field(default=default, metadata={"help": text, "searched": searched})


LARGEST_WEIGHT = 1e30
"""What a network's values, which have 32 bits, may be multiplied with: no sum of such products is too large."""
MOST_EVALUATIONS = 250_000  # each of which is remembered; a checkpoint's JSON has room for them
MOST_EPISODES = 10_000_000  # in one evaluation, each of which is remembered


CAVEAT = "this is what networks expect and not what was found to be true (docs/why-did-it-do-that.md#how-true-is-it)"
"""What stands wherever a network's values explain an action; tables were found to be much nearer to the truth."""


@dataclass(frozen=True)
class Settings:
    """How a multi-advisor agent learns; each field is a keyword of `MultiAdvisor` and a flag of the command.

    >>> Settings(planning="egocentric", gamma=0.4).aggregation
    'sum'
    """

    planning: str = option("empathic", "how advisors plan, all of them or by name: fruits=egocentric,ghosts=empathic")
    aggregation: str = option(
        "sum", "how advice is combined, for all or by group: max, or fruits=max; the others are summed"
    )
    learner: LearnerSettings | str | Mapping[str, Any] = option(  # noqa: RUF009
        AUTO, f"what learns: {AUTO}, or one of {', '.join(LEARNERS)}, or its settings, such as DQN(...)"
    )
    gamma: float = option(0.9, "discount factor, 0 to 1, of every advisor without its own", searched=True)
    alpha: float = option(
        0.1, "learning rate of tables, above 0 and at most 1 (networks have learning_rate)", searched=True
    )
    alpha_half: int = option(
        0, "transitions until the learning rate is halved, after twice as many a third, ...; 0: constant", searched=True
    )
    epsilon: float = option(0.05, "probability of a random action while learning", searched=True)
    epsilon_half: int = option(
        0, "transitions until epsilon is halved, after twice as many a third, ...; 0: constant", searched=True
    )
    noise: float = option(
        0.0, "standard deviation of the Gaussian noise on every advisor's reward while learning", searched=True
    )
    seed: int = option(0, "everything random in a run follows from it")

    def __post_init__(self) -> None:
        for name, kind, find in (
            ("planning", Planning, planning_named),
            ("aggregation", Aggregation, aggregation_named),
        ):
            value: Any = getattr(self, name)
            values = by_name(name, value.name if isinstance(value, kind) else value)
            for each in values.values():
                find(each)
            self._put(name, in_words(values))
        self._put("learner", learner_settings(self.learner))
        for name, high in (("gamma", 1.0), ("alpha", 1.0), ("epsilon", 1.0), ("noise", math.inf)):
            self._put(name, number_between(name, getattr(self, name), 0.0, high))
        if self.alpha == 0:
            raise BadInput("alpha is 0: nothing would be learned, choose it above 0")
        for name in ("alpha_half", "epsilon_half"):
            self._put(name, whole_number(name, getattr(self, name), most=MOST_STEPS))
        self._put("seed", whole_number("seed", self.seed))
        self.learner_settings.check(self)

    @property
    def learner_settings(self) -> LearnerSettings:
        """The learner's own settings, however it was named."""
        assert isinstance(self.learner, LearnerSettings)
        return self.learner

    @property
    def caveat(self) -> str:
        """What must be said beside an explanation by these values; nothing of tables."""
        return CAVEAT if self.learner_settings.network else ""

    def exploring(self, step: int) -> float:
        """The probability of a random action in a step.

        >>> settings = Settings(epsilon=0.2, epsilon_half=100)
        >>> settings.exploring(0), settings.exploring(100), settings.exploring(300)
        (0.2, 0.1, 0.05)
        """
        half = self.epsilon_half
        return self.epsilon * (half / (half + step)) if half else self.epsilon

    def _put(self, name: str, value: Any) -> None:
        """A field in its plain form: NumPy's numbers are welcome, and kept as Python's."""
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Schedule:
    """How long to train, and when to evaluate.

    >>> schedule = Schedule(steps=50, eval_every=20)
    >>> [schedule.due(number) for number in range(1, schedule.evaluations + 1)]
    [20, 40, 50]
    """

    steps: int = option(1_000_000, "transitions to learn from")
    eval_every: int = option(20_000, "transitions between evaluations; there is always one at the end")
    eval_episodes: int = option(80, "greedy episodes in an evaluation")

    def __post_init__(self) -> None:
        for name, least, most in (("steps", 1, MOST_STEPS), ("eval_every", 1, MOST_STEPS),
                                  ("eval_episodes", 0, MOST_EPISODES)):  # fmt: skip
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least, most))
        if self.evaluations > MOST_EVALUATIONS:
            raise BadInput(
                f"{self.steps} steps with an evaluation every {self.eval_every} are {self.evaluations} evaluations: "
                f"let them be at most {MOST_EVALUATIONS}"
            )

    @property
    def evaluations(self) -> int:
        """How many there are in all."""
        return -(-self.steps // self.eval_every)

    def due(self, number: int) -> int:
        """After how many steps an evaluation is due, the first one being number 1."""
        return min(number * self.eval_every, self.steps)


def finite_number(name: str, value: Any) -> float:
    """A finite number, or an error that names it."""
    return number_between(name, value, -math.inf, math.inf)


def number_between(name: str, value: Any, low: float, high: float) -> float:
    """A finite number in this range, or an error that names it."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if number and isinstance(value, numbers.Integral):
        number = abs(int(value)) <= sys.float_info.max  # those beyond cannot be asked whether they are finite
    elif number:
        number = math.isfinite(value)
    if not number or not low <= value <= high:
        reach = f"between {low:g} and {high:g}" if math.isfinite(high) else f"of at least {low:g}"
        reach = f"a number {reach}" if math.isfinite(low) else "a finite number"
        raise BadInput(f"{name} is {short(repr(value))}: give {reach}")
    return float(value)


def whole_number(name: str, value: Any, least: int = 0, most: int = (1 << 63) - 1) -> int:
    """A whole number that is neither too small nor too large, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise BadInput(f"{name} is {short(repr(value))}: give an integer of at least {least}")
    if int(value) > most:
        raise BadInput(f"{name} is {short(repr(value))}: give an integer of at most {most}")
    return int(value)
