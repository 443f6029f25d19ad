"""What a checkout of the repository has in its folder `benchmarks`, which is no part of the installed package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

_HOME = Path(__file__).resolve().parents[3] / "benchmarks"


def beside(package: str) -> ModuleType | None:
    """A package of that folder; None where there is no checkout."""
    if not (_HOME / package).is_dir():
        return None
    if str(_HOME) not in sys.path:
        sys.path.insert(0, str(_HOME))
    return import_module(package)
