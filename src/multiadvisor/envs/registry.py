"""The tasks that can be made by name: whoever has one registers it here."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

from multiadvisor.envs.registration import register
from multiadvisor.errors import BadInput
from multiadvisor.task import BY_ADVISOR, Task

TASKS: dict[str, Callable[..., Task]] = {}
ENVIRONMENTS: dict[str, str] = {}
"""Those of them that are no compiled worlds, and what Gymnasium makes in their place."""
DEFAULTS: dict[str, dict[str, Any]] = {}
"""Settings and parts of the schedule whose defaults are others for a task, by its name."""
FILES = ("maze",)
"""Options that name files; where a task is kept, the text of the file stands in their place."""


def register_task(
    name: str, *, environment: str | None = None, defaults: dict[str, Any] | None = None
) -> Callable[[Callable[..., Task]], Callable[..., Task]]:
    """Register a function that makes a task: for `make`, the command line, sweeps, checkpoints and Gymnasium alike.

    Its parameters are the task's options: each has a default and a type, bool, int, float or str, so that flags and
    files can set it. The task that it returns has them as its `options`; its docstring is what `tasks` shows. If it
    is not a compiled world, `environment` names what Gymnasium creates instead, `module:Class`. `defaults` is
    the task's own `defaults`, for code that has to know it before the task is made, as sweeps do.

    >>> from dataclasses import replace
    >>> from multiadvisor import make
    >>> @register_task("line")
    ... def line(length: int = 3) -> Task:
    ...     return replace(make("bridge", length=length), name="line", options={"length": length})
    >>> make("line", length=5).maker
    'line'
    >>> del TASKS["line"]
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise BadInput(f"{name!r} cannot name a task: use lower-case words, with hyphens between them")
    if name in TASKS:
        raise BadInput(f"a task called {name!r} is registered already: choose another name")

    def keep(build: Callable[..., Task]) -> Callable[..., Task]:
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
        register(name, environment)
        return build

    return keep
