"""Goals: what a bank of general value functions has to know of an environment; and the settings of its learner."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from multiadvisor.errors import BadInput, short
from multiadvisor.learners.kinds import LearnerSettings, named
from multiadvisor.settings import LARGEST_WEIGHT, number_between, whole_number

if TYPE_CHECKING:
    from multiadvisor.task import Task


class Aims(NamedTuple):
    """Where the advisors of a bank look in one state, and how loudly they say so."""

    place: np.ndarray  # [n] int64 the goal of each, FRONTIER, REFUGE, or -1: it is silent
    factor: np.ndarray  # [n] what its weight is multiplied by


FRONTIER = -2
"""In the place of a goal: whatever was never tried."""
REFUGE = -3
"""In the place of a goal: wherever nobody can get at us, by the `Threat` of this moment."""


class KnownModel(NamedTuple):
    """What a bank knows where it is asked for aims."""

    met: np.ndarray
    """[n] bool: whether an advisor was ever paid in this room."""
    steps: int
    """Steps that were learned from in this room, or a very large number where nothing is to be explored."""
    worth: Callable[[Any, Any], np.ndarray]
    """From local states [i] and places [k] to what reaching a place is worth at best [i, k]: 1 one step away, gamma of
    the egocentric advisors times that for every step more; 0 where nobody has been."""
    distances: Callable[[Any], np.ndarray]
    """From local states [i] to the fewest steps to each place [i, places] of somebody who goes the ways that were
    observed here and never turns back, by the `heading` of the local states; inf: nobody knows a way."""


class Threat(NamedTuple):
    """Which places others may close, and when; it is made for one observation and lasts as long."""

    closed: np.ndarray  # [places] the step from now on which a place is lost at the earliest, inf: never
    haven: np.ndarray  # [places] bool: whoever gets there in time is safe from then on
    doubt: float  # steps before it is lost, in which a place is ever less sure


@dataclass(frozen=True)
class Goals:
    """A bank of general value functions for an environment: one for each place, which is paid 1 there and ends.

    They share one local state and all learn from every transition. An advisor points at one of the places, another one
    from step to step where what it wants moves, and says what its general value function does.
    """

    states: int
    """The number of local states of a room."""
    place: np.ndarray
    """[states] int64: the goal that is reached in a local state, -1: none."""
    local: Callable[[Any], int]
    """From the observation to the local state."""
    aim: Callable[[Any, KnownModel], Aims]
    """From the observation, and what is known already, to where each advisor looks."""
    paid: Callable[[Any, Any, float], np.ndarray]
    """From an observation, the next one and the reward to what each advisor was paid [n], in units of its goal."""
    rooms: int = 1
    """Parts of the world with tables of their own."""
    room: Callable[[Any], int] = lambda observation: 0
    """From the observation to the room."""
    cut: Callable[[Any, Any], bool] = lambda observation, following: False
    """Whether the way from an observation to the next one is none: somewhere else a new life begins."""
    sweeps: int = 10
    """How often all that was observed is replayed after every episode."""
    wary: float = math.inf
    """Nothing is tried at random where an advisor with a negative weight expects more than this, or one that points at
    a refuge expects to lose more."""
    mark: Callable[[np.ndarray, int, float], None] | None = None
    """Draws a place into the environment's own picture, with a strength from -1, a fear, to 1, a wish."""
    label: Callable[[Any], str] | None = None
    """What people call the state with an observation; None: its numbers."""
    restless: float = 0.0
    """The probability of a random action also without learning: it frees whoever is stuck between two wishes."""
    heading: np.ndarray | None = None
    """[states] int64 the direction a local state looks in, out of an even number that are counted around; None: there
    are none, and `KnownModel.distances` may turn back."""
    threat: Callable[[Any, KnownModel], Threat] | None = None
    """From the observation, and what is known already, to what threatens; only needed by who points at a `REFUGE`."""
    ahead: int = 24
    """Steps that are looked ahead for a refuge."""

    def __post_init__(self) -> None:
        for name, least in (("states", 1), ("rooms", 1), ("sweeps", 0), ("ahead", 1)):
            whole_number(f"Goals({name}=...)", getattr(self, name), least)
        number_between("Goals(restless=...)", self.restless, 0, 1)
        for name in ("place", "heading"):
            given = getattr(self, name)
            fits = isinstance(given, np.ndarray) and given.shape == (self.states,) and given.dtype.kind in "iu"
            if not fits and not (name == "heading" and given is None):
                raise BadInput(f"Goals({name}=...) has to be an array of {self.states} integers, one for each state")
        if self.place.min() < -1 or self.place.max() < 0:
            raise BadInput("Goals(place=...) has a place below -1, or none at all: count from 0, -1 for none")

    # ---- what its functions answer, checked --------------------------------------------------------------------------
    def at(self, observation: Any) -> tuple[int, int]:
        """The room and the local state of an observation."""
        room = whole_number("Goals.room", self.room(observation), 0, self.rooms - 1)
        return room, whole_number("Goals.local", self.local(observation), 0, self.states - 1)

    def aims(self, observation: Any, look: KnownModel) -> Aims:
        """Where each advisor looks."""
        aims, n = self.aim(observation, look), len(look.met)
        if not isinstance(aims, Aims) or np.shape(aims.place) != (n,) or np.shape(aims.factor) != (n,):
            raise BadInput(
                f"Goals.aim gave {short(repr(aims))}: give Aims with a place and a factor for each of {n} advisors"
            )
        place, factor = np.asarray(aims.place), np.asarray(aims.factor, float)
        if place.dtype.kind not in "iu" or place.min() < REFUGE or place.max() > self.place.max():
            raise BadInput(
                f"Goals.aim gave the places {short(repr(place))}: let each be -1, FRONTIER, REFUGE, or from 0 to "
                f"{self.place.max()}"
            )
        if not (np.abs(factor) <= LARGEST_WEIGHT).all():
            raise BadInput(
                f"Goals.aim gave the factors {short(repr(factor))}: let them be finite, at most {LARGEST_WEIGHT:g}"
            )
        return Aims(place, factor)

    def earned(self, before: Any, after: Any, reward: float, n: int) -> np.ndarray:
        """What each of n advisors was paid."""
        paid = np.asarray(self.paid(before, after, reward), float)
        if paid.shape != (n,) or not np.isfinite(paid).all():
            raise BadInput(f"Goals.paid gave {short(repr(paid))}: give a finite number for each of {n} advisors")
        return paid

    def checked_threat(self, observation: Any, look: KnownModel) -> Threat:
        """What threatens; compiled code looks into it, so that nothing may be missing."""
        if self.threat is None:
            raise BadInput("an advisor points at a refuge, but nothing says what threatens: give Goals(threat=...)")
        threat, places = self.threat(observation, look), int(self.place.max()) + 1
        if not isinstance(threat, Threat) or not np.shape(threat.closed) == np.shape(threat.haven) == (places,):
            raise BadInput(f"Goals.threat gave {short(repr(threat))}: give Threat, for all {places} places")
        closed, haven = np.asarray(threat.closed, float), np.asarray(threat.haven, bool)
        if np.isnan(closed).any():
            raise BadInput("Goals.threat gave a step that is not a number: let it be inf where a place is never lost")
        return Threat(closed, haven, number_between("the doubt of Goals.threat", threat.doubt, 1e-12, math.inf))


# ---- for those who show episodes: nothing of a task without goals ----------------------------------------------------
def mark_of(task: Task) -> Callable[[np.ndarray, int, float], None] | None:
    """What draws a goal into the environment's picture; None where nobody can."""
    return None if task.goals is None else task.goals.mark


def goal_name(task: Task, state: Any) -> str | None:
    """What people call a state, where the goals say so."""
    return None if task.goals is None or task.goals.label is None else task.goals.label(state)


def goal_cells(task: Task, states: Sequence[Any]) -> np.ndarray | None:
    """[T] the local states that goals are learned in, other numbers in every room; None where there are no goals."""
    if task.goals is None:
        return None
    each = [task.goals.at(state) for state in states]
    return np.array([room * task.goals.states + local for room, local in each], np.int64)


def paid_by_goals(task: Task, step: Any, own: Callable[[], float]) -> Any:
    """A step in which each advisor is paid in units of its goal, and the score is the environment's `own` reward."""
    if task.goals is None:
        return step
    gain = own()
    reward = task.goals.earned(step.state, step.next_state, gain, task.n)
    return step._replace(reward=reward, ended=reward != 0, gain=gain)


@dataclass(frozen=True)
class GVF(LearnerSettings):
    """A bank of general value functions, for tasks with goals.

    >>> import multiadvisor as mad
    >>> mad.Settings(learner=mad.GVF()).learner.name
    'gvf'
    """

    name: str = named("gvf")
    points: ClassVar[bool] = True

    def own_draws(self, task: Task) -> bool:
        """Every episode can be played by itself."""
        return True
