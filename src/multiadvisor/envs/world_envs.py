"""The compiled worlds as Gymnasium environments: one episode or many, with a scalar or a vector reward.

    gymnasium.make("multiadvisor/PacBoy-v0", rules="hra", observation="image")
    gymnasium.make("multiadvisor/mo-PacBoy-v0", rewards="groups")
    gymnasium.make_vec("multiadvisor/PacBoy-v0", num_envs=64)

What is not an option of the environment (`observation`, `render_mode`, `rewards`) is one of the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from multiadvisor.core.rng import ENVIRONMENT, stream_key
from multiadvisor.envs import render
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.registry import TASKS, make, options_of
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.errors import BadInput, short, unknown
from multiadvisor.task import Task, World

OBSERVATIONS = ("compact", "image")
REWARDS = ("advisors", "groups")
RENDER_MODES = ["ansi", "rgb_array"]
RENDER_FPS = 8


class _Payment(NamedTuple):
    """How the advisors' rewards become the environment's: advisor j pays scale[j] times its reward into column[j]."""

    names: tuple[str, ...]  # [d]
    column: np.ndarray  # [n]
    scale: np.ndarray  # [n]
    scalar: bool = False  # all into one number

    def __call__(self, episode: np.ndarray, advisor: np.ndarray, reward: np.ndarray, batch: int) -> np.ndarray:
        """The rewards [B, d], or [B] where they are numbers, from those that are not zero [k], which are few; summed
        in the advisors' order, whatever the batch."""
        total = np.zeros((batch, len(self.names)))
        np.add.at(total, (episode, self.column[advisor]), self.scale[advisor] * reward)
        return total[:, 0] if self.scalar else total

    def space(self, task: Task) -> spaces.Box:
        """The rewards that can be paid."""
        known = np.tile([-np.inf, np.inf], (task.n, 1)) if task.reward_bounds is None else task.reward_bounds
        bounds = self.scale[:, None] * np.where(self.scale[:, None] == 0.0, 0.0, known)  # [n, 2]
        low, high = np.minimum(bounds.min(axis=1), 0.0), np.maximum(bounds.max(axis=1), 0.0)  # not paying counts
        low, high = np.bincount(self.column, low), np.bincount(self.column, high)
        return spaces.Box(low, high, dtype=np.float64)


def _payment(task: Task, rewards: str) -> _Payment:
    """Of each advisor; or weighted, so that the components sum to the scalar reward, of each group, where an advisor
    without one stands for itself."""
    if rewards == "advisors":
        return _Payment(task.names, np.arange(task.n), np.ones(task.n))
    groups = [advisor.group or advisor.name for advisor in task.advisors]
    names = tuple(dict.fromkeys(groups))
    return _Payment(names, np.array([names.index(group) for group in groups]), task.weights)


def _task(task: str | Task, options: dict[str, Any], own: Sequence[str]) -> Task:
    """The task with its options; `own` are the environment's, for the hint."""
    if isinstance(task, Task):
        if options:
            raise BadInput(f"a task that is given whole takes no option, and so no {short(next(iter(options)))!r}")
    else:
        known = options_of(TASKS[task]) if task in TASKS else options
        for option in options:
            if option not in known:
                raise unknown(f"option of the environment of task {task!r}", option, [*known, *own])
        task = make(task, **options)
    if task.world is None:
        raise BadInput(f"task {task.name!r} has no compiled world: use its own environment")
    return task


class _Play:
    """What the environments share: a batch of episodes with their spaces, seeds, observations and rewards."""

    def __init__(self, task: Task, batch: int, observation: str, render_mode: str | None) -> None:
        if observation not in OBSERVATIONS:
            raise unknown("observation", observation, OBSERVATIONS)
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise unknown("render mode", render_mode, RENDER_MODES)
        self.task, self.image, self.render_mode = task, observation == "image", render_mode
        self.advisors = _payment(task, "advisors")
        self.payment = _Payment(("reward",), np.zeros(task.n, np.int64), task.weights, scalar=True)
        self.actions = spaces.Discrete(len(task.actions))
        self.env = CompiledEnv(task, np.zeros(batch, np.uint64))
        self.observations = self._observations(self.env.world)
        self.over = np.ones(batch, bool)
        self.seeded = False
        self._last = np.full(batch, -1)  # the last actions, for which way Pac-Boy faces

    def _observations(self, world: World) -> spaces.Space[Any]:
        if self.image:
            if self.task.board is None:
                raise BadInput(f"task {self.task.name!r} has no board to make an image of: use observation='compact'")
            return spaces.Box(0, 1, (4, *self.task.grid.shape), np.uint8)
        if world.sizes is None:
            raise BadInput(f"the world of task {self.task.name!r} gives no `sizes` of its states: no space fits")
        return spaces.Discrete(world.sizes[0]) if world.size == 1 else spaces.MultiDiscrete(list(world.sizes))

    def observe(self) -> np.ndarray:
        """The observations [B, ...], a fresh array."""
        x = self.env.x
        if self.image:
            return self.task.grid.planes(x)
        return x[:, 0].copy() if isinstance(self.observations, spaces.Discrete) else x.copy()

    def reset(self, seeds: Sequence[int] | None, random: np.random.Generator) -> np.ndarray:
        """Begin every episode: episode b is determined by seeds[b] and the actions; None: the next ones of the same
        streams."""
        env = self.env
        if seeds is None and not self.seeded:
            first = int(random.integers(2**62))
            seeds = [first + b for b in range(len(self.over))]
        if seeds is None:
            # an episode is known by the steps before it: one that was not played still has to count
            env.elapsed[:, 0] += env.elapsed[:, 1] == 0
        else:
            env.keys[:] = [stream_key(seed, ENVIRONMENT) for seed in seeds]
            env.elapsed[:], self.seeded = 0, True
        env.reset()
        self.over, self._last[:] = env.over.copy(), -1
        return self.observe()

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray]:
        """One step of every episode, in which those that were over begin again: the environment's rewards [B] or
        [B, d], and the advisors' own [B, n]."""
        actions, env = self._checked(actions), self.env
        env.fresh[:] = self.over
        self._last = np.where(self.over, -1, actions)
        env.advance(actions)
        self.over = env.over.copy()
        flat = np.flatnonzero(env.reward != 0.0)  # far faster on booleans than on floats
        paid = flat // env.reward.shape[1], env.slots.ravel()[flat], env.reward.ravel()[flat], len(self.over)
        return self.payment(*paid), self.advisors(*paid)

    def _checked(self, actions: Any) -> np.ndarray:
        """The compiled loop looks actions up unchecked, so nothing else may get there."""
        given, count = np.asarray(actions), int(self.actions.n)
        if given.shape != self.over.shape:
            raise BadInput(f"{len(self.over)} episodes were given actions of shape {given.shape}: give one for each")
        if given.dtype.kind not in "iu":
            raise BadInput(f"action {given[0]} is not an integer: choose one from 0 to {count - 1}")
        wrong = (given < 0) | (given >= count)
        if wrong.any():
            raise BadInput(f"action {given[wrong][0]} does not exist: choose one from 0 to {count - 1}")
        return given.astype(np.int64)

    def render(self, b: int) -> Any:
        """Episode b as the render mode wants it."""
        x = self.env.x[b]
        if self.render_mode == "ansi":
            return render.text(self.task, x)
        if self.render_mode == "rgb_array":
            action = self.task.actions[self._last[b]]
            facing = action if self._last[b] >= 0 and action in DIRECTIONS else "E"
            return render.picture(self.task, x, facing=facing)
        return None


def _refuse_options(options: dict[str, Any] | None) -> None:
    if options:
        raise BadInput(f"reset takes no options, and so no {next(iter(options))!r}: leave it out")


class WorldEnv(gymnasium.Env[Any, Any]):
    """One episode of a compiled world; the reward is the weighted sum of the advisors' rewards.

    `info["rewards"]` has every advisor's own reward by name, unweighted, 0 for one that is not active.

    >>> env = WorldEnv("three-fruits", render_mode="ansi")
    >>> env.reset(seed=0)
    (array([12,  1,  1,  1]), {})
    >>> env.step(1)[1:4]
    (0.0, False, False)
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # noqa: RUF012
    _own: tuple[str, ...] = ("observation", "render_mode")

    def __init__(
        self, task: str | Task, *, observation: str = "compact", render_mode: str | None = None, **options: Any
    ) -> None:
        self.task = _task(task, options, self._own)
        self._play = _Play(self.task, 1, observation, render_mode)
        self.render_mode = render_mode
        self.observation_space, self.action_space = self._play.observations, self._play.actions

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode: the first one of the seed's stream, or without a seed the next one of the same stream."""
        _refuse_options(options)
        super().reset(seed=seed)
        return self._single(self._play.reset(None if seed is None else [seed], self.np_random)), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one step."""
        play = self._play
        if play.over[0]:
            raise BadInput("no episode is on: call reset() first")
        (reward,), (own,) = play.step([action])
        terminated, over = bool(play.env.terminated[0]), bool(play.over[0])
        info = {"rewards": dict(zip(self.task.names, own.tolist(), strict=True))}
        reward = reward if reward.shape else float(reward)
        return self._single(play.observe()), reward, terminated, over and not terminated, info

    def _single(self, observations: np.ndarray) -> Any:
        return int(observations[0]) if observations.ndim == 1 else observations[0]

    def render(self) -> Any:
        """The state as text or as a picture [height, width, 3], by the render mode; None without one."""
        return self._play.render(0)


class _VectorReward:
    """Mixed in before an environment, it makes the reward a vector."""

    task: Task
    _play: _Play

    def __init__(self, task: str | Task, *, rewards: str = "advisors", **options: Any) -> None:
        super().__init__(task, **options)  # type: ignore[call-arg]
        if rewards not in REWARDS:
            raise unknown("rewards", rewards, REWARDS)
        self._play.payment = payment = _payment(self.task, rewards)
        self.reward_space, self.reward_names = payment.space(self.task), payment.names
        self.reward_dim = len(payment.names)


class MOWorldEnv(_VectorReward, WorldEnv):
    """One episode with a vector reward [d], by MO-Gymnasium's convention: `reward_space`, `reward_dim`, `reward_names`.

    rewards: "advisors", each one's own reward; or "groups", the weighted sum of each group: they add up to the scalar.

    >>> env = MOWorldEnv("pac-boy", rewards="groups")
    >>> env.reward_names, env.reward_space.shape
    (('ghosts', 'fruits'), (2,))
    """

    _own = (*WorldEnv._own, "rewards")


class WorldVectorEnv(VectorEnv[Any, Any, np.ndarray]):
    """Many episodes of a compiled world, stepped together in one compiled call.

    Episode b of `reset(seed=s)` is the episode of the single environment with seed s + b, step for step. An episode
    that is over begins again with the next step, whatever its action (autoreset mode NEXT_STEP). `infos["rewards"]`
    [B, n] has every advisor's own reward in the task's order, and `infos["_rewards"]` [B] is false for episodes that
    just began.

    >>> envs = WorldVectorEnv("pac-boy", num_envs=3)
    >>> envs.reset(seed=0)[0].shape
    (3, 78)
    >>> envs.step(np.array([0, 1, 2]))[1].shape
    (3,)
    """

    metadata = {  # noqa: RUF012
        "render_modes": RENDER_MODES, "render_fps": RENDER_FPS, "autoreset_mode": AutoresetMode.NEXT_STEP
    }  # fmt: skip
    _own: tuple[str, ...] = (*WorldEnv._own, "num_envs")

    def __init__(
        self, task: str | Task, *, num_envs: int = 1, observation: str = "compact", render_mode: str | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        if num_envs < 1:
            raise BadInput(f"num_envs is {num_envs}: ask for at least 1 episode")
        self.task = _task(task, options, self._own)
        self._play = _Play(self.task, num_envs, observation, render_mode)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = self._play.observations, self._play.actions
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start every episode: with seed, seed + 1, ..., with seeds of their own, or the next ones of the same
        streams."""
        _refuse_options(options)
        seeds = self._seeds(seed)
        super().reset(seed=seeds[0] if seeds else None)
        return self._play.reset(seeds, self.np_random), {}

    def _seeds(self, seed: int | Sequence[int] | None) -> list[int] | None:
        if seed is None:
            return None
        if isinstance(seed, int | np.integer):
            return [int(seed) + b for b in range(self.num_envs)]
        seeds = [int(one) for one in seed]
        if len(seeds) != self.num_envs:
            raise BadInput(f"{len(seeds)} seeds were given for {self.num_envs} episodes: give one, or one for each")
        return seeds

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one step of every episode, or begin it again where it was over."""
        play = self._play
        if not play.seeded:
            raise BadInput("no episode is on: call reset() first")
        begun = play.over
        rewards, own = play.step(actions)
        terminated = play.env.terminated.copy()
        infos = {"rewards": own, "_rewards": ~begun}
        return play.observe(), rewards, terminated, play.over & ~terminated, infos

    def render(self) -> tuple[Any, ...] | None:
        """Every episode as text or as a picture, by the render mode; None without one."""
        return None if self.render_mode is None else tuple(self._play.render(b) for b in range(self.num_envs))


class MOWorldVectorEnv(_VectorReward, WorldVectorEnv):
    """Many episodes with a vector reward: `step` returns [B, d]; see `MOWorldEnv`."""

    _own = (*WorldVectorEnv._own, "rewards")
