"""Any Gymnasium environment as a task: local states to rows of the table, rewards to signals.

Local states whose number is known get their rows in advance; the others are counted as they are met, and each new one
takes the next free rows. Advisors that look at the same local state have adjacent rows.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from operator import index
from typing import Any

import numpy as np

from multiadvisor.core.validation import require
from multiadvisor.envs.box_actions import BoxActions
from multiadvisor.envs.components import reward_components
from multiadvisor.envs.env_lock import lock_of
from multiadvisor.envs.info_terms import Terms
from multiadvisor.envs.multi_discrete import MultiDiscreteActions
from multiadvisor.envs.stepping import array_key, begin_episode, copied, five, no_reward, number_key
from multiadvisor.errors import BadInput, short
from multiadvisor.task import Advisor, Transition, nothing

_LONGEST_STATE = 1 << 20  # characters of JSON; an image of 84 x 84 in colour has 40,000
_LONGEST_LINE = _LONGEST_STATE + 100

CONTINUOUS = (
    "tables are learned with a finite choice of actions, and these are continuous: leave bins and discretise out"
)


class Bins:
    """A discretiser for real-valued observations: equal bins between low and high in each component.

    >>> bins = Bins([-1.2, -0.07], [0.6, 0.07], [18, 14])
    >>> bins.states, bins(np.array([-1.2, 0.0])), bins(np.array([9.0, 9.0]))
    (252, 7, 251)
    """

    def __init__(self, low: Sequence[float], high: Sequence[float], counts: Sequence[int]) -> None:
        self.low, self.high, self.counts = list(low), list(high), list(counts)
        if not len(self.low) == len(self.high) == len(self.counts) > 0:
            raise BadInput("low, high and counts of Bins must have one entry for each component")
        for k, (a, b, count) in enumerate(zip(self.low, self.high, self.counts, strict=True)):
            if not (math.isfinite(b - a) and a < b and count >= 1):
                raise BadInput(
                    f"component {k} of Bins goes from {short(repr(a))} to {short(repr(b))} in {short(repr(count))} "
                    "bins: give a finite range"
                )
        self._scale = [count / (b - a) for a, b, count in zip(self.low, self.high, self.counts, strict=True)]
        self.states = math.prod(self.counts)

    @classmethod
    def parse(cls, text: str, space: Any) -> Bins:
        """From text: for each component of the observation LOW:HIGH:COUNT, or COUNT if the space has a range.

        >>> from gymnasium.spaces import Box
        >>> str(Bins.parse("3,-1:1:2", Box(np.array([0.0, -np.inf]), np.array([6.0, np.inf]), dtype=np.float64)))
        '0.0:6.0:3,-1.0:1.0:2'
        """
        parts = text.split(",")
        low, high = (np.ravel(getattr(space, name, ())).tolist() for name in ("low", "high"))
        if len(low) != len(parts):
            raise BadInput(
                f"bins {short(text)!r} are for {len(parts)} numbers, but the observation is {short(str(space))}: give "
                "one for "
                "each of its numbers, separated by commas"
            )
        ranges = []
        for k, part in enumerate(parts):
            words = part.split(":")
            try:
                first, last = (float(word) for word in words[:-1]) if len(words) > 1 else (low[k], high[k])
                ranges.append((first, last, int(words[-1])))
            except ValueError:
                raise BadInput(f"bins have {short(part)!r}: give COUNT or LOW:HIGH:COUNT for each number") from None
            if not math.isfinite(first) or not math.isfinite(last):
                raise BadInput(f"number {k} of the observation has no range of its own: give LOW:HIGH:COUNT in bins")
        return cls(*zip(*ranges, strict=True))

    def as_bins(self) -> str:
        """What `parse` makes it again from.

        >>> Bins([-1.0], [1.0], [8]).as_bins()
        '-1.0:1.0:8'
        """
        parts = zip(self.low, self.high, self.counts, strict=True)
        return ",".join(f"{float(low)!r}:{float(high)!r}:{int(count)}" for low, high, count in parts)

    __str__ = as_bins

    def __call__(self, observation: Any) -> int:
        """The number of the bin."""
        state = 0
        try:
            for value, low, scale, count in zip(observation, self.low, self._scale, self.counts, strict=True):
                state = state * count + min(max(int((value - low) * scale), 0), count - 1)
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(observation, int | float) or getattr(observation, "shape", None) == ():
                return self((observation,))
            raise BadInput(
                f"the observation {short(repr(observation))} does not fit into bins of {len(self.counts)} components: "
                f"{error}"
            ) from None
        return state


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


class _NoTable(BadInput):
    """There can be no table for this, but a network can see it."""


class View:
    """One distinct phi: a function of the observation, and the rows of its local states."""

    def __init__(self, phi: Callable[[Any], Any], states: int | None, width: int, first: int, owner: str) -> None:
        self.phi, self.states, self.width, self.first, self.owner = phi, states, width, first, owner
        self.seen: dict[Hashable, int] = {}


class Adapter:
    """Reads one environment for n advisors; it holds no values.

    It fills `firsts`, the first rows of the local states, `signals`, the rewards, and who is active or has ended.
    Without a `table` nobody looks for local states: networks see the observation itself.
    """

    def __init__(
        self, env: Any, advisors: Sequence[Advisor], discretise: Callable[[Any], Hashable] | None, table: bool = True
    ) -> None:
        from gymnasium import spaces

        self.env, self.advisors, self.discretise = env, tuple(advisors), discretise
        self.made_here = False  # from its name alone, so that another one made from it is the same
        self.lock = lock_of(env)  # taken by whoever steps it
        self.vector = hasattr(env, "single_action_space")  # a vector environment, which only networks can learn in
        choice = env.single_action_space if self.vector else env.action_space
        self.box = BoxActions(choice) if isinstance(choice, spaces.Box) else None  # continuous actions
        several = isinstance(choice, spaces.MultiDiscrete | spaces.MultiBinary)
        self.several = (
            MultiDiscreteActions(choice) if several else None
        )  # choices at once, of which all combinations count
        if not several and not isinstance(choice, spaces.Discrete | spaces.Box):
            raise BadInput(
                f"the environment's actions are {type(choice).__name__}, but advisors need Discrete or Box ones: "
                "wrap the environment so that it offers a finite choice, or real numbers"
            )
        self.actions, self.first_action = 0 if self.box is None else self.box.size, 0
        if isinstance(choice, spaces.Discrete):
            self.actions, self.first_action = int(choice.n), int(choice.start)
        if self.several is not None:
            self.actions = self.several.count
        self._counted = self.box is None and self.several is None  # actions are numbers, and stay so
        self.components = reward_components(env)
        n = len(self.advisors)
        self.views: list[View] = []
        self.view_of = np.zeros(n, np.int64)
        self.position = np.zeros(n, np.int64)
        self.refusal: BadInput | None = None  # why there can be no table; a network may still see it
        try:
            if self.box is not None:
                raise _NoTable(CONTINUOUS)
            if self.vector:
                raise _NoTable(
                    "tables are learned in single episodes, and this is a vector environment: choose learner='dqn'"
                )
            self._whole = self._whole_observation(env.observation_space, discretise)
            self._lay_out()
        except _NoTable as refusal:
            self.refusal = refusal
        if not table:
            self.views = []
        self.source = np.zeros(n, np.int64)
        self._rewards: list[tuple[int, Advisor]] = []
        for j, advisor in enumerate(self.advisors):
            self.source[j] = self._reward_source(j, advisor)
        self.terms = Terms(self.advisors, self.source, self.components)
        size = max(self.components, 1)
        self.firsts = np.zeros(len(self.views), np.int64)
        self._looks = [
            (k, view.phi, view.seen.get if view.states is None else None, view) for k, view in enumerate(self.views)
        ]
        self.signals = np.zeros(size + n)
        self._vector = self.signals[: self.components]
        self._active = [(j, advisor.active) for j, advisor in enumerate(self.advisors) if advisor.active is not None]
        self._advises = [(j, advisor.advises) for j, advisor in enumerate(self.advisors) if advisor.advises is not None]
        self._ended = [(j, advisor.ended) for j, advisor in enumerate(self.advisors) if advisor.ended is not None]
        self._plain = not (self._rewards or self._ended)
        self.varies = bool(self._active)  # whether it depends on the state who is active
        self._had_part = np.ones(n, np.int64)  # where the last step began
        self._reward_seen = False
        self.observation: Any = None
        self.bind(np.ones(n, np.int64), np.ones(n, np.int64), np.zeros(n, np.int64))

    def _whole_observation(
        self, space: Any, discretise: Callable[[Any], Hashable] | None
    ) -> tuple[Callable[[Any], Any], int | None] | None:
        """phi for the whole observation and its number of states; None where it needs a discretiser."""
        from gymnasium import spaces

        if discretise is not None:
            return discretise, getattr(discretise, "states", None)
        if isinstance(space, spaces.Discrete):
            return number_key(space), int(space.n)
        key = _key_of(space)
        return None if key is None else (key, None)

    def _phi(self, advisor: Advisor) -> tuple[Callable[[Any], Any], int | None]:
        if advisor.state is None:
            if self._whole is None:
                raise _NoTable(
                    f"advisor {advisor.name!r} looks at the whole observation, which is "
                    f"{short(str(self.env.observation_space), 120)}: "
                    "pass discretise= (for example Bins), give the advisor a state function, or learn with a network "
                    "(learner='dqn', on the command line --learner dqn)"
                )
            phi, states = self._whole
            return phi, states if advisor.states is None else advisor.states
        if isinstance(advisor.state, str):
            raise BadInput(
                f"the state of advisor {advisor.name!r} is the name {short(advisor.state)!r}: give a function"
            )
        if callable(advisor.state):
            return advisor.state, advisor.states if advisor.states is not None else getattr(
                advisor.state, "states", None
            )
        shape = getattr(self.env.observation_space, "shape", None)
        if not shape or len(shape) != 1 or not np.issubdtype(self.env.observation_space.dtype, np.integer):
            refuse = _NoTable if shape and len(shape) in (1, 3) else BadInput
            raise refuse(
                f"advisor {advisor.name!r} picks components {short(repr(advisor.state))} of an observation that is "
                f"not a "
                "list of integers: give it a state function"
            )
        picked = _Components(advisor.state)
        if not all(-shape[0] <= k < shape[0] for k in picked.picked):
            raise BadInput(
                f"advisor {advisor.name!r} picks components {short(repr(advisor.state))} of an observation of "
                f"{shape[0]}"
            )
        return picked, advisor.states

    def _lay_out(self) -> None:
        """A view for each distinct phi; advisors of one view side by side, those of one table on the same rows."""
        numbers: dict[Any, int] = {}
        tables: dict[str, View] = {}
        self.rows = 0
        for j, advisor in enumerate(self.advisors):
            phi, states = self._phi(advisor)
            given = advisor.state if not isinstance(phi, _Components) else tuple(phi.picked)
            key = (given if isinstance(given, tuple) else id(given), advisor.table, states)
            if key not in numbers:
                numbers[key] = len(self.views)
                self.views.append(View(phi, states, 0, 0, advisor.name))
            view = self.views[numbers[key]]
            self.view_of[j] = numbers[key]
            if advisor.table is None:
                self.position[j] = view.width
                view.width += 1
            else:
                view.width = 1
                first = tables.setdefault(advisor.table, view)
                view.seen = first.seen
        laid: dict[str, int] = {}
        for k, view in enumerate(self.views):
            table = next(f.table for j, f in enumerate(self.advisors) if self.view_of[j] == k)
            if view.states is None:
                continue
            if table is not None and table in laid:
                view.first = laid[table]
                continue
            view.first = self.rows
            self.rows += view.states * view.width
            if table is not None:
                laid[table] = view.first
        self._laid = self.rows

    def _reward_source(self, j: int, advisor: Advisor) -> int:
        size = max(self.components, 1)
        if advisor.reward is nothing or isinstance(advisor.reward, str):
            return size + j
        if advisor.reward is None:
            if self.components:
                raise BadInput(
                    f"advisor {advisor.name!r} takes the scalar reward, but the environment pays a vector of "
                    f"{self.components}: give reward=0 to {self.components - 1}, or a function"
                )
            return 0
        if isinstance(advisor.reward, int):
            if not 0 <= advisor.reward < self.components:
                raise BadInput(
                    f"advisor {advisor.name!r} takes component {advisor.reward} of the reward, but the environment "
                    f"pays " + (f"a vector of {self.components}" if self.components else "a scalar: give a function")
                )
            return advisor.reward
        if not callable(advisor.reward):
            raise BadInput(
                f"the reward of advisor {advisor.name!r} must be an index, info:KEY or a function of the transition"
            )
        self._rewards.append((size + j, advisor))
        return size + j

    def fresh(self, table: bool = True, env: Any = None) -> Adapter:
        """Another one on the same environment, or on another one like it, that has counted nothing yet."""
        if table and self.refusal is not None:
            raise self.refusal
        return Adapter(self.env if env is None else env, self.advisors, self.discretise, table)

    def copies(self, count: int) -> list[Any]:
        """So many environments like this one; a single one of the user's is taken as it is."""
        import gymnasium

        if count == 1 and not self.made_here:
            return [self.env]
        try:
            if self.env.spec is None:
                raise ValueError("it is not registered")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return [gymnasium.make(self.env.spec, disable_env_checker=True) for _ in range(count)]
        except Exception as error:  # whatever an environment's constructor may raise
            if count == 1:
                return [self.env]
            raise BadInput(
                f"the environment cannot be made {count} times ({short(str(error), 200)}): register it with "
                "Gymnasium, or leave envs at 1"
            ) from None

    # ---- stepping ----------------------------------------------------------------------------------------------------
    def bind(self, active: np.ndarray, advises: np.ndarray, ended: np.ndarray) -> None:
        """Where to write who is active [n], who of them is heard [n], and whose own part has ended [n]."""
        active[:], advises[:], ended[:] = 1, 1, 0
        self.now_active, self.now_advises, self.has_ended = active, advises, ended

    def reset(self, seed: int | None) -> None:
        """Start an episode, with this seed where one is given, and look around."""
        self.arrive(begin_episode(self.env, seed))

    def arrive(self, observation: Any) -> None:
        """Look around where an episode stands."""
        self.observation = observation if self._plain else copied(observation)
        self.look(observation)

    def played(self, action: Any) -> Any:
        """The environment's own action, or an array of them, of the learner's."""
        if self.box is not None:
            return self.box.to_environment(action)
        return action + self.first_action if self.several is None else self.several.to_environment(action)

    def step(self, action: Any, result: Any = None) -> tuple[bool, bool]:
        """Make a step, fill the signals, see who has ended and where everybody is: terminated, truncated.

        The action is counted from 0, or for a box of them each number is from -1 to 1. `result`: what the step gave,
        where somebody else has made it.
        """
        action = action + self.first_action if self._counted else self.played(action)
        if result is None:
            given = action if self._plain or self._counted else action.copy()  # the environment may change it in place
            result = self.env.step(given)
        if type(result) is not tuple or len(result) != 5:  # one call less, of all that a step costs here
            result = five(result)
        observation, reward, terminated, truncated, info = result
        if not self._reward_seen:
            self.check_reward(reward)
        try:
            if self.components:
                self._vector[...] = reward
            else:
                self.signals[0] = reward
        except (TypeError, ValueError):
            raise no_reward(reward) from None
        if not self._plain:
            transition = Transition(self.observation, action, reward, observation, terminated, truncated, info)
            for place, advisor in self._rewards:
                paid = advisor.reward(transition)  # type: ignore[operator, misc]
                try:
                    self.signals[place] = paid
                except (TypeError, ValueError):
                    raise no_reward(paid, advisor) from None
            for j, ended in self._ended:
                self.has_ended[j] = 1 if ended(transition) else 0
        if self.terms.any:
            self.terms.fill(self.signals, info)
        if self._active:
            self._had_part[:] = self.now_active
        # functions of a transition look at it after the next step, which may change it in place
        self.observation = observation if self._plain else copied(observation)
        self.look(observation)
        return terminated, truncated

    @property
    def paid(self) -> np.ndarray:
        """What the last step paid to each advisor [n]: nothing to one that was not active where it began."""
        paid = self.signals[self.source]
        return np.where(self._had_part, paid, 0.0) if self._active else paid

    def active_in(self, observation: Any) -> np.ndarray:
        """Who has a part in the state with this observation [n] uint8."""
        active = np.ones(len(self.advisors), np.uint8)
        for j, function in self._active:
            active[j] = 1 if function(observation) else 0
        return active

    def check_reward(self, reward: Any) -> None:
        """Once: a wrapper may have made a number of a vector, or the environment may not have declared its vector."""
        size = np.size(reward) if np.ndim(reward) else 0
        if size != self.components:
            kinds = [f"a vector of {count}" if count else "a number" for count in (self.components, size)]
            raise BadInput(
                f"the environment's reward_space promises {kinds[0]} but it pays {kinds[1]}: declare reward_space, or "
                "take off the wrapper that changes the reward"
            )
        self._reward_seen = True

    def look(self, observation: Any) -> None:
        """The first row of every view's local state, and who is active."""
        firsts = self.firsts
        for k, phi, get, view in self._looks:
            state = phi(observation)
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
                raise BadInput(
                    f"advisor {view.owner!r} gave the local state {state}, but it has {view.states}, counted from 0: "
                    "correct its state function or `states`"
                )
        for j, active in self._active:
            self.now_active[j] = 1 if active(observation) else 0
        for j, advises in self._advises:
            self.now_advises[j] = 1 if advises(observation) else 0

    def _count(self, view: View, state: Hashable) -> int:
        """Rows for a local state met for the first time."""
        if len(json.dumps(_encode(state))) > _LONGEST_STATE:  # what could not be saved is refused now, not after hours
            raise BadInput(f"advisor {view.owner!r} gave a local state too long to be saved: let it be shorter")
        if _is_nan(state):
            raise BadInput(
                f"advisor {view.owner!r} gave the local state {short(repr(state))}: NaN is not even equal to itself "
                f"and "
                "would be a new state each time; correct its state function"
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
        return b"\n".join(json.dumps([k, _encode(state), first]).encode() for first, k, state in met)

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
            state = _decode(given)
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


def _encode(state: Hashable) -> Any:
    if isinstance(state, bytes):
        return {"bytes": state.hex()}
    if isinstance(state, tuple):
        return {"tuple": [_encode(part) for part in state]}
    if isinstance(state, np.integer | np.floating | np.bool_):
        return state.item()
    if state is None or isinstance(state, bool | int | float | str):
        return state
    raise BadInput(f"a local state of type {type(state).__name__} cannot be saved: return numbers, strings or tuples")


def _decode(state: Any) -> Hashable:
    if isinstance(state, dict):
        ((kind, value),) = state.items()
        return bytes.fromhex(value) if kind == "bytes" else tuple(_decode(part) for part in {"tuple": value}[kind])
    return state
