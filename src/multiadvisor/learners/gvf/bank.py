"""Banks of general value functions: many goals that share one local state and all learn from every transition.

The value of goal g is what an advisor expects that is paid 1 for reaching it, and whose part ends there:
q [states, A, goals]. What was observed is kept as counts of (state, action, next state). A backup sets a pair to the
mean over all that ever followed it, for all goals at once; a sweep does so for every pair that was tried, which is
replay of everything that was seen, each transition as often as it was (tabular Dyna). Goal 0 is the frontier: a pair
that was never tried counts as having reached it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from multiadvisor.core.compiling import cached, compiled
from multiadvisor.learners.gvf import safety_plan
from multiadvisor.learners.gvf.gvf_spec import Threat
from multiadvisor.learners.gvf.safety_plan import FOLLOWERS

# what is expected in the next state: the goal's best action, all alike, or what the aggregator chose there
BEST, UNIFORM, GREEDY = range(3)
FRONTIER_COLUMN = 0


class Model(NamedTuple):
    """What was observed in a room, and where its goals are."""

    follower: np.ndarray  # [S, A, FOLLOWERS] int32 next states, in the order they were met
    seen: np.ndarray  # [S, A, FOLLOWERS] int32 how often
    column: np.ndarray  # [S] int64 the goal that is reached in a state, -1: none


class Table(NamedTuple):
    """The values of all goals under one planning and one gamma."""

    kind: int  # BEST, UNIFORM or GREEDY
    gamma: float
    q: np.ndarray  # [S, A, G] float32
    v: np.ndarray  # [S, G] float32 what the planning makes of q
    policy: np.ndarray  # [S, A] the policy that is expected, where it is not the best action


@compiled
def back_up(state, action, goals, model, table):
    """q of one pair for all goals: the mean over its followers of 1 at their goal, and of gamma v elsewhere."""
    row, count = table.q[state, action], model.seen[state, action]
    total = 0
    for k in range(FOLLOWERS):
        total += count[k]
    if total == 0:
        return
    for g in range(goals):
        row[g] = np.float32(0.0)
    for k in range(FOLLOWERS):
        if count[k] == 0:
            break
        follower = model.follower[state, action, k]
        share = np.float32(count[k] / total)
        part = np.float32(table.gamma) * share
        onward = table.v[follower]
        for g in range(goals):
            row[g] += part * onward[g]
        goal = model.column[follower]
        if goal >= 0:
            row[goal] += share - part * onward[goal]


@compiled
def revalue(state, goals, table):
    """v of one state for all goals, as the planning has it."""
    own, row = table.q[state], table.v[state]
    actions = own.shape[0]
    if table.kind == BEST:
        for g in range(goals):
            row[g] = own[0, g]
        for action in range(1, actions):
            for g in range(goals):
                row[g] = max(row[g], own[action, g])
    else:
        for g in range(goals):
            row[g] = np.float32(0.0)
        for action in range(actions):
            share = np.float32(table.policy[state, action])
            for g in range(goals):
                row[g] += share * own[action, g]


@cached
def sweep(states, goals, times, model, table):
    """Back up all pairs of the first states, this many times, forwards and backwards in turn."""
    for time in range(times):
        for k in range(states):
            state = k if time % 2 == 0 else states - 1 - k
            for action in range(table.q.shape[1]):
                back_up(state, action, goals, model, table)
            revalue(state, goals, table)


@cached
def learn(state, action, goals, model, table):
    """Back up one pair, and its state."""
    back_up(state, action, goals, model, table)
    revalue(state, goals, table)


def count_follower(state: int, action: int, follower: int, model: Model) -> bool:
    """Count one transition, and say whether it is a new one; if there is no room for another, it is left out."""
    known, count = model.follower[state, action], model.seen[state, action]
    for k in range(FOLLOWERS):
        if count[k] == 0:
            known[k], count[k] = follower, 1
            return True
        if known[k] == follower:
            count[k] += 1
            return False
    return False


class Room:
    """One room: numbers for the states and goals that were met in it, the model, and a table for each planning."""

    def __init__(
        self, states: int, place: np.ndarray, actions: int, kinds: Sequence[tuple[int, float]], n: int,
        heading: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """`kinds`: of each table, with its gamma."""
        self._place, self._actions = place, actions
        self._heading = np.zeros(states, np.int64) if heading is None else heading
        self._headings = int(self._heading.max()) + 1
        self._distances: dict[int, np.ndarray] = {}  # by local state, as long as no other way is found
        self._layers: safety_plan.Layers | None = None
        self.number = np.full(states, -1, np.int64)  # [states] of each local state, in the order they were met
        self.column = np.full(int(place.max()) + 1, -1, np.int64)  # [places] of each goal; 0 is the frontier's
        self.met: list[int] = []  # local states
        self.reached: list[int] = []  # places
        self.paid = np.zeros(n, bool)  # [n] who was ever paid here
        self.steps = 0
        self.chosen = np.zeros((64, actions))  # [S, A] how often each action was the aggregator's
        follower, seen = np.zeros((2, 64, actions, FOLLOWERS), np.int32)
        self.model = Model(follower, seen, np.full(64, -1, np.int64))
        self.at, self.facing = np.zeros((2, 64), np.int64)  # [S] the place and the direction of each state
        shapes = ((64, actions, 64), np.float32), ((64, 64), np.float32), ((64, actions), np.float64)
        self.tables = [Table(kind, gamma, *(np.zeros(*shape) for shape in shapes)) for kind, gamma in kinds]

    @property
    def states(self) -> int:
        """How many states were met."""
        return len(self.met)

    @property
    def goals(self) -> int:
        """How many goals there are: the frontier, and the places that were reached."""
        return 1 + len(self.reached)

    def state(self, local: int) -> int:
        """The number of a local state, a new one where it was never met."""
        found = int(self.number[local])
        return found if found >= 0 else self._meet(local)

    def _meet(self, local: int) -> int:
        state, place = self.states, int(self._place[local])
        self.met.append(local)
        self._distances.clear()  # in which it, or its place, may stand as one where nobody has been
        self.number[local] = state
        if place >= 0 and self.column[place] < 0:
            self.column[place] = self.goals
            self.reached.append(place)
        self._grow()
        self.model.column[state] = self.column[place] if place >= 0 else -1
        self.at[state], self.facing[state] = place, self._heading[local]
        self.chosen[state] = 0
        for table in self.tables:
            table.q[state, :, FRONTIER_COLUMN] = table.v[state, FRONTIER_COLUMN] = 1.0
            table.policy[state] = 1.0 / self._actions
        return state

    def follow(self, state: int, action: int, following: int) -> None:
        """Count a transition."""
        if count_follower(state, action, following, self.model):
            known = self.model.follower[state] == following
            if np.count_nonzero(known & (self.model.seen[state] > 0)) == 1:  # no other action led there before
                self._distances.clear()

    def learn(self, state: int, action: int) -> None:
        """Back up a pair that was just followed, in all tables."""
        for table in self.tables:
            learn(state, action, self.goals, self.model, table)

    def sweep(self, times: int) -> None:
        """Replay all that was observed, this many times."""
        for table in self.tables:
            sweep(self.states, self.goals, times, self.model, table)

    def distances(self, local: int) -> np.ndarray:
        """The fewest steps from a local state to each place [places], without turning back; inf: unknown.

        Where the local state was never met, those in the same place count, if it is one: the nearest of them.
        """
        found = self._distances.get(local)
        if found is None:
            found = np.full(len(self.column), np.inf)
            start = self.number[local : local + 1]
            if start[0] < 0:
                here = self._place[local]
                start = np.flatnonzero((here >= 0) & (self.at[: self.states] == here))
            safety_plan.steps_from(start, self.facing, self._headings, self.model, self.at, self._room_for(0), found)
            self._distances[local] = found
        return found

    def safety(self, state: int, ahead: int, threat: Threat) -> np.ndarray:
        """The share of the steps ahead that each action is sure of [A]."""
        out = np.zeros(self._actions)
        safety_plan.survive(state, ahead, threat, self.model, self.at, self._room_for(ahead), out)
        return out

    def _room_for(self, ahead: int) -> safety_plan.Layers:
        """What planning writes on, large enough."""
        if self._layers is None or len(self._layers.length) <= ahead or self._layers.left.shape[1] != len(self.at):
            self._layers = safety_plan.layers(ahead, len(self.at), self._actions)
        return self._layers

    def _grow(self) -> None:
        """Room for all states and goals, and as much again."""
        rows, columns = len(self.chosen), self.tables[0].q.shape[2]
        if self.states > rows:
            rows *= 2
            self.chosen, self.at, self.facing = (_grown(part, rows) for part in (self.chosen, self.at, self.facing))
            self.model = Model(*(_grown(part, rows) for part in self.model))
            self.tables = [
                Table(kind, gamma, *(_grown(part, rows) for part in parts)) for kind, gamma, *parts in self.tables
            ]
        if self.goals > columns:
            self.tables = [
                table._replace(q=_grown(table.q, 2 * columns, axis=2), v=_grown(table.v, 2 * columns, axis=1))
                for table in self.tables
            ]


def _grown(array: np.ndarray, size: int, axis: int = 0) -> np.ndarray:
    """The same with zeros behind, along one axis."""
    shape = list(array.shape)
    shape[axis] = size
    grown = np.zeros(shape, array.dtype)
    grown[tuple(slice(0, length) for length in array.shape)] = array
    return grown
