"""What learners with networks have in common: layers, batches, a replay buffer, a learning rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from multiadvisor.core.schedules import SCHEDULES, check_ends, constant
from multiadvisor.errors import BadInput, short
from multiadvisor.learners.kinds import LearnerSettings
from multiadvisor.settings import option

_MOST_ENVS = 100_000
MOST_BUFFERED = 100_000_000
_MOST_AT_ONCE = 1 << 17  # transitions in one compiled call, which holds them all


def share(step: int, steps: int) -> float:
    """How much of so many steps is over, 0 to 1."""
    return min(step / steps, 1.0) if steps else 1.0


@dataclass(frozen=True)
class NetworkSettings(LearnerSettings):
    """What learners with networks have in common."""

    network: ClassVar[bool] = True
    hidden: tuple[int, ...] = option((64, 64), "units of the hidden layers", least=1)
    learning_rate: float = option(5e-4, "learning rate of Adam", searched=True, most=1, above_0=True)
    lr_schedule: str = option(
        "constant", f"how the learning rate changes to lr_end: {', '.join(SCHEDULES)}", among=SCHEDULES
    )
    lr_end: float = option(0.0, "the final learning rate, unless it is constant", most=1)
    lr_steps: int = option(100_000, "transitions until it gets there")
    batch_size: int = option(32, "transitions in a batch", least=1)
    buffer_size: int = option(50_000, "size of the replay buffer, in transitions", least=1, most=MOST_BUFFERED)
    learning_starts: int = option(1_000, "transitions before the first update")
    train_freq: int = option(4, "transitions per update", least=1)
    updates_at_once: int = option(8, "updates made in one compiled call, one after the other", least=1)
    n_envs: int = option(1, "episodes played in parallel; must be 1 if you pass an instance", least=1, most=_MOST_ENVS)

    def __post_init__(self) -> None:
        if isinstance(self.hidden, str) or hasattr(self.hidden, "step"):
            raise BadInput(
                f"hidden is {short(repr(self.hidden))}: give integers; an agent is MultiAdvisor('CartPole-v1', "
                f"learner={self.name!r})"
            )
        super().__post_init__()
        check_ends("lr_schedule", self.lr_schedule, lr_end=self.lr_end)
        if self.batch_size * self.updates_at_once > _MOST_AT_ONCE:
            raise BadInput(
                f"{self.updates_at_once} updates at once with batches of {self.batch_size} read too much in one call: "
                f"let their product be at most {_MOST_AT_ONCE}"
            )
        if self.buffer_size < self.batch_size:
            raise BadInput(f"a buffer of {self.buffer_size} holds no batch of {self.batch_size}: make it larger")

    @property
    def ahead(self) -> int:
        """Episodes that are played in parallel go on together."""
        return self.n_envs

    def rates(self, first: int) -> list[float]:
        """The learning rates of the updates from number `first` on that are made in one call.

        >>> falls = {"learning_rate": 0.5, "lr_schedule": "linear", "lr_steps": 8, "train_freq": 2}
        >>> NetworkSettings(**falls, learning_starts=0, updates_at_once=4).rates(0)
        [0.5, 0.375, 0.25, 0.125]
        """
        count, way = self.updates_at_once, SCHEDULES[self.lr_schedule]
        if way is constant:
            return [self.learning_rate] * count
        steps = [self.learning_starts + number * self.train_freq for number in range(first, first + count)]
        return [way(self.learning_rate, self.lr_end, share(step, self.lr_steps)) for step in steps]
