"""The compiled worlds as Gymnasium environments: one episode or many, with a scalar or a vector reward.

    gymnasium.make("multiadvisor/PacBoy-v0", rules="hra", observation="image")
    gymnasium.make("multiadvisor/mo-PacBoy-v0", rewards="groups")
    gymnasium.make_vec("multiadvisor/PacBoy-v0", num_envs=64)

`rewards` is "sum", the weighted sum of the advisors' rewards, or by MO-Gymnasium's convention (`reward_space`,
`reward_dim`, `reward_names`) a vector: "advisors", each one's own; or "groups", the weighted sum of each group, which
add up to the scalar. What is not an option of the environment is one of the task.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

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
from multiadvisor.task import Task

OBSERVATIONS = ("compact", "image")
REWARDS = ("sum", "advisors", "groups")
RENDER_MODES = ["ansi", "rgb_array"]
RENDER_FPS = 8


def _task(kind: type, task: str | Task, options: dict[str, Any]) -> Task:
    """The task with its options; the environment's own, those of its `kind`, are known beside them."""
    if isinstance(task, Task):
        if options:
            raise BadInput(f"a task that is given whole takes no option, and so no {short(next(iter(options)))!r}")
    else:
        own = [each.name for each in inspect.signature(kind).parameters.values() if each.kind is each.KEYWORD_ONLY]
        known = options_of(TASKS[task]) if task in TASKS else options
        for option in options:
            if option not in known:
                raise unknown(f"option of the environment of task {task!r}", option, [*known, *own])
        task = make(task, **options)
    if task.world is None:
        raise BadInput(f"task {task.name!r} has no compiled world: use its own environment")
    return task


def _observations(task: Task, image: bool) -> spaces.Space[Any]:
    assert task.world is not None
    if image:
        if task.board is None:
            raise BadInput(f"task {task.name!r} has no board to make an image of: use observation='compact'")
        return spaces.Box(0, 1, (4, *task.grid.shape), np.uint8)
    sizes = task.world.sizes
    if sizes is None:
        raise BadInput(f"the world of task {task.name!r} gives no `sizes` of its states: no space fits")
    return spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(list(sizes))


def _components(task: Task, rewards: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The names [d] of the reward's components: advisor j pays scale[j] times its reward into that of column[j]."""
    if rewards == "advisors":
        return task.names, np.arange(task.n), np.ones(task.n)
    groups = [(advisor.group or advisor.name) if rewards == "groups" else "reward" for advisor in task.advisors]
    names = tuple(dict.fromkeys(groups))
    return names, np.array([names.index(group) for group in groups]), task.weights


def _reward_space(task: Task, column: np.ndarray, scale: np.ndarray) -> spaces.Box:
    """The rewards that can be paid."""
    known = np.tile([-np.inf, np.inf], (task.n, 1)) if task.reward_bounds is None else task.reward_bounds
    bounds = scale[:, None] * np.where(scale[:, None] == 0.0, 0.0, known)  # [n, 2]
    low, high = np.minimum(bounds.min(axis=1), 0.0), np.maximum(bounds.max(axis=1), 0.0)  # not paying counts
    return spaces.Box(np.bincount(column, low), np.bincount(column, high), dtype=np.float64)


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

    def __init__(
        self, task: str | Task, *, num_envs: int = 1, observation: str = "compact", rewards: str = "sum",
        render_mode: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        for name, value, among in (
            ("observation", observation, OBSERVATIONS), ("rewards", rewards, REWARDS),
            ("render mode", render_mode, (None, *RENDER_MODES)),
        ):  # fmt: skip
            if value not in among:
                raise unknown(name, value, filter(None, among))
        if num_envs < 1:
            raise BadInput(f"num_envs is {num_envs}: ask for at least 1 episode")
        self.task = task = _task(type(self), task, options)
        self.num_envs, self.render_mode, self.rewards = num_envs, render_mode, rewards
        self.image = observation == "image"
        self.single_observation_space = _observations(task, self.image)
        self.single_action_space = spaces.Discrete(len(task.actions))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        names, self._column, self._scale = _components(task, rewards)
        self._size = len(names)
        if rewards != "sum":
            self.reward_space, self.reward_names = _reward_space(task, self._column, self._scale), names
            self.reward_dim = len(names)
        self.env = CompiledEnv(task, np.zeros(num_envs, np.uint64))
        self.over, self._seeded = np.ones(num_envs, bool), False
        self._last = np.full(num_envs, -1)  # the last actions, for which way Pac-Boy faces

    def _observe(self) -> np.ndarray:
        """The observations [B, ...], a fresh array."""
        x = self.env.x
        if self.image:
            return self.task.grid.planes(x)
        return x[:, 0].copy() if isinstance(self.single_observation_space, spaces.Discrete) else x.copy()

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start every episode: with seed, seed + 1, ..., with seeds of their own, or the next ones of the same
        streams."""
        if options:
            raise BadInput(f"reset takes no options, and so no {next(iter(options))!r}: leave it out")
        env, seeds = self.env, self._seeds(seed)
        super().reset(seed=seeds[0] if seeds else None)
        if seeds is None and not self._seeded:
            first = int(self.np_random.integers(2**62))
            seeds = [first + b for b in range(self.num_envs)]
        if seeds is None:
            # an episode is known by the steps before it: one that was not played still has to count
            env.elapsed[:, 0] += env.elapsed[:, 1] == 0
        else:
            env.keys[:] = [stream_key(each, ENVIRONMENT) for each in seeds]
            env.elapsed[:], self._seeded = 0, True
        env.reset()
        self.over, self._last[:] = env.over.copy(), -1
        return self._observe(), {}

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
        if not self._seeded:
            raise BadInput("no episode is on: call reset() first")
        actions, env, begun = self._checked(actions), self.env, self.over
        env.fresh[:] = begun
        self._last = np.where(begun, -1, actions)
        env.advance(actions)
        self.over = env.over.copy()
        flat = np.flatnonzero(env.reward != 0.0)  # far faster on booleans than on floats
        episode, advisor, paid = flat // self.task.n, env.slots.ravel()[flat], env.reward.ravel()[flat]
        own, rewards = np.zeros((self.num_envs, self.task.n)), np.zeros((self.num_envs, self._size))
        own[episode, advisor] = paid
        # summed in the advisors' order, however many episodes there are
        np.add.at(rewards, (episode, self._column[advisor]), self._scale[advisor] * paid)
        terminated = env.terminated.copy()
        infos = {"rewards": own, "_rewards": ~begun}
        return (
            self._observe(), rewards[:, 0] if self.rewards == "sum" else rewards, terminated, self.over & ~terminated,
            infos,
        )  # fmt: skip

    def _checked(self, actions: Any) -> np.ndarray:
        """The compiled loop looks actions up unchecked, so nothing else may get there."""
        given, count = np.asarray(actions), len(self.task.actions)
        if given.shape != self.over.shape:
            raise BadInput(f"{len(self.over)} episodes were given actions of shape {given.shape}: give one for each")
        if given.dtype.kind not in "iu":
            raise BadInput(f"action {given[0]} is not an integer: choose one from 0 to {count - 1}")
        wrong = (given < 0) | (given >= count)
        if wrong.any():
            raise BadInput(f"action {given[wrong][0]} does not exist: choose one from 0 to {count - 1}")
        return given.astype(np.int64)

    def render(self) -> tuple[Any, ...] | None:
        """Every episode as text or as a picture [height, width, 3], by the render mode; None without one."""
        if self.render_mode is None:
            return None
        if self.render_mode == "ansi":
            return tuple(render.text(self.task, x) for x in self.env.x)
        last = [self.task.actions[action] if action >= 0 else "" for action in self._last]
        facing = [action if action in DIRECTIONS else "E" for action in last]
        return tuple(render.picture(self.task, x, facing=way) for x, way in zip(self.env.x, facing, strict=True))


class WorldEnv(gymnasium.Env[Any, Any]):
    """One episode of a compiled world: a batch of one.

    `info["rewards"]` has every advisor's own reward by name, unweighted, 0 for one that is not active.

    >>> env = WorldEnv("three-fruits", render_mode="ansi")
    >>> env.reset(seed=0)
    (array([12,  1,  1,  1]), {})
    >>> env.step(1)[1:4]
    (0.0, False, False)
    >>> WorldEnv("pac-boy", rewards="groups").reward_names
    ('ghosts', 'fruits')
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # noqa: RUF012

    def __init__(
        self, task: str | Task, *, observation: str = "compact", rewards: str = "sum", render_mode: str | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        self.task, self.render_mode = _task(type(self), task, options), render_mode
        self._play = WorldVectorEnv(self.task, observation=observation, rewards=rewards, render_mode=render_mode)
        self.observation_space = self._play.single_observation_space
        self.action_space = self._play.single_action_space
        if rewards != "sum":
            self.reward_space, self.reward_names = self._play.reward_space, self._play.reward_names
            self.reward_dim = self._play.reward_dim

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode: the first one of the seed's stream, or without a seed the next one of the same stream."""
        super().reset(seed=seed)
        if seed is None:
            self._play.np_random = self.np_random
        observations, info = self._play.reset(seed=seed, options=options)
        return self._single(observations), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one step."""
        if self._play.over[0]:
            raise BadInput("no episode is on: call reset() first")
        observations, (reward,), (terminated,), (truncated,), infos = self._play.step([action])
        info = {"rewards": dict(zip(self.task.names, infos["rewards"][0].tolist(), strict=True))}
        reward = reward if reward.shape else float(reward)
        return self._single(observations), reward, bool(terminated), bool(truncated), info

    def _single(self, observations: np.ndarray) -> Any:
        return int(observations[0]) if observations.ndim == 1 else observations[0]

    def render(self) -> Any:
        """The state as text or as a picture [height, width, 3], by the render mode; None without one."""
        shown = self._play.render()
        return None if shown is None else shown[0]
