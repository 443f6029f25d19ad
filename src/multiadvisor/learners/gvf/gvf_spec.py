"""Goals: what an environment says so that a bank of general value functions can learn and play in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.errors import BadInput, short
from multiadvisor.settings import LARGEST_WEIGHT, number_between, whole_number


class Aims(NamedTuple):
    """Where the advisors of a bank look in one state, and how loudly they say so."""

    place: np.ndarray  # [n] int64 the goal of each, FRONTIER, REFUGE, or -1: it is silent
    voice: np.ndarray  # [n] what its weight is multiplied by


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
    emulators: int = 1
    """Episodes that are played at the same time while learning; if there are several, each is in a process of its
    own."""

    def __post_init__(self) -> None:
        for name, least in (("states", 1), ("rooms", 1), ("sweeps", 0), ("ahead", 1), ("emulators", 1)):
            whole_number(f"Goals({name}=...)", getattr(self, name), least)
        number_between("Goals(restless=...)", self.restless, 0, 1)
        for name in ("place", "heading"):
            given = getattr(self, name)
            fits = isinstance(given, np.ndarray) and given.shape == (self.states,) and given.dtype.kind in "iu"
            if not fits and not (name == "heading" and given is None):
                raise BadInput(
                    f"Goals({name}=...) has to be an array of {self.states} integers, one for each local state"
                )
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
        if not isinstance(aims, Aims) or np.shape(aims.place) != (n,) or np.shape(aims.voice) != (n,):
            raise BadInput(
                f"Goals.aim gave {short(repr(aims))}: give Aims with a place and a voice for each of {n} advisors"
            )
        place, voice = np.asarray(aims.place), np.asarray(aims.voice, float)
        if place.dtype.kind not in "iu" or place.min() < REFUGE or place.max() > self.place.max():
            raise BadInput(
                f"Goals.aim gave the places {short(repr(place))}: let each be -1, FRONTIER, REFUGE, or from 0 to "
                f"{self.place.max()}"
            )
        if not (np.abs(voice) <= LARGEST_WEIGHT).all():
            raise BadInput(
                f"Goals.aim gave the voices {short(repr(voice))}: let them be finite, at most {LARGEST_WEIGHT:g}"
            )
        return Aims(place, voice)

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
