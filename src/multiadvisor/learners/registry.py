"""The learners by name: the settings of each, where it is, and what it can learn.

A learner is a folder of `learners/`, or a user's own file: its settings are a frozen dataclass, and its class is
imported when a task is learned with it, so that tables never wait for JAX. Flags, help, errors and grids follow from
what is registered here.

>>> [kind.name for kind in LEARNERS.values()]
['tabular', 'linear', 'dqn', 'sac', 'gvf']
>>> learner_settings({"name": "dqn", "hidden": [8]}).hidden
(8,)
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput, short, unknown

if TYPE_CHECKING:
    from multiadvisor.core.validation import Shapes
    from multiadvisor.learners.protocol import Learner
    from multiadvisor.settings import Settings
    from multiadvisor.task import Task

AUTO = "auto"
FINITE, CONTINUOUS = "finite", "continuous"
Maker = Callable[["Task", "Settings", "Shapes | None"], "Learner"]


def named(name: str) -> str:
    """The field that says whose settings these are, in a file too."""
    found: str = dataclasses.field(default=name, init=False, repr=False)
    return found


@dataclass(frozen=True)
class LearnerSettings:
    """The settings of one learner; a subclass adds its fields, each with its help text (`option`)."""

    name: str = named(AUTO)
    network: ClassVar[bool] = False
    """Whether its values are a network's: approximate, never quite the same twice, and able to diverge."""
    summed: ClassVar[bool] = False
    """Whether one value is learned for all advisors together, so that a single one's means nothing."""
    entropy: ClassVar[bool] = False
    """Whether it is paid for entropy besides, of which something is expected too."""
    points: ClassVar[bool] = False
    """Whether its advisors point at goals, with weights that change from step to step."""
    explores: ClassVar[str] = "explore more (epsilon)"
    """What to do for more exploration."""

    @property
    def per_advisor(self) -> bool:
        """Whether each of the task's advisors has values of its own."""
        return True

    @property
    def ahead(self) -> int:
        """How many transitions learning may be past the number that it was asked for."""
        return 0

    def stands_for(self, task: Task) -> tuple[tuple[int, ...], ...] | None:
        """For each advisor that is learned, the task's advisors whose weighted sum it is; None: they are the task's."""
        return None

    def own_draws(self, task: Task) -> bool:
        """Whether each episode of an evaluation has random numbers of its own, and is the same whichever others are
        played."""
        return False

    def as_learned(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards as they are learned from."""
        return rewards

    def check(self, settings: Settings) -> None:
        """Refuse what this learner cannot do of the settings that all learners have."""

    def _put(self, name: str, value: Any) -> None:
        """A field in its plain form: NumPy's numbers are welcome, and kept as Python's."""
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class LearnerKind:
    """A registered learner: where it is, and what it can learn."""

    name: str
    text: str
    """What it is, in one line."""
    home: str | type[LearnerSettings]
    """Its settings, as module:Class, or the class itself."""
    maker: str | Maker
    """Makes the learner of a task, from its settings and the shapes in a checkpoint: module:function, or itself."""
    actions: str = FINITE
    """Of what kind actions are: a finite choice, or real numbers."""
    worlds: bool = True
    """Whether it learns in compiled worlds."""
    environments: bool = True
    """Whether it learns in Python environments."""
    goals: bool = False
    """Whether it learns tasks with goals, and no others."""
    tables: bool = False
    """Whether its values are exact entries of tables, one row for each local state of an advisor."""
    reweights: bool = False
    """Whether it goes on with other weights although they are in what it learned."""
    plans: bool = True
    """Whether the setting `planning` says how it learns."""
    extra: str = ""
    """The optional dependencies that it needs."""

    @property
    def settings(self) -> type[LearnerSettings]:
        """The class of its settings."""
        found: type[LearnerSettings] = _imported(self.home)
        return found

    @property
    def make(self) -> Maker:
        """What makes it; where it needs what is not installed, that is said."""
        if self.extra:
            require(self.extra)
        found: Maker = _imported(self.maker)
        return found

    def options(self) -> dict[str, dataclasses.Field[Any]]:
        """The fields of its settings by name: its flags, and its part of a grid."""
        return {item.name: item for item in dataclasses.fields(self.settings) if item.name != "name"}

    def refusal(self, task: Task) -> str:
        """Why it cannot learn this task; empty where nothing speaks against it."""
        if self.goals and task.goals is None:
            return "is for tasks with goals, and it has none"
        if task.goals is not None and not self.goals:
            return "knows no goals, which general value functions learn"
        if task.continuous and self.actions == FINITE:
            return "is for a finite choice of actions, and its actions are real numbers"
        if not task.continuous and self.actions == CONTINUOUS:
            return "is for actions that are real numbers, and its actions are a finite choice"
        if task.world is not None and not self.worlds:
            return "is for Python environments, and it is a compiled world"
        if task.world is None and not self.environments:
            return "needs a compiled world, and it is a Python environment"
        return ""


def _imported(place: Any) -> Any:
    """What `module:name` stands for; anything else is itself."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


_HERE = "multiadvisor.learners"
LEARNERS: dict[str, LearnerKind] = {
    kind.name: kind
    for kind in (
        LearnerKind(
            "tabular", "a table of values for each advisor", f"{_HERE}.tabular.tabular_settings:Tabular",
            f"{_HERE}.tabular.tabular_settings:make_tabular", tables=True,
        ),
        LearnerKind(
            "linear", "one Q-function, linear in the same features (a baseline of the paper)",
            f"{_HERE}.tabular.tabular_settings:Linear", f"{_HERE}.tabular.tabular_settings:make_linear",
            environments=False, tables=True, plans=False,
        ),
        LearnerKind(
            "dqn", "a network with outputs for each advisor", f"{_HERE}.dqn.dqn_settings:DQN",
            f"{_HERE}.dqn.dqn_learner:make_dqn", extra="deep",
        ),
        LearnerKind(
            "sac", "an actor, and critics for each advisor", f"{_HERE}.sac.sac_settings:SAC",
            f"{_HERE}.sac.sac_learner:make_sac", actions=CONTINUOUS, worlds=False, plans=False, reweights=True,
            extra="deep",
        ),
        LearnerKind(
            "gvf", "a bank of general value functions", f"{_HERE}.gvf.gvf_settings:GVF",
            f"{_HERE}.gvf.gvf_learner:make_gvf", worlds=False, goals=True,
        ),
    )
}  # fmt: skip
"""Every learner by name; `auto` chooses among those of this package."""


def register_learner(kind: LearnerKind) -> LearnerKind:
    """Add a learner: `learner="its name"` and `--learner` know it from then on."""
    if kind.name == AUTO or (kind.name in LEARNERS and LEARNERS[kind.name].home != kind.home):
        raise BadInput(f"a learner called {kind.name!r} is registered already: choose another name")
    if kind.settings().name != kind.name:
        raise BadInput(
            f"the settings of learner {kind.name!r} call themselves {kind.settings().name!r}: name them alike"
        )
    LEARNERS[kind.name] = kind
    return kind


def own_settings(settings: Any) -> LearnerSettings:
    """The settings of the learner of anybody's agent; one that is not of this package has the usual ones."""
    found = getattr(settings, "learner_settings", None)
    return found if isinstance(found, LearnerSettings) else LearnerSettings()


def kind_of(settings: LearnerSettings) -> LearnerKind:
    """What is registered of the learner with these settings."""
    return LEARNERS[settings.name]


def learner_settings(given: LearnerSettings | str | Mapping[str, Any]) -> LearnerSettings:
    """The settings of a learner from its name, from plain data, as a file has it, or from themselves."""
    if isinstance(given, LearnerSettings):
        return given
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        raise BadInput(f"learner is {short(repr(given))}: give its name, or settings such as DQN(...)")
    name, own = given["name"], {key: value for key, value in given.items() if key != "name"}
    if name not in LEARNERS and name != AUTO:
        raise unknown("learner", name, [AUTO, *LEARNERS])
    known = {} if name == AUTO else LEARNERS[name].options()
    for key in own:
        if key not in known:
            raise (
                unknown(f"setting of {name}", key, known)
                if known
                else BadInput(f"learner {name!r} has no settings of its own, and {key!r} is given: leave it out")
            )
    return LearnerSettings() if name == AUTO else LEARNERS[name].settings(**own)


def resolved(task: Task, settings: Settings) -> Settings:
    """The settings with the learner that `auto` chooses for the task.

    Goals are learned by general value functions, real-valued actions by soft actor-critic, whatever has numbered states
    by tables, and the rest by a network.
    """
    if settings.learner_settings.name != AUTO:
        return settings
    if task.goals is not None:
        name = "gvf"
    elif task.continuous:
        name = "sac"
    else:
        name = "tabular" if task.adapter is None or task.adapter.refusal is None else "dqn"
    return dataclasses.replace(settings, learner=name)


def make_learner(task: Task, settings: Settings, saved: Shapes | None = None) -> Learner:
    """The learner that the settings name; `saved`: the shapes in a checkpoint, so that nothing else is made for it."""
    kind = kind_of(settings.learner_settings)
    if why := kind.refusal(task):
        raise BadInput(f"learner {kind.name!r} cannot learn task {task.name!r}: it {why}; leave learner out")
    return kind.make(task, settings, saved)
