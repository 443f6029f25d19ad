"""One frozen dataclass is the library's configuration, the command's flags and the record of the run."""

from __future__ import annotations

import dataclasses
import math
import numbers
import sys
from dataclasses import dataclass
from typing import Any

from multiadvisor.core.aggregations import Aggregation, aggregation_named
from multiadvisor.core.aggregator import by_name, in_words
from multiadvisor.core.plannings import Planning, planning_named
from multiadvisor.core.schedules import SCHEDULES, check_ends, constant, schedule_named
from multiadvisor.core.validation import MOST_STEPS
from multiadvisor.errors import BadInput, short, unknown

LEARNERS = ("advisors", "linear")


def option(default: Any, text: str) -> Any:
    """A field whose text is also the flag's help."""
    return dataclasses.field(default=default, metadata={"help": text})


SPLITS = ("advisors", "groups", "none")
TORSOS = ("shared", "group", "advisor")
LOSSES = ("huber", "squared")
_SIDE_BY_SIDE = 100_000  # episodes
_MOST = {"buffer_size": 100_000_000, "target_update_interval": (1 << 31) - 1}
_MOST_AT_ONCE = 1 << 17  # transitions in one compiled call, which holds them all
LARGEST_WEIGHT = 1e30
"""What a network's values, which have 32 bits, may be multiplied with: no sum of such products is too large."""
MOST_EVALUATIONS = 250_000  # each of which is remembered; a checkpoint's JSON has room for them
MOST_EPISODES = 10_000_000  # in one evaluation, each of which is remembered


@dataclass(frozen=True)
class NetworkSettings:
    """What learners with networks have in common."""

    hidden: tuple[int, ...] = option((64, 64), "units of the hidden layers")
    learning_rate: float = option(5e-4, "learning rate of Adam")
    lr_schedule: str = option("constant", f"how the learning rate changes to lr_end: {', '.join(SCHEDULES)}")
    lr_end: float = option(0.0, "the final learning rate, unless it is constant")
    lr_steps: int = option(100_000, "transitions until it gets there")
    batch_size: int = option(32, "transitions in a batch")
    buffer_size: int = option(50_000, "size of the replay buffer, in transitions")
    learning_starts: int = option(1_000, "transitions before the first update")
    train_freq: int = option(4, "transitions per update")
    updates_at_once: int = option(8, "updates made in one compiled call, one after the other")
    n_envs: int = option(1, "episodes played in parallel; must be 1 if you pass an instance")

    def __post_init__(self) -> None:
        self._whole_numbers("hidden")
        for name in ("batch_size", "buffer_size", "train_freq", "updates_at_once"):
            self._whole(name, 1)
        self._whole("n_envs", 1, _SIDE_BY_SIDE)
        for name in ("learning_starts", "lr_steps"):
            self._whole(name)
        for name in ("learning_rate", "lr_end"):
            self._put(name, number_between(name, getattr(self, name), 0.0, 1.0))
        self._above_0("learning_rate")
        schedule_named("lr_schedule", self.lr_schedule)
        check_ends("lr_schedule", self.lr_schedule, lr_end=self.lr_end)
        if self.batch_size * self.updates_at_once > _MOST_AT_ONCE:
            raise BadInput(
                f"{self.updates_at_once} updates at once with batches of {self.batch_size} read too much in one call: "
                f"let their product be at most {_MOST_AT_ONCE}"
            )
        if self.buffer_size < self.batch_size:
            raise BadInput(
                f"a buffer of {self.buffer_size} transitions holds no batch of {self.batch_size}: make it larger"
            )

    def rates(self, first: int) -> list[float]:
        """The learning rates of the updates from number `first` on that are made in one call.

        >>> falls = {"learning_rate": 0.5, "lr_schedule": "linear", "lr_steps": 8}
        >>> falling = DeepSettings(**falls, learning_starts=0, updates_at_once=4)
        >>> falling.rates(0)
        [0.5, 0.25, 0.0, 0.0]
        """
        count, way = self.updates_at_once, SCHEDULES[self.lr_schedule]
        if way is constant:
            return [self.learning_rate] * count
        steps = [self.learning_starts + number * self.train_freq for number in range(first, first + count)]
        return [way(self.learning_rate, self.lr_end, _share(step, self.lr_steps)) for step in steps]

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _whole(self, name: str, least: int = 0, most: int = (1 << 63) - 1) -> None:
        self._put(name, whole_number(name, getattr(self, name), least, _MOST.get(name, most)))

    def _whole_numbers(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, tuple | list):
            raise BadInput(f"{name} is {short(repr(value))}: give integers")
        self._put(name, tuple(whole_number(name, each, 1) for each in value))

    def _above_0(self, name: str) -> None:
        if getattr(self, name) == 0:
            raise BadInput(f"{name} is 0: nothing would be learned, choose it above 0")


def _share(step: int, steps: int) -> float:
    """How much of so many steps is over, 0 to 1."""
    return min(step / steps, 1.0) if steps else 1.0


@dataclass(frozen=True)
class DeepSettings(NetworkSettings):
    """How a network learns the advisors' values, for tasks too large for tables.

    >>> DeepSettings(hidden=(128, 128)).batch_size
    32
    """

    split: str = option(
        "advisors", "an output for each of the task's advisors, groups, or none: one for all, plain DQN"
    )
    torso: str = option("shared", "who shares a network: shared (all with the same view), group, or advisor (none)")
    convolutions: tuple[int, ...] = option((), "filters of the 3 x 3 convolutions, for images; none: a flat input")
    strides: tuple[int, ...] = option((), "stride of each convolution; none: 1")
    target_update_interval: int = option(1_000, "updates after which the target network is copied")
    double: bool = option(False, "let the learning network choose and the target network evaluate the next action")
    loss: str = option("huber", "huber or squared")
    n_step: int = option(1, "rewards summed before bootstrapping")
    clip_norm: float = option(10.0, "largest norm of a gradient; 0: no limit")
    clip_rewards: bool = option(False, "clip every reward to [-1, 1] while learning")
    random_start: bool = option(False, "act at random until the first update, regardless of epsilon")
    epsilon_schedule: str = option("linear", f"how epsilon_start falls to epsilon: {', '.join(SCHEDULES)}")
    epsilon_start: float = option(1.0, "probability of a random action at the start; it falls to epsilon")
    epsilon_steps: int = option(10_000, "transitions until it has fallen")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("split", SPLITS), ("torso", TORSOS), ("loss", LOSSES)):
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        for name in ("convolutions", "strides"):
            self._whole_numbers(name)
        if self.strides and len(self.strides) != len(self.convolutions):
            raise BadInput(f"{len(self.strides)} strides for {len(self.convolutions)} convolutions: give one for each")
        for name in ("target_update_interval", "n_step"):
            self._whole(name, 1)
        self._whole("epsilon_steps")
        for name, high in (("clip_norm", math.inf), ("epsilon_start", 1.0)):
            self._put(name, number_between(name, getattr(self, name), 0.0, high))
        for name in ("double", "clip_rewards", "random_start"):
            if not isinstance(getattr(self, name), bool):
                raise BadInput(f"{name} is {short(repr(getattr(self, name)))}: give true or false")
        schedule_named("epsilon_schedule", self.epsilon_schedule)
        check_ends("epsilon_schedule", self.epsilon_schedule, epsilon_start=self.epsilon_start)

    def exploring(self, epsilon: float, step: int) -> float:
        """The probability of a random action in a step; it falls to `epsilon`.

        >>> deep = DeepSettings(epsilon_steps=100)
        >>> deep.exploring(0.2, 0), round(deep.exploring(0.2, 50), 9), deep.exploring(0.2, 100)
        (1.0, 0.6, 0.2)
        """
        way = 1.0 - _share(step, self.epsilon_steps)
        return SCHEDULES[self.epsilon_schedule](epsilon, self.epsilon_start, way)


CRITICS = ("separate", "shared", "one")


@dataclass(frozen=True)
class ContinuousSettings(NetworkSettings):
    """How an actor and its critics learn continuous actions: soft actor-critic.

    >>> ContinuousSettings(hidden=(64, 64)).critics
    'separate'
    """

    hidden: tuple[int, ...] = option((256, 256), "units of the hidden layers")
    learning_rate: float = option(3e-4, "learning rate of Adam")
    batch_size: int = option(256, "transitions in a batch")
    buffer_size: int = option(1_000_000, "size of the replay buffer, in transitions")
    learning_starts: int = option(5_000, "transitions with random actions before the first update")
    train_freq: int = option(1, "transitions per update")
    updates_at_once: int = option(1, "updates made in one compiled call, one after the other")
    critics: str = option(
        "separate", "beside: the actor follows one critic, as in plain SAC, and a second one evaluates the same "
        "policy advisor by advisor; shared: the actor follows the advisors' critic (SAC-D); one: no advisors' values"
    )  # fmt: skip
    advisors_train_freq: int = option(4, "updates per update of the advisors' critic")
    tau: float = option(0.005, "how far the target networks follow at each update")
    temperature: float = option(0.0, "weight of the entropy; 0: tuned to the target entropy")
    target_entropy: float | None = option(None, "entropy that the temperature aims at; not given: -1 per dimension")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden:
            raise BadInput(f"hidden is {short(repr(self.hidden))}: give integers")
        if self.critics not in CRITICS:
            raise unknown("critics", self.critics, CRITICS)
        self._whole("advisors_train_freq", 1, (1 << 31) - 1)
        for name, high in (("tau", 1.0), ("temperature", math.inf)):
            self._put(name, number_between(name, getattr(self, name), 0.0, high))
        self._above_0("tau")
        if self.target_entropy is not None:
            self._put("target_entropy", finite_number("target_entropy", self.target_entropy))


NETWORKS: dict[str, Any] = {"deep": DeepSettings, "continuous": ContinuousSettings}
"""The settings of networks, each a field of `Settings`: no flags of their own there, and a table in a grid."""
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
    learner: str = option("advisors", "advisors, or linear: one Q-function, linear in the same features (a baseline)")
    gamma: float = option(0.9, "discount factor, 0 to 1, of every advisor without its own")
    alpha: float = option(0.1, "learning rate of tables, above 0 and at most 1 (networks have learning_rate)")
    alpha_half: int = option(
        0, "transitions until the learning rate is halved, after twice as many a third, ...; 0: constant"
    )
    epsilon: float = option(0.05, "probability of a random action while learning")
    epsilon_half: int = option(0, "transitions until epsilon is halved, after twice as many a third, ...; 0: constant")
    noise: float = option(0.0, "standard deviation of the Gaussian noise on every advisor's reward while learning")
    seed: int = option(0, "everything random in a run follows from it")
    deep: DeepSettings | None = option(None, "a network instead of tables")  # noqa: RUF009
    continuous: ContinuousSettings | None = option(None, "an actor and critics, for continuous actions")  # noqa: RUF009

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
        if self.learner not in LEARNERS:
            raise unknown("learner", self.learner, LEARNERS)
        if self.learner == "linear" and self.aggregation != "sum":
            raise BadInput(f"aggregation is {short(self.aggregation)!r}, and linear Q-learning is a sum: leave it out")
        if self.learner == "linear" and self.planning == "estimate":
            raise BadInput(
                "planning is 'estimate', which is for advisors, and linear Q-learning has none: leave it out"
            )
        for name, high in (("gamma", 1.0), ("alpha", 1.0), ("epsilon", 1.0), ("noise", math.inf)):
            self._put(name, number_between(name, getattr(self, name), 0.0, high))
        if self.alpha == 0:
            raise BadInput("alpha is 0: nothing would be learned, choose it above 0")
        for name in ("alpha_half", "epsilon_half"):
            self._put(name, whole_number(name, getattr(self, name), most=MOST_STEPS))
        self._put("seed", whole_number("seed", self.seed))
        for part, kind in NETWORKS.items():
            given = getattr(self, part)
            if isinstance(given, dict):  # as it comes from a file
                names = [item.name for item in dataclasses.fields(kind)]
                for name in given:
                    if name not in names:
                        raise unknown("setting of a network", name, names)
                self._put(part, kind(**given))
            elif given is not None and not isinstance(given, kind):
                raise BadInput(f"{part} is {short(repr(given))}: give {kind.__name__}(...), or leave it out")
        if self.deep is not None and self.continuous is not None:
            raise BadInput("deep is for a finite choice of actions and continuous for real numbers: give one of them")
        if self.deep is not None and self.learner != "advisors":
            raise BadInput(f"learner is {self.learner!r} and deep is given as well: choose one of them")
        if self.deep is not None and self.epsilon_half:
            raise BadInput("epsilon_half is for tables, and a network has epsilon_steps: choose that instead")
        if self.deep is not None:
            check_ends("epsilon_schedule", self.deep.epsilon_schedule, epsilon=self.epsilon)

    @property
    def caveat(self) -> str:
        """What must be said beside an explanation by these values; nothing of tables."""
        return CAVEAT if any(getattr(self, name) is not None for name in NETWORKS) else ""

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
