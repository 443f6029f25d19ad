"""Tasks by their names: those that come with the package, and any registered environment."""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any

from multiadvisor.envs.registration import register, register_environments
from multiadvisor.envs.registry import (
    BUILT_IN,
    ENVIRONMENTS,
    FILES,
    TASKS,
    check_option,
    environment_id,
    make_registered,
)
from multiadvisor.errors import BadInput, short, unknown
from multiadvisor.settings import finite_number
from multiadvisor.task import BY_ADVISOR, Task

if TYPE_CHECKING:
    import gymnasium

register_environments()
for _name in BUILT_IN:
    register(_name, ENVIRONMENTS.get(_name))


def make(name: str | gymnasium.Env, /, **options: Any) -> Task:
    """A task by its name (`multiadvisor tasks` lists them), or from a Gymnasium environment or its id.

    Any task takes `weights`, `gammas` and `alphas`: numbers by advisor or group, instead of its own; an
    environment takes what `Task.from_gymnasium` does. `gymnasium:ID` is an environment that has the name of a task.

    >>> make("pac-boy", rules="hra").n, make("FrozenLake-v1", is_slippery=False).n
    (77, 1)
    """
    own = {what: numbers for what in BY_ADVISOR if (numbers := options.pop(what, None)) is not None}
    if own:
        task = make(name, **options)
        for what, numbers in own.items():
            task = task.with_numbers(what, numbers)
        return task
    if not isinstance(name, str):
        return Task.from_gymnasium(name, **options)
    if (identifier := environment_id(name)) is not None:
        from multiadvisor.envs.gymnasium_tasks import make_gymnasium

        return make_gymnasium(identifier, **options)
    return make_registered(name, options)


def checked_options(task: str, given: dict[str, Any], modules: bool = False) -> dict[str, Any]:
    """Options of a task from a file, each of the kind its function declares, and all of them: defaults are written out.

    Nothing is imported or read because a file names it: modules only where a user has named them himself, of files the
    text.
    """
    if (identifier := environment_id(task)) is not None:
        if ":" in identifier and not modules:
            raise BadInput(
                f"task {short(task)!r} names a module to import, which no file may do: name it yourself, with --task "
                "or as load(folder, name)"
            )
        from multiadvisor.envs.gymnasium_tasks import plain_options

        return plain_options(task, given)
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    hints, parameters = typing.get_type_hints(TASKS[task]), inspect.signature(TASKS[task]).parameters
    options = {name: parameter.default for name, parameter in parameters.items()}
    for name, value in given.items():
        check_option(task, name)
        kinds = typing.get_args(hints[name]) or (hints[name],)
        if float in kinds and isinstance(value, int) and not isinstance(value, bool):
            value = finite_number(f"option {name} of task {task!r}", value)
        if type(value) not in kinds or (isinstance(value, int) and abs(value) >= 1 << 63):
            words = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
            raise BadInput(f"option {name} of task {task!r} is {short(repr(value))}: give a value of the kind {words}")
        if name in FILES and isinstance(value, str) and "\n" not in value:
            raise BadInput(f"option {name} of task {task!r} is {short(value)!r}, the name of a file: give its text")
        options[name] = value
    return {name: value for name, value in options.items() if value is not None}
