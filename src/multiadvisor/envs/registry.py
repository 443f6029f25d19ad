"""The tasks that can be made by name. Those of the package are imported, and with them numba, when one is needed."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import replace
from typing import Any

from multiadvisor.envs.registration import register
from multiadvisor.errors import BadInput, short, unknown
from multiadvisor.task import BY_ADVISOR, Task

Maker = Callable[..., Task]
BUILT_IN = {
    "pac-boy": "pac_boy", "fruit-grid": "pac_boy", "three-fruits": "pac_boy", "four-fruits": "pac_boy",
    "two-goal": "gadgets", "dollars-and-euros": "gadgets", "bridge": "gadgets", "resource-scheduling": "gadgets",
    "random-mdp": "gadgets", "bunny": "bunny", "dyna-maze": "dyna_maze", "fishery": "fishery",
    "hra-fruits": "fruit_goals", "mountain-car": "mountain_car", "racetrack": "racetrack", "tile-chain": "tile_chain",
    "ms-pacman": "atari.ms_pacman",
}  # fmt: skip
"""The package's tasks, and the module of `worlds` that registers each when it is imported."""


class Registry(MutableMapping[str, Maker]):
    """Functions that make tasks, by name; a built-in one is imported when it is asked for."""

    def __init__(self) -> None:
        self._makers: dict[str, Maker | None] = dict.fromkeys(BUILT_IN)

    def __getitem__(self, name: str) -> Maker:
        maker = self._makers[name]
        if maker is None:
            importlib.import_module(f"multiadvisor.envs.worlds.{BUILT_IN[name]}")
            maker = self._makers[name]
            assert maker is not None
        return maker

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __setitem__(self, name: str, maker: Maker) -> None:
        self._makers[name] = maker

    def __delitem__(self, name: str) -> None:
        del self._makers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def is_free(self, name: str, maker: Maker) -> bool:
        """Whether this maker may take the name: nobody has it, or it is the built-in one itself."""
        home = f"multiadvisor.envs.worlds.{BUILT_IN.get(name)}"
        return name not in self._makers or (self._makers[name] is None and maker.__module__ == home)


TASKS = Registry()
ENVIRONMENTS = {"ms-pacman": "multiadvisor.envs.worlds.atari.emulator:MsPacman"}
"""Those of them that are no compiled worlds, and what Gymnasium makes in their place."""
DEFAULTS: dict[str, dict[str, Any]] = {
    "ms-pacman": {
        "planning": "agnostic", "gamma": 0.99, "aggregation": "normalised", "epsilon": 0.03, "steps": 300_000,
        "eval_every": 20_000, "eval_episodes": 4,
    },
}  # fmt: skip
"""Settings and parts of the schedule whose defaults are others for a task, by its name."""
FILES = ("maze",)
"""Options that name files; where a task is kept, the text of the file stands in their place."""


PREFIX = "gymnasium:"


def environment_id(name: str) -> str | None:
    """The environment's id in Gymnasium, where a name is one and not a task's; the prefix is for one named like a task.

    >>> environment_id("CartPole-v1"), environment_id("gymnasium:pac-boy"), environment_id("pac-boy")
    ('CartPole-v1', 'pac-boy', None)
    """
    if name.startswith(PREFIX):
        return name.removeprefix(PREFIX)
    if name in TASKS:
        return None
    if re.search(r"-v\d+$|[/:]", name):
        return name
    from gymnasium import registry

    return name if name in registry or any(spec.name == name for spec in registry.values()) else None


def register_task(
    name: str, *, environment: str | None = None, defaults: dict[str, Any] | None = None
) -> Callable[[Maker], Maker]:
    """Register a function that makes a task: for `make`, the command line, sweeps, checkpoints and Gymnasium alike.

    Its parameters are the task's options: each has a default and a type, bool, int, float or str, so that flags and
    files can set it, and is kept in the task's `options`. Its docstring is what `tasks` shows. If it
    is not a compiled world, `environment` names what Gymnasium creates instead, `module:Class`. `defaults` is
    the task's own `defaults`, for code that has to know it before the task is made, as sweeps do.

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
        if not TASKS.is_free(name, build):
            raise BadInput(f"a task called {name!r} is registered already: choose another name")
        hints = typing.get_type_hints(build)
        for option, parameter in inspect.signature(build).parameters.items():
            kinds = set(typing.get_args(hints.get(option)) or (hints.get(option),))
            if parameter.default is parameter.empty or not kinds <= {bool, int, float, str, type(None)}:
                raise BadInput(
                    f"option {option!r} of task {name!r} needs a default, and a type: bool, int, float or str"
                )
            if option in BY_ADVISOR:
                raise BadInput(f"option {option!r} of task {name!r} is one that every task has: choose another name")
        TASKS[name] = build
        if environment is not None:
            ENVIRONMENTS[name] = environment
        if defaults is not None:
            DEFAULTS[name] = defaults
        register(name, ENVIRONMENTS.get(name))
        return build

    return keep


def check_option(task: str, option: str) -> None:
    """Refuse what a registered task does not take."""
    known = inspect.signature(TASKS[task]).parameters
    if option in known:
        return
    if not known:
        raise BadInput(f"task {task!r} takes no option, and so no {short(option)!r}")
    raise unknown(f"option of task {task!r}", option, known)


def make_registered(name: str, options: dict[str, Any]) -> Task:
    """A registered task; all its options, also those that were not given, are kept in it."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    for option in options:
        check_option(name, option)
    parameters = inspect.signature(TASKS[name]).parameters
    given = {option: parameter.default for option, parameter in parameters.items()} | options
    task = TASKS[name](**options)
    # where the maker says otherwise, such as the text of a file instead of its name, that is kept
    kept = {option: task.options.get(option, value) for option, value in given.items()}
    known = kept if task.world is None and not task.known else task.known  # an environment is known by its options
    return replace(task, maker=name, by_hand="", options=kept, known=known)
