"""One frozen dataclass is the library's configuration, the command's flags and the record of the run."""

from __future__ import annotations

import dataclasses
import math
import numbers
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from multiadvisor.core.aggregations import Aggregation, aggregation_named
from multiadvisor.core.aggregator import by_name, in_words
from multiadvisor.core.plannings import Planning, planning_named
from multiadvisor.core.validation import MOST_STEPS
from multiadvisor.errors import BadInput, KnowsFields, short, unknown
from multiadvisor.learners.kinds import AUTO, LEARNERS, LearnerSettings, learner_settings, with_defaults

LARGEST_WHOLE = (1 << 63) - 1


def option(
    default: Any, text: str, *, searched: bool = False, least: float = 0, most: float = math.inf,
    above_0: bool = False, among: Collection[str] = (),
) -> Any:  # fmt: skip
    """A field whose text is also the flag's help; `searched`: a sweep may search a range of its values.

    Numbers, and those in a tuple, are from `least` to `most`, and not 0 where they are to be `above_0`; texts are
    `among` these, where these are given.
    """
    limits = {"least": least, "most": most, "above_0": above_0, "among": among}
    return dataclasses.field(default=default, metadata={"help": text, "searched": searched, **limits})


def check_options(settings: Any) -> None:
    """Refuse what an `option` may not be; what it may be is put in its plain form, as NumPy's numbers are welcome."""
    for item in dataclasses.fields(settings):
        if "least" in item.metadata and not (item.default is None and getattr(settings, item.name) is None):
            object.__setattr__(settings, item.name, _checked(item, getattr(settings, item.name)))


def _checked(item: dataclasses.Field[Any], value: Any) -> Any:
    kind, name, limits = getattr(item.type, "__name__", str(item.type)), item.name, item.metadata
    least, most, among = limits["least"], limits["most"], limits["among"]
    whole = int(min(most, LARGEST_WHOLE))
    if among and (not isinstance(value, str) or value not in among):
        raise unknown(name, value, among)
    if kind == "bool" and not isinstance(value, bool):
        raise BadInput(f"{name} is {short(repr(value))}: give true or false")
    if kind.startswith("tuple"):
        if not isinstance(value, tuple | list):
            raise BadInput(f"{name} is {short(repr(value))}: give integers, such as (64, 64)")
        return tuple(whole_number(name, as_integer(each), int(least), whole) for each in value)
    if kind == "int":
        value = whole_number(name, as_integer(value), int(least), whole)
    elif kind.startswith("float"):
        value = number_between(name, value, least, most)
    if limits["above_0"] and value == 0:
        raise BadInput(f"{name} is 0: nothing would be learned, choose it above 0")
    return value


LARGEST_WEIGHT = 1e30
"""What a network's values, which have 32 bits, may be multiplied with: no sum of such products is too large."""
MOST_EVALUATIONS = 250_000  # each of which is remembered; a checkpoint's JSON has room for them
MOST_EPISODES = 10_000_000  # in one evaluation, each of which is remembered


CAVEAT = "this is what networks expect, not what was found to be true: the documentation says how far to trust it"
"""What stands wherever a network's values explain an action; tables were found to be much nearer to the truth."""


@dataclass(frozen=True)
class Settings(KnowsFields):
    """How a multi-advisor agent learns; each field is a keyword of `MultiAdvisor` and a flag of the command.

    >>> Settings(planning="egocentric", gamma=0.4).aggregation
    'sum'
    """

    planning: str = option("empathic", "how advisors plan, all of them or by name: fruits=egocentric,ghosts=empathic")
    aggregation: str = option(
        "sum", "how advice is combined, for all or by group: max, or fruits=max; the others are summed"
    )
    learner: LearnerSettings | str | bool | Mapping[str, Any] = option(  # noqa: RUF009
        AUTO, f"what learns: {AUTO}, or one of {', '.join(LEARNERS)}, or its settings, such as DQN(...)"
    )
    gamma: float = option(0.9, "discount factor; of advisors without their own", searched=True, most=1)
    alpha: float = option(
        0.1, "learning rate of tables, above 0 and at most 1 (networks have learning_rate)", searched=True, most=1,
        above_0=True,
    )  # fmt: skip
    alpha_half: int = option(
        0, "transitions until the learning rate is halved, after twice as many a third, ...; 0: constant",
        searched=True, most=MOST_STEPS,
    )  # fmt: skip
    epsilon: float = option(0.05, "probability of a random action while learning", searched=True, most=1)
    epsilon_half: int = option(
        0, "transitions until epsilon is halved, after twice as many a third, ...; 0: constant",
        searched=True, most=MOST_STEPS,
    )  # fmt: skip
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
            object.__setattr__(self, name, in_words(values))
        object.__setattr__(self, "learner", learner_settings(self.learner))
        check_options(self)
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


def described(kind: Any, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Settings or a schedule; what is not given is as the task's own `defaults` say, or as everybody's.

    >>> described(Settings, {"gamma": 0.5}, {"alpha": 1.0, "steps": 100}).alpha
    1.0
    """
    known = [item.name for item in dataclasses.fields(kind)]
    for name in given:
        if name not in known:
            raise unknown(kind.__name__.lower().removesuffix("s"), name, known)
    made = {**{name: value for name, value in defaults.items() if name in known}, **given}
    if "learner" in made:
        made["learner"] = with_defaults(made["learner"], defaults)
    return kind(**made)


@dataclass(frozen=True)
class Schedule:
    """How long to train, and when to evaluate.

    >>> schedule = Schedule(steps=50, eval_every=20)
    >>> [schedule.due(number) for number in range(1, schedule.evaluations + 1)]
    [20, 40, 50]
    """

    steps: int = option(1_000_000, "transitions to learn from", least=1, most=MOST_STEPS)
    eval_every: int = option(
        20_000, "transitions between evaluations; there is always one at the end", least=1, most=MOST_STEPS
    )
    eval_episodes: int = option(80, "greedy episodes in an evaluation", most=MOST_EPISODES)

    def __post_init__(self) -> None:
        check_options(self)
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


def as_integer(value: Any) -> Any:
    """1e5 as the integer that it is; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def whole_number(name: str, value: Any, least: int = 0, most: int = LARGEST_WHOLE) -> int:
    """A whole number that is neither too small nor too large, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise BadInput(f"{name} is {short(repr(value))}: give an integer of at least {least}")
    if int(value) > most:
        raise BadInput(f"{name} is {short(repr(value))}: give an integer of at most {most}")
    return int(value)
