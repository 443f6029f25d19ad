"""Going back to a state of an episode: by the environment's own numbers, or by playing its actions again.

Neither is believed: `simulator_of` goes back in an episode that was played and asks whether the same actions bring the
same observations and rewards as before.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.rng import ENVIRONMENT, stream_key
from multiadvisor.envs.step import begin_episode, copied, five
from multiadvisor.envs.world_envs import WorldEnv
from multiadvisor.errors import BadInput
from multiadvisor.task import Transition

_CHECKED = 3  # places of an episode that is gone back to
_FOLLOWED = 50  # steps that are compared from each


class SavedState(NamedTuple):
    """A state of an episode: its seed, the actions that led there, its observation, and the environment's numbers."""

    seed: int
    actions: tuple[Any, ...]
    observation: Any
    numbers: Any = None


class Simulator:
    """An environment whose episodes can be gone back in: by its seed and actions, unless a subclass knows better."""

    name = "replayed"

    def __init__(self, env: Any) -> None:
        self.env = env

    def begin(self, seed: int) -> Any:
        """Begin the episode of this seed: the first observation."""
        return copied(begin_episode(self.env, seed))

    def save(self) -> Any:
        """The environment's numbers now; none, where seed and actions are enough."""
        return None

    def restore(self, moment: SavedState) -> None:
        """Go back: here, by playing until there."""
        self.begin(moment.seed)
        for action in moment.actions:
            self.env.step(copied(action))

    def reseed(self, seed: int) -> None:
        """Let the environment draw other random numbers from here on, where it has a generator of Gymnasium's."""
        inner = self.env.unwrapped
        if vars(inner).get("_np_random") is not None:
            inner._np_random = np.random.default_rng(seed)

    def another(self) -> Simulator | None:
        """One with an environment of its own, which takes up the moments of this one; none, where that is not known."""
        return None


class Copies(Simulator):
    """Copies what the environment and its wrappers hold; of MuJoCo, all its data as well."""

    name = "restored"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._layers = list(_layers(env))
        inner = self._layers[-1]
        self._data = getattr(inner, "data", None) if hasattr(getattr(inner, "data", None), "qpos") else None
        self._model = getattr(inner, "model", None)
        fixed = ("env", "model", "data", "mujoco_renderer", "spec", "_cached_spec", "action_space", "observation_space",
                 "_action_space", "_observation_space", "metadata", "_metadata")  # fmt: skip
        self._fixed = {
            (depth, name): value
            for depth, layer in enumerate(self._layers)
            for name, value in vars(layer).items()
            if name in fixed
        }

    def save(self) -> Any:
        """A copy of the attributes of every layer, what is not copied of them, and MuJoCo's state."""
        kept = {id(value): value for value in self._fixed.values()}
        return copy.deepcopy([vars(layer) for layer in self._layers], kept), self._fixed, self._physics()

    def restore(self, moment: SavedState) -> None:
        """Take up a copy of what was saved, with this environment's own fixed parts: it can be taken up again."""
        numbers, fixed, physics = moment.numbers
        kept = {id(value): self._fixed.get(place, value) for place, value in fixed.items() if value is not None}
        for layer, attributes in zip(self._layers, copy.deepcopy(numbers, kept), strict=True):
            vars(layer).clear()
            vars(layer).update(attributes)
        if physics is not None:
            import mujoco

            mujoco.mj_copyData(self._data, self._model, physics)

    def another(self) -> Simulator | None:
        """With a copy of the environment, in whatever state that is."""
        return None if getattr(self.env, "render_mode", None) == "human" else Copies(copy.deepcopy(self.env))

    def _physics(self) -> Any:
        """All of MuJoCo's data: observations and rewards also read what was computed in the step before."""
        return None if self._data is None else copy.copy(self._data)


class Worlds(Simulator):
    """Restores a compiled world, whose state is an array, and whose random numbers come from a key and the step."""

    name = "restored"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        if not isinstance(env, WorldEnv):
            raise ValueError("it is not a compiled world")

    def save(self) -> Any:
        """The state, the steps, the key, and whether the episode is over."""
        env = self.env.compiled
        return env.x.copy(), env.elapsed.copy(), env.keys.copy(), self.env.over

    def restore(self, moment: SavedState) -> None:
        """Write them back."""
        x, elapsed, keys, over = moment.numbers
        env = self.env.compiled
        env.x[...], env.elapsed[...], env.keys[...], self.env.over = x, elapsed, keys, over

    def reseed(self, seed: int) -> None:
        """Another key."""
        self.env.compiled.keys[:] = stream_key(seed, ENVIRONMENT)

    def at(self, x: np.ndarray) -> SavedState:
        """A state of the world, in the first step of an episode."""
        env = self.env.compiled
        numbers = x[None].copy(), np.zeros_like(env.elapsed), env.keys.copy(), False
        return SavedState(0, (), x if len(x) > 1 else int(x[0]), numbers)


class Remakes(Simulator):
    """Replays in a new environment each time, where an episode leaves traces in the next."""

    name = "replayed in a new environment"

    def begin(self, seed: int) -> Any:
        """Make another one, and begin there."""
        import gymnasium

        if self.env.spec is None:
            raise ValueError("it is not registered")
        self.env.close()
        self.env = gymnasium.make(self.env.spec, disable_env_checker=True)
        return super().begin(seed)


def _layers(env: Any) -> Iterator[Any]:
    """The environment and its wrappers, from the outside in."""
    while True:
        yield env
        inner = vars(env).get("env")
        if inner is None:
            return
        env = inner


def step(env: Any, observation: Any, action: Any) -> Transition:
    """One step of the environment, with copies of all it gave but the info, which is read at once."""
    after, reward, terminated, truncated, info = five(env.step(copied(action)))
    return Transition(observation, action, copied(reward), copied(after), bool(terminated), bool(truncated), info)


def simulator_of(env: Any, act: Callable[[Any], Any], seed: int) -> tuple[Simulator | None, str]:
    """What brings this environment back to a state, and in one sentence how that was found out."""
    reasons = []
    for kind in (Worlds,) if isinstance(env, WorldEnv) else (Copies, Simulator, Remakes):
        try:
            simulator = kind(env)
            difference = _difference(simulator, act, seed)
        except BadInput:
            raise
        except Exception as error:  # whatever copying a stranger's object may raise
            difference = f"{type(error).__name__}"
        if not difference:
            return simulator, f"states are {simulator.name}: an unchanged branch reproduces the episode"
        reasons.append(f"{kind.name}, {difference}")
    return None, f"no state can be gone back to, so that there are no branches ({'; '.join(reasons)})"


def beside(simulator: Simulator, act: Callable[[Any], Any], seed: int, count: int) -> tuple[Simulator, ...]:
    """So many simulators, this one and others, that play on side by side from its moments; or this one alone."""
    try:
        lanes = simulator, *(one for one in (simulator.another() for _ in range(count - 1)) if one is not None)
        if len(lanes) > 1 and not _difference(simulator, act, seed, lanes):
            return lanes
    except BadInput:
        raise
    except Exception:  # whatever copying a stranger's object may raise
        pass
    return (simulator,)


def _difference(simulator: Simulator, act: Callable[[Any], Any], seed: int, lanes: Sequence[Simulator] = ()) -> str:
    """Where an episode differs from itself that is gone back to, here or in lanes; empty where it does not."""
    observation = simulator.begin(seed)
    moments, played = [], []
    actions: tuple[Any, ...] = ()
    for number in range(_CHECKED * _FOLLOWED):
        if number % _FOLLOWED == _FOLLOWED // 2 or number == 1:
            moments.append((number, SavedState(seed, actions, observation, simulator.save())))
        played.append(step(simulator.env, observation, act(observation)))
        actions = (*actions, played[-1].action)
        observation = played[-1].next_observation
        if played[-1].terminated or played[-1].truncated:
            break
    for number, moment in [*moments, *moments[:1]]:
        for lane in lanes or (simulator,):
            lane.restore(moment)
        observation = moment.observation
        for before in played[number : number + _FOLLOWED]:
            for lane in lanes or (simulator,):
                if not _equal(step(lane.env, observation, before.action), before):
                    return "an unchanged branch differs from the episode"
            observation = before.next_observation
    return ""


def _equal(one: Transition, two: Transition) -> bool:
    same = one.terminated == two.terminated and one.truncated == two.truncated
    return same and _alike(one.next_observation, two.next_observation) and _alike(one.reward, two.reward)


def _alike(one: Any, two: Any) -> bool:
    if isinstance(one, dict):
        return isinstance(two, dict) and one.keys() == two.keys() and all(_alike(one[key], two[key]) for key in one)
    if isinstance(one, tuple):
        return isinstance(two, tuple) and len(one) == len(two) and all(map(_alike, one, two))
    return np.array_equal(one, two, equal_nan=np.asarray(one).dtype.kind == "f")
