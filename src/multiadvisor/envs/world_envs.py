"""The compiled worlds as Gymnasium environments, with a scalar or a vector reward.

    gymnasium.make("multiadvisor/PacBoy-v0", rules="hra")
    gymnasium.make("multiadvisor/mo-PacBoy-v0")

What is not an option of the environment is one of the task.
"""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from multiadvisor.core.rng import ENVIRONMENT, stream_key
from multiadvisor.envs import render
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.registry import TASKS, make, options_of
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.errors import BadInput, short, unknown
from multiadvisor.task import Task, World

RENDER_MODES = ["ansi", "rgb_array"]


def _task(task: str | Task, options: dict[str, Any]) -> tuple[Task, World]:
    """The task with its options, and its world; the environment's own options are known beside them."""
    if isinstance(task, Task):
        if options:
            raise BadInput(f"a task that is given whole takes no option, and so no {short(next(iter(options)))!r}")
    else:
        own = [each.name for each in inspect.signature(WorldEnv).parameters.values() if each.kind is each.KEYWORD_ONLY]
        known = options_of(TASKS[task]) if task in TASKS else options
        for option in options:
            if option not in known:
                raise unknown(f"option of the environment of task {task!r}", option, [*known, *own])
        task = make(task, **options)
    if task.world is None:
        raise BadInput(f"task {task.name!r} has no compiled world: use its own environment")
    return task, task.world


class WorldEnv(gymnasium.Env[Any, Any]):
    """An episode of a compiled world; the reward is the weighted sum of the advisors' rewards.

    With `vector_reward` it is every advisor's own [n], by MO-Gymnasium's convention (`reward_space`, `reward_dim`,
    `reward_names`). `info["rewards"]` has these by name, unweighted, 0 for an advisor that is not active.

    >>> env = WorldEnv("three-fruits", render_mode="ansi")
    >>> env.reset(seed=0)
    (array([12,  1,  1,  1]), {})
    >>> env.step(1)[1:4]
    (0.0, False, False)
    >>> WorldEnv("two-goal", vector_reward=True).reward_names
    ('goal 1', 'goal 2')
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": 8}  # noqa: RUF012

    def __init__(
        self, task: str | Task, *, vector_reward: bool = False, render_mode: str | None = None, **options: Any
    ) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise unknown("render mode", render_mode, RENDER_MODES)
        self.task, world = _task(task, options)
        if world.sizes is None:
            raise BadInput(f"the world of task {self.task.name!r} gives no `sizes` of its states: no space fits")
        self.render_mode = render_mode
        self.observation_space = (
            spaces.Discrete(world.sizes[0]) if world.size == 1 else spaces.MultiDiscrete(list(world.sizes))
        )
        self.action_space = spaces.Discrete(len(self.task.actions))
        self.vector_reward = vector_reward
        if vector_reward:
            low, high = (np.full(self.task.n, end) for end in (-np.inf, np.inf))
            if world.bounds is not None:
                low, high = np.minimum(world.bounds[:, 0], 0.0), np.maximum(world.bounds[:, 1], 0.0)  # paid nothing
            self.reward_space = spaces.Box(low, high, dtype=np.float64)
            self.reward_names, self.reward_dim = self.task.names, self.task.n
        self.compiled, self.over = CompiledEnv(self.task, [0]), True
        self._seeded, self._facing = False, "E"

    def _observe(self) -> Any:
        x = self.compiled.x[0]
        return int(x[0]) if len(x) == 1 else x.copy()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode: the first one of the seed's stream, or without a seed the next one of the same stream."""
        if options:
            raise BadInput(f"reset takes no options, and so no {next(iter(options))!r}: leave it out")
        super().reset(seed=seed)
        env = self.compiled
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**62))
        if seed is None:
            # an episode is known by the steps before it: one that was not played still has to count
            env.elapsed[:, 0] += env.elapsed[:, 1] == 0
        else:
            env.keys[:], env.elapsed[:], self._seeded = stream_key(seed, ENVIRONMENT), 0, True
        env.reset()
        self.over, self._facing = False, "E"
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one step."""
        if self.over:
            raise BadInput("no episode is on: call reset() first")
        env, number = self.compiled, self._checked(action)
        self._facing = self.task.actions[number] if self.task.actions[number] in DIRECTIONS else "E"
        env.advance(np.array([number]))
        own, total = np.zeros(self.task.n), 0.0
        for k in np.flatnonzero(env.reward[0]).tolist():
            who, paid = env.slots[0, k], float(env.reward[0, k])
            own[who], total = paid, total + self.task.advisors[who].weight * paid
        terminated, self.over = bool(env.terminated[0]), bool(env.over[0])
        info = {"rewards": dict(zip(self.task.names, own.tolist(), strict=True))}
        return self._observe(), own if self.vector_reward else total, terminated, self.over and not terminated, info

    def _checked(self, action: Any) -> int:
        """The compiled loop looks actions up unchecked, so nothing else may get there."""
        given, count = np.asarray(action), len(self.task.actions)
        if given.shape or given.dtype.kind not in "iu" or not 0 <= given < count:
            raise BadInput(f"action {short(repr(action))} does not exist: choose one from 0 to {count - 1}")
        return int(given)

    def render(self) -> Any:
        """The state as text or as a picture [height, width, 3], by the render mode; None without one."""
        x = self.compiled.x[0]
        if self.render_mode == "ansi":
            return render.text(self.task, x)
        return None if self.render_mode is None else render.picture(self.task, x, facing=self._facing)
