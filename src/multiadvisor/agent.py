"""MultiAdvisor: learn, act, evaluate, save; and load."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from multiadvisor.core.aggregations import Aggregation
from multiadvisor.core.aggregator import Aggregator, aggregator_of, doubtful
from multiadvisor.core.interrupt import deferred_interrupt
from multiadvisor.core.intervals import interval
from multiadvisor.core.learned import TABLES
from multiadvisor.core.plannings import Planning
from multiadvisor.core.validation import Arrays, Shapes
from multiadvisor.envs.registry import task_and_own
from multiadvisor.envs.spaces import separate
from multiadvisor.errors import BadInput, Caution, KnowsNeighbours, knows_arguments, no_attribute, short, unknown
from multiadvisor.learners.keywords import Keywords
from multiadvisor.learners.kinds import (
    LearnerSettings,
    kind_of,
    learned_by,
    make_learner,
    refuse_of_tables,
    resolved,
    with_own,
)
from multiadvisor.learners.protocol import Decider, EpisodeReturns
from multiadvisor.settings import MOST_EPISODES, Settings, as_integer, described, whole_number
from multiadvisor.storage.checkpoint import write_checkpoint
from multiadvisor.storage.files import named
from multiadvisor.storage.saved_agent import read_agent
from multiadvisor.task import Advisor, Task, Transition
from multiadvisor.version import VERSION

if TYPE_CHECKING:
    import gymnasium

    from multiadvisor.explain.explanation import Explanation
    from multiadvisor.learners.tabular.compiled_learner import CompiledLearner
    from multiadvisor.runs.training import Callback

_REWEIGHTED = ("sum", "kept")
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
    length: float
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
            length=float(played.length.mean()),
            terminated=float(played.terminated.mean()),
            advisors=dict(zip(task.names, played.returns.mean(axis=0).tolist(), strict=True)),
            reward=float(task.rewards(played.score, played.returns).mean()),
            metrics={name: float(values.mean()) for name, values in metrics.items()},
            played=played,
        )

    @cached_property
    def score_interval(self) -> tuple[float, float]:
        """Of the mean score."""
        return interval(self.played.score)

    @cached_property
    def length_interval(self) -> tuple[float, float]:
        """Of the mean length."""
        return interval(self.played.length)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: everything but the single episodes."""
        intervals = {"score": "score_interval", "length": "length_interval"}
        names = [f.name for f in dataclasses.fields(self) if f.name != "played"]
        return {key: getattr(self, key) for name in names for key in (name, intervals.get(name)) if key}

    def __str__(self) -> str:
        low, high = self.score_interval
        text = (
            f"{self.episodes} episode{'s' * (self.episodes != 1)}: score {self.score:.2f} [{low:.2f}, {high:.2f}], "
            f"{self.length:.1f} steps, {self.terminated:.0%} terminated"
        )
        text += "".join(f", {value:.2f} {name}" for name, value in self.metrics.items())
        return text if self.reward == self.score else f"{text}; by the task's own weights {self.reward:.2f}"


class MultiAdvisor(metaclass=KnowsNeighbours):
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
        self, task: Task | gymnasium.Env | str | None = None, settings: Settings | None = None, *,
        advisors: Any = None, planning: str | Planning | None = None, aggregation: str | Aggregation | None = None,
        learner: str | bool | LearnerSettings | Mapping[str, Any] | None = None, gamma: float | None = None,
        alpha: float | None = None, alpha_half: int | None = None, epsilon: float | None = None,
        epsilon_half: int | None = None, noise: float | None = None, seed: int | None = None,
        _saved: Shapes | None = None, **more: Unpack[Keywords],
    ) -> None:  # fmt: skip
        """The task may be given by its name, or as an environment of Gymnasium or its id, with what `make` takes.

        The keywords are the fields of `Settings`; those left out are as in `settings`, or the task's defaults. Settings
        of the learner may be given directly too: `learning_rate=1e-3` instead of `learner=mad.DQN(learning_rate=1e-3)`,
        as `learners.keywords` lists them. Learners and tasks of your own take theirs as well; a type checker
        only knows `learner=Mine(...)` and `make("mine", ...)`.
        """
        given: dict[str, Any] = {
            "planning": planning, "aggregation": aggregation, "learner": learner, "gamma": gamma, "alpha": alpha,
            "alpha_half": alpha_half, "epsilon": epsilon, "epsilon_half": epsilon_half, "noise": noise, "seed": seed,
        }  # fmt: skip
        changes = {name: value for name, value in given.items() if value is not None}
        if settings is not None and not isinstance(settings, Settings):
            policy = next((one for one in (task, settings) if str(one).endswith("Policy")), None)
            why = f"{policy!r} is not needed, as networks follow from the environment" if policy else ""
            if isinstance(settings, LearnerSettings):
                raise BadInput(f"settings of a learner are given by name: learner=mad.{type(settings).__name__}(...)")
            why = why or f"settings are {short(repr(settings))}"
            raise BadInput(f"{why}: give the environment alone, MultiAdvisor('CartPole-v1'), or mad.Settings(...) next")
        if isinstance(learner, Mapping) and "name" not in learner:  # settings of whatever the task is learned by
            del changes["learner"]
            if misplaced := [name for name in learner if name in given]:
                name = misplaced[0]
                raise BadInput(f"{name} is a setting of the agent, not of its learner: MultiAdvisor(..., {name}=...)")
            more = cast(Keywords, {**more, **learner})
        task, own = task_and_own(task, advisors, more)
        self.task = task
        settings = dataclasses.replace(settings, **changes) if settings else described(Settings, changes, task.defaults)
        self.settings = resolved(task, settings)
        self.chosen = learned_by(task, self.settings)
        refuse_of_tables(self.settings.learner_settings, changes)
        if own:
            learns = with_own(self.settings.learner_settings, own)
            self.settings = dataclasses.replace(self.settings, learner=learns)
        if task.endless and (task.gammas(self.settings.gamma) == 1.0).any():
            raise BadInput(f"gamma is 1 and no episode of {task.name!r} ever ends: choose it below 1")
        self._learner = make_learner(task, self.settings, _saved)
        self._cautioned, self._predictions = False, 0
        bounds = getattr(task.world, "bounds", None)
        if bounds is not None:
            self._caution(np.minimum(task.weights * bounds[:, 0], task.weights * bounds[:, 1]))
        self._piece = 2000 if task.adapter is None else 20  # nobody knows how long a step of such a world takes

    def __str__(self) -> str:
        names = ", ".join(self.task.names[:6]) + (", ..." if self.task.n > 6 else "")
        return f"{self.task.name}, {self.task.n} advisor{'s' * (self.task.n != 1)} ({names}): {self.chosen}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(type(self), name)

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
        """How it combines those that are active in a state [m], with what the aggregator has learned of it."""
        return self._learner.aggregator_at(state)

    def values(self, advisor: str | int) -> np.ndarray:
        """Q_j [local states, A] of one advisor, by name or index."""
        if isinstance(advisor, str):
            if advisor not in self.task.names:
                raise BadInput(f"no advisor is called {advisor!r} in task {self.task.name!r}")
            advisor = self.task.names.index(advisor)
        if not isinstance(advisor, int | np.integer) or not 0 <= advisor < self.task.n:
            raise BadInput(f"advisor {advisor} is not among the {self.task.n} of task {self.task.name!r}")
        return self._learner.values(advisor)

    def advice(self, state: Any, actions: Any = None) -> tuple[tuple[str, ...], np.ndarray]:
        """The names of the active advisors [m] in a state, and their advice [m, A].

        The state is an observation of a Gymnasium task, or the state x of a compiled world. Continuous actions are
        given, [k, ...], and the advice is [m, k]; by default k is 1, and it is the action that the agent takes.
        """
        given = self._learner.consult(state) if actions is None else self._learner.judge_actions(state, actions)
        return given.names, given.advice

    def preferences(self, state: Any) -> np.ndarray:
        """Q_Sigma(x, .) [A]."""
        return self._learner.preferences(state)

    def act(self, state: Any, draw: float = 0.0, *, explore: bool = False) -> Any:
        """The greedy action, as the environment numbers it; `draw` in [0, 1) picks among exact ties.

        With `explore`, the action that learning would take: random with probability epsilon, drawn from the seed.
        For continuous actions it is the actor's, an array in the environment's own form.
        """
        return self._learner.act(state, draw, explore=explore)

    def predict(
        self, observation: Any, state: None = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """The action for one observation, or those for many, and None: in the form of Stable-Baselines3's models.

        So its `evaluate_policy`, its vector environments and its recorders take an agent. Many observations lie one
        below the other, as a vector environment gives them. With `deterministic=False`, a finite choice is random with
        the probability `exploring`, and ties are broken at random; continuous actions are the actor's own. `state` and
        `episode_start` are for recurrent networks, and not looked at.

        >>> import multiadvisor as mad
        >>> agent = mad.MultiAdvisor("FrozenLake-v1").learn(100, progress=False)
        >>> agent.predict(0)[0].shape, agent.predict(np.array([0, 4, 8]))[0].shape
        ((), (3,))
        """
        many = separate(self.task, observation)
        actions = [self._predicted(one, deterministic) for one in ([observation] if many is None else many)]
        return np.asarray(actions[0] if many is None else actions), None

    def _predicted(self, observation: Any, deterministic: bool) -> Any:
        if deterministic:
            return self.act(observation)
        self._predictions += 1
        explores, which = np.random.default_rng([self.settings.seed, self._predictions]).random(2)
        if explores < self.exploring:
            return self.task.played(int(which * len(self.task.actions)))
        return self.act(observation, which)

    @property
    def decider(self) -> Decider:
        """What decides on its steps: traces, reports, videos and the page ask for nothing else."""
        return self._learner

    @property
    def tables(self) -> CompiledLearner:
        """The tables of an agent in a compiled world, to read exact values or to fill them in; others have none.

        >>> import multiadvisor as mad
        >>> agent = mad.MultiAdvisor(mad.make("two-goal"))
        >>> agent.tables.fill(0, np.array([0]), np.array([[0.0, 1.0, 0.0]]))
        >>> agent.values(0).tolist()
        [[0.0, 1.0, 0.0]]
        """
        if self.task.world is None or not kind_of(self.settings.learner_settings).tables:
            raise BadInput(f"the agent of task {self.task.name!r} has no tables of a compiled world: {self.settings}")
        return cast("CompiledLearner", self._learner)

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

    def reweight(self, _critic: str | Mapping[str, float] = "sum", /, **weights: float) -> MultiAdvisor:
        """Continue with other weights, by advisor or group, from the same replay buffer; returns self.

        Names with spaces are given in a dictionary: `agent.reweight({"main engine": 0.3})`.

        For continuous actions the buffer stores the terms separately, and the actor's critic is reinitialised to
        the weighted "sum" of the advisors' values, or is "kept". Values of tables and networks that do not depend on
        the weights stay as they are; others are refused, as they would have to be learned again.

        >>> import multiadvisor as mad
        >>> agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric")
        >>> agent.reweight({"goal 1": 2.0}).task.weights[0]
        np.float64(2.0)
        """
        if not isinstance(_critic, str):
            if not isinstance(_critic, Mapping):
                raise BadInput(f"the weights are {short(repr(_critic))}: give them by advisor, reweight(ctrl=0.1)")
            weights, _critic = {**_critic, **weights}, "sum"
        if _critic not in _REWEIGHTED:
            raise unknown("way to reweight", _critic, _REWEIGHTED)
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

    @knows_arguments
    def learn(
        self, steps: float | None = None, *, eval_every: float | None = None, eval_episodes: int | None = None,
        save_best: str | Path | None = None, tensorboard: str | Path | None = None, csv: str | Path | None = None,
        callback: Callback | None = None, progress: bool | None = None,
    ) -> MultiAdvisor:  # fmt: skip
        """Learn from this many more transitions; returns self.

        With `eval_every`, it is evaluated every so many steps and at the end, by `eval_episodes` greedy episodes (10);
        `save_best` is a folder for the agent with the best score, `tensorboard` a folder and `csv` a file for the
        evaluations with each advisor's return. Without `eval_every`, any of the four means ten evaluations.
        `callback` is called with a `Progress` (steps, episodes, each advisor's return, losses, ...) about every tenth
        of a second and after every evaluation; training stops where it returns False.

        Ctrl-C stops between two transitions: nothing is lost, and another call continues from there.

        >>> import multiadvisor as mad
        >>> curve = []
        >>> def keep(now):
        ...     if now.evaluation is not None:
        ...         curve.append((now.steps, now.evaluation["score"]))
        ...     return len(curve) < 2
        >>> agent = mad.MultiAdvisor(mad.make("two-goal"), gamma=0.9)
        >>> agent.learn(4_000, eval_every=1_000, eval_episodes=5, callback=keep, progress=False).steps, curve
        (2000, [(1000, 1.0), (2000, 1.0)])
        """
        if steps is None:
            raise BadInput("learn needs the number of steps: learn(100_000)")
        if (steps := whole_number("steps", as_integer(steps))) == 0:
            return self._prepare()
        from multiadvisor.runs.training import learn

        learn(
            self, steps, eval_every=eval_every, eval_episodes=eval_episodes, save_best=save_best,
            tensorboard=tensorboard, csv=csv, callback=callback, progress=progress,
        )  # fmt: skip
        return self

    def _learn_piece(self, most: int) -> float | None:
        """Learn for about a tenth of a second, and from `most` transitions at most; Ctrl-C is heard at its end.

        The mean score of the episodes that ended meanwhile.
        """
        learner = self._learner
        size, start = min(most, self._piece), time.perf_counter()
        episodes, score = learner.episodes, learner.score_sum
        with deferred_interrupt():
            learner.run(size)
        taken = time.perf_counter() - start
        if taken < _PIECE_SECONDS:
            self._piece = min(self._piece * 4, 5_000_000) if size == self._piece else self._piece
        elif taken > 4 * _PIECE_SECONDS:
            self._piece = max(size // 4, 1)
        ended = learner.episodes - episodes
        return (learner.score_sum - score) / ended if ended else None

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

    @knows_arguments
    def evaluate(self, episodes: int = 10, *, seeds: int | Iterable[int] = 0) -> Evaluation:
        """Play `episodes` greedy episodes for each seed, or for a single one, without learning."""
        if hasattr(episodes, "step"):
            raise BadInput("an agent is evaluated in its own environment: evaluate(episodes=10)")
        episodes = whole_number("episodes", as_integer(episodes), 1, MOST_EPISODES)
        seeds = tuple(whole_number("seed", seed) for seed in (seeds if isinstance(seeds, Iterable) else (seeds,)))
        if not seeds:
            raise BadInput("no seed to evaluate with: give at least one")
        parts = [self.play(episodes, seed) for seed in seeds]
        lowest = np.min([(part.returns * self.task.weights).min(axis=0) for part in parts], axis=0)
        self._caution(lowest, level=4)
        return Evaluation.of(self.task, EpisodeReturns(*(np.concatenate(axis) for axis in zip(*parts, strict=True))))

    def play(self, episodes: int, seed: int = 0) -> EpisodeReturns:
        """The single episodes of `evaluate(episodes, seeds=(seed,))`, without statistics."""
        self._prepare()
        return self._learner.evaluate(episodes, seed)

    def _caution(self, lowest: np.ndarray, level: int = 3) -> None:
        """Say it once where an advisor under a maximum has less than nothing to wish for; lowest [n], weighted.

        `level`: how many calls above is the line that is shown.
        """
        if self._cautioned or not self.settings.learner_settings.per_advisor:
            return
        doubt = doubtful(self.task, aggregator_of(self.task, self.settings.aggregation, TABLES), lowest)
        if doubt is not None:
            self._cautioned = True
            warnings.warn(doubt, Caution, stacklevel=level)

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
        try:
            write_checkpoint(named("the folder", path), header, self.tensors())
        except TypeError as error:  # of JSON
            raise BadInput(f"the record cannot be saved ({error}): give what JSON can hold") from None

    def tensors(self) -> Arrays:
        """Everything that was learned, and where the run stands, by name."""
        return self._learner.tensors()


@knows_arguments
def load(
    path: str | Path, task: Task | gymnasium.Env | str | None = None, *, reweight: bool | None = None
) -> MultiAdvisor:
    """An agent as it was saved; training continues bit for bit as if it had never stopped.

    A task of plain data is recreated; one with your own functions has to be passed, and must be the same in all that
    can be known of it; an environment of your own is enough where its advisors are plain data. Passing the task's name
    gives permission to import the module that it contains.

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
    path: str | Path, task: Task | gymnasium.Env | str | None = None, reweight: bool | None = None
) -> tuple[MultiAdvisor, dict[str, Any]]:
    """`load`, with the record that was saved beside the agent."""
    saved = read_agent(named("the folder", path))
    if task is not None and not isinstance(task, Task | str):
        task = saved.task_in(task)
    if not isinstance(task, Task):
        task, reweight = saved.task_again(task), False  # its weights come from the same file
    reweighted = saved.differs_in_weights(task, reweight)
    shapes = {name: array.shape for name, array in saved.tensors.items()}
    agent = MultiAdvisor(task, saved.settings, _saved=shapes)
    if reweighted and not reweight and (why := agent._learner.refuses_weights()):
        raise saved.refuse(
            f"is of an agent whose {why}, and the given task has others: give reweight=True to use it anyway, or train "
            "again"
        )
    agent._learner.restore(saved.tensors)
    if unasked := sorted({*saved.tensors} ^ {*agent._learner.tensors()}):
        raise saved.refuse(f"holds {short(unasked[0])!r}, which is nothing of such an agent's")
    if type(saved.steps) is not int or saved.steps != agent.steps:
        raise saved.refuse("does not say how many steps it has learned: restore it from a copy")
    return agent, saved.record
