"""MultiAdvisor: learn, act, evaluate, save; and load."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.aggregation import greedy, weighted_sum
from multiadvisor.errors import BadInput, short
from multiadvisor.planning import Planning
from multiadvisor.progress import LearningBar
from multiadvisor.restored import Shapes
from multiadvisor.runs.checkpoint import read_checkpoint, write_checkpoint
from multiadvisor.runs.interrupt import deferred_interrupt
from multiadvisor.settings import MOST_GAMES, DeepSettings, Settings, as_arguments, whole_number
from multiadvisor.statistics import interval
from multiadvisor.tabular.learner import Played, tabular_learner
from multiadvisor.task import Focus, Task
from multiadvisor.version import VERSION

if TYPE_CHECKING:
    from multiadvisor.explain import Explanation

_PIECE_SECONDS = 0.1  # how long the compiled loop runs before the bar moves and Ctrl-C is heard


@dataclass(frozen=True)
class Evaluation:
    """Greedy games without learning: means with 95% bootstrap intervals, and each advisor's mean return by name."""

    games: int
    score: float
    score_interval: tuple[float, float]
    turns: float
    turns_interval: tuple[float, float]
    finished: float
    """The share of games that ended by themselves (in Pac-Boy: all fruit eaten)."""
    touches: float | None
    """In Pac-Boy, touches by ghosts per game; None where the task has no such thing."""
    advisors: dict[str, float]
    played: Played = dataclasses.field(repr=False)
    """The single games."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON: everything but the single games."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "played"}

    def __str__(self) -> str:
        low, high = self.score_interval
        text = (
            f"{self.games} games: score {self.score:.2f} [{low:.2f}, {high:.2f}], {self.turns:.1f} turns, "
            f"{self.finished:.0%} finished"
        )
        return text if self.touches is None else f"{text}, {self.touches:.2f} touches"


class MultiAdvisor:
    """An agent whose advisors each learn their own part of the task and whose aggregator acts on the weighted sum.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("three-fruits"), planning="empathic", gamma=0.9, seed=0)
    >>> agent.learn(20_000, progress=False).evaluate(games=10).finished
    1.0
    """

    def __init__(
        self, task: Task, *, planning: str | Planning = "empathic", learner: str = "advisors", gamma: float = 0.9,
        alpha: float = 0.1, alpha_half: int = 0, epsilon: float = 0.05, noise: float = 0.0, seed: int = 0,
        foresight: str = "real", deep: DeepSettings | None = None, _saved: Shapes | None = None,
    ) -> None:  # fmt: skip
        self.task = task
        name: Any = planning  # Settings takes the function as well, and keeps its name
        self.settings = Settings(name, learner, gamma, alpha, alpha_half, epsilon, noise, seed, foresight, deep)
        if task.endless and (task.gammas(gamma) == 1.0).any():
            raise BadInput(f"gamma is 1 and no game of {task.name!r} ever ends: choose it below 1")
        self._learner = _learner_for(task, self.settings, _saved)
        self._piece = 2000 if task.adapter is None else 20  # nobody knows how long a step of such a world takes

    def __repr__(self) -> str:
        return f"MultiAdvisor({self.task.name!r}, {self.settings}, {self.turns} turns)"

    # ---- what was learned --------------------------------------------------------------------------------------------
    @property
    def turns(self) -> int:
        """The number of transitions learned from."""
        return self._learner.turns

    @property
    def games(self) -> int:
        """The number of games played to their end."""
        return self._learner.games

    @property
    def advisors(self) -> tuple[Focus, ...]:
        """Whose advice there is: the task's foci, or those a network was told to learn in their place."""
        return self._learner.advisors

    def values(self, advisor: str | int) -> np.ndarray:
        """Q_j [local states, A] of one advisor, by name or index."""
        if isinstance(advisor, str):
            if advisor not in self.task.names:
                raise BadInput(f"no advisor is called {advisor!r} in task {self.task.name!r}")
            advisor = self.task.names.index(advisor)
        if not 0 <= advisor < self.task.n:
            raise BadInput(f"advisor {advisor} is not among the {self.task.n} of task {self.task.name!r}")
        return self._learner.values(advisor)

    def advice(self, state: Any) -> tuple[tuple[str, ...], np.ndarray]:
        """The names of the active advisors [m] in a state, and their advice [m, A].

        The state is an observation of a Gymnasium task, or the state x of a compiled world.
        """
        names, advice, _ = self._learner.consult(state)
        return names, advice

    def preferences(self, state: Any) -> np.ndarray:
        """Q_Sigma(x, .) [A]."""
        _, advice, weights = self._learner.consult(state)
        return weighted_sum(advice, weights)

    def act(self, state: Any, draw: float = 0.0) -> int:
        """The greedy action; `draw` in [0, 1) picks among exactly equal ones."""
        return int(greedy(self.preferences(state), draw))

    def explain(self, state: Any, action: str | int | None = None, against: str | int | None = None) -> Explanation:
        """Why the aggregator takes `action` (default: the greedy one) rather than `against` (default: the next best).

        >>> import multiadvisor as mad
        >>> agent = mad.MultiAdvisor(mad.make("two-goal"), seed=0).learn(2_000, progress=False)
        >>> agent.explain(agent.task.deal(), against="a_0").disagreement > 0
        True
        """
        from multiadvisor.explain import explain

        return explain(self, state, action, against)

    # ---- learning and playing ----------------------------------------------------------------------------------------
    def prepare(self) -> MultiAdvisor:
        """Compile for this machine, where that has not been done yet; `learn` and `evaluate` do it by themselves."""
        self._learner.prepare()
        return self

    def learn(self, turns: int, *, progress: bool | None = None) -> MultiAdvisor:
        """Learn from this many transitions more; returns self.

        Ctrl-C stops between two transitions: nothing is lost, and another call goes on from there.
        """
        turns = whole_number("turns", turns)
        self.prepare()
        learner, left = self._learner, turns
        with deferred_interrupt() as stop, LearningBar(turns, progress) as bar:
            while left > 0 and not stop.requested:
                size = min(left, self._piece)
                before, games, score = learner.turns, learner.games, learner.score_sum
                start = time.perf_counter()
                learner.run(size)
                taken = time.perf_counter() - start
                left -= learner.turns - before
                played = learner.games - games
                bar.advance(learner.turns - before, (learner.score_sum - score) / played if played else None)
                if taken < _PIECE_SECONDS:
                    self._piece = min(self._piece * 4, 5_000_000) if size == self._piece else self._piece
                elif taken > 4 * _PIECE_SECONDS:
                    self._piece = max(size // 4, 1)
        return self

    def evaluate(self, games: int = 80, *, seeds: tuple[int, ...] = (0,)) -> Evaluation:
        """Play `games` greedy games for each seed, without learning."""
        games = whole_number("games", games, 1, MOST_GAMES)
        seeds = tuple(whole_number("seed", seed) for seed in seeds)
        if not seeds:
            raise BadInput("no seed to evaluate with: give at least one")
        self.prepare()
        parts = [self._learner.evaluate(games, seed) for seed in seeds]
        return self.summary(Played(*(np.concatenate(axis) for axis in zip(*parts, strict=True))))

    def summary(self, played: Played) -> Evaluation:
        """What games that were played come to."""
        measures = self.task.measures(played.returns) if self.task.measures else {}
        return Evaluation(
            games=len(played.score),
            score=float(played.score.mean()),
            score_interval=interval(played.score),
            turns=float(played.turns.mean()),
            turns_interval=interval(played.turns),
            finished=float(played.finished.mean()),
            touches=float(measures["touches"].mean()) if "touches" in measures else None,
            advisors=dict(zip(self.task.names, played.returns.mean(axis=0).tolist(), strict=True)),
            played=played,
        )

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def save(self, path: str | Path, record: dict[str, Any] | None = None) -> None:
        """Save to a folder, atomically; `record` may hold anything that JSON can."""
        header = {
            "version": VERSION,
            "task": {"name": self.task.name, "options": self.task.options, "fingerprint": self.task.fingerprint()},
            "settings": dataclasses.asdict(self.settings),
            "turns": self.turns,
            "record": record or {},
        }
        write_checkpoint(Path(path), header, self._learner.tensors())


def _learner_for(task: Task, settings: Settings, saved: Shapes | None) -> Any:
    """`saved`: the shapes of what a checkpoint holds, so that nothing is made for it that is not in it."""
    if settings.deep is None:
        return tabular_learner(task, settings)
    from multiadvisor.deep.learner import DeepLearner  # lazily: tables need no JAX

    return DeepLearner(task, settings, saved=saved)


def load(path: str | Path, task: Task | None = None) -> MultiAdvisor:
    """An agent as it was saved; training goes on bit for bit as if it had never stopped.

    Built-in tasks are made again by name; a task of your own has to be given.
    """
    return load_with_record(path, task)[0]


def load_with_record(path: str | Path, task: Task | None = None) -> tuple[MultiAdvisor, dict[str, Any]]:
    """`load`, with the record that was saved beside the agent."""
    folder = Path(path)
    header, tensors = read_checkpoint(folder)
    try:
        saved, settings = header["task"], header["settings"]
        name, options, fingerprint = saved["name"], saved["options"], saved["fingerprint"]
        record = header["record"]
        known = Settings(**settings)
    except (KeyError, TypeError) as error:
        raise BadInput(f"the checkpoint {str(folder)!r} lacks or misnames a field: {short(str(error), 200)}") from None
    if task is None:
        task = _make_again(folder, name, options)
    if not isinstance(record, dict):
        raise BadInput(f"the record in the checkpoint {str(folder)!r} is none: restore it from a copy")
    if task.fingerprint() != fingerprint:
        raise BadInput(
            f"the checkpoint {str(folder)!r} was made for task {short(str(name))!r} with other advisors, weights or "
            f"options than the given {task.name!r}: load it with the task it was made for"
        )
    agent = MultiAdvisor(task, **as_arguments(known), _saved={key: array.shape for key, array in tensors.items()})
    agent._learner.restore(tensors)
    if header.get("turns") != agent.turns:
        raise BadInput(f"the checkpoint {str(folder)!r} does not know its own turns: restore it from a copy")
    return agent, record


def _make_again(folder: Path, name: Any, options: Any) -> Task:
    from multiadvisor.worlds.builtin import TASKS, checked_options, make

    if not isinstance(name, str) or not isinstance(options, dict):
        raise BadInput(f"the checkpoint {str(folder)!r} names no task that can be made: give task=")
    if name not in TASKS and not name.startswith("gymnasium:"):
        raise BadInput(
            f"the checkpoint {str(folder)!r} was made for task {short(name)!r}, which is not built in: give task="
        )
    if ":" in name.removeprefix("gymnasium:"):  # Gymnasium would import what stands before the colon
        raise BadInput(f"the checkpoint {str(folder)!r} names a module to import, in {short(name)!r}: give task=")
    try:
        if name in TASKS:
            weights = {"weights": options["weights"]} if "weights" in options else {}
            own = {key: value for key, value in options.items() if key != "weights" and value is not None}
            options = {**checked_options(name, own), **weights}
        return make(name, **options)
    except TypeError as error:
        why = short(str(error), 200)
        raise BadInput(f"the task {name!r} of the checkpoint {str(folder)!r} cannot be made: {why}") from None
