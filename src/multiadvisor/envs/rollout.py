"""Episodes, step by step: those of an evaluation one after the other, or the episodes of N places side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from multiadvisor.core.rng import CHOICE, EVALUATION, draw_python, episode_key, evaluation_seed, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.python_env import PythonEnv
from multiadvisor.envs.step import LONGEST_EPISODE, Env, Step, endless, finite_reward
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf.gvf_spec import paid_by_goals
from multiadvisor.task import Task


class EvaluationEpisodes:
    """The episodes that an agent with this seed plays in an evaluation, each known by its number.

    `apart`: each episode has its own random numbers, as those have that a network plays side by side. `env`: another
    instance of the task's environment, in which they are to be played.
    """

    def __init__(self, task: Task, seed: int, evaluation: int, apart: bool = False, env: Any = None) -> None:
        self.task, self._weights = task, task.weights
        self._seed, self._evaluation, self._apart = seed, evaluation, apart
        self._key, self._elapsed = stream_key(seed, EVALUATION, evaluation), 0
        self._compiled: CompiledEnv | None = None
        if task.world is not None:
            self._compiled = CompiledEnv(task, [self._key])
            return
        assert task.adapter is not None
        if task.adapter.vector:
            raise BadInput(f"task {task.name!r} is a vector environment: a trace is of single episodes")
        if env is None:
            task.adapter.lock.user = None  # whoever trains in the environment has to find its way back
        self._python = PythonEnv(task, [task.adapter.env if env is None else env], [(seed, 0)])

    def reset(self, episode: int) -> Any:
        """Begin this episode: its first state."""
        if self._apart:
            self._key, self._elapsed = episode_key(self._seed, self._evaluation, episode), 0
        if self._compiled is None:
            self._python.begin(0, evaluation_seed(self._seed, self._evaluation, episode))
            return self._python.state[0]
        if self._apart:
            self._compiled.keys[:], self._compiled.elapsed[:] = self._key, 0
        return self._compiled.reset()[0]

    def random_bits(self) -> int:
        """The 64 bits that this step's choice is drawn from."""
        return draw_python(int(self._key), self._elapsed, CHOICE)

    def step(self, action: Any) -> Step:
        """Play a step; `gain` is what it adds to the score."""
        env = self._python if self._compiled is None else self._compiled
        step = env.step(np.asarray(action)[None]).single()
        self._elapsed += 1
        who = step.advisors
        step = step._replace(action=action, gain=float(self._weights[who] @ step.reward[who]))
        found: Step = paid_by_goals(self.task, step, lambda: finite_reward(self._python.adapters[0].signals[0]))
        return found


def rollout(episodes: EvaluationEpisodes, episode: int, act: Callable[[Any, int], Any]) -> Iterator[Step]:
    """One episode, step by step; `act` chooses by the state and the step's random bits, and counts actions from 0.

    >>> import multiadvisor as mad
    >>> episodes = EvaluationEpisodes(mad.make("three-fruits"), 0, 0)
    >>> [step.action for step in rollout(episodes, 0, lambda x, bits: 0)][:3]
    [0, 0, 0]
    """
    state = episodes.reset(episode)
    for _ in range(LONGEST_EPISODE):
        step = episodes.step(act(state, episodes.random_bits()))
        yield step
        if step.over:
            return
        state = step.next_state
    raise endless(episodes.task.name)


def vector_rollout(
    env: Env, act: Callable[[], np.ndarray], *, each: int = 1, longest: int | None = None
) -> Iterator[tuple[Step, np.ndarray]]:
    """The episodes of an environment that was reset, side by side, until so many of `each` place are over.

    With every step the number of the episode that it belongs to, of each place [N], or -1 where it counts for none.
    `act` gives the actions [N]. After the `longest` number of steps it stops; without one that is an error.

    >>> import multiadvisor as mad
    >>> env = CompiledEnv(mad.make("three-fruits"), [0, 1])
    >>> first = env.reset()
    >>> len(list(vector_rollout(env, lambda: np.zeros(2, np.int64), longest=5)))
    5
    """
    played = np.zeros(len(env.state), np.int64)  # [N] episodes that are over
    for _ in range(LONGEST_EPISODE if longest is None else longest):
        playing = played < each
        step = env.step(act(), playing)
        yield step, np.where(playing & ~step.begun, played, -1)
        played += step.over & playing
        if (played >= each).all():
            return
        if step.over.any():
            env.reset(step.over & (played < each))
    if longest is None:
        raise endless(env.task.name)
