"""Agents compared by all that a checkpoint keeps of them, trained in pieces and in loops of their own."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import multiadvisor as mad
from multiadvisor.core import rng
from multiadvisor.core.aggregations import AGGREGATIONS
from multiadvisor.envs.python_env import LENGTH

LEARNED = tuple(one.name for one in AGGREGATIONS.values() if one.learned is not None)
SELECTIONS = tuple(name for name in LEARNED if AGGREGATIONS[name].learned.selects)


def same(one: mad.MultiAdvisor, other: mad.MultiAdvisor) -> bool:
    mine, theirs = one.tensors(), other.tensors()
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)


def bytes_of(agent: mad.MultiAdvisor, without: Iterable[str] = ()) -> dict[str, bytes]:
    return {name: part.tobytes() for name, part in agent.tensors().items() if name not in without}


def in_pieces(
    agent: mad.MultiAdvisor, task: mad.Task | None, folder: Path, *steps: int, evaluated: bool = False
) -> mad.MultiAdvisor:
    """Learned in pieces; saved and loaded with this task after each of them."""
    for k, piece in enumerate(steps):
        agent.learn(piece)
        if evaluated:  # which leaves no trace, unless states are counted as they are met
            agent.evaluate(1)
        agent.save(folder / str(k))
        agent = mad.load(folder / str(k), task)
    return agent


class Saved:
    """An agent in a loop of one's own: saved and loaded after every so many transitions, and evaluated before."""

    def __init__(
        self, agent: mad.MultiAdvisor, every: int, folder: Path, make: Callable[[], mad.Task], evaluated: bool = False
    ) -> None:
        self.agent, self._every, self._folder, self._make, self._evaluated = agent, every, folder, make, evaluated

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)

    def observe(self, *transition: Any, **how: Any) -> None:
        self.agent.observe(*transition, **how)
        if self.agent.steps % self._every == 0:
            if self._evaluated:
                self.agent.evaluate(1)
            self.agent.save(self._folder / "saved")
            self.agent = mad.load(self._folder / "saved", self._make())


def own_loop(agent: Any, steps: int, env: gymnasium.Env, ahead: bool = False) -> Any:
    """A loop as anybody would write it, in episodes seeded as `learn` does; `ahead`: Sarsa's, an action ahead."""
    seed, since, over, action = agent.settings.seed, LENGTH, True, None
    for _ in range(steps):
        if over:
            since, anew = (0, True) if since >= LENGTH else (since, False)
            number = rng.environment_seed(seed, rng.ENVIRONMENT, agent.steps) if anew else None
            observation, _ = env.reset(seed=number)
            action = agent.act(observation, explore=True) if ahead else None
        if not ahead:
            action = agent.act(observation, explore=True)
        seen, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        following = agent.act(seen, explore=True) if ahead and not over else None
        agent.observe(observation, action, reward, seen, terminated, truncated, info, next_action=following)
        observation, action, since = seen, following, since + 1
    return agent


class Remembered(NamedTuple):
    """The steps in the replay buffer of a learner's only run, episode by episode; `over` and `active` of a network."""

    observation: np.ndarray  # [T, F]
    action: np.ndarray
    reward: np.ndarray  # [T, n]
    next_observation: np.ndarray  # [T, F]
    ended: np.ndarray  # [T, n]
    terminated: Any = None  # [T] of an actor
    over: Any = None  # [T]
    active: Any = None  # [T, n]


def remembered(agent: mad.MultiAdvisor) -> Remembered:
    from multiadvisor.learners.dqn.replay import END, LAST, NEWEST, STEP

    learner, memory = agent._learner, agent._learner.memory  # type: ignore[attr-defined]
    if agent.task.continuous:
        kept = learner.columns.split(memory.table[0, : memory.filled])  # type: ignore[attr-defined]
        parts = kept.observation, kept.action, kept.reward, kept.next_observation, kept.ended, kept.terminated[:, 0]
        return Remembered(*parts, active=kept.active)
    episode, row = at = np.nonzero((memory.kind == STEP) | (memory.kind == LAST))
    after, over = (episode, (row + 1) % memory.kind.shape[1]), memory.kind[at] == LAST
    assert (memory.kind[after][over] == END).all()
    assert np.isin(memory.kind[after][~over], (STEP, LAST, NEWEST)).all()
    return Remembered(
        memory.observations[at], memory.action[at], memory.reward[at], memory.observations[after], memory.ended[at],
        over=over, active=memory.active[at],
    )  # fmt: skip
