"""Who plans how, and who is aggregated how: a run's settings spread over the advisors of its task.

A setting is one value for everybody (`empathic`), or names of advisors or groups with values of their own
(`fruits=egocentric,ghosts=empathic`; a plain value among them is for all the others).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregations import AGGREGATIONS, Aggregation, aggregation_named, not_learned
from multiadvisor.core.learned import LearnedAggregation
from multiadvisor.core.plannings import PLANNINGS, TARGET, Planning, planning_named
from multiadvisor.errors import BadInput, short

if TYPE_CHECKING:
    from multiadvisor.task import Advisor, Task

COMMAS = re.compile(r",(?![^(]*\))")  # not those inside a name such as "fruit (0, 10)"


def by_name(what: str, text: Any) -> dict[str, str]:
    """The values by name; the one for everybody else is under the empty name.

    >>> by_name("planning", "empathic"), by_name("planning", "fruits=egocentric,agnostic")
    ({'': 'empathic'}, {'fruits': 'egocentric', '': 'agnostic'})
    """
    if isinstance(text, Mapping):
        return {str(name): str(value) for name, value in text.items()}
    if not isinstance(text, str):
        raise BadInput(f"{what} is {short(repr(text))}: give its name, or names by advisor or group")
    values: dict[str, str] = {}
    for part in COMMAS.split(text):
        name, equals, value = (piece.strip() for piece in part.rpartition("="))
        if not value or (equals and not name):
            raise BadInput(
                f"{what} is {short(text)!r}: write a value, or name=value for each advisor or group, with commas"
            )
        if name in values:
            raise BadInput(f"{what} {short(text)!r} names {repr(short(name)) if name else 'all'} twice: keep one")
        values[name] = value
    return values


def unregistered(settings: Mapping[str, Any]) -> str | None:
    """The first planning or aggregation of these settings, read from a file, that is not registered here.

    >>> unregistered({"planning": "fruits=mine,empathic"}), unregistered({"planning": "empathic"})
    ("the planning 'mine'", None)
    """
    for what, known in (("planning", PLANNINGS), ("aggregation", AGGREGATIONS)):
        if isinstance(settings.get(what), str):
            for value in by_name(what, settings[what]).values():
                if (name := value.partition(":")[0]) not in known:
                    return f"the {what} {short(name)!r}"
    return None


def learned_in(aggregation: str) -> tuple[LearnedAggregation, ...]:
    """What the aggregator itself learns for these aggregations, beside what the advisors say.

    >>> [learned.name for text in ("fruits=gpi,sum", "fruits=max") for learned in learned_in(text)]
    ['gpi']
    """
    named = dict.fromkeys(by_name("aggregation", aggregation).values())
    found = [aggregation_named(name)[0].learned for name in named]
    return tuple(learned for learned in found if learned is not None)


def in_words(values: Mapping[str, str]) -> str:
    """`by_name`, turned round: the plain value last."""
    named = [f"{name}={value}" for name, value in values.items() if name]
    return ",".join([*named, *([values[""]] if "" in values else [])])


def spread(what: str, values: Mapping[str, str], task: Task | Team) -> list[str | None]:
    """A value for each advisor [n]: its own, its group's, the one for all, or None."""
    known = set(task.names) | {advisor.group for advisor in task.advisors if advisor.group}
    for name in values:
        if name and name not in known:
            groups = sorted(known - set(task.names))
            way_out = f"its groups are {short(', '.join(groups), 200)}" if groups else "name its advisors"
            raise BadInput(
                f"{what} names {short(name)!r}, and task {task.name!r} has no such advisor or group: {way_out}"
            )
    return [values.get(f.name, values.get(f.group) if f.group else None) or values.get("") for f in task.advisors]


class Team(NamedTuple):
    """What `spread` has to know of a task, for those who have no task: a name, and advisors with names and groups."""

    name: str
    advisors: tuple[Advisor, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The advisors' names."""
        return tuple(advisor.name for advisor in self.advisors)


class Aggregator(NamedTuple):
    """How the aggregator combines the advisors: a part of the advisors for each aggregation, which are then added."""

    parts: tuple[tuple[Aggregation, float], ...]
    """[G] aggregations with their parameters."""
    of: np.ndarray
    """[n] int64: which part an advisor belongs to."""
    learned: LearnedAggregation | None = None
    """What the aggregator itself learns, beside what they say."""

    @property
    def plain(self) -> bool:
        """Whether it is the paper's weighted sum."""
        return len(self.parts) == 1 and self.parts[0][0].name == "sum"

    @property
    def wishing(self) -> np.ndarray:
        """[n] bool: who belongs to an aggregation that is meant for wishes."""
        found: np.ndarray = np.array([aggregation.wishes for aggregation, _ in self.parts])[self.of]
        return found

    def prefer(self, advice: Any, weights: Any, advisors: np.ndarray | None = None) -> Any:
        """Preferences [..., A] for advice [..., m, A] and weights [..., m] of these advisors [m], or of all [n]."""
        if len(self.parts) == 1:
            aggregation, parameter = self.parts[0]
            return aggregation(advice, weights, parameter)
        of = self.of if advisors is None else self.of[advisors]
        total = advice[..., :0, :].sum(axis=-2)  # [..., A] zeros
        for part, (aggregation, parameter) in enumerate(self.parts):
            members = np.flatnonzero(of == part)
            if len(members):
                total = total + aggregation(advice[..., members, :], weights[..., members], parameter)
        return total


def doubtful(task: Task | Team, aggregator: Aggregator, lowest: np.ndarray) -> str | None:
    """Why an aggregation is hardly meant so: it is for wishes, and these weighted rewards [n] are below 0.

    Where all are afraid of an action, a maximum follows who is afraid least; where one wishes, it hears no fear at all.
    """
    afraid = np.flatnonzero(aggregator.wishing & (lowest < 0))
    if not len(afraid):
        return None
    advisor, aggregation = task.advisors[afraid[0]], aggregator.parts[aggregator.of[afraid[0]]][0].name
    return (
        f"aggregation {aggregation!r} is meant for rewards of at least 0, and advisor {advisor.name!r} gets less "
        f"(times "
        f"its weight): fears are ignored next to wishes, name {aggregation!r} for a group of wishes only, as in "
        f"--aggregation GROUP={aggregation}"
    )


def plannings_of(task: Task | Team, planning: str) -> tuple[Planning, ...]:
    """How each advisor plans [n]: as the settings name it, or as its advisor says, or as the settings say for all."""
    values = by_name("planning", planning)
    named = spread("planning", {name: value for name, value in values.items() if name}, task)
    found = []
    for name, advisor in zip(named, task.advisors, strict=True):
        own = name or advisor.planning or (TARGET if advisor.target is not None else values.get(""))
        if own is None:
            raise BadInput(
                f"planning {short(planning)!r} leaves advisor {advisor.name!r} out: name one for all the others"
            )
        if TARGET in planning_named(own).needs and advisor.target is None:
            raise BadInput(f"planning {own!r} values a given policy: give advisor {advisor.name!r} one with target=...")
        found.append(planning_named(own))
    return tuple(found)


def aggregator_of(task: Task | Team, aggregation: str, beside: str = "") -> Aggregator:
    """How the aggregator combines the advisors: as the settings name it, as its advisor has it, as they say for all.

    What the aggregator itself has to learn is refused where it cannot be learned `beside` what the caller learns.
    """
    values = by_name("aggregation", aggregation)
    named = spread("aggregation", {name: value for name, value in values.items() if name}, task)
    names = [
        own or advisor.aggregation or values.get("", "sum") for own, advisor in zip(named, task.advisors, strict=True)
    ]
    kinds = [aggregation_named(name)[0] for name in dict.fromkeys(names)]
    learned = [kind.learned for kind in kinds if kind.learned is not None]
    for kind in kinds:
        if kind.learned is not None and beside not in kind.learned.learned_by:
            raise not_learned(kind)
    if len(learned) > 1:
        raise BadInput(
            f"the aggregations {learned[0].name!r} and {learned[1].name!r} are both learned: keep one of them"
        )
    if learned and learned[0].of_all:  # a sum of all: less its correction, or of the one that is in control
        if list(values) != [""] or len(kinds) > 1:
            raise BadInput(f"the aggregation {learned[0].name!r} is of all advisors: give it alone, for everybody")
        names = ["sum"] * len(names)
    # a group of its own is a part by itself: two groups with max are two maxima; whoever is summed is one sum
    keys = [
        (name, advisor.group if name != "sum" and (advisor.group in values or advisor.name in values) else "")
        for name, advisor in zip(names, task.advisors, strict=True)
    ]
    parts = list(dict.fromkeys(keys))
    made = tuple(aggregation_named(name) for name, _ in parts)
    return Aggregator(made, np.array([parts.index(key) for key in keys], np.int64), learned[0] if learned else None)
