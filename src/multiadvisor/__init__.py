"""Multi-Advisor Reinforcement Learning: one task split among advisors, and an aggregator in control.

>>> import multiadvisor as mad
>>> agent = mad.MultiAdvisor(mad.make("two-goal"), planning="empathic", gamma=0.9, seed=0)
>>> agent.learn(2_000, progress=False).evaluate(episodes=5).score
1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from multiadvisor.envs import registry as _registry  # noqa: F401 registers gymnasium.make("multiadvisor/PacBoy-v0")
from multiadvisor.version import VERSION as __version__

if TYPE_CHECKING:
    from multiadvisor import explain as explain
    from multiadvisor.agent import Evaluation as Evaluation
    from multiadvisor.agent import MultiAdvisor as MultiAdvisor
    from multiadvisor.agent import load as load
    from multiadvisor.analysis import theory as theory
    from multiadvisor.analysis.checks.task_check import check_task as check_task
    from multiadvisor.core.aggregations import register_aggregation as register_aggregation
    from multiadvisor.core.compiling import compiled as compiled
    from multiadvisor.core.plannings import Ahead as Ahead
    from multiadvisor.core.plannings import agnostic as agnostic
    from multiadvisor.core.plannings import egocentric as egocentric
    from multiadvisor.core.plannings import empathic as empathic
    from multiadvisor.core.plannings import register_planning as register_planning
    from multiadvisor.diagnosis.diagnosis import Diagnosis as Diagnosis
    from multiadvisor.diagnosis.diagnosis import diagnose as diagnose
    from multiadvisor.envs.registry import make as make
    from multiadvisor.envs.registry import register_task as register_task
    from multiadvisor.envs.spaces import Bins as Bins
    from multiadvisor.errors import BadInput as BadInput
    from multiadvisor.explain.explanation import Explanation as Explanation
    from multiadvisor.learners.dqn.dqn_settings import DQN as DQN
    from multiadvisor.learners.gvf.gvf_spec import GVF as GVF
    from multiadvisor.learners.sac.sac_settings import SAC as SAC
    from multiadvisor.learners.tabular.tabular_settings import Linear as Linear
    from multiadvisor.learners.tabular.tabular_settings import Tabular as Tabular
    from multiadvisor.runs.grid_sweep import sweep as sweep
    from multiadvisor.settings import Settings as Settings
    from multiadvisor.task import Advisor as Advisor
    from multiadvisor.task import Task as Task
    from multiadvisor.task import Transition as Transition
    from multiadvisor.task import World as World

# Loaded on first use, so that `multiadvisor --help` answers at once.
_HOME = {
    "Diagnosis": "diagnosis.diagnosis", "diagnose": "diagnosis.diagnosis", "Explanation": "explain.explanation",
    "Evaluation": "agent", "MultiAdvisor": "agent", "load": "agent",
    "register_aggregation": "core.aggregations",
    "check_task": "analysis.checks.task_check", "compiled": "core.compiling", "BadInput": "errors",
    "Ahead": "core.plannings", "register_planning": "core.plannings",
    "agnostic": "core.plannings", "egocentric": "core.plannings", "empathic": "core.plannings",
    "Settings": "settings", "sweep": "runs.grid_sweep",
    "Tabular": "learners.tabular.tabular_settings", "Linear": "learners.tabular.tabular_settings",
    "DQN": "learners.dqn.dqn_settings", "SAC": "learners.sac.sac_settings", "GVF": "learners.gvf.gvf_spec",
    "Advisor": "task", "Task": "task", "Transition": "task", "World": "task",
    "Bins": "envs.spaces", "make": "envs.registry", "register_task": "envs.registry",
}  # fmt: skip
_MODULES = {"explain": "explain", "theory": "analysis.theory"}
__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"multiadvisor.{_MODULES[name]}")
    if name not in _HOME:
        from multiadvisor.errors import neighbour, similar

        close = [] if name.startswith("_") else similar(name, __all__)
        answer = neighbour(name, _HOME) or (f"did you mean {close[0]!r}?" if close else "")
        raise AttributeError(f"module 'multiadvisor' has no attribute {name!r}{': ' if answer else ''}{answer}")
    value = getattr(importlib.import_module(f"multiadvisor.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
