"""MultiAdvisor: learn, act, evaluate, save; and load."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, cast

import numpy as np

from multiadvisor.core.aggregations import LEARNED, Aggregation
from multiadvisor.core.aggregator import Aggregator, aggregator_of, doubtful, unregistered
from multiadvisor.core.identity import difference, only_in_weights, other_task, same
from multiadvisor.core.interrupt import deferred_interrupt
from multiadvisor.core.intervals import interval
from multiadvisor.core.plannings import Planning
from multiadvisor.core.progress import LearningBar
from multiadvisor.core.validation import Arrays, Shapes
from multiadvisor.errors import BadInput, Caution, short, unknown
from multiadvisor.learners.protocol import Decider, EpisodeReturns, TableLearner
from multiadvisor.learners.registry import LEARNERS, LearnerSettings, kind_of, make_learner, resolved
from multiadvisor.settings import MOST_EPISODES, Settings, whole_number
from multiadvisor.storage.checkpoint import read_checkpoint, write_checkpoint
from multiadvisor.task import BY_ADVISOR, Advisor, Task, Transition
from multiadvisor.version import VERSION

if TYPE_CHECKING:
    import gymnasium

    from multiadvisor.explain.explanation import Explanation

IMPORT_IT = "import the file that registers it first, on the command line with --import FILE.py"
_LARGEST_SCORE = 1e300  # of an episode: a mean of many would overflow
_PIECE_SECONDS = 0.1  # how long the compiled loop runs before the bar moves and Ctrl-C is heard


@dataclass(frozen=True)
class Evaluation:
    """Greedy episodes without learning: means with 95% bootstrap intervals, and each advisor's mean return by name.

    >>> import multiadvisor as mad
    >>> seen = mad.MultiAdvisor(mad.make("two-goal"), gamma=0.9).learn(2_000, progress=False).evaluate(episodes=5)
    >>> print(seen)
    5 episodes: score 1.00 [1.00, 1.00], 1.0 steps, 100% terminated
    >>> sorted(seen.advisors.values()), seen.as_dict()["episodes"]
    ([0.0, 1.0], 5)
    """

    episodes: int
    score: float
    score_interval: tuple[float, float]
    length: float
    length_interval: tuple[float, float]
    terminated: float
    """The share of episodes that ended by themselves (in Pac-Boy: all fruit eaten)."""
    advisors: dict[str, float]
    reward: float
    """The score by the weights that the task came with: by this, runs with different weights are compared."""
    metrics: dict[str, float]
    """The task's own metrics, as means: in Pac-Boy `touches` by ghosts; empty if it has none."""
    played: EpisodeReturns = dataclasses.field(repr=False)
    """The single episodes."""

    @classmethod
    def of(cls, task: Task, played: EpisodeReturns) -> Evaluation:
        """The statistics of episodes that were played."""
        largest = max(np.abs(played.returns).max(), np.abs(played.score).max())
        if not largest < _LARGEST_SCORE:
            raise BadInput(
                f"the rewards of an episode of {task.name!r} add up to {_LARGEST_SCORE:g} or more, which cannot be "
                "averaged: scale them down"
            )
        metrics = task.metrics(played.returns) if task.metrics else {}
        return cls(
            episodes=len(played.score),
            score=float(played.score.mean()),
            score_interval=interval(played.score),
            length=float(played.length.mean()),
            length_interval=interval(played.length),
            terminated=float(played.terminated.mean()),
            advisors=dict(zip(task.names, played.returns.mean(axis=0).tolist(), strict=True)),
            reward=float(task.rewards(played.score, played.returns).mean()),
            metrics={name: float(values.mean()) for name, values in metrics.items()},
            played=played,
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON: everything but the single episodes."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "played"}

    def __str__(self) -> str:
        low, high = self.score_interval
        text = (
            f"{self.episodes} episode{'s' * (self.episodes != 1)}: score {self.score:.2f} [{low:.2f}, {high:.2f}], "
            f"{self.length:.1f} steps, {self.terminated:.0%} terminated"
        )
        text += "".join(f", {value:.2f} {name}" for name, value in self.metrics.items())
        return text if self.reward == self.score else f"{text}; by the task's own weights {self.reward:.2f}"


class MultiAdvisor:
    """An agent whose advisors each learn their own part of the task and whose aggregator acts on the weighted sum.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("three-fruits"), planning="empathic", gamma=0.9, seed=0)
    >>> agent.learn(20_000, progress=False).evaluate(episodes=10).terminated
    1.0
    >>> agent.steps, agent.episodes > 0, agent.exploring, agent.losses, len(agent.advisors)
    (20000, True, 0.05, None, 3)
    >>> state = agent.task.initial_state()
    >>> names, advice = agent.advice(state)
    >>> bool(advice.sum(axis=0).argmax() == agent.preferences(state).argmax() == agent.act(state))
    True
    >>> agent.values(names[0]).shape
    (15, 4)
    """

    def __init__(
        self, task: Task | gymnasium.Env | str, settings: Settings | None = None, *,
        planning: str | Planning | None = None, aggregation: str | Aggregation | None = None,
        learner: str | LearnerSettings | Mapping[str, Any] | None = None, gamma: float | None = None,
        alpha: float | None = None, alpha_half: int | None = None, epsilon: float | None = None,
        epsilon_half: int | None = None, noise: float | None = None, seed: int | None = None,
        _saved: Shapes | None = None, **unknown_settings: Never,
    ) -> None:  # fmt: skip
        """The task may be given by its name, or as an environment of Gymnasium or its id.

        The keywords are the fields of `Settings`; those left out are as in `settings`, or the task's defaults.
        """
        if not isinstance(task, Task):
            from multiadvisor.envs.builtin import make

            task = make(task)
        given = {
            "planning": planning, "aggregation": aggregation, "learner": learner, "gamma": gamma, "alpha": alpha,
            "alpha_half": alpha_half, "epsilon": epsilon, "epsilon_half": epsilon_half, "noise": noise, "seed": seed,
        }  # fmt: skip
        changes = {name: value for name, value in given.items() if value is not None}
        self.task = task
        self.settings = resolved(task, _settings(task, settings, {**changes, **unknown_settings}))
        if task.endless and (task.gammas(self.settings.gamma) == 1.0).any():
            raise BadInput(f"gamma is 1 and no episode of {task.name!r} ever ends: choose it below 1")
        self._learner = make_learner(task, self.settings, _saved)
        self._cautioned = False
        bounds = getattr(task.world, "bounds", None)
        if bounds is not None:
            self._caution(np.minimum(task.weights * bounds[:, 0], task.weights * bounds[:, 1]))
        self._piece = 2000 if task.adapter is None else 20  # nobody knows how long a step of such a world takes

    def __repr__(self) -> str:
        return f"MultiAdvisor({self.task.name!r}, {self.settings}, {self.steps} steps)"

    # ---- what was learned --------------------------------------------------------------------------------------------
    @property
    def steps(self) -> int:
        """The number of transitions learned from."""
        return self._learner.steps

    @property
    def episodes(self) -> int:
        """The number of episodes played to their end."""
        return self._learner.episodes

    @property
    def exploring(self) -> float:
        """The probability of a random action in the next step; 0 for continuous actions."""
        return float(self._learner.epsilon_now())

    @property
    def losses(self) -> dict[str, float] | None:
        """A network's loss in its last updates, by advisor or in total; None without a network."""
        return self._learner.last_losses()

    @property
    def advisors(self) -> tuple[Advisor, ...]:
        """The advisors: the task's advisors, or those that a network was told to learn instead."""
        return self._learner.advisors

    @property
    def aggregator(self) -> Aggregator:
        """How the aggregator combines these advisors."""
        return self._learner.aggregator

    def aggregator_at(self, state: Any) -> Aggregator:
        """How it combines those that are active in a state [m]: under `gpi` with what their plans are worth there."""
        return self._learner.aggregator_at(state)

    def values(self, advisor: str | int) -> np.ndarray:
        """Q_j [local states, A] of one advisor, by name or index."""
        if isinstance(advisor, str):
            if advisor not in self.task.names:
                raise BadInput(f"no advisor is called {advisor!r} in task {self.task.name!r}")
            advisor = self.task.names.index(advisor)
        if not 0 <= advisor < self.task.n:
            raise BadInput(f"advisor {advisor} is not among the {self.task.n} of task {self.task.name!r}")
        return self._learner.values(advisor)

    def advice(self, state: Any, actions: Any = None) -> tuple[tuple[str, ...], np.ndarray]:
        """The names of the active advisors [m] in a state, and their advice [m, A].

        The state is an observation of a Gymnasium task, or the state x of a compiled world. Continuous actions are
        given, [k, ...], and the advice is [m, k]; by default k is 1, and it is the action that the agent takes.
        """
        told = self._learner.consult(state) if actions is None else self._learner.judge_actions(state, actions)
        return told.names, told.advice

    def preferences(self, state: Any) -> np.ndarray:
        """Q_Sigma(x, .) [A]."""
        return self._learner.preferences(state)

    def act(self, state: Any, draw: float = 0.0, *, explore: bool = False) -> Any:
        """The greedy action, as the environment numbers it; `draw` in [0, 1) picks among exact ties.

        With `explore`, the action that learning would take: random with probability epsilon, drawn from the seed.
        For continuous actions it is the actor's, an array in the environment's own form.
        """
        return self._learner.act(state, draw, explore=explore)

    @property
    def decider(self) -> Decider:
        """What decides on its steps: traces, reports, videos and the page ask for nothing else."""
        return self._learner

    @property
    def tables(self) -> TableLearner:
        """The tables of an agent in a compiled world, to read exact values or to fill them in; others have none.

        >>> import multiadvisor as mad
        >>> agent = mad.MultiAdvisor(mad.make("two-goal"))
        >>> agent.tables.fill(0, np.array([0]), np.array([[0.0, 1.0, 0.0]]))
        >>> agent.values(0).tolist()
        [[0.0, 1.0, 0.0]]
        """
        if self.task.world is None or not kind_of(self.settings.learner_settings).tables:
            raise BadInput(f"the agent of task {self.task.name!r} has no tables of a compiled world: {self.settings}")
        return cast("TableLearner", self._learner)

    def explain(self, state: Any, action: Any = None, against: Any = None) -> Explanation:
        """Why the aggregator takes `action` (default: the greedy one) rather than `against` (default: the next best).

        Actions are given by name, or by number as the environment counts them; continuous ones as arrays, and the
        default to compare with is the centre of the box.

        >>> import multiadvisor as mad
        >>> agent = mad.MultiAdvisor(mad.make("two-goal"), seed=0).learn(2_000, progress=False)
        >>> agent.explain(agent.task.initial_state(), against="a_0").disagreement > 0
        True
        """
        from multiadvisor.explain.explanation import explain

        return explain(self, state, action, against)

    def reweight(self, _critic: str = "sum", /, **weights: float) -> MultiAdvisor:
        """Continue with other weights, by advisor or group, from the same replay buffer; returns self.

        For continuous actions the buffer stores the terms separately, and the actor's critic is reinitialised to
        the weighted "sum" of the advisors' values, or is "kept". Values of tables and networks that do not depend on
        the weights stay as they are; others are refused, as they would have to be learned again.

        >>> import multiadvisor as mad
        >>> agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric")
        >>> agent.reweight(**{agent.task.names[0]: 2.0}).task.weights[0]
        np.float64(2.0)
        """
        if _critic not in REWEIGHTED:
            raise unknown("way to reweight", _critic, REWEIGHTED)
        task = self.task.with_weights(**weights)
        self._learner = self._learner.reweighted(task, _critic == "sum")
        self.task = task
        return self

    def _begin_reweighted(self) -> None:
        """Where the agent was loaded with other weights: what `reweight` does on top of that."""
        if kind_of(self.settings.learner_settings).reweights:
            self._learner = self._learner.reweighted(self.task, True)

    # ---- learning and playing ----------------------------------------------------------------------------------------
    def _prepare(self) -> MultiAdvisor:
        """Compile for this machine, if not done yet; `learn` and `evaluate` do so automatically."""
        self._learner.prepare()
        return self

    def learn(self, steps: int, *, progress: bool | None = None) -> MultiAdvisor:
        """Learn from this many more transitions; returns self.

        Ctrl-C stops between two transitions: nothing is lost, and another call continues from there.
        """
        steps = whole_number("steps", steps)
        self._prepare()
        learner, left = self._learner, steps
        with deferred_interrupt() as stop, LearningBar(steps, progress) as bar:
            while left > 0 and not stop.requested:
                size = min(left, self._piece)
                before, episodes, score = learner.steps, learner.episodes, learner.score_sum
                start = time.perf_counter()
                learner.run(size)
                taken = time.perf_counter() - start
                left -= learner.steps - before
                played = learner.episodes - episodes
                bar.advance(learner.steps - before, (learner.score_sum - score) / played if played else None)
                if taken < _PIECE_SECONDS:
                    self._piece = min(self._piece * 4, 5_000_000) if size == self._piece else self._piece
                elif taken > 4 * _PIECE_SECONDS:
                    self._piece = max(size // 4, 1)
        return self

    def observe(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, terminated: bool,
        truncated: bool = False, info: dict[str, Any] | None = None, *, next_action: int | None = None,
    ) -> None:  # fmt: skip
        """Learn from one transition that was played elsewhere; transitions may come in any order.

        Actions are the environment's own. `next_action`, the one taken in the next observation, is for plannings that
        learn from it, as sarsa does. If the agent was in the middle of its own episode, that episode is abandoned.

        >>> import multiadvisor as mad
        >>> agent = mad.MultiAdvisor(mad.Task.from_gymnasium("FrozenLake-v1"), alpha=0.5)
        >>> agent.observe(14, 2, 1.0, 15, terminated=True)
        >>> agent.act(14), agent.preferences(14).tolist()
        (2, [0.0, 0.0, 0.5, 0.0])
        """
        read = self._learner.read_action
        following = None if next_action is None else read("next_action", next_action)
        action = read("action", action) + self.task.first_action
        ends, cut = bool(terminated), bool(truncated)
        transition = Transition(observation, action, reward, next_observation, ends, cut, info or {})
        self._learner.observe(transition, following)

    def evaluate(self, episodes: int = 10, *, seeds: tuple[int, ...] = (0,)) -> Evaluation:
        """Play `episodes` greedy episodes for each seed, without learning."""
        episodes = whole_number("episodes", episodes, 1, MOST_EPISODES)
        seeds = tuple(whole_number("seed", seed) for seed in seeds)
        if not seeds:
            raise BadInput("no seed to evaluate with: give at least one")
        parts = [self.play(episodes, seed) for seed in seeds]
        self._caution(np.min([(part.returns * self.task.weights).min(axis=0) for part in parts], axis=0))
        return Evaluation.of(self.task, EpisodeReturns(*(np.concatenate(axis) for axis in zip(*parts, strict=True))))

    def play(self, episodes: int, seed: int = 0) -> EpisodeReturns:
        """The single episodes of `evaluate(episodes, seeds=(seed,))`, without statistics."""
        self._prepare()
        return self._learner.evaluate(episodes, seed)

    def _caution(self, lowest: np.ndarray) -> None:
        """Say it once where an advisor under a maximum has less than nothing to wish for; lowest [n], weighted."""
        if self._cautioned or not self.settings.learner_settings.per_advisor:
            return
        doubt = doubtful(self.task, aggregator_of(self.task, self.settings.aggregation, LEARNED), lowest)
        if doubt is not None:
            self._cautioned = True
            warnings.warn(doubt, Caution, stacklevel=3)

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def save(self, path: str | Path, record: dict[str, Any] | None = None) -> None:
        """Save to a folder, atomically; `record` may hold anything that JSON can.

        >>> import tempfile, multiadvisor as mad
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mad.MultiAdvisor(mad.make("two-goal")).save(folder)
        ...     sorted(path.suffix for path in Path(folder).iterdir())
        ['.json', '.safetensors']
        """
        header = {
            "version": VERSION,
            "task": self.task.as_data(),
            "settings": dataclasses.asdict(self.settings),
            "steps": self.steps,
            "record": record or {},
        }
        write_checkpoint(Path(path), header, self.tensors())

    def tensors(self) -> Arrays:
        """Everything that was learned, and where the run stands, by name."""
        return self._learner.tensors()


def _settings(task: Task | None, settings: Settings | None, changes: dict[str, Any]) -> Settings:
    known = [item.name for item in dataclasses.fields(Settings)]
    if settings is None and task is not None:
        changes = {**{name: value for name, value in task.defaults.items() if name in known}, **changes}
    for name in changes:
        if name not in known:
            raise unknown("setting", name, known)
    return dataclasses.replace(settings or Settings(), **changes)


REWEIGHTED = ("sum", "kept")


def load(path: str | Path, task: Task | str | None = None, *, reweight: bool | None = None) -> MultiAdvisor:
    """An agent as it was saved; training continues bit for bit as if it had never stopped.

    A task of plain data is recreated; one with your own functions has to be passed, and must be the same in all that
    can be known of it. Passing the task's name gives permission to import the module that it contains.

    A task with other weights is accepted if the values do not depend on them, as with egocentric and agnostic planning;
    with `reweight=True` always, with False never.

    >>> import tempfile
    >>> import multiadvisor as mad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mad.MultiAdvisor(mad.make("two-goal")).learn(100, progress=False).save(folder)
    ...     load(folder).steps
    100
    """
    return load_with_record(path, task, reweight)[0]


def load_with_record(
    path: str | Path, task: Task | str | None = None, reweight: bool | None = None
) -> tuple[MultiAdvisor, dict[str, Any]]:
    """`load`, with the record that was saved beside the agent."""
    folder = Path(path)
    header, tensors = read_checkpoint(folder)
    for part, names in ((header, _FIELDS), (header.get("task"), _TASK_FIELDS)):
        if not isinstance(part, dict) or {*part} != {*names}:
            odd = sorted({*part} ^ {*names})[0] if isinstance(part, dict) else "task"
            raise BadInput(f"the checkpoint {str(folder)!r} lacks or misnames a field: {short(odd)!r}")
    saved, record, steps = header["task"], header["record"], header["steps"]
    known = settings_of(folder, header["settings"])
    for name, kind in (*_TASK_FIELDS.items(), ("record", dict)):
        if not isinstance(record if name == "record" else saved[name], kind):
            raise BadInput(f"the checkpoint {str(folder)!r} holds no valid {name}: restore it from a copy")
    if not isinstance(task, Task):
        task, reweight = _made_again(folder, saved, task), False  # its weights come from the same file
    reweighted = _check_same(folder, saved, task, reweight)
    agent = MultiAdvisor(task, known, _saved={key: array.shape for key, array in tensors.items()})
    if reweighted and not reweight and (why := agent._learner.refuses_weights()):
        raise BadInput(
            f"the checkpoint {str(folder)!r} is of an agent whose {why}, and the given task has others: give "
            "reweight=True to use it anyway, or train again"
        )
    agent._learner.restore(tensors)
    if unasked := sorted({*tensors} ^ {*agent._learner.tensors()}):
        raise BadInput(
            f"the checkpoint {str(folder)!r} holds {short(unasked[0])!r}, which is nothing of such an agent's"
        )
    if type(steps) is not int or steps != agent.steps:
        raise BadInput(
            f"the checkpoint {str(folder)!r} does not say how many steps it has learned: restore it from a copy"
        )
    return agent, record


_FIELDS = ("format", "kind", "version", "task", "settings", "steps", "record", "values")
_TASK_FIELDS = {"name": str, "maker": str, "by_hand": str, "options": dict, "identity": dict}


def settings_of(folder: Path, settings: Any) -> Settings:
    """The settings in a checkpoint, in full; what is not registered here is named, with the way out."""
    if not isinstance(settings, dict):
        raise BadInput(f"the settings in the checkpoint {str(folder)!r} are no table: restore it from a copy")
    try:
        lacking = unregistered(settings) or _unregistered_learner(settings)
        if lacking is None:
            found = _settings(None, None, settings)
    except BadInput as error:
        raise BadInput(f"the settings in the checkpoint {str(folder)!r} are not those of an agent: {error}") from None
    if lacking is not None:
        raise BadInput(
            f"the checkpoint {str(folder)!r} was made with {lacking}, which is not registered here: {IMPORT_IT}"
        )
    if told := difference(settings, dataclasses.asdict(found)):
        raise BadInput(f"the settings in the checkpoint {str(folder)!r} are not as an agent has them: {told}")
    return found


def _unregistered_learner(settings: dict[str, Any]) -> str | None:
    """The learner of these settings, read from a file, where it is not registered here."""
    given = settings.get("learner")
    name = given.get("name") if isinstance(given, dict) else None
    return f"the learner {short(name)!r}" if isinstance(name, str) and name not in LEARNERS else None


def _made_again(folder: Path, saved: dict[str, Any], named: str | None) -> Task:
    """The task of a checkpoint, from its data. Only a user who names it himself gives leave to import a module."""
    from multiadvisor.envs.builtin import checked_options, make
    from multiadvisor.envs.registry import PREFIX, TASKS, environment_id

    name, maker = saved["name"], saved["maker"]
    if named is not None and named not in (name, maker):
        named = named.removeprefix(PREFIX)
    if named is not None and named not in (name, maker):
        raise BadInput(f"the checkpoint {str(folder)!r} is of task {short(maker or name)!r} and not of {named!r}")
    if not maker:
        reason = short(saved["by_hand"], 200)
        raise BadInput(
            f"the checkpoint {str(folder)!r} was made for task {short(name)!r}, which cannot be recreated from data, "
            "as "
            f"{reason}: give task="
        )
    options = dict(saved["options"])
    if environment_id(maker) is None and maker not in TASKS:
        raise BadInput(
            f"the checkpoint {str(folder)!r} was made for task {short(maker)!r}, which is not registered here: "
            f"{IMPORT_IT}"
        )
    own = {what: options.pop(what) for what in BY_ADVISOR if what in options}
    try:
        checked = checked_options(maker, options, modules=named == maker)
        task = make(maker, **checked, **own)
    except BadInput as error:
        raise BadInput(f"the task of the checkpoint {str(folder)!r} cannot be recreated: {error}") from None
    except TypeError as error:
        raise BadInput(f"the task of the checkpoint {str(folder)!r} cannot be made: {short(str(error), 200)}") from None
    if not same(saved["options"], task.options) or saved["by_hand"]:
        told = difference(saved["options"], task.options) or "it says that it cannot be made from them"
        raise BadInput(f"the options in the checkpoint {str(folder)!r} are not as its task has them: {told}")
    return dataclasses.replace(task, name=name)


def _check_same(folder: Path, saved: dict[str, Any], task: Task, reweight: bool | None) -> bool:
    """Refuse another task than the one in the checkpoint; whether it differs in its weights, and may."""
    reweighted = reweight is not False and only_in_weights(saved["identity"], task.identity)
    if told := other_task(saved, task, reweighted):
        raise BadInput(
            f"the checkpoint {str(folder)!r} was made for task {short(saved['name'])!r} with other advisors, weights "
            f"or options than the given {short(task.name)!r} ({told}): load it with the task it was made for"
        )
    return reweighted
