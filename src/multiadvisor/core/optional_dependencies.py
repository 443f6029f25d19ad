"""Extras: libraries that not everybody needs. Which are missing is known before anything starts, and how to get them.

The names are those of pyproject.toml.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from multiadvisor.errors import BadInput


class Extra(NamedTuple):
    """Who needs it, and the modules that it brings."""

    need: str
    modules: tuple[str, ...]


EXTRAS = {
    "plots": Extra("figures need", ("matplotlib",)),
    "video": Extra("pictures and videos of episodes need", ("imageio_ffmpeg", "PIL")),
    "mo": Extra("environments of MO-Gymnasium need", ("mo_gymnasium", "Box2D")),
    "mujoco": Extra("MuJoCo's environments need", ("mujoco",)),
    "atari": Extra("Atari games need", ("ale_py",)),
    "deep": Extra("networks need", ("jax", "optax")),
    "explorer": Extra("the explorer needs", ("starlette", "uvicorn", "websockets", "PIL")),
    "ray": Extra("the engine ray needs", ("ray",)),
    "gpu": Extra("the engine gpu needs", ("numba_cuda",)),
    "search": Extra("a search needs", ("optuna",)),
    "tensorboard": Extra("TensorBoard files need", ("tensorboardX",)),
    "parquet": Extra("Parquet needs", ("pyarrow",)),
    "benchmarks": Extra("comparisons need", ("morl_baselines", "stable_baselines3", "sbx")),
}


def missing(extra: str) -> list[str]:
    """The modules of an extra that are not installed; none is imported for it.

    >>> missing("plots") in ([], ["matplotlib"])
    True
    """
    return [name for name in EXTRAS[extra].modules if find_spec(name) is None]


def require(*extras: str) -> None:
    """Refuse to start where something of these extras is missing."""
    for extra in extras:
        if missing(extra):
            raise lacking(extra)


@contextmanager
def needed(extra: str) -> Iterator[None]:
    """Around the import of an extra: where it cannot be imported, what to install."""
    try:
        yield
    except ImportError as error:
        raise lacking(extra, error) from None


def lacking(extra: str, error: ImportError | None = None) -> BadInput:
    """What is missing, and how to install it; with the error of an import, why that failed."""
    names = missing(extra) or [f"{', '.join(EXTRAS[extra].modules)} ({error})"]
    return BadInput(f"{EXTRAS[extra].need} {', '.join(names)}: install the extra {extra} with {install(extra)}")


def install(extra: str) -> str:
    """The command that installs an extra into this very Python: from the checkout, where this is one."""
    here, home = Path.cwd(), Path(__file__).resolve().parents[3]
    what = shlex.quote(f"multiadvisor[{extra}]")
    if (home / "pyproject.toml").is_file():
        what = "-e " + shlex.quote(f".[{extra}]" if here == home else f"{home}[{extra}]")
    own = sys.executable or "python"
    if shutil.which("python") == own:
        own = "python"
    elif own.startswith(f"{here}{os.sep}"):
        own = os.path.relpath(own)
    return f"{shlex.quote(own)} -m pip install {what}"
