"""Multi-Advisor Reinforcement Learning: one task split among advisors, and an aggregator in control.

>>> import multiadvisor as mad
>>> agent = mad.MultiAdvisor(mad.make("two-goal"), planning="empathic", gamma=0.9, seed=0)
>>> agent.learn(2_000, progress=False).evaluate(games=5).score
1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from multiadvisor.version import VERSION as __version__
from multiadvisor.worlds import builtin as _builtin  # noqa: F401 registers gymnasium.make("multiadvisor/PacBoy-v0")

if TYPE_CHECKING:
    from multiadvisor import explain as explain
    from multiadvisor import theory as theory
    from multiadvisor.agent import Evaluation as Evaluation
    from multiadvisor.agent import MultiAdvisor as MultiAdvisor
    from multiadvisor.agent import load as load
    from multiadvisor.aggregations import aggregation as aggregation
    from multiadvisor.aggregations import weighted_sum as weighted_sum
    from multiadvisor.checks.check import check_task as check_task
    from multiadvisor.compiling import compiled as compiled
    from multiadvisor.errors import BadInput as BadInput
    from multiadvisor.explain import Explanation as Explanation
    from multiadvisor.plannings import Ahead as Ahead
    from multiadvisor.plannings import agnostic as agnostic
    from multiadvisor.plannings import egocentric as egocentric
    from multiadvisor.plannings import empathic as empathic
    from multiadvisor.plannings import planning as planning
    from multiadvisor.settings import DeepSettings as DeepSettings
    from multiadvisor.settings import Settings as Settings
    from multiadvisor.task import Focus as Focus
    from multiadvisor.task import Task as Task
    from multiadvisor.task import Transition as Transition
    from multiadvisor.task import World as World
    from multiadvisor.worlds.adapter import Bins as Bins
    from multiadvisor.worlds.builtin import make as make
    from multiadvisor.worlds.registry import register_task as register_task

# Loaded on first use, so that `multiadvisor --help` answers at once.
_HOME = {
    "Explanation": "explain",
    "Evaluation": "agent", "MultiAdvisor": "agent", "load": "agent",
    "aggregation": "aggregations", "weighted_sum": "aggregations",
    "check_task": "checks.check", "compiled": "compiling", "BadInput": "errors",
    "Ahead": "plannings", "planning": "plannings",
    "agnostic": "plannings", "egocentric": "plannings", "empathic": "plannings",
    "DeepSettings": "settings", "Settings": "settings",
    "Focus": "task", "Task": "task", "Transition": "task", "World": "task",
    "Bins": "worlds.adapter", "make": "worlds.builtin", "register_task": "worlds.registry",
}  # fmt: skip
_MODULES = ("explain", "theory")
__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"multiadvisor.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'multiadvisor' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"multiadvisor.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
