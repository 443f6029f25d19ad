"""The tasks that can be made by name, with their options: those of the package, those registered, any environment's.

A task is a function, and its options are derived from it once, here: names, types, defaults and limits from its
signature, texts from its docstring. Flags, files, checkpoints and Gymnasium all ask `options_of`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import importlib
import inspect
import math
import os
import re
import typing
from collections import UserDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from multiadvisor.core.identity import NotPlain, plain
from multiadvisor.envs.presets import GYMNASIUM, PRESETS
from multiadvisor.errors import BadInput, neighbour, short, unknown
from multiadvisor.learners.kinds import learners_with
from multiadvisor.settings import Settings, number_between, whole_number
from multiadvisor.task import BY_ADVISOR, Advisor, Task

if TYPE_CHECKING:
    import gymnasium

    from multiadvisor.envs.spaces import Bins

Maker = Callable[..., Task]
_WORLDS = "multiadvisor.envs.worlds"


class Registry(UserDict[str, Any]):
    """Functions that make tasks, by name; in the place of a built-in one its module, until it is asked for."""

    def __getitem__(self, name: str) -> Any:
        if isinstance(home := self.data[name], str):
            importlib.import_module(home)  # which registers it, and imports numba
        return self.data[name]


TASKS = Registry({
    name: f"{_WORLDS}.{module}"
    for module, names in {
        "pac_boy": ("pac-boy", "fruit-grid", "three-fruits", "four-fruits"),
        "gadgets": ("two-goal", "dollars-and-euros", "bridge", "resource-scheduling", "random-mdp"),
        "bunny": ("bunny",), "dyna_maze": ("dyna-maze",), "fishery": ("fishery",), "fruit_goals": ("hra-fruits",),
        "mountain_car": ("mountain-car",), "racetrack": ("racetrack",), "tile_chain": ("tile-chain",),
        "atari.ms_pacman": ("ms-pacman",),
    }.items()
    for name in names
})  # fmt: skip
ENVIRONMENTS = {
    "ms-pacman": f"{_WORLDS}.atari.emulator:MsPacman", "negotiation": f"{_WORLDS}.negotiation:Negotiation",
}  # fmt: skip
"""What Gymnasium makes by the names of those that are no compiled worlds."""
FILES = ("maze",)
"""Options that name files; where a task is kept, the text of the file stands in their place."""
PREFIX = "gymnasium:"


def environment_id(name: str) -> str | None:
    """The environment's id in Gymnasium, where a name is one and not a task's; the prefix is for one named like a task.

    >>> environment_id("CartPole"), environment_id("gymnasium:pac-boy"), environment_id("pac-boy")
    ('CartPole-v1', 'pac-boy', None)
    """
    if name.startswith(PREFIX):
        return name.removeprefix(PREFIX)
    if name in TASKS:
        return None
    if re.search(r"-v\d+$|[/:]", name) and not name.endswith(".py"):
        return name
    from gymnasium import registry

    if name in registry:
        return name
    versions = [spec for spec in registry.values() if spec.name == name and spec.namespace is None]
    return max(versions, key=lambda spec: spec.version or 0).id if versions else None


def defaults_of(name: str) -> dict[str, Any]:
    """The defaults of the task with this name: of settings, of the schedule, and of learners.

    >>> defaults_of("CartPole-v1")["gamma"], defaults_of("pac-boy")
    (0.99, {})
    """
    identifier = environment_id(name)
    if identifier is None or identifier.startswith("multiadvisor/"):  # the worlds of this package under another name
        return PRESETS.get(name, {})
    return GYMNASIUM | PRESETS.get(identifier, {})


# ---- options ---------------------------------------------------------------------------------------------------------
class Between(NamedTuple):
    """The numbers that an option may have, as in `Annotated[int, Between(1, 100)]`."""

    low: float
    high: float = math.inf


@dataclass(frozen=True)
class Option:
    """An option of a task."""

    name: str
    default: Any
    kinds: tuple[type, ...]
    choices: tuple[str, ...]
    reach: Between
    help: str

    @property
    def kind(self) -> type:
        """The type of a flag that sets it."""
        return next(kind for kind in self.kinds if kind is not type(None))

    def checked(self, task: str, value: Any) -> Any:
        """A value in its plain form, or an error that says what it should be."""
        what = f"option {self.name} of task {task!r}"
        if self.choices and value not in self.choices:
            raise unknown(self.name, value, self.choices)
        if value is None and type(None) in self.kinds:
            return None
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if bool not in self.kinds and not isinstance(value, str):
            if float in self.kinds:
                return number_between(what, value, *self.reach)
            if int in self.kinds:
                most = (1 << 63) - 1 if math.isinf(self.reach.high) else int(self.reach.high)
                return whole_number(what, value, int(max(self.reach.low, -most)), most)
        if type(value) not in self.kinds:
            words = " or ".join(kind.__name__ for kind in self.kinds if kind is not type(None))
            form = "true or false" if words == "bool" else f"a value of the kind {words}"
            raise BadInput(f"{what} is {short(repr(value))}: give {form}")
        return value


@functools.lru_cache
def options_of(maker: Maker, task: str = "") -> dict[str, Option]:
    """The options of a task by name, from the function that makes it; each has a default and a type of plain data."""
    hints, texts = typing.get_type_hints(maker, include_extras=True), _explained(maker)
    found = {}
    for name, parameter in inspect.signature(maker).parameters.items():
        hint, reach = hints.get(name), Between(-math.inf)
        if typing.get_origin(hint) is Annotated:
            hint, reach = typing.get_args(hint)
        choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
        kinds = (str,) if choices else typing.get_args(hint) or (hint,)
        if parameter.default is parameter.empty or not {*kinds} <= {bool, int, float, str, type(None)}:
            raise BadInput(f"option {name!r} of task {task!r} needs a default, and a type: bool, int, float or str")
        found[name] = Option(name, parameter.default, kinds, choices, reach, texts.get(name, ""))
    return found


def _explained(maker: Maker) -> dict[str, str]:
    """Texts by option: lines `name: text` or `name, name: text` of the docstring; indented lines go on."""
    texts: dict[str, str] = {}
    for line in re.sub(r"\n +", " ", inspect.getdoc(maker) or "").splitlines()[2:]:
        names, colon, text = line.partition(": ")
        if colon:
            texts.update({name.strip(): text for name in names.split(",")})
    return texts


FOR_RUNS = "name its environment; diagnose and check take it as --run FOLDER, evaluate and explain as it is"


def unknown_task(name: str) -> BadInput:
    """With the task or the environment that may be meant."""
    from gymnasium import registry

    plain = {re.sub(r"[^a-z0-9]", "", one.lower()): one for one in [*registry, *TASKS]}
    plain |= {re.sub(r"v\d+$", "", low): one for low, one in plain.items()}
    if name.endswith(".py"):
        return BadInput(f"unknown task {short(name)!r}: name what is meant in that file, {short(name)}:NAME")
    if Path(name, "agent.json").is_file():
        return BadInput(f"{short(name)!r} is the folder of a run, and no environment: {FOR_RUNS}")
    if Path(f"{name.rpartition('.')[0]}.py").is_file():
        named = ".py:".join(name.rsplit(".", 1))
        return BadInput(f"unknown task {short(name)!r}: what a file names is {short(named)}")
    hint = "give the id of an environment, such as 'CartPole-v1', or one of those that `multiadvisor tasks` lists"
    if close := difflib.get_close_matches(re.sub(r"[^a-z0-9]", "", name.lower()), plain, n=1, cutoff=0.65):
        hint = f"did you mean {plain[close[0]]!r}?"
    return BadInput(f"unknown task {short(name)!r}: {hint}")


def _checked(task: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a registered task, each as it declares them."""
    if task not in TASKS:
        raise unknown_task(task)
    known = options_of(TASKS[task])
    for name in given:
        if not known:
            raise BadInput(f"task {task!r} takes no option, and so no {short(name)!r}")
        if name not in known:
            raise unknown(f"option of task {task!r}", name, known)
    return {name: known[name].checked(task, value) for name, value in given.items()}


def checked_options(task: str, given: dict[str, Any], modules: bool = False) -> dict[str, Any]:
    """Options of a task from a file, checked, and all of them: defaults are written out.

    Nothing is imported or read because a file names it: modules only where a user has named them himself, of files the
    text.
    """
    if (identifier := environment_id(task)) is not None:
        if ":" in identifier and not modules:
            raise BadInput(
                f"task {short(task)!r} names a module to import, which no file may do: name it yourself, with --task "
                "or as load(folder, name)"
            )
        if "name" in given:  # what a task is called is no business of its environment's
            raise BadInput(f"environment {short(task)!r} does not take these options: name")
        try:
            return {name: plain(value, f"option {short(name)} of {short(task)!r}") for name, value in given.items()}
        except NotPlain as reason:
            raise BadInput(f"{reason}: give numbers, strings or booleans") from None
    checked = _checked(task, given)
    for name in FILES:
        if isinstance(text := checked.get(name), str) and "\n" not in text:
            raise BadInput(f"option {name} of task {task!r} is {short(text)!r}, the name of a file: give its text")
    options = {name: option.default for name, option in options_of(TASKS[task]).items()} | checked
    return {name: value for name, value in options.items() if value is not None}


# ---- making ----------------------------------------------------------------------------------------------------------
def make(
    name: Task | gymnasium.Env | str, /, *,
    advisors: Mapping[str, Any] | Sequence[Advisor | str] | str | int | None = None,
    remainder: bool = False, components: Sequence[str] | None = None, bins: Bins | str | None = None,
    discretise: Callable[[Any], Hashable] | None = None, extra_advisor: Advisor | None = None,
    action_names: Sequence[str] | None = None,
    max_episode_steps: int | None = None, wrappers: Sequence[Any] | None = None,
    weights: Mapping[str, float] | None = None, gammas: Mapping[str, float] | None = None,
    alphas: Mapping[str, float] | None = None, **options: Any,
) -> Task:  # fmt: skip
    """A task by its name (`multiadvisor tasks` lists them), of an environment or its id, or a task itself.

    Any task takes `weights`, `gammas` and `alphas`: numbers by advisor or group, instead of its own; those before them
    are for environments, as in `Task.from_gymnasium`. All others are the task's own options, or arguments of the
    environment. `gymnasium:ID` is an environment that has the name of a task.

    >>> make("pac-boy", rules="hra").n, make("FrozenLake-v1", is_slippery=False).n
    (77, 1)
    """
    given = {
        "advisors": advisors, "remainder": remainder or None, "components": components, "bins": bins,
        "discretise": discretise, "extra_advisor": extra_advisor, "action_names": action_names,
        "max_episode_steps": max_episode_steps, "wrappers": wrappers,
    }  # fmt: skip
    options |= {key: value for key, value in given.items() if value is not None}
    if isinstance(name, Task):
        for option in options:
            raise BadInput(f"{short(option)} is for making a task, and this one is made: give it where you make it")
        task = name
    elif not isinstance(name, str):
        if isinstance(name, type):
            raise BadInput(f"{name.__name__} is a class: give an environment, {name.__name__}()")
        if hasattr(name, "step_async"):
            raise BadInput(
                "the task is a VecEnv of Stable-Baselines3: give a single environment with n_envs=8, or what "
                "gymnasium.make_vec makes"
            )
        if not hasattr(name, "step"):
            raise BadInput(
                f"the task is {short(repr(name))}: give an environment, its id, such as 'CartPole-v1', or a task"
            )
        if not hasattr(name, "unwrapped"):
            raise BadInput(f"{type(name).__name__} is no environment of Gymnasium: let the class be a gymnasium.Env")
        task = Task.from_gymnasium(name, **options)
    elif (identifier := environment_id(name)) is not None:
        task = Task.from_gymnasium(identifier, **options)
    else:
        task = make_registered(name, options)
    for what, numbers in zip(BY_ADVISOR, (weights, gammas, alphas), strict=True):
        task = task if numbers is None else task.with_numbers(what, numbers)
    return task


def make_registered(name: str, options: dict[str, Any]) -> Task:
    """A registered task; all its options, also those that were not given, are kept in it."""
    checked = _checked(name, options)
    given = {option.name: option.default for option in options_of(TASKS[name]).values()} | checked
    task: Task = TASKS[name](**checked)
    # where the maker says otherwise, such as the text of a file instead of its name, that is kept
    kept = {option: task.options.get(option, value) for option, value in given.items()}
    known = kept if task.world is None and not task.known else task.known  # an environment is known by its options
    # its defaults are those of its registration, which sweeps know before it is made
    return replace(task, maker=name, by_hand="", options=kept, known=known, defaults=defaults_of(name))


# ---- given to an agent -----------------------------------------------------------------------------------------------
OPTIONS = [each.name for each in inspect.signature(make).parameters.values() if each.kind is each.KEYWORD_ONLY]
"""What is the task's own; all else that `make` is given goes to the environment."""


def task_and_own(task: Any, advisors: Any, given: Mapping[str, Any]) -> tuple[Task, dict[str, Any]]:
    """The task that is meant, with what `make` takes for it; and settings of the learner that were given beside.

    >>> task, own = task_and_own("FrozenLake-v1", None, {"hidden": (8,), "max_episode_steps": 9})
    >>> task.name, own
    ('FrozenLake-v1', {'hidden': (8,)})
    """
    built_in = isinstance(task, str) and task in TASKS
    if advisors is not None and (built_in or isinstance(task, Task)):
        raise BadInput("advisors are for an environment, and this task has its own: leave them out")
    own = {name: value for name, value in given.items() if name in learners_with()}
    rest = {name: value for name, value in given.items() if name not in own}
    takes = [*BY_ADVISOR, *options_of(TASKS[task])] if built_in else [] if isinstance(task, Task) else OPTIONS
    for name in rest:
        if name not in takes:
            raise _unknown_keyword(task, name, takes)
    return make(task, **rest, **({} if advisors is None else {"advisors": advisors})), own


def _unknown_keyword(task: Any, name: str, takes: list[str]) -> BadInput:
    """Of an agent: with its name here, or where it belongs."""
    if isinstance(task, Task) and name in OPTIONS:
        return BadInput(f"{name} is for making a task, and this one is made: give it to make")
    known = [*(item.name for item in dataclasses.fields(Settings)), *learners_with(), *takes]
    theirs, close = neighbour(name, known), difflib.get_close_matches(name, known, n=1)
    if not isinstance(task, str) or theirs or (close and name not in own_options(task)):
        return unknown("setting", name, known)
    return BadInput(
        f"unknown setting {short(name)!r}: for the environment itself, mad.make({task!r}, {short(name)}=...)"
    )


def own_options(task: str) -> Collection[str]:
    """The names that an environment's own constructor takes; none where it cannot be asked."""
    from gymnasium.envs.registration import load_env_creator, registry

    spec = registry.get(environment_id(task) or "")
    if spec is None or spec.entry_point is None:
        return ()
    with contextlib.suppress(Exception):  # what is missing is said when it is made
        creator = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
        return inspect.signature(creator).parameters.keys()
    return ()


# ---- registering -----------------------------------------------------------------------------------------------------
def register_task(name: str, *, defaults: dict[str, Any] | None = None) -> Callable[[Maker], Maker]:
    """Register a function that makes a task: for `make`, the command line, sweeps, checkpoints and Gymnasium alike.

    Its parameters are the task's options: each has a default and a type, bool, int, float or str, so that flags and
    files can set it, and is kept in the task's `options`. `Literal` lists the values that it may have, and
    `Annotated[int, Between(1, 9)]` bounds it. Its docstring is what `tasks` shows. `defaults` become the task's own,
    whatever the function says: sweeps have to know them before the task is made.

    >>> from dataclasses import replace
    >>> from multiadvisor import make
    >>> @register_task("line")
    ... def line(length: int = 3) -> Task:
    ...     return replace(make("bridge", length=length), name="line")
    >>> make("line", length=5).maker, make("line").options
    ('line', {'length': 3})
    >>> del TASKS["line"]
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise BadInput(f"{name!r} cannot name a task: use lower-case words, with hyphens between them")

    def keep(build: Maker) -> Maker:
        if TASKS.data.get(name, build.__module__) != build.__module__:  # unless it is the built-in one itself
            raise BadInput(f"a task called {name!r} is registered already: choose another name")
        for option in options_of(build, name):
            if option in BY_ADVISOR:
                raise BadInput(f"option {option!r} of task {name!r} is one that every task has: choose another name")
        TASKS[name] = build
        if defaults is not None:
            PRESETS[name] = defaults
        _register_environment(name)
        return build

    return keep


def environment_name(task: str) -> str:
    """What Gymnasium calls a task; a word without a vowel is an abbreviation.

    >>> environment_name("pac-boy"), environment_name("random-mdp")
    ('PacBoy', 'RandomMDP')
    """
    return "".join(word.capitalize() if set(word) & set("aeiouy") else word.upper() for word in task.split("-"))


def _register_environment(task: str) -> None:
    """Make a task known to Gymnasium, as `multiadvisor/PacBoy-v0` and, with a vector reward, `mo-PacBoy-v0`.

    >>> import gymnasium, multiadvisor
    >>> gymnasium.make("multiadvisor/mo-TwoGoal-v0").unwrapped.reward_names
    ('goal 1', 'goal 2')
    """
    from gymnasium.envs.registration import register, registry

    name = f"{environment_name(task)}-v0"
    entries: dict[str, dict[str, Any]] = {
        f"multiadvisor/{'mo-' * vector}{name}": {
            "entry_point": "multiadvisor.envs.world_envs:WorldEnv",
            "disable_env_checker": vector,  # the checker takes every reward for a number
            "kwargs": {"task": task, "vector_reward": vector},
        }
        for vector in (False, True)
    }
    if task in ENVIRONMENTS:
        entries = {f"multiadvisor/{name}": {"entry_point": ENVIRONMENTS[task]}}
    for identifier, entry in entries.items():
        if identifier not in registry:  # Gymnasium warns of a name that is given twice
            register(id=identifier, **entry)


for _name in dict.fromkeys([*TASKS, *ENVIRONMENTS]):
    _register_environment(_name)
