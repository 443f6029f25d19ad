"""Jobs: a kind of work and its configuration, as plain data, named by what they are.

A kind is a name in the closed registry below, never a path of a module: configurations come from files, and files are
data. Its function is `work(config, folder, tell) -> result`: `folder` is a scratch folder of the job's own for
checkpoints (None: none is kept), `tell(fraction)` reports progress and shows that the job is alive. The result is JSON
data with finite numbers, and the same for the same configuration: no times, no names of machines.

>>> Job("rehearsal", {"number": 1}).id
'3035d50fc96f1ea8'
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from multiadvisor.errors import BadInput, unknown
from multiadvisor.runs.sealed import canonical, strict_json

FORMAT = 1
Tell = Callable[[float], None]
Work = Callable[[dict[str, Any], Path | None, Tell], dict[str, Any]]


class Kind(NamedTuple):
    """Where the work of a kind is, and how long it may be silent."""

    module: str
    function: str
    lease: float = 120.0
    """Seconds without a `tell` after which a job is taken for hung, its worker killed and the job tried again."""


KINDS = {
    "train": Kind("multiadvisor.runs.training", "train_config", 600.0),  # slow environments evaluate for minutes
    "dqn-clipped": Kind("multiadvisor.experiments.dqn_clipped", "work", lease=1800.0),
    "random-player": Kind("multiadvisor.experiments.pac_boy", "random_work"),
    "perception": Kind("multiadvisor.experiments.noise", "radius_work"),
    "trace": Kind("multiadvisor.experiments.watching", "trace_work"),
    "resting": Kind("multiadvisor.experiments.watching", "resting_work"),
    "traps": Kind("multiadvisor.experiments.attractors", "traps_work", lease=600.0),
    "theory": Kind("multiadvisor.experiments.theory_checks", "work", lease=600.0),
    "value-function": Kind("multiadvisor.experiments.value_function", "work", lease=900.0),
    "value-function-exact": Kind("multiadvisor.experiments.value_function", "exact_work", lease=600.0),
    "scheme": Kind("multiadvisor.experiments.schemes", "run_work", lease=600.0),
    "tours": Kind("multiadvisor.experiments.tours", "tours_work", lease=600.0),
    "rehearsal": Kind("multiadvisor.runs.rehearsal", "rehearse"),
}


@dataclass(frozen=True, eq=False)
class Job:
    """One piece of work; equal jobs have equal ids, and are done once."""

    kind: str
    config: dict[str, Any]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of job", self.kind, KINDS)
        try:
            plain = strict_json(canonical(self.config))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(f"the configuration of a {self.kind!r} job is no JSON data: {error}") from None
        if not isinstance(plain, dict):
            raise BadInput(f"the configuration of a {self.kind!r} job is {plain!r}: give names and values")
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


def lease_of(kind: str) -> float:
    """How long a job of this kind may be silent, in seconds."""
    return KINDS[kind].lease


def perform(kind: str, config: dict[str, Any], folder: Path | None, tell: Tell) -> dict[str, Any]:
    """Do the work, in this process; the result is checked to be data."""
    if kind not in KINDS:
        raise unknown("kind of job", kind, KINDS)
    work: Work = getattr(import_module(KINDS[kind].module), KINDS[kind].function)
    result = work(config, folder, tell)
    if not isinstance(result, dict):
        raise TypeError(f"the work of kind {kind!r} returned {type(result).__name__}, not a dictionary")
    canonical(result)  # refuses what JSON cannot hold, and numbers that are not finite
    return result
