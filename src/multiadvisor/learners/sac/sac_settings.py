"""The settings of the learner of continuous actions: `SAC`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from multiadvisor.errors import BadInput, short
from multiadvisor.learners.kinds import named
from multiadvisor.learners.network_settings import MOST_BUFFERED, NetworkSettings
from multiadvisor.settings import option

if TYPE_CHECKING:
    from multiadvisor.settings import Settings
    from multiadvisor.task import Task


@dataclass(frozen=True)
class SAC(NetworkSettings):
    """How an actor and its critics learn continuous actions: soft actor-critic.

    >>> import multiadvisor as mad
    >>> mad.SAC(hidden=(64, 64)).critics
    'separate'
    """

    name: str = named("sac")
    entropy: ClassVar[bool] = True
    explores: ClassVar[str] = "leave more to chance (temperature)"
    hidden: tuple[int, ...] = option((256, 256), "units of the hidden layers", least=1)
    learning_rate: float = option(3e-4, "learning rate of Adam", searched=True, most=1, above_0=True)
    batch_size: int = option(256, "transitions in a batch", least=1)
    buffer_size: int = option(1_000_000, "size of the replay buffer, in transitions", least=1, most=MOST_BUFFERED)
    learning_starts: int = option(5_000, "transitions with random actions before the first update")
    train_freq: int = option(1, "transitions per update", least=1)
    updates_at_once: int = option(1, "updates made in one compiled call, one after the other", least=1)
    critics: str = option(
        "separate", "separate: the actor follows one critic, as in plain SAC, and a second one evaluates the same "
        "policy advisor by advisor; shared: the actor follows the advisors' critic (SAC-D); one: no advisors' values",
        among=("separate", "shared", "one"),
    )  # fmt: skip
    advisors_train_freq: int = option(4, "updates per update of the advisors' critic", least=1, most=(1 << 31) - 1)
    tau: float = option(0.005, "how far the target networks follow at each update", searched=True, most=1, above_0=True)
    temperature: float = option(0.0, "weight of the entropy; 0: tuned to the target entropy", searched=True)
    target_entropy: float | None = option(
        None, "entropy that the temperature aims at; not given: -1 per dimension", least=-math.inf
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden:
            raise BadInput(f"hidden is {short(repr(self.hidden))}: give integers")

    @property
    def per_advisor(self) -> bool:
        """Not where one critic values them together."""
        return self.critics != "one"

    def stands_for(self, task: Task) -> tuple[tuple[int, ...], ...] | None:
        """All of them, where one critic values them together."""
        return None if self.per_advisor or task.n == 1 else (tuple(range(task.n)),)

    def check(self, settings: Settings) -> None:
        """Every advisor expects what the actor will do, and the actor follows the sum."""
        if settings.planning != "empathic":
            raise BadInput(
                f"planning is {settings.planning!r}, and with continuous actions every advisor expects what the actor "
                "will do: leave it empathic"
            )
        if settings.aggregation != "sum":
            raise BadInput(f"aggregation is {settings.aggregation!r}, and actors follow the weighted sum: leave it out")
        if settings.noise:
            raise BadInput("noise on rewards is for tables and networks with a finite choice of actions: leave it out")

    def check_task(self, task: Task, gamma: float) -> None:
        """Refuse what has no meaning here, in one line."""
        if any(advisor.planning not in (None, "empathic") for advisor in task.advisors):
            raise BadInput("advisors of continuous actions expect what the actor will do: leave their plannings out")
        for advisor in task.advisors:
            if advisor.state is not None:
                raise BadInput(f"{advisor.name!r} sees a part of the state, and critics see all of it: leave it out")
            if advisor.advises is not None or advisor.alpha is not None or advisor.table is not None:
                raise BadInput(f"{advisor.name!r} has advises, alpha or a table, which are for tables: leave them out")
            odd = advisor.ended is not None or advisor.gamma not in (None, gamma)
            if self.critics != "shared" and odd and task.n > 1:
                raise BadInput(
                    f"advisor {advisor.name!r} has its own gamma or end, which no single critic can represent: choose "
                    "critics='shared' (--critics shared)"
                )
