"""The libraries that are compared with: which are installed, and how they are measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from multiadvisor.core.optional_dependencies import install

PEERS = {"sbx": ("sbx", "sbx-rl", "SBX"), "sb3": ("stable_baselines3", "stable-baselines3", "Stable-Baselines3")}
"""The module, the package and the name of each library that is compared with."""


def peers(algorithm: str, notes: list[str]) -> dict[str, Any]:
    """This algorithm of each of them that is installed, torch on one thread; what is missing is noted."""
    found: dict[str, Any] = {}
    for name, (module, package, _) in PEERS.items():
        try:
            found[name] = getattr(import_module(module), algorithm)
            _one_thread()
        except ImportError:
            notes.append(f"{package} is not installed, and not compared with: {install('benchmarks')}")
    return found


def _one_thread() -> None:
    """Keep torch on one thread: on two it is slower where a core is busy."""
    import torch

    torch.set_num_threads(1)


def bare(environment: str) -> Any:
    """The environment as our learner makes it: the peers would ask for pictures, whose sparks slow LunarLander down."""
    import gymnasium

    return gymnasium.make(environment)


def missing(environment: str) -> str | None:
    """Why the environment cannot be made, or None."""
    import gymnasium

    try:
        gymnasium.make(environment).close()
    except Exception as error:  # whatever a missing engine raises
        return str(error).splitlines()[0]
    return None


def cpu_seconds(work: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """What it took of this process's processor time."""
    start = time.process_time()
    work(*arguments, **options)
    return time.process_time() - start
