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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from multiadvisor.core.optional_dependencies import require
from multiadvisor.core.plugins import imported
from multiadvisor.errors import BadInput, KnowsFields, no_attribute, short, unknown

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
class LearnerSettings(KnowsFields):
    """The settings of one learner; a subclass adds its fields, each with its help text (`option`)."""

    name: str = named(AUTO)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in ("learn", "train", "predict", "act", "evaluate"):
                raise AttributeError(f"{type(self).__name__} has settings: MultiAdvisor(env, learner=...) has {name!r}")
            raise no_attribute(type(self), name)

    def __post_init__(self) -> None:
        from multiadvisor.settings import check_options

        check_options(self)

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
        found: type[LearnerSettings] = imported(self.home)
        return found

    @property
    def make(self) -> Maker:
        """What makes it; where it needs what is not installed, that is said."""
        if self.extra:
            require(self.extra)
        found: Maker = imported(self.maker)
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


_HERE = "multiadvisor.learners"
LEARNERS: dict[str, LearnerKind] = {
    kind.name: kind
    for kind in (
        LearnerKind(
            "tabular", "a table of values for each advisor", f"{_HERE}.tabular.tabular_settings:Tabular",
            f"{_HERE}.tabular.adapter_learner:tabular_learner", tables=True,
        ),
        LearnerKind(
            "linear", "one Q-function, linear in the same features (a baseline of the paper)",
            f"{_HERE}.tabular.tabular_settings:Linear", f"{_HERE}.tabular.compiled_learner:linear_learner",
            environments=False, tables=True, plans=False,
        ),
        LearnerKind(
            "dqn", "a network with outputs for each advisor", f"{_HERE}.dqn.dqn_settings:DQN",
            f"{_HERE}.dqn.dqn_learner:DeepLearner", extra="deep",
        ),
        LearnerKind(
            "sac", "an actor, and critics for each advisor", f"{_HERE}.sac.sac_settings:SAC",
            f"{_HERE}.sac.sac_learner:ContinuousLearner", actions=CONTINUOUS, worlds=False, plans=False, reweights=True,
            extra="deep",
        ),
        LearnerKind(
            "gvf", "a bank of general value functions", f"{_HERE}.gvf.gvf_spec:GVF",
            f"{_HERE}.gvf.gvf_learner:BankLearner", worlds=False, goals=True,
        ),
    )
}  # fmt: skip
"""Every learner by name; `auto` chooses among those of this package."""


def register_learner(kind: LearnerKind) -> LearnerKind:
    """Add a learner: `learner="its name"` and `--learner` know it from then on."""
    if kind.name == AUTO or (kind.name in LEARNERS and LEARNERS[kind.name].home != kind.home):
        raise BadInput(f"a learner called {kind.name!r} is registered already: choose another name")
    if kind.settings().name != kind.name:
        raise BadInput(f"the settings of {kind.name!r} call themselves {kind.settings().name!r}: name them alike")
    LEARNERS[kind.name] = kind
    return kind


def own_settings(settings: Any) -> LearnerSettings:
    """The settings of the learner of anybody's agent; one that is not of this package has the usual ones."""
    found = getattr(settings, "learner_settings", None)
    return found if isinstance(found, LearnerSettings) else LearnerSettings()


def kind_of(settings: LearnerSettings) -> LearnerKind:
    """What is registered of the learner with these settings."""
    return LEARNERS[settings.name]


def learner_settings(given: LearnerSettings | str | bool | Mapping[str, Any]) -> LearnerSettings:
    """The settings of a learner from its name, from plain data, as a file has it, or from themselves."""
    if isinstance(given, LearnerSettings):
        return given
    if isinstance(given, str) or given is True:  # True: whichever it is
        given = {"name": AUTO if given is True else given}
    if isinstance(given, type):
        raise BadInput(f"learner is the class {given.__name__}: give one with its settings, {given.__name__}()")
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


def learners_with() -> dict[str, list[LearnerKind]]:
    """Every field of the learners' own settings, and the learners that have it."""
    found: dict[str, list[LearnerKind]] = {}
    for kind in LEARNERS.values():
        for name in kind.options():
            found.setdefault(name, []).append(kind)
    return found


_ELSEWHERE = {
    ("learning_rate", "tabular"): "; its learning rate is alpha",
    ("tau", "dqn"): "; its target network is copied every target_update_interval updates",
}
_OF_TABLES = ("alpha", "alpha_half")


def refuse_of_tables(learner: LearnerSettings, given: Iterable[str], dashes: str = "") -> None:
    """A network has no alpha: who gives one means its learning rate."""
    for name in _OF_TABLES:
        if learner.network and name in given:
            shown = f"--{name.replace('_', '-')}" if dashes else name
            raise BadInput(f"{shown} is for tables, and this is learned by {learner.name}: give learning_rate")


def with_own(learner: LearnerSettings, given: Mapping[str, Any], dashes: str = "") -> LearnerSettings:
    """A learner with some of its own settings, as flags or keywords gave them.

    >>> with_own(learner_settings("dqn"), {"n_step": 3}).n_step
    3
    """
    for name in given:
        kinds = [kind.name for kind in learners_with()[name]]
        if learner.name not in kinds:
            shown, way = (f"--{name.replace('_', '-')}", "--learner ") if dashes else (name, "learner=")
            more = _ELSEWHERE.get((name, learner.name), "")
            raise BadInput(
                f"{shown} is for {' and '.join(kinds)}, and this is learned by {learner.name}: leave it out, or choose "
                f"{way}{kinds[0]}{more}"
            )
    return dataclasses.replace(learner, **given)


def resolved(task: Task, settings: Settings) -> Settings:
    """The settings with the learner that `auto` chooses for the task, and the task's defaults of that learner.

    Goals are learned by general value functions, real-valued actions by soft actor-critic, images by a network,
    whatever else has numbered states by tables, and the rest by a network.
    """
    if settings.learner_settings.name != AUTO:
        return settings
    return dataclasses.replace(settings, learner=with_defaults(chosen_for(task)[0], task.defaults))


def chosen_for(task: Task) -> tuple[str, str]:
    """The learner that `auto` chooses for a task, and why."""
    if task.goals is not None:
        return "gvf", "the task has goals"
    if task.continuous:
        return "sac", "actions are real numbers"
    if task.adapter is not None and task.adapter.sees_images:
        return "dqn", "observations are images"
    if task.adapter is None or task.adapter.refusal is None:
        return "tabular", "states can be numbered"
    return "dqn", "actions are a choice, and observations are real numbers"


def learned_by(task: Task, settings: Settings) -> str:
    """By what a task is learned, and why if `auto` would choose it too, in a line."""
    own = settings.learner_settings.name
    name, why = chosen_for(task)
    return f"learned by {own}, {LEARNERS[own].text}" + (f", as {why}" if own == name else "")


def with_defaults(learner: Any, defaults: Mapping[str, Any]) -> Any:
    """A learner as it was given; one that was only named has the task's `defaults` of it.

    >>> with_defaults("dqn", {"dqn": {"hidden": (8,)}}), with_defaults("sac", {"gamma": 0.99})
    ({'name': 'dqn', 'hidden': (8,)}, 'sac')
    """
    own = defaults.get(learner) if isinstance(learner, str) else None
    return learner if own is None else {"name": learner, **own}


def make_learner(task: Task, settings: Settings, saved: Shapes | None = None) -> Learner:
    """The learner that the settings name; `saved`: the shapes in a checkpoint, so that nothing else is made for it."""
    kind = kind_of(settings.learner_settings)
    if why := kind.refusal(task):
        raise BadInput(f"learner {kind.name!r} cannot learn task {task.name!r}: it {why}; leave learner out")
    try:
        return kind.make(task, settings, saved)
    except MemoryError as error:
        way = ": give a smaller buffer_size, or fewer hidden units" if settings.learner_settings.network else ""
        raise BadInput(
            f"learner {kind.name!r} of task {task.name!r} needs more memory than there is ({error}){way}"
        ) from None
