"""Local states of the advisors, and the rows of the table that each has.

Local states whose number is known get their rows in advance; the others are counted as they are met, and each new one
takes the next free rows. Advisors that look at the same local state have adjacent rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from operator import index
from typing import Any

import numpy as np

from multiadvisor.core.validation import require
from multiadvisor.errors import BadInput, failed, short
from multiadvisor.task import Advisor

_LONGEST_STATE = 1 << 20  # characters of JSON; an image of 84 x 84 in colour has 40,000
_LONGEST_LINE = _LONGEST_STATE + 100
Phi = Callable[[Any], Any]


class NoTable(BadInput):
    """There can be no table for this, but a network can see it."""


# ---- whole observations as local states ------------------------------------------------------------------------------
def array_key(space: Any) -> Callable[[Any], bytes]:
    """phi for observations that are arrays of whole numbers: the same numbers, of whatever type, are the same state."""
    dtype = space.dtype

    def key(observation: Any) -> bytes:
        try:
            if observation.dtype is dtype:
                found: bytes = observation.tobytes()
                return found
        except AttributeError:
            pass
        return _conformed(observation, space).tobytes()

    return key


def _conformed(observation: Any, space: Any) -> np.ndarray:
    """The observation as an array of the space's own type, or an error where that would change it."""
    if not isinstance(observation, np.ndarray | np.generic):
        raise BadInput(
            f"an observation of the environment is of the type {type(observation).__name__} where {space} has arrays: "
            "return np.array(...)"
        )
    try:
        with np.errstate(invalid="ignore"):
            cast = observation.astype(space.dtype)
    except (TypeError, ValueError):
        cast = np.empty(0)
    if cast.shape != space.shape or not np.array_equal(cast, observation):
        raise BadInput(f"the observation {short(repr(observation))} is not in its space {space}: correct one of them")
    return cast


def number_key(space: Any) -> Callable[[Any], int]:
    """phi for observations that are single whole numbers: counted from 0."""
    start = int(space.start)

    def key(observation: Any) -> int:
        try:
            return index(observation) - start
        except TypeError:
            raise BadInput(
                f"the observation {short(repr(observation))} is not an integer, as {space} has them"
            ) from None

    return key


def _key_of(space: Any) -> Callable[[Any], Hashable] | None:
    """What tells the observations of a space apart, part by part; None where a part is not discrete."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return number_key(space)
    if isinstance(space, spaces.Text):
        return str
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return array_key(space)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer):
        return array_key(space)
    if isinstance(space, spaces.Tuple | spaces.Dict):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        keys = [(name, _key_of(part)) for name, part in parts]
        known = [(name, key) for name, key in keys if key is not None]
        if len(known) == len(keys):
            return lambda observation: tuple(key(observation[name]) for name, key in known)
    return None


class _Components:
    """phi_j that picks components of an array observation."""

    def __init__(self, picked: int | Sequence[int]) -> None:
        self.picked = [picked] if isinstance(picked, int) else list(picked)

    def __call__(self, observation: Any) -> Hashable:
        try:
            return tuple([observation[k].item() for k in self.picked])
        except (AttributeError, IndexError, KeyError, TypeError):
            raise BadInput(
                f"components {self.picked} of the observation {short(repr(observation))} are wanted, and it is no "
                "array that has them: return np.array(...)"
            ) from None


# ---- the rows of a table ---------------------------------------------------------------------------------------------
def _whole_observation(space: Any, discretise: Phi | None) -> tuple[Phi, int | None] | None:
    """phi for the whole observation and its number of states; None where it needs a discretiser."""
    from gymnasium import spaces

    if discretise is not None:
        return discretise, getattr(discretise, "states", None)
    key = _key_of(space)
    return None if key is None else (key, int(space.n) if isinstance(space, spaces.Discrete) else None)


class View:
    """One distinct phi: a function of the observation, and the rows of its local states."""

    def __init__(self, phi: Phi, states: int | None, owner: Advisor) -> None:
        self.phi, self.states, self.owner, self.table = phi, states, owner.name, owner.table
        self.width = self.first = 0
        self.seen: dict[Hashable, int] = {}


class LocalStates:
    """What each of n advisors sees of an observation, and where its values are."""

    def __init__(
        self, advisors: Sequence[Advisor], space: Any, discretise: Phi | None, refusal: BadInput | None
    ) -> None:
        """`refusal`: why there is no table at all; then nobody looks for local states, as without one."""
        n = len(advisors)
        self.advisors, self.discretise = tuple(advisors), discretise
        self.views: list[View] = []
        self.view_of, self.position = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.rows = 0
        self.refusal = refusal
        """Why there can be no table; a network may still see it."""
        if refusal is None:
            try:
                self._space, self._whole = space, _whole_observation(space, discretise)
                self._make_views()
                self._lay_out()
            except NoTable as error:
                self.refusal = error
        self._laid = self.rows
        self._bind_views()

    def _bind_views(self) -> None:
        self.firsts = np.zeros(len(self.views), np.int64)
        """[views] the first row of each one's local state."""
        self._looks = [
            (k, view.phi, view.seen.get if view.states is None else None, view) for k, view in enumerate(self.views)
        ]

    def without_views(self) -> None:
        """Nobody looks for local states: networks see the observation itself."""
        self.views = []
        self._bind_views()

    def _phi(self, advisor: Advisor) -> tuple[Phi, int | None]:
        if advisor.state is None:
            if self._whole is None:
                raise NoTable(
                    f"advisor {advisor.name!r} looks at the whole observation, which is "
                    f"{short(str(self._space), 120)}: give bins (discretise= or, on the command line, --bins), the "
                    "advisor a state function, or learn with a network (learner='dqn', on the command line --learner "
                    "dqn)"
                )
            phi, states = self._whole
            return phi, states if advisor.states is None else advisor.states
        if isinstance(advisor.state, str):
            raise BadInput(f"advisor {advisor.name!r} has the state {short(advisor.state)!r}, a name: give a function")
        if callable(advisor.state):
            return advisor.state, getattr(advisor.state, "states", None) if advisor.states is None else advisor.states
        shape = getattr(self._space, "shape", None)
        if not shape or len(shape) != 1 or not np.issubdtype(self._space.dtype, np.integer):
            refuse = NoTable if shape and len(shape) in (1, 3) else BadInput
            raise refuse(
                f"advisor {advisor.name!r} picks components {short(repr(advisor.state))} of an observation that is "
                "not a list of integers: give it a state function"
            )
        picked = _Components(advisor.state)
        if not all(-shape[0] <= k < shape[0] for k in picked.picked):
            raise BadInput(
                f"{advisor.name!r} picks components {short(repr(advisor.state))} of an observation of {shape[0]}"
            )
        return picked, advisor.states

    def _make_views(self) -> None:
        """A view for each distinct phi; advisors of one view side by side, those of one table on the same rows."""
        numbers: dict[Any, int] = {}
        tables: dict[str, View] = {}
        for j, advisor in enumerate(self.advisors):
            phi, states = self._phi(advisor)
            given = advisor.state if not isinstance(phi, _Components) else tuple(phi.picked)
            key = (given if isinstance(given, tuple) else id(given), advisor.table, states)
            if key not in numbers:
                numbers[key] = len(self.views)
                self.views.append(View(phi, states, advisor))
            view = self.views[numbers[key]]
            self.view_of[j] = numbers[key]
            if advisor.table is None:
                self.position[j] = view.width
                view.width += 1
            else:
                view.width = 1
                view.seen = tables.setdefault(advisor.table, view).seen

    def _lay_out(self) -> None:
        """The first rows of the views whose local states are known; those of one table are the same."""
        laid: dict[Any, int] = {}
        for k, view in enumerate(self.views):
            if view.states is not None:
                own = k if view.table is None else view.table
                if own not in laid:
                    laid[own] = self.rows
                    self.rows += view.states * view.width
                view.first = laid[own]

    def locate(self, observation: Any) -> None:
        """Fill `firsts` for an observation."""
        firsts = self.firsts
        for k, phi, get, view in self._looks:
            try:
                state = phi(observation)
            except Exception as error:
                raise failed(f"the state of advisor {view.owner!r}", error) from error
            try:
                if get is not None:
                    first = get(state)
                    firsts[k] = self._count(view, state) if first is None else first
                    continue
                state = index(state)
            except TypeError:
                raise _wrong_kind(view, state) from None
            if 0 <= state < (view.states or 0):
                firsts[k] = view.first + state * view.width
            else:
                raise self._outside(view, observation, state)

    def _outside(self, view: View, observation: Any, state: int) -> BadInput:
        if self._whole is not None and view.phi is self._whole[0] and self.discretise is None:
            return BadInput(f"the observation {short(repr(observation))} is not in {self._space}: correct one of them")
        return BadInput(
            f"advisor {view.owner!r} gave the local state {state}, but it has {view.states}, counted from 0: correct "
            "its state function or `states`"
        )

    def _count(self, view: View, state: Hashable) -> int:
        """Rows for a local state met for the first time."""
        # what could not be saved is refused now, not after hours
        if len(json.dumps(encode_state(state))) > _LONGEST_STATE:
            raise BadInput(f"advisor {view.owner!r} gave a local state too long to be saved: let it be shorter")
        if _is_nan(state):
            raise BadInput(
                f"advisor {view.owner!r} gave the local state {short(repr(state))}: NaN is not even equal to itself "
                "and would be a new state each time; correct its state function"
            )
        first = self.rows
        view.seen[state] = first
        self.rows += view.width
        return first

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    def counted(self) -> bytes:
        """The local states met so far, a line of JSON for each: [view, state, first row], in the order of the rows."""
        tables: set[int] = set()
        met = []
        for k, view in enumerate(self.views):
            if view.states is None and id(view.seen) not in tables:
                tables.add(id(view.seen))
                met += [(first, k, state) for state, first in view.seen.items()]
        met.sort(key=lambda entry: entry[0])
        return b"\n".join(json.dumps([k, encode_state(state), first]).encode() for first, k, state in met)

    def recount(self, counted: bytes, rows: int) -> None:
        """Take up what `counted` gave for a table of so many rows: every row has its state, and no other."""
        for view in self.views:
            view.seen.clear()
        last = self._laid
        for line in counted.split(b"\n") if counted else ():
            view, state = self._counted_line(line, last)
            view.seen[state] = last
            last += view.width
        require(last == rows, "counted")
        self.rows = rows

    def _counted_line(self, line: bytes, expected: int) -> tuple[View, Hashable]:
        """A view and a local state that is new to it, from a line that gives it the `expected` row."""
        try:
            require(len(line) <= _LONGEST_LINE, "counted")
            k, given, first = json.loads(line)
            state = _decode_state(given)
            require(type(k) is int and k >= 0 and type(first) is int and first == expected, "counted")
            require(self.views[k].states is None and state not in self.views[k].seen, "counted")
            return self.views[k], state
        except BadInput:
            raise
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            raise BadInput("the checkpoint's 'counted' is not a list of local states: restore it from a copy") from None


def _wrong_kind(view: View, state: Any) -> BadInput:
    way_out = "return a number, a string or a tuple of them" if view.states is None else "return an integer"
    return BadInput(f"advisor {view.owner!r} gave a local state of type {type(state).__name__}: {way_out}")


def _is_nan(state: Any) -> bool:
    """Whether a local state, or a part of it, is NaN."""
    return any(map(_is_nan, state)) if isinstance(state, tuple) else state != state


def encode_state(state: Hashable) -> Any:
    """A local state as JSON has it."""
    if isinstance(state, bytes):
        return {"bytes": state.hex()}
    if isinstance(state, tuple):
        return {"tuple": [encode_state(part) for part in state]}
    if isinstance(state, np.integer | np.floating | np.bool_):
        return state.item()
    if state is None or isinstance(state, bool | int | float | str):
        return state
    raise BadInput(f"a local state of type {type(state).__name__} cannot be saved: return numbers, strings or tuples")


def _decode_state(state: Any) -> Hashable:
    if isinstance(state, dict):
        ((kind, value),) = state.items()
        if kind == "bytes":
            return bytes.fromhex(value)
        return tuple(_decode_state(part) for part in {"tuple": value}[kind])
    number: Hashable = state
    return number
