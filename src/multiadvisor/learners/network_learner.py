"""What learners with networks share: how they play, observe and are evaluated, and what a checkpoint keeps of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiadvisor.core.rng import EVALUATION, stream_key
from multiadvisor.core.validation import Arrays, array, require, whole
from multiadvisor.envs.env_lock import EnvironmentLock
from multiadvisor.envs.observation_encoder import ObservationEncoder
from multiadvisor.envs.python_env import PythonEnv
from multiadvisor.envs.rollout import EvaluationEpisodes, rollout, vector_rollout
from multiadvisor.envs.step import Env, Step
from multiadvisor.envs.vector_env import VectorEnv
from multiadvisor.errors import BadInput, Diverged
from multiadvisor.learners.dqn.backend import jax, jnp
from multiadvisor.learners.network_settings import NetworkSettings
from multiadvisor.learners.protocol import EpisodeReturns, Exploration, Learner, not_finite, refuse_unobservable
from multiadvisor.settings import Settings
from multiadvisor.task import Task, Transition

_MOST_UPDATES = (1 << 31) - 1  # they are counted in 32 bits
SCORE, DONE, SCORE_SUM = range(3)  # the entries of a tally
ALWAYS = np.zeros((0, 0), np.uint8)  # instead of activity, where every advisor always advises
Player = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From observations [N, F] and who is active there [N, n] to actions [N, ...]."""


class NetworkLearner(Learner):
    """Takes the environment's lock before it plays, and finds back to its own episodes if somebody else has played.

    S = len(seeds) runs, all of them alike but for the seed, may learn side by side, each in `episodes_each` episodes.
    """

    encoder: ObservationEncoder
    env: Any
    """One of the three `Env`, with its encoder."""
    current: np.ndarray
    """[N, F] what is acted on, as the network sees it."""
    active: np.ndarray
    """[N, n] who is active there; ALWAYS where that is everybody, all the time."""
    episodes_each: int
    _activity: bool
    """Whether it depends on the state who is active."""
    state: Any
    """The networks with their optimisers."""
    memory: Any
    """The replay buffer."""
    times: np.ndarray
    """[N] the steps that each place has seen and the learner has learned from."""
    tally: np.ndarray
    """[N, 3] of each place, the SCORE of this episode, the episodes DONE, and SCORE_SUM of those."""

    def __init__(self, task: Task, settings: Settings, own: NetworkSettings, seeds: Sequence[int] | None) -> None:
        self.task, self.settings, self.own = task, settings, own
        self.seeds = tuple(seeds) if seeds is not None else (settings.seed,)
        self.updates = 0
        self.exploration = Exploration()
        self._opened = False  # whether episodes of its own have begun
        self._watching = False  # whether somebody else plays, and it observes

    def _python_env(self) -> PythonEnv | VectorEnv:
        """The environment's copies, one for each episode; or the vector environment, which has its own."""
        task, seeds, count = self.task, self.seeds, self.own.n_envs
        assert task.adapter is not None
        if task.adapter.vector:
            if len(seeds) > 1 or count != 1:
                raise BadInput("a vector environment has its own number of episodes and one run: leave envs out")
            return VectorEnv(task, seeds[0], self.encoder)
        envs = task.adapter.copies(len(seeds) * count)
        return PythonEnv(task, envs, [(seed, episode) for seed in seeds for episode in range(count)], self.encoder)

    # ---- what a learner has to say -----------------------------------------------------------------------------------
    @abstractmethod
    def _see(self) -> None:
        """What follows from the networks, after they were changed."""

    @abstractmethod
    def _begin(self) -> None:
        """What a learner has to do where its episodes have just begun."""

    @abstractmethod
    def _actions(self) -> np.ndarray:
        """What learning does next in every episode [N, ...]."""

    @abstractmethod
    def _remember(self, step: Step, before: np.ndarray, arrived: np.ndarray) -> None:
        """Keep a step of every episode, from one observation [N, F] to another."""

    @abstractmethod
    def _learn(self) -> None:
        """As many updates as are made at once."""

    @abstractmethod
    def _counters(self) -> Arrays:
        """What a checkpoint keeps besides networks, episodes, the replay buffer and the number of updates."""

    @abstractmethod
    def _restore_memory(self, replay: Arrays, tensors: Arrays) -> None:
        """Take up the replay buffer, and what `_counters` gave."""

    @abstractmethod
    def _player(self, run: int, keys: list[np.uint64]) -> Player:
        """The best actions of a run, step by step; ties are broken by the keys [N] of the episodes."""

    # ---- how far it is -----------------------------------------------------------------------------------------------
    @property
    def steps(self) -> int:
        """Transitions learned from, in each run."""
        each = self.episodes_each  # a sum costs as much as a step of a small network, and is asked for three times
        return int(self.times[0] if each == 1 else self.times[:each].sum())

    @property
    def episodes(self) -> int:
        """Episodes played to their end, in the first run."""
        return int(self.tally[: self.episodes_each, DONE].sum())

    @property
    def score_sum(self) -> float:
        """The scores of those episodes together."""
        return float(self.tally[: self.episodes_each, SCORE_SUM].sum())

    def _due(self) -> int:
        """How many updates so many steps bring."""
        own, steps = self.own, self.steps
        due = max(steps - own.learning_starts, 0) // own.train_freq if steps >= own.batch_size else 0
        return due - due % own.updates_at_once

    def _diverged(self, what: str, whose: str = "") -> Diverged:
        """The complaint about what is no longer finite."""
        return Diverged(
            f"{what} is no longer finite ({whose}{self.steps} steps): lower the learning rate, or look for an "
            "observation that is not finite"
        )

    def _catch_up(self) -> None:
        """The updates that are due."""
        due = self._due()
        while self.updates < due:
            self._learn()

    # ---- episodes of its own -----------------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Begin the episodes, unless somebody else plays; the update is compiled when it is first needed."""
        if not self._watching:
            self._open()

    def _open(self) -> None:
        if self._opened:
            return
        self.env.forget(self.times)
        with self._lock() as lock:
            lock.user = self
            self._begin_all()
        self._opened, self._watching = True, False

    def _begin_all(self) -> None:
        """New episodes, instead of those that were going on where there is no way back to them."""
        self.env.reset()
        self._look()
        self._begin()

    def _look(self) -> None:
        """See where the episodes are."""
        self.current = self.env.encode(self.env.state)
        self.active = self.env.active if self._activity else ALWAYS

    def _step(self, actions: np.ndarray) -> tuple[Step, np.ndarray]:
        """A step of every episode and where it led [N, F]; episodes that it ended begin again."""
        step = self.env.step(actions)
        arrived = self.current = self.env.encode(step.next_state)
        self.active = step.next_advisors if self._activity else ALWAYS
        over = step.over
        if np.count_nonzero(over):  # faster than `any`
            self.env.reset(over)
            self._look()
        return step, arrived

    def _active_in(self, state: Any) -> np.ndarray:
        """[1, n] who is active in one state; or ALWAYS."""
        return self.env.active_in(state)[None] if self._activity else ALWAYS

    def tensors(self) -> Arrays:
        """Everything the run is made of."""
        self.prepare()
        if self.updates != self._due():
            raise Diverged("an update failed on the way: the networks were not saved; what was saved before is better")
        episodes = {"watching": np.ones(1, np.int64)} if self._watching else self.env.tensors()
        parts = kept(self.state, episodes, self.memory.tensors())
        return {**parts, "updates": np.array([self.updates], np.int64), **self._counters()}

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave: the episodes where they were, or others, where that cannot be."""
        given, episodes = leaves_of(tensors, self.state), part_of(tensors, "episodes")
        self._restore_memory(part_of(tensors, "replay"), tensors)
        self.updates = int(whole(tensors, "updates", (1,), 0, _MOST_UPDATES)[0])
        require(self.updates == self._due(), "updates")
        self.state = networks_of(given, self.state)
        self._watching = "watching" in episodes
        self._opened = not self._watching
        self._see()
        if self._watching:
            refuse_unobservable(self.task)
            return
        with self._lock() as lock:
            lock.user = self
            resumed = self.env.restore(episodes, self.times)
            self._look()
        if not resumed:
            self._begin()

    def run(self, steps: int) -> None:
        """Play and learn for this many steps, rounded up to whole steps of all episodes."""
        self._open()
        with self._lock():
            self._find_back()
            try:
                self._run(steps)
            except BaseException:
                if (self.env.steps != self.times).any():  # the episodes have gone on and the memory has not:
                    self._opened = False  # others are begun, lest a transition lead from one place to another
                raise

    def _run(self, steps: int) -> None:
        until = self.steps + steps
        while self.steps < until:
            before = self.current
            step, arrived = self._step(self._actions())
            self._remember(step, before, arrived)
            self._catch_up()

    @property
    def _alone(self) -> bool:
        """Whether training and evaluation have to share the only environment there is."""
        adapter = self.task.adapter
        return adapter is not None and not adapter.vector and self.env.envs[0] is adapter.env

    def _lock(self) -> EnvironmentLock:
        """To be taken before training: the only environment's, or another one where nobody else plays."""
        adapter = self.task.adapter
        return adapter.lock if adapter is not None and (self._alone or adapter.vector) else EnvironmentLock()

    def _find_back(self) -> None:
        """Where somebody else has played in the only environment, or a step failed, play the current segment again.

        In a vector environment other episodes are begun.
        """
        lock, adapter = self._lock(), self.task.adapter
        borrowed = lock.user is not self
        if getattr(self.env, "torn", False) or (borrowed and self._alone):
            self.env.find_back()
            self._look()
        elif borrowed and adapter is not None and adapter.vector:
            self._begin_all()
        lock.user = self

    # ---- episodes that somebody else plays ---------------------------------------------------------------------------
    def observe(self, transition: Transition, following: int | None) -> None:
        """Keep a transition that somebody else played, and learn as after one of its own."""
        refuse_unobservable(self.task)
        if self.own.n_envs > 1 or len(self.seeds) > 1:
            raise BadInput(f"n_envs is {self.own.n_envs}, and transitions are observed one by one: leave it at 1")
        before, after = (
            self.encoder.convert(seen)[None] for seen in (transition.observation, transition.next_observation)
        )
        step = self.env.read(transition)
        refuse_infinite(self.task.names, step.reward)
        self._watching, self._opened = True, False
        self.current, self.active = after, step.next_advisors
        self._remember(step, before, after)
        self._catch_up()

    # ---- playing without learning ------------------------------------------------------------------------------------
    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Greedy episodes of the first run."""
        return self.evaluate_all(episodes, seed)[0]

    def evaluate_all(self, episodes: int, seed: int) -> list[EpisodeReturns]:
        """Greedy episodes of every run."""
        self.prepare()
        adapter = self.task.adapter
        assert adapter is not None
        with adapter.lock as lock:
            lock.user = None
            if not adapter.vector:
                return [self._evaluate_python(run, seed, episodes) for run in range(len(self.seeds))]
            env = VectorEnv(self.task, self.seeds[0], self.encoder)
            places = range(env.env.num_envs)
            player = self._player(0, [stream_key(self.seeds[0], EVALUATION, (seed << 20) + place) for place in places])
            return [self._evaluate_vector(env, seed, episodes, lambda: player(env.encode(env.state), env.active))]

    def _evaluate_python(self, run: int, seed: int, episodes: int) -> EpisodeReturns:
        """The episodes of the evaluation `seed` of a run, one after the other."""
        key = stream_key(self.seeds[run], EVALUATION, seed)
        source, player = EvaluationEpisodes(self.task, self.seeds[run], seed), self._player(run, [key])

        def act(state: Any, _: int) -> Any:
            action = player(self.encoder.convert(state)[None], self._active_in(state))[0]
            return action if np.ndim(action) else int(action)

        played = EpisodeStatistics(self.task, 1, episodes)
        for episode in range(episodes):
            for step in rollout(source, episode, act):
                played.add(step.reward[None], np.array([step.terminated]), np.array([episode]))
        return played.result()

    def _evaluate_vector(
        self, env: VectorEnv, seed: int, episodes: int, act: Callable[[], np.ndarray]
    ) -> EpisodeReturns:
        """The first episodes of each of a vector environment's places; the training's episodes begin again."""
        assert self.task.adapter is not None
        try:
            env.opened = (1 << 20) + seed
            env.reset()
            played = play_all(env, act, -(-episodes // env.env.num_envs))
            return EpisodeReturns(*(axis[:episodes] for axis in played.result()))
        finally:  # the training episodes are gone in any case
            self._begin_all()
            self.task.adapter.lock.user = self


def refuse_infinite(names: tuple[str, ...], reward: np.ndarray, kind: type[BadInput] = BadInput) -> None:
    """Refuse rewards [N, n] that are not finite."""
    if not np.isfinite(reward).all():
        wrong = ~np.isfinite(reward).all(axis=0)  # [n]
        raise not_finite(names[int(np.argmax(wrong))], kind)


# ---- episodes without learning --------------------------------------------------------------------------------------
class EpisodeStatistics:
    """The first `each` episodes of so many places: score, length, end and returns of each."""

    def __init__(self, task: Task, places: int, each: int = 1) -> None:
        self.weights, self.names = task.weights, task.names
        self.returns = np.zeros((each, places, task.n))
        self.length, self.terminated = np.zeros((each, places), np.int64), np.zeros((each, places), np.int64)

    def add(self, reward: np.ndarray, terminated: np.ndarray, episode: np.ndarray) -> None:
        """One step more: reward [N, n], terminated [N], and the number of the episode that it belongs to [N], or -1."""
        place = np.flatnonzero(episode >= 0)
        at = episode[place], place
        refuse_infinite(self.names, reward[place])
        with np.errstate(over="ignore"):  # a sum that is no longer finite is refused with the episodes
            self.returns[at] += reward[place]
        self.length[at] += 1
        self.terminated[at] |= terminated[place]

    def result(self, part: slice = slice(None)) -> EpisodeReturns:
        """As an evaluation's result, of the places in `part`; first the first episode of each, then the second."""
        returns = self.returns[:, part]
        with np.errstate(all="ignore"):
            score = np.concatenate([each @ self.weights for each in returns])
        length, terminated = (axis[:, part].ravel() for axis in (self.length, self.terminated))
        return EpisodeReturns(score, length, terminated, returns.reshape(-1, returns.shape[-1]))


def play_all(env: Env, act: Callable[[], np.ndarray], each: int = 1) -> EpisodeStatistics:
    """Play the first `each` episodes of every place of an environment that was reset."""
    played = EpisodeStatistics(env.task, len(env.state), each)
    for step, episode in vector_rollout(env, act, each=each):
        played.add(step.reward, step.terminated, episode)
    return played


# ---- what a checkpoint keeps ----------------------------------------------------------------------------------------
def kept(networks: Any, episodes: Arrays, memory: Arrays) -> Arrays:
    """All three, unless the networks have gone astray."""
    leaves = [np.atleast_1d(np.asarray(leaf)) for leaf in jax.tree.leaves(networks)]
    if not all(leaf.dtype.kind != "f" or np.isfinite(leaf).all() for leaf in leaves):
        raise Diverged("the networks are no longer finite: they were not saved; lower the learning rate")
    parts = {"network": {f"{k:03}": leaf for k, leaf in enumerate(leaves)}, "episodes": episodes, "replay": memory}
    return {f"{kind} {name}": values for kind, part in parts.items() for name, values in part.items()}


def part_of(tensors: Arrays, kind: str) -> Arrays:
    """What was kept of the episodes, or as replay."""
    return {name.removeprefix(f"{kind} "): values for name, values in tensors.items() if name.startswith(f"{kind} ")}


def leaves_of(tensors: Arrays, networks: Any) -> list[np.ndarray]:
    """The arrays of networks like these, in their order."""
    return [
        array(tensors, f"network {k:03}", np.shape(leaf) or (1,), leaf.dtype)
        for k, leaf in enumerate(jax.tree.leaves(networks))
    ]


def networks_of(leaves: list[np.ndarray], networks: Any) -> Any:
    """Networks like these, with other numbers."""
    there, tree = jax.tree.flatten(networks)
    own = [jnp.array(leaf).reshape(np.shape(like)) for leaf, like in zip(leaves, there, strict=True)]
    return jax.tree.unflatten(tree, own)
