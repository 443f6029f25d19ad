"""Aggregations for which the aggregator itself learns, beside the advisors' tables.

One is a class with what it learns by, in a file of its own (`learners/tabular/rules/`, or a user's), under a name
(`register_aggregation`). Everybody else asks what stands here, and never for a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from multiadvisor.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    from multiadvisor.core.aggregator import Aggregator
    from multiadvisor.envs.adapter import Adapter
    from multiadvisor.task import Advisor, Task

TABLES, NETWORK = "tables", "a network"  # beside which it can be learned


class LearnedAggregation:
    """What an aggregator learns, and what others have to know of it; a subclass says what is different about its own.

    Unless it says otherwise, it is of all advisors at once, and what they say is added up.
    """

    name: str = ""
    """Under which it is registered, which `register_aggregation` fills in."""
    of_all: ClassVar[bool] = True
    """Whether it is of all advisors at once, whose advice is then added up; else a group may have it by itself."""
    steady: ClassVar[bool] = False
    """Whether the same advisors have to advise throughout an episode."""
    selects: ClassVar[bool] = False
    """Whether one advisor is in control, and no other is asked."""
    holds_weights: ClassVar[bool] = True
    """Whether the weights are in what it learned, so that others make it out of date."""
    acts_by: ClassVar[str] = ""
    """What it goes by that is not advice, in words: shares of what was said are not defined then."""
    beyond: ClassVar[str] = ""
    """What `at` has to know of a state, in words; a record of what advisors said lacks it."""
    needs: ClassVar[tuple[str, ...]] = ()
    """What of the next state it looks at, as a planning does (`core.plannings.NEEDS`)."""
    added: ClassVar[str] = ""
    """The name of the advisor that it adds to the task's, the last one."""
    network: ClassVar[str] = ""
    """module:name of how a network learns it (`learners/dqn/own_output.py`); empty where none does."""
    rule: ClassVar[Mapping[str, Any]] = {}
    """The compiled functions by which it is learned and found, of those that `learners.tabular.records.Rule` names."""

    @property
    def learned_by(self) -> tuple[str, ...]:
        """Beside what it can be learned."""
        return (TABLES, NETWORK) if self.network else (TABLES,)

    @property
    def weighs(self) -> bool:
        """Whether what advisors weigh is learned."""
        return type(self).weigh is not LearnedAggregation.weigh

    def check(self, task: Task) -> None:
        """Refuse a task that it is not for."""
        silent = any(advisor.advises is not None for advisor in task.advisors)
        if self.steady and (silent or (task.world and (task.world.advises or task.world.joins))):
            raise BadInput(
                f"some advisors of task {task.name!r} fall silent or join, and the {self.name} is of a sum of the same "
                "advisors throughout: let everybody advise, or choose another aggregation"
            )

    def extend(self, task: Task) -> Task:
        """The task as its aggregator sees it: with the advisor that is `added`, as the last."""
        return task

    def extra(self, task: Task, aggregator: Aggregator, rows: int, adapter: Adapter | None = None) -> Any:
        """A record of what it learns or needs beside tables of so many rows (`Values.extra`): of its fields, `table`
        [rows, ...] is kept by checkpoints and grows with the tables."""
        return ()

    def check_size(self, task: Task, size: int) -> None:
        """Refuse to keep a table of so many values."""

    def weigh(self, extra: Any, advisors: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """What each of the m active advisors weighs in one state [m]; these weights [m] are 0 where it is silent."""
        return weights

    def at(
        self, aggregator: Aggregator, extra: Any, team: tuple[Advisor, ...], offset: np.ndarray, advisors: np.ndarray,
        rows: np.ndarray,
    ) -> Aggregator:  # fmt: skip
        """How these advisors [m] of the team [n] are combined in one state, in which they look at these rows [m];
        `offset` [n] tells the rows of advisors apart that are in one local state."""
        return aggregator._replace(of=aggregator.of[advisors])
