"""Task and Advisor: one problem, split among n advisors.

A Task is the global problem: actions, advisors with their advisors, and either a compiled world or an environment to
step. An Advisor is one advisor's part of it: its reward, its view of the state (phi_j), its weight, when it has a say
and when its own part ends. This module only describes; `worlds` has the problems and `tabular` the learning.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from multiadvisor.core.aggregations import aggregation_named
from multiadvisor.core.board_layout import Grid
from multiadvisor.core.identity import identity
from multiadvisor.core.plannings import planning_named
from multiadvisor.core.validation import require
from multiadvisor.errors import BadInput, KnowsFields, no_part, short, takes_one
from multiadvisor.learners.gvf.gvf_spec import Goals
from multiadvisor.settings import LARGEST_WEIGHT, finite_number, number_between

if TYPE_CHECKING:
    import gymnasium

    from multiadvisor.envs.adapter import Adapter
    from multiadvisor.envs.spaces import Bins


BY_ADVISOR = {"weights": "weight", "gammas": "gamma", "alphas": "alpha"}
"""What every task takes as an option, numbers by the name of an advisor or group, and the field of an advisor it
sets."""


LONGEST_NAME = 200  # characters of whatever has a name in a task


class Transition(NamedTuple):
    """One step of a Gymnasium environment: what the functions of an advisor are given.

    >>> cliff = Advisor("cliff", reward=lambda t: -99.0 if t.reward == -100 else 0.0)
    >>> cliff.reward(Transition(observation=24, action=1, reward=-100, next_observation=36, terminated=False,
    ...                         truncated=False, info={}))
    -99.0
    """

    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    terminated: bool
    truncated: bool
    info: dict[str, Any]


# t[2] would be the reward, where a number of an observation is meant
Transition.__getitem__ = Transition.__getattr__ = no_part  # type: ignore[method-assign, attr-defined]

REMAINDER = "remainder"
"""The reward of an advisor that gets the rest of the environment's reward."""


def nothing(transition: Transition) -> float:
    """The reward of who is never paid."""
    return 0.0


@dataclass(frozen=True)
class Advisor(KnowsFields):
    """One advisor's part of the task.

    >>> Advisor("treasure", reward=0)
    Advisor('treasure', reward=0)
    """

    kind: ClassVar[str] = "field of an advisor"

    name: str
    reward: int | str | Callable[[Transition], float] | None = None
    """r_j: an index into the environment's vector reward, `info:KEY` for a term that a step's info has, "remainder"
    for what the other advisors leave of the reward, or a function of the transition; None: the scalar reward."""
    state: int | Sequence[int] | str | Callable[[Any], Hashable] | None = None
    """phi_j: a function of the observation, the components to see, or None for the whole observation.

    In a compiled world the world computes it, and this is its name.
    """
    states: int | None = None
    """The number of local states; None: they are numbered as they are encountered."""
    weight: float = 1.0
    """w_j, any real number."""
    gamma: float | None = None
    """Its own discount; None: the agent's."""
    alpha: float | None = None
    """Its own learning rate; None: the agent's."""
    planning: str | None = None
    """Its own planning; None: the agent's."""
    aggregation: str | None = None
    """The aggregation, shared with all others that name the same; None: that of the agent's settings."""
    mapping: str | None = None
    """The scale on which its values are learned: `log:k`, for rewards of at least 0; None: the plain one."""
    mapped_alpha: float = 1.0
    """The learning rate on that scale; `alpha` is that of the averages before."""
    target: Callable[[int], int | Sequence[float]] | None = None
    """The policy that it values (planning `target`), in a compiled world: from the number of its local state to an
    action, or to a probability for each."""
    active: Callable[[Any], bool] | None = None
    """Whether the advisor is active, advising and learning, in the state with this observation; None: always."""
    advises: Callable[[Any], bool] | None = None
    """Whether the aggregator listens to the advisor there; None: whenever it is active. Silent advisors still learn."""
    ended: Callable[[Transition], bool] | None = None
    """Whether this transition ended the advisor's own part; None: only the end of the episode does."""
    table: str | None = None
    """Advisors that name the same table share it: what one learns, all know."""
    group: str = ""
    """For summaries and pictures: advisors of the same kind."""

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        for name in ("reward", "state", "states", "weight", "gamma", "alpha", "planning", "table"):
            value = getattr(self, name)
            if value != getattr(Advisor, name, None):
                shown.append(f"{name}={getattr(value, '__name__', None) or repr(value)}")
        return f"Advisor({', '.join(shown)})"


class Outcome(NamedTuple):
    """One thing that may happen after an action."""

    probability: float
    x: Any  # the next state: of a compiled world its integers, as a tuple
    reward: dict[int, float]  # by advisor, those that are not zero
    terminated: bool


class Listing(NamedTuple):
    """Every state of a world whose x is one number: outcome k of (state, action) as a row of arrays."""

    start: np.ndarray  # [S] the probability of each first state
    probability: np.ndarray  # [S, A, K]
    successor: np.ndarray  # [S, A, K]
    reward: np.ndarray  # [S, A, K, n]
    final: np.ndarray  # [S, A, K] bool
    local: np.ndarray  # [n, S] phi_j, or -1 where advisor j has no part


@dataclass(frozen=True)
class World:
    """A world for the compiled loop: its constants, the size of its state, and four compiled functions over them.

    `reset(constants, x, key)` writes the first state of an episode into x [size], int64.
    `begin(constants, x, advisors) -> m` writes the active advisors in ascending order and returns how many there are.
    `local_states(constants, x, advisors, m, local)` writes phi_j(x) of each active advisor.
    `step(constants, x, action, key, advisors, m, reward, ended) -> terminated` changes x, and writes what is not zero
    into reward [m] and ended [m], which are given as zeros.

    The rest is optional: a world that provides it can also be checked, enumerated, solved and bounded.

    >>> import multiadvisor as mad
    >>> world = mad.make("three-fruits").world
    >>> world.size
    4
    """

    constants: Any
    size: int
    reset: Any
    begin: Any
    local_states: Any
    step: Any
    sizes: tuple[int, ...] | None = None
    """How many values each number of x may take, from 0 on: lets a state from outside be checked.

    Without it a run that is loaded begins a new episode, as nobody can tell whether the saved one is sound.
    """
    going: Callable[[Any, np.ndarray], bool] | None = None
    """Whether an episode can be in the state x, given the constants; None: in every one that `sizes` allows."""
    advises: Any = None
    """Optionally `advises(constants, x, advisors, m, weight)`: sets weight [m] to 0 where an active one is silent."""
    outcomes: Callable[[Any, tuple[int, ...], int], Iterable[Outcome]] | None = None
    """`outcomes(constants, x, action)`: all that may happen, for the exact solver; None: nothing is random."""
    listing: Callable[[Any], Listing] | None = None
    """`listing(constants)`: the same of all states at once, where x is the number of a state."""
    joins: bool = False
    """Whether `begin` is asked again after every step: advisors may join while an episode goes on, and one whose part
    ended restarts if it is still active, as a general value function does at its goal."""
    pseudo: Any = None
    """Optionally `pseudo(constants, x, action, advisors, m, ended, reward)`, after the step: changes reward [m] from
    what advisors are paid, which is the score, to what they learn from."""
    bounds: np.ndarray | None = None
    """The lowest and the highest reward of each advisor in one step [n, 2]; None: nobody knows."""
    local_state: Any = None
    """Optionally `local_state(constants, x, j)`: phi_j(x) of one active advisor, as `local_states` has it. A GPU asks
    for many of them at once."""

    def checked(self, state: Any, task: str) -> np.ndarray:
        """A state from outside as x [size], or an error: the compiled functions themselves check nothing."""
        x = np.asarray(state)
        if x.shape != (self.size,) or x.dtype.kind not in "iu":
            raise BadInput(f"a state of {task!r} is {self.size} integers, not {x.dtype} of the shape {x.shape}")
        whole = np.ascontiguousarray(x, np.int64)
        if self.sizes is not None:
            off = whole.view(np.uint64) >= self._limits  # what is below 0 is very large without a sign
            if off.any():
                k = int(off.argmax())
                raise BadInput(f"number {k} of the state of {task!r} is {x[k]}: it must be below {self.sizes[k]}")
        return whole

    @cached_property
    def _limits(self) -> np.ndarray:
        return np.array(self.sizes, np.uint64)

    def sound(self, x: np.ndarray, task: str) -> bool:
        """Whether a saved episode may go on from x [size]; False where that cannot be known, an error where it
        cannot."""
        if self.sizes is None:
            return False
        x = self.checked(x, task)
        require(self.going is None or self.going(self.constants, x), "x")
        return True


class TableLayout(NamedTuple):
    """Where the advisors' values lie in the one flat table: row = offset[j] + stride[j] * local state."""

    offset: np.ndarray  # [n] int64
    stride: np.ndarray  # [n] int64
    rows: int


@dataclass(frozen=True, eq=False)
class Task:
    """A problem split among advisors; `multiadvisor.make(name)` and `Task.from_gymnasium` build one.

    >>> import multiadvisor as mad
    >>> task = mad.make("two-goal")
    >>> task.names, task.actions, task.limit
    (('goal 1', 'goal 2'), ('a_0', 'a_1', 'a_2'), 50)
    >>> other = mad.make(task.with_weights(**{"goal 1": 2.0}), gammas={"goal 2": 0.5}, alphas={"goal 2": 0.2})
    >>> other.weights.tolist(), other.gammas(0.9).tolist(), other.alphas(0.1).tolist()
    ([2.0, 1.0], [0.9, 0.5], [0.1, 0.2])
    >>> mad.make("three-fruits").grid is not None
    True
    """

    name: str
    actions: tuple[str, ...]
    advisors: tuple[Advisor, ...]
    world: World | None = None
    adapter: Adapter | None = None
    limit: int | None = None
    """Episodes are truncated after this many steps (not ended: values still bootstrap); None: never."""
    endless: bool = False
    """True where no episode can ever terminate, so that gamma = 1 has no meaning."""
    options: dict[str, Any] = field(default_factory=dict)
    """What `multiadvisor.make` takes to make it, as plain data."""
    maker: str = ""
    """The name by which `multiadvisor.make` makes it again with these options; empty where it cannot, and then ..."""
    by_hand: str = "it was put together by hand"
    """... why not."""
    known: dict[str, Any] = field(default_factory=dict)
    """What is known of a Gymnasium environment and of the advisors on it, as plain data."""
    note: str = ""
    """What whoever made it should hear, in one line."""
    board: Grid | None = None
    """For worlds on a grid, what to draw."""
    labels: tuple[str, ...] = ()
    """For finite worlds, what people call the states."""
    observation_names: tuple[str, ...] = ()
    """For environments, what people call the components of the observation; none where nobody has named them."""
    goals: Goals | None = None
    """For environments: a bank of general value functions instead of a table for each advisor."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Its own defaults of settings, and of the flags of `train`, by name; of a registered task those of its
    registration."""
    metrics: Callable[[np.ndarray], dict[str, np.ndarray]] | None = None
    """Further figures of each episode [episodes], by name, from the advisors' returns [episodes, n]."""
    extra_advisor: Advisor | None = None
    """What the advisor looks at that a learned aggregation adds, such as a correction or an arbitrator (its `state` and
    `states`; None: the whole state), and its step size (`alpha`).

    In a compiled world `state` is a compiled function (constants, x) -> number below `states`. In a Gymnasium
    environment an arbitrator may have a `reward` too; None: what the advisors are paid, times their weights.
    """
    own_weights: tuple[float, ...] = ()
    """The weights [n] that it came with, where others were given since: by these runs are compared."""

    def __post_init__(self) -> None:
        _check_length("the name of a task", self.name)
        for name in self.actions:
            _check_length(f"the name of an action of task {self.name!r}", name)
        check_advisors(self.advisors)
        if (extra := self.extra_advisor) is not None:  # in a compiled world it looks by a function of two arguments
            check_advisors([extra if self.world is None else replace(extra, state=None)])
        if self.limit is not None and self.limit < 1:
            raise BadInput(f"limit is {self.limit}: an episode has at least 1 step")
        if len(self.actions) < 1:
            raise BadInput(f"task {self.name!r} has no action: give it at least one")
        if (self.world is None) == (self.adapter is None):
            raise BadInput(f"task {self.name!r} needs either a compiled world or an environment")
        if self.board is not None:
            if not isinstance(self.board, Grid):
                raise BadInput(f"the board of task {self.name!r} is a {type(self.board).__name__}: give a Grid")
            self.board.check(self.name, self.n, len(self.actions), None if self.world is None else self.world.size)
        if self.reward_bounds is not None and (
            self.reward_bounds.shape != (self.n, 2) or not (self.reward_bounds[:, 0] <= self.reward_bounds[:, 1]).all()
        ):
            raise BadInput(f"the `bounds` of the world of task {self.name!r} must be the lowest and highest reward "
                           f"[{self.n}, 2], one row for each advisor")  # fmt: skip

    @property
    def n(self) -> int:
        """The number of advisors."""
        return len(self.advisors)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The advisors' names, in order."""
        return tuple(advisor.name for advisor in self.advisors)

    @cached_property
    def metric_names(self) -> tuple[str, ...]:
        """What `metrics` calls its figures."""
        return () if self.metrics is None else tuple(self.metrics(np.zeros((1, self.n))))

    @property
    def grid(self) -> Grid:
        """The board, or an error if there is none."""
        if self.board is None:
            raise BadInput(f"task {self.name!r} has no board: give it one with Task(board=Grid(...))")
        return self.board

    @property
    def reward_bounds(self) -> np.ndarray | None:
        """The lowest and the highest reward of each advisor in one step [n, 2]; None if not known."""
        return None if self.world is None else self.world.bounds

    @property
    def weights(self) -> np.ndarray:
        """w [n]."""
        return np.array([advisor.weight for advisor in self.advisors])

    @property
    def yardstick(self) -> np.ndarray:
        """The weights [n] that the task came with: the same for all runs of it, whatever each was trained with."""
        return np.array(self.own_weights) if self.own_weights else self.weights

    def other_weights(self) -> dict[str, float]:
        """The weights that are not those it came with, by advisor.

        >>> import multiadvisor as mad
        >>> mad.make("two-goal").with_weights(**{"goal 1": 2.0, "goal 2": 1.0}).other_weights()
        {'goal 1': 2.0}
        """
        pairs = zip(self.advisors, self.yardstick.tolist(), strict=True)
        return {advisor.name: float(advisor.weight) for advisor, own in pairs if advisor.weight != own}

    def rewards(self, score: np.ndarray, returns: np.ndarray) -> np.ndarray:
        """[G] what episodes brought by the task's own weights, from scores [G] and the advisors' returns [G, n]."""
        found: np.ndarray = returns @ self.yardstick if self.measured_otherwise else score
        return found

    @property
    def own_score(self) -> bool:
        """Whether the score is the environment's own reward, and not the sum of the advisors': where it has goals."""
        return self.goals is not None

    @property
    def measured_otherwise(self) -> bool:
        """Whether runs with other weights are compared by those that the task came with, and not by their scores."""
        return bool(not self.own_score and self.other_weights())

    @property
    def continuous(self) -> bool:
        """Whether actions are real numbers: then `actions` names the numbers that one of them consists of."""
        return self.adapter is not None and self.adapter.box is not None

    @property
    def first_action(self) -> int:
        """The number of the first action: that of the environment's own action space, else 0."""
        return 0 if self.adapter is None else self.adapter.first_action

    def played(self, action: int) -> Any:
        """The environment's own action of one that is counted from 0."""
        return action if self.adapter is None else self.adapter.played(action)

    def numbered(self, action: Any) -> int:
        """One of the environment's own actions, of a finite choice, counted from 0."""
        several = None if self.adapter is None else self.adapter.several
        return int(action - self.first_action if several is None else several.number(action))

    def gammas(self, gamma: float) -> np.ndarray:
        """gamma_j [n]: each advisor's own discount, or the given one."""
        return np.array([gamma if advisor.gamma is None else advisor.gamma for advisor in self.advisors])

    def alphas(self, alpha: float) -> np.ndarray:
        """alpha_j [n]: each advisor's own learning rate, or the given one."""
        return np.array([alpha if advisor.alpha is None else advisor.alpha for advisor in self.advisors])

    def with_numbers(self, what: str, by_name: Mapping[str, float]) -> Task:
        """The same task with other `weights`, `gammas` or `alphas`, by advisor name or group."""
        if not isinstance(by_name, Mapping):
            raise BadInput(
                f"{what} are {short(repr(by_name))}: give numbers by advisor or group, {{{self.names[0]!r}: 1.0}}"
            )
        field = BY_ADVISOR[what]
        groups = {advisor.group for advisor in self.advisors if advisor.group} | set(self.names)
        for name in by_name:
            if name not in groups:
                whole = ", or give it advisors, such as 'info:reward_*'" if self.names == ("reward",) else ""
                known = f"choose {_listed(self.advisors)}{whole}"
                raise BadInput(f"no advisor or group is called {short(str(name))!r} in task {self.name!r}: {known}")
        given = {name: finite_number(f"the {field} of {name!r}", number) for name, number in by_name.items()}
        advisors = [
            replace(f, **{field: given.get(f.name, given.get(f.group, getattr(f, field)))}) for f in self.advisors
        ]
        options = {**self.options, what: {**self.options.get(what, {}), **given}}
        own = tuple(self.yardstick.tolist()) if what == "weights" else self.own_weights
        return replace(self, advisors=tuple(advisors), options=options, own_weights=own)

    def with_weights(self, given: Mapping[str, float] | None = None, /, **weights: float) -> Task:
        """The same task with other weights, by advisor name or group, in a dictionary or as keywords.

        `make(task, weights=..., gammas=..., alphas=...)` changes their discounts and learning rates as well.
        """
        task = self if given is None else self.with_numbers("weights", given)
        return task.with_numbers("weights", weights)

    def initial_state(self, seed: int = 0) -> np.ndarray:
        """The first state x of an episode of a compiled world.

        >>> import multiadvisor as mad
        >>> mad.make("three-fruits").initial_state().tolist()
        [12, 1, 1, 1]
        """
        from multiadvisor.core.rng import ENVIRONMENT, stream_key
        from multiadvisor.envs.compiled_env import CompiledEnv

        if self.world is None:
            raise BadInput(f"task {self.name!r} is a Python environment: its own reset gives the first observation")
        first: np.ndarray = CompiledEnv(self, [stream_key(seed, ENVIRONMENT)]).reset()[0]
        return first

    def layout(self) -> TableLayout:
        """Rows for advisors whose numbers of local states are known.

        Advisors with the same phi lie side by side, state by state: what is looked at together is stored together.
        """
        blocks: dict[tuple[str, Any], list[int]] = {}
        for j, advisor in enumerate(self.advisors):
            if advisor.states is None:
                raise BadInput(f"advisor {advisor.name!r} of task {self.name!r} needs a number of `states`")
            key = ("table", advisor.table) if advisor.table is not None else ("state", advisor.state)
            blocks.setdefault(key, []).append(j)
        offset, stride = np.zeros(self.n, np.int64), np.ones(self.n, np.int64)
        rows = 0
        for (kind, _), members in blocks.items():
            states = self.advisors[members[0]].states or 0
            width = 1 if kind == "table" else len(members)
            for position, j in enumerate(members):
                offset[j] = rows + (0 if kind == "table" else position)
                stride[j] = width
            rows += states * width
        return TableLayout(offset, stride, rows)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with: all that can be known of the task, as plain data."""
        return identity(self)

    def as_data(self) -> dict[str, Any]:
        """What a checkpoint or a trace keeps of its task, so that it can be made again, or another one refused."""
        return {
            "name": self.name, "maker": self.maker, "by_hand": self.by_hand, "options": self.options,
            "identity": self.identity,
        }  # fmt: skip

    @classmethod
    def from_gymnasium(
        cls, env: gymnasium.Env | str, advisors: Mapping[str, Any] | Sequence[Advisor | str] | str | None = None, *,
        name: str | None = None, discretise: Callable[[Any], Hashable] | None = None,
        extra_advisor: Advisor | None = None, remainder: bool = False, action_names: Sequence[str] | None = None,
        components: Sequence[str] | None = None, bins: Bins | str | None = None,
        max_episode_steps: int | None = None, wrappers: Sequence[Any] | None = None, **options: Any,
    ) -> Task:  # fmt: skip
        """A task from any Gymnasium or MO-Gymnasium environment or its name; actions are a finite choice, or Box.

        A name takes `options`: what the environment takes, `max_episode_steps` and `wrappers`, as pairs of a name and
        its arguments. Without advisors, a vector reward gets one advisor per component, which `components` names, and a
        scalar one a single advisor; `advisors="info:reward_*"` gives one to each such term in `info`, and
        `remainder=True` adds one for the remainder of the reward. Tables need `bins` or `discretise` for real-valued
        observations, or a `state` function in each advisor; `extra_advisor` says what that of a learned aggregation
        sees, if that is not the whole observation; `action_names` are for reading. From then on the environment belongs
        to the agent: play in another one, as your own step or reset would interrupt its episodes.

        >>> import multiadvisor as mad
        >>> task = mad.Task.from_gymnasium("FrozenLake-v1", [mad.Advisor("goal")], is_slippery=False)
        >>> mad.MultiAdvisor(task, gamma=0.9).learn(200, progress=False).steps
        200
        """
        from multiadvisor.envs.gymnasium_tasks import task_from_gymnasium
        from multiadvisor.envs.names import with_action_names

        for option, value in (("max_episode_steps", max_episode_steps), ("wrappers", wrappers)):
            if value is not None:
                options[option] = value
        made = task_from_gymnasium(env, advisors, name, discretise, remainder, components, bins, options)
        return replace(with_action_names(made, action_names), extra_advisor=extra_advisor)


def _check_length(what: str, text: Any) -> None:
    """Names may come from a file, and are quoted in many messages."""
    if isinstance(text, str) and len(text) > LONGEST_NAME:
        raise BadInput(f"{what} is {short(text)!r}, of {len(text)} characters: choose one of at most {LONGEST_NAME}")


def _listed(advisors: Sequence[Advisor]) -> str:
    """Whom one may name: the groups and then the advisors, the first of them.

    >>> _listed([Advisor(f"coin {k}", group="coins") for k in range(30)])
    'coins, coin 0, coin 1, coin 2, coin 3, coin 4, coin 5, coin 6, coin 7, coin 8, coin 9, coin 10 or 19 others'
    """
    groups = [advisor.group for advisor in advisors if advisor.group]
    names = list(dict.fromkeys([*groups, *(advisor.name for advisor in advisors)]))
    shown = [short(name, 40) for name in names[:12]]
    last = f"{len(names) - 12} others" if len(names) > 12 else shown.pop()
    return " or ".join([", ".join(shown), last] if shown else [last])


def check_advisors(advisors: Sequence[Advisor]) -> None:
    """Refuse advisors that contradict each other or themselves."""
    if not advisors:
        raise BadInput("a task needs at least one advisor")
    names: set[str] = set()
    tables: dict[str, Advisor] = {}
    for advisor in advisors:
        _check_advisor(advisor)
        if advisor.name in names:
            raise BadInput(f"two advisors are called {advisor.name!r}: give each advisor its own name")
        names.add(advisor.name)
        first = advisor if advisor.table is None else tables.setdefault(advisor.table, advisor)
        if first.states != advisor.states:
            raise BadInput(
                f"advisors {first.name!r} and {advisor.name!r} share the table {advisor.table!r} but have "
                f"{first.states} and {advisor.states} local states: give both the same number"
            )


def _is_rate(value: Any) -> bool:
    return isinstance(value, int | float) and 0.0 < value <= 1.0


_FUNCTION, _RATE = (callable, "give a function"), (_is_rate, "choose it above 0 and at most 1")
_TEXT = (lambda value: isinstance(value, str), "give a text")
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": _TEXT, "table": _TEXT, "group": _TEXT, "active": _FUNCTION, "advises": _FUNCTION, "ended": _FUNCTION,
    "target": _FUNCTION, "alpha": _RATE, "mapped_alpha": _RATE,
    "states": (
        lambda value: isinstance(value, numbers.Integral) and int(value) >= 1, "give at least 1, or None to count",
    ),
}  # fmt: skip
"""What the fields of an advisor may be, if they are not None by default and left so, and what to do otherwise."""


def _check_advisor(advisor: Advisor) -> None:
    """Refuse one that contradicts itself."""
    for name, (fits, way_out) in _FIELDS.items():
        value = getattr(advisor, name)
        if not (value is None and getattr(Advisor, name, "") is None) and not fits(value):
            raise BadInput(f"the {name} of advisor {advisor.name!r} is {short(repr(value))}: {way_out}")
    if not advisor.name:
        raise BadInput("an advisor has an empty name: give each advisor its own name")
    for name in ("reward", "state", "active", "advises", "ended"):
        if callable(getattr(advisor, name)) and not takes_one(getattr(advisor, name)):
            parts = f"transition t, with t.{', t.'.join(Transition._fields)}"
            given = parts if name in ("reward", "ended") else "observation"
            what = f"the {name} of advisor {short(advisor.name)!r} is a function of other arguments"
            raise BadInput(f"{what}: it is given one, the {given}")
    for name in ("name", "table", "group", "reward", "state"):
        _check_length(f"the {name} of advisor {short(advisor.name)!r}", getattr(advisor, name))
    number_between(f"the weight of advisor {advisor.name!r}", advisor.weight, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    if advisor.gamma is not None:
        number_between(f"the gamma of advisor {advisor.name!r}", advisor.gamma, 0, 1)
    if advisor.planning is not None:
        planning_named(advisor.planning)
    if advisor.aggregation is not None:
        aggregation_named(advisor.aggregation)
