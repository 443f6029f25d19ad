"""Jobs: a kind of work and its configuration, as plain data, named by what they are.

A kind is a name in the registry below, never a path of a module: configurations come from files, and files are data.
The experiments of this package add theirs with `@kind`, and so does a user's own file (`--import`). Its function is
`work(config, folder, tell) -> result`, or `work(config) -> result`: `folder` is a scratch folder of the job's own for
checkpoints (None: none is kept), `tell(fraction)` reports progress and shows that the job is alive. The result is JSON
data with finite numbers, and the same for the same configuration: no times, no names of machines.

>>> Job("train", {"task": "bridge"}).id
'efde8e466e2a418f'
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, NamedTuple

from multiadvisor.core.checkout import beside
from multiadvisor.errors import BadInput, short, unknown
from multiadvisor.storage.sealed import canonical, strict_json

FORMAT = 1
Tell = Callable[[float], None]
Work = Callable[..., dict[str, Any]]


def silent(share: float) -> None:
    """A `tell` for work that nobody waits for."""


class Kind(NamedTuple):
    """Where the work of a kind is, and how long it may be silent."""

    module: str
    function: str
    lease: float = 120.0
    """Seconds without a `tell` after which a job is taken for hung, its worker killed and the job tried again."""


KINDS: dict[str, Kind] = {
    "train": Kind("multiadvisor.runs.training", "train_config", 600.0),  # slow environments evaluate for minutes
}


def kind(name: str, lease: float = 120.0) -> Callable[[Work], Work]:
    """Make a function of an experiment's module the work of a kind of job."""

    def keep(work: Work) -> Work:
        if name in KINDS and KINDS[name].module != work.__module__:
            raise BadInput(f"jobs of the kind {name!r} are the work of {KINDS[name].module}: choose another name")
        KINDS[name] = Kind(work.__module__, work.__qualname__, lease)
        return work

    return keep


def experiments() -> list[ModuleType]:
    """The modules of the experiments: whatever file lies there, in a folder of theirs, or in a checkout's."""
    homes = filter(None, (import_module("multiadvisor.studies"), beside("studies")))
    return [import_module(found.name) for home in homes for found in walk_packages(home.__path__, f"{home.__name__}.")]


def kind_named(name: str) -> Kind:
    """The kind of that name, or an error that lists them; experiments are loaded only where they may have it."""
    if name not in KINDS:
        experiments()
    if name not in KINDS:
        raise unknown("kind of job", name, KINDS)
    return KINDS[name]


@dataclass(frozen=True, eq=False)
class Job:
    """One piece of work; equal jobs have equal ids, and are done once."""

    kind: str
    config: dict[str, Any]

    def __post_init__(self) -> None:
        kind_named(self.kind)
        try:
            plain = strict_json(canonical(self.config))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(
                f"the configuration of a {self.kind!r} job is no JSON data: {short(str(error), 200)}"
            ) from None
        if not isinstance(plain, dict):
            raise BadInput(f"the configuration of a {self.kind!r} job is {short(repr(plain))}: give names and values")
        object.__setattr__(self, "config", plain)

    @cached_property
    def id(self) -> str:
        """Sixteen hexadecimal digits of the SHA-256 over format, kind and configuration."""
        content = canonical({"format": FORMAT, "kind": self.kind, "config": self.config})
        return hashlib.sha256(content).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


def perform(kind: str, config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """Do the work, in this process; the result is checked to be data."""
    home = kind_named(kind)
    work: Work = getattr(import_module(home.module), home.function)
    result = work(*(config, folder, tell)[: len(signature(work).parameters)])
    if not isinstance(result, dict):
        raise TypeError(f"the work of kind {kind!r} returned {type(result).__name__}, not a dictionary")
    canonical(result)  # refuses what JSON cannot hold, and numbers that are not finite
    return result
