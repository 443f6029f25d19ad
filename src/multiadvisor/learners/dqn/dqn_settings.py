"""The settings of the learner with a network: `DQN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from multiadvisor.core.schedules import SCHEDULES, check_ends
from multiadvisor.errors import BadInput
from multiadvisor.learners.kinds import named
from multiadvisor.learners.network_settings import NetworkSettings, share
from multiadvisor.settings import option

if TYPE_CHECKING:
    from multiadvisor.settings import Settings
    from multiadvisor.task import Task


@dataclass(frozen=True)
class DQN(NetworkSettings):
    """How a network learns the advisors' values, for tasks too large for tables.

    >>> import multiadvisor as mad
    >>> mad.DQN(hidden=(128, 128)).batch_size
    32
    """

    name: str = named("dqn")
    explores: ClassVar[str] = "explore longer (epsilon_steps)"
    split: str = option(
        "advisors",
        "an output for each of the task's advisors, groups, or none: one for all, plain DQN",
        among=("advisors", "groups", "none"),
    )
    torso: str = option(
        "shared", "who shares a network: shared (all with the same view), group, or advisor (none)",
        among=("shared", "group", "advisor"),
    )  # fmt: skip
    convolutions: tuple[int, ...] = option(
        (), "filters of the 3 x 3 convolutions, for images; none: a flat input", least=1
    )
    strides: tuple[int, ...] = option((), "stride of each convolution; none: 1", least=1)
    target_update_interval: int = option(
        1_000, "updates after which the target network is copied", searched=True, least=1, most=(1 << 31) - 1
    )
    double: bool = option(False, "let the learning network choose and the target network evaluate the next action")
    loss: str = option("huber", "huber or squared", among=("huber", "squared"))
    n_step: int = option(1, "rewards summed before bootstrapping", least=1)
    clip_norm: float = option(10.0, "largest norm of a gradient; 0: no limit")
    clip_rewards: bool = option(False, "clip every reward to [-1, 1] while learning")
    random_start: bool = option(False, "act at random until the first update, regardless of epsilon")
    epsilon_schedule: str = option(
        "linear", f"how epsilon_start falls to epsilon: {', '.join(SCHEDULES)}", among=SCHEDULES
    )
    epsilon_start: float = option(1.0, "probability of a random action at the start; it falls to epsilon", most=1)
    epsilon_steps: int = option(10_000, "transitions until it has fallen")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strides and len(self.strides) != len(self.convolutions):
            raise BadInput(f"{len(self.strides)} strides for {len(self.convolutions)} convolutions: give one for each")
        check_ends("epsilon_schedule", self.epsilon_schedule, epsilon_start=self.epsilon_start)

    @property
    def per_advisor(self) -> bool:
        """Not where groups, or all together, have one output."""
        return self.split == "advisors"

    def stands_for(self, task: Task) -> tuple[tuple[int, ...], ...] | None:
        """Groups, or all of them."""
        from multiadvisor.learners.dqn.split import split_task

        return None if self.per_advisor else split_task(task, 0.0, self.split).members

    def own_draws(self, task: Task) -> bool:
        """Episodes of a compiled world are played side by side."""
        return task.world is not None

    def as_learned(self, rewards: np.ndarray) -> np.ndarray:
        """Clipped, where it is asked for."""
        return np.clip(rewards, -1.0, 1.0) if self.clip_rewards else rewards

    def check(self, settings: Settings) -> None:
        """Exploration has a schedule of its own here."""
        if settings.epsilon_half:
            raise BadInput("epsilon_half is for tables, and a network has epsilon_steps: choose that instead")
        check_ends("epsilon_schedule", self.epsilon_schedule, epsilon=settings.epsilon)

    def exploring(self, epsilon: float, step: int) -> float:
        """The probability of a random action in a step; it falls to `epsilon`.

        >>> own = DQN(epsilon_steps=100)
        >>> own.exploring(0.2, 0), round(own.exploring(0.2, 50), 9), own.exploring(0.2, 100)
        (1.0, 0.6, 0.2)
        """
        way = 1.0 - share(step, self.epsilon_steps)
        return SCHEDULES[self.epsilon_schedule](epsilon, self.epsilon_start, way)
