"""Where the transitions come from: compiled worlds, Python environments one by one, or a vector environment.

Each plays N episodes side by side and shows them as rows of numbers: `current` [N, F] is what to act on. A step says
what it led to, what each of the task's advisors was paid, and whose part is over.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.compiling import specialise
from multiadvisor.core.rng import ENVIRONMENT, TRAINING, environment_seed, episode_key, stream_key
from multiadvisor.core.validation import MOST_STEPS, Arrays, array, require, whole
from multiadvisor.envs.compiled_episodes import Episodes
from multiadvisor.envs.segment import Segment
from multiadvisor.envs.stepping import begin_episode, five
from multiadvisor.errors import BadInput, short
from multiadvisor.task import Advisor, Task, Transition

NOBODY = np.zeros((0, 0), np.uint8)  # instead of activity, where every advisor always has a say


class Step(NamedTuple):
    """What a step of N episodes brought."""

    arrived: np.ndarray  # [N, F] where it led, also where that was an episode's end
    paid: np.ndarray  # [N, n] each advisor's reward; 0 where it was not active
    ended: np.ndarray  # [N, n] uint8: whose own part is over
    terminated: np.ndarray  # [N] bool
    over: np.ndarray  # [N] bool: terminated or truncated
    dealt: np.ndarray  # [N] bool: no step at all, an episode was only begun
    active: np.ndarray  # [N, n] uint8 where it led, or NOBODY


class ObservationEncoder(NamedTuple):
    """How observations become the network's input."""

    shape: tuple[int, ...]  # [features], or [channels, height, width]
    dtype: np.dtype
    scale: float
    convert: Callable[[Any], np.ndarray]  # one observation -> [F], checked
    masks: tuple[tuple[int, ...], ...]  # for each advisor, 1 where it sees the feature or channel


# ---- what is seen ----------------------------------------------------------------------------------------------------
def _plain_sight(space: Any) -> tuple[tuple[int, ...], np.dtype, float, Callable[[Any], np.ndarray]]:
    from gymnasium import spaces

    if isinstance(space, spaces.Box) and space.shape:
        if 0 in space.shape:
            raise BadInput(f"observations are {space}, in which there is nothing to see: wrap the environment")
        shape: tuple[int, ...] = space.shape
        byte = space.dtype == np.uint8
        dtype = np.dtype(np.uint8 if byte else np.float32)
        turned = len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4)

        def convert(observation: Any) -> np.ndarray:
            try:
                seen = np.asarray(observation)
                if seen.shape != shape:
                    raise BadInput(f"an observation of the shape {seen.shape} was given where {shape} is expected")
                return (seen.transpose(2, 0, 1) if turned else seen).astype(dtype, copy=False).reshape(-1)
            except (TypeError, ValueError) as error:
                if isinstance(error, BadInput):
                    raise
                raise BadInput(f"the observation {short(repr(observation))} is no array of numbers: {error}") from None

        size = (math.prod(shape),) if len(shape) != 3 else (shape[2], *shape[:2]) if turned else shape
        return size, dtype, 1.0 / 255.0 if byte and space.high.max() > 1 else 1.0, convert
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        start = np.atleast_1d(space.start).ravel()
        sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).ravel()
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])

        def one_hot(observation: Any) -> np.ndarray:
            numbers = np.atleast_1d(observation).ravel()
            if numbers.shape != sizes.shape or not np.issubdtype(numbers.dtype, np.integer):
                raise BadInput(f"an observation of {len(sizes)} integers was expected, not {observation!r}")
            numbers = numbers - start
            if ((numbers < 0) | (numbers >= sizes)).any():
                raise BadInput(f"the observation {observation!r} is outside of its space {space}")
            row = np.zeros(int(sizes.sum()), np.uint8)
            row[offsets + numbers] = 1
            return row

        return (int(sizes.sum()),), np.dtype(np.uint8), 1.0, one_hot
    try:
        width = int(spaces.flatdim(space))
    except (NotImplementedError, ValueError):
        raise BadInput(f"observations are {space}, which is no list of numbers: wrap the environment") from None

    def flatten(observation: Any) -> np.ndarray:
        try:
            row = np.asarray(spaces.flatten(space, observation), np.float32)
        except (TypeError, ValueError, KeyError, IndexError, AssertionError):
            row = np.zeros(0, np.float32)
        if row.shape != (width,):
            raise BadInput(f"an observation does not fit its space {short(str(space), 200)}: correct one of them")
        return row

    return (width,), np.dtype(np.float32), 1.0, flatten


def _blocks(space: Any, shape: tuple[int, ...], image: bool) -> list[slice]:
    """Where each component of an observation lies; a number shown as one-hot, or a flat channel, takes many places."""
    from gymnasium import spaces

    sizes = [1 if image else math.prod(shape[1:])] * shape[0]
    if isinstance(space, spaces.MultiDiscrete):
        sizes = space.nvec.ravel().tolist()
    ends = np.cumsum(sizes)
    return [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]


def _numbers(function: Callable[[Any], Any], observation: Any) -> np.ndarray:
    """What a state function gives, as numbers for the network."""
    state = function(observation)
    try:
        return np.asarray(state, np.float32).reshape(-1)
    except (TypeError, ValueError):
        raise BadInput(
            f"a state function gave {state!r}, which a network cannot see: return a number, or always as many of them"
        ) from None


def sight_of(space: Any, advisors: Sequence[Advisor], image: bool) -> ObservationEncoder:
    """How n advisors see observations of a space; `image`: the network has convolutions."""
    shape, dtype, scale, convert = _plain_sight(space)
    blocks = _blocks(space, shape, image)
    if len(shape) == 3 and not image:
        shape = (math.prod(shape),)
    if image and len(shape) != 3:
        raise BadInput(f"convolutions need images, and the observations are {space}: leave convolutions out")
    functions = list(dict.fromkeys(advisor.state for advisor in advisors if callable(advisor.state)))
    if functions and len(shape) == 3:
        raise BadInput("an advisor with a state function cannot look at an image: name the channels it sees, or none")
    parts = [shape[0]]
    if functions:
        own = copy.deepcopy(space)  # whoever draws from the environment's own space goes on undisturbed
        own.seed(0)
        sample = own.sample()
        for function in functions:
            parts.append(_numbers(function, sample).size)
    starts = np.concatenate([[0], np.cumsum(parts)])
    masks = []
    for advisor in advisors:
        mask = np.zeros(int(starts[-1]), int)
        if callable(advisor.state):
            k = 1 + functions.index(advisor.state)
            mask[starts[k] : starts[k + 1]] = 1
        elif advisor.state is None or isinstance(advisor.state, str):
            mask[: parts[0]] = 1
        else:
            picked = [advisor.state] if isinstance(advisor.state, int) else list(advisor.state)
            if not all(isinstance(k, int | np.integer) for k in picked):
                raise BadInput(f"advisor {advisor.name!r} picks {advisor.state}: give integers")
            if not all(-len(blocks) <= k < len(blocks) for k in picked):
                what = "channels" if image or len(getattr(space, "shape", None) or ()) == 3 else "components"
                raise BadInput(
                    f"advisor {advisor.name!r} picks {what} {advisor.state} of an observation of {len(blocks)}"
                )
            for k in picked:
                mask[blocks[k]] = 1
        masks.append(tuple(mask.tolist()))
    if not functions:
        return ObservationEncoder(shape, dtype, scale, convert, tuple(masks))

    def several(observation: Any) -> np.ndarray:
        seen = [convert(observation).astype(np.float32) * np.float32(scale)]
        for function, size in zip(functions, parts[1:], strict=True):
            part = _numbers(function, observation)
            if part.size != size:
                raise BadInput(f"a state function gave {part.size} numbers where it gave {size} before")
            seen.append(part)
        return np.concatenate(seen)

    return ObservationEncoder((int(starts[-1]),), np.dtype(np.float32), 1.0, several, tuple(masks))


# ---- compiled worlds -------------------------------------------------------------------------------------------------
def begin(constants, x, advisors):
    """Bound to the world's function before compiling."""


def who_is_active(constants, x, advisors, active):
    """active [N, n] from the states x [N, size]; `advisors` [n] is a place to write."""
    for b in range(x.shape[0]):
        for j in range(active.shape[1]):
            active[b, j] = 0
        for i in range(begin(constants, x[b], advisors)):
            active[b, advisors[i]] = 1


class WorldSource:
    """Episodes of a compiled world; what is seen is the image of its board, or its numbers as one-hot vectors."""

    waits = False

    def __init__(self, task: Task, keys: np.ndarray, image: bool, activity: bool) -> None:
        from gymnasium import spaces

        from multiadvisor.envs.world_envs import planes

        world = task.world
        assert world is not None
        self.task, self.episodes = task, Episodes(task, keys)
        self._planes, self._activity = planes, activity
        self._board = task.board if world.size > 1 else None  # one number says it all, and in fewer inputs
        if self._board is not None:
            space: Any = spaces.Box(0, 1, (4, *self._board.shape), np.uint8)
        elif world.sizes is not None:
            space = spaces.MultiDiscrete(list(world.sizes))
        else:
            raise BadInput(f"the world of task {task.name!r} gives no `sizes` of its states: a network cannot see it")
        plain = sight_of(space, task.advisors, image)
        self.sight = plain._replace(convert=lambda state: self._look(world.checked(state, task.name)[None])[0])
        self._row = plain.convert
        self._active = specialise(who_is_active, begin=world.begin)
        self._seat = np.zeros(task.n, np.int64)

    def _look(self, x: np.ndarray) -> np.ndarray:
        if self._board is not None:
            return self._planes(self._board, x).reshape(len(x), -1)
        return np.stack([self._row(state) for state in x])

    def _now_active(self) -> np.ndarray:
        if not self._activity:
            return NOBODY
        assert self.task.world is not None
        active = np.zeros((len(self.episodes.keys), self.task.n), np.uint8)
        self._active(self.task.world.constants, self.episodes.x, self._seat, active)
        return active

    def active_in(self, state: Any) -> np.ndarray:
        """Who has a say in one state, [n]."""
        assert self.task.world is not None
        active = np.zeros((1, self.task.n), np.uint8)
        x = self.task.world.checked(state, self.task.name)[None]
        self._active(self.task.world.constants, x, self._seat, active)
        return active[0]

    def open(self) -> None:
        """Begin every episode."""
        self.episodes.deal(np.ones(len(self.episodes.keys), bool))
        self.current, self.active = self._look(self.episodes.x), self._now_active()

    def step(self, actions: np.ndarray) -> Step:
        """A step of every episode; those that it ended begin anew."""
        episodes, n = self.episodes, self.task.n
        count = len(episodes.keys)
        episodes.step(actions)
        slot = np.arange(n) < episodes.active[:, None]  # [N, n]
        episode, place = np.nonzero(slot)
        advisor = episodes.advisors[episode, place]
        paid, ended = np.zeros((count, n)), np.zeros((count, n), np.uint8)
        paid[episode, advisor], ended[episode, advisor] = (
            episodes.reward[episode, place],
            episodes.ended[episode, place],
        )
        terminated, over = episodes.terminated.copy(), episodes.over.copy()
        arrived, active = self._look(episodes.x), self._now_active()
        self.current, self.active = arrived, active
        if over.any():
            episodes.deal(over)
            self.current, self.active = self._look(episodes.x), self._now_active()
        return Step(arrived, paid, ended, terminated, over, np.zeros(count, bool), active)

    @property
    def steps(self) -> np.ndarray:
        """[N] how many each episode has seen."""
        return self.episodes.elapsed[:, 0]

    def forget(self, steps: np.ndarray) -> None:
        """The episodes are given up, after `steps` [N]: new ones can be begun."""
        self.episodes.elapsed[:, 0], self.episodes.elapsed[:, 1] = steps, 0

    def tensors(self) -> dict[str, np.ndarray]:
        """Where the episodes stand."""
        return {"x": self.episodes.x, "episode_step": self.episodes.elapsed}

    def restore(self, tensors: Arrays, steps: np.ndarray) -> bool:
        """Take the episodes up again after `steps` [N]; False where they cannot be checked and were begun anew."""
        episodes, world = self.episodes, self.task.world
        assert world is not None
        x, step = (
            array(tensors, "x", episodes.x.shape, np.int64),
            whole(tensors, "episode_step", episodes.elapsed.shape),
        )
        limit = self.task.limit or MOST_STEPS
        require(
            (step[:, 0] == steps).all() and (step[:, 1] <= steps).all() and (step[:, 1] < limit).all(), "episode_step"
        )
        episodes.elapsed[...] = step
        if not all(world.sound(each, self.task.name) for each in x):
            self.open()
            return False
        episodes.x[...], episodes.fresh[:] = x, 0
        self.current, self.active = self._look(episodes.x), self._now_active()
        return True


# ---- Python environments ---------------------------------------------------------------------------------------------
class PythonSource:
    """Python environments, stepped one after the other; a run that was saved goes on where its `Segment` ends."""

    waits = False

    def __init__(self, task: Task, envs: Sequence[Any], seeds: Sequence[tuple[int, int]], image: bool) -> None:
        assert task.adapter is not None
        self.task, self.envs = task, list(envs)
        self.sight = sight_of(task.adapter.env.observation_space, task.advisors, image)
        self.readers = [task.adapter.fresh(table=False, env=env) for env in self.envs]
        self.stretches = [Segment(task.name, seed, place) for seed, place in seeds]
        count = len(self.envs)
        self.steps = np.zeros(count, np.int64)
        self.current = np.zeros((count, math.prod(self.sight.shape)), self.sight.dtype)
        self._false = np.zeros(count, bool)
        self.active = NOBODY
        self.torn = False  # whether a step failed on the way, so that the episodes are not where the trails end

    def _deal(self, i: int) -> None:
        self.readers[i].reset(self.stretches[i].deal(int(self.steps[i])))
        self._arrive(i)

    def _arrive(self, i: int) -> None:
        self.current[i] = self.sight.convert(self.readers[i].observation)

    def begin(self, seed: int) -> None:
        """Begin the only episode with this seed."""
        self.readers[0].reset(seed)
        self._arrive(0)
        self.active = self._who()

    def _who(self) -> np.ndarray:
        if not self.readers[0].varies:
            return NOBODY
        return np.stack([reader.now_active for reader in self.readers]).astype(np.uint8)

    def open(self) -> None:
        """Begin every episode."""
        for i in range(len(self.envs)):
            self._deal(i)
        self.active = self._who()

    def step(self, actions: np.ndarray, again: bool = True) -> Step:
        """A step of every episode; those that it ended begin anew, unless not `again`."""
        count, n = len(self.envs), self.task.n
        paid, ended = np.zeros((count, n)), np.zeros((count, n), np.uint8)
        terminated, over = np.zeros(count, bool), np.zeros(count, bool)
        self.torn = True
        chosen = actions.tolist() if actions.ndim == 1 else list(actions.copy())
        for i, (reader, action) in enumerate(zip(self.readers, chosen, strict=True)):
            ends, cut = reader.step(action)
            paid[i], ended[i] = reader.paid, reader.has_ended
            self._arrive(i)
            terminated[i], over[i] = ends, ends or cut
        self.steps += 1
        for stretch, action in zip(self.stretches, chosen, strict=True):
            stretch.trail.append(action)  # only now: a step that failed on the way is no part of the run
        self.torn = False
        arrived, active = self.current, self._who()
        self.active = active
        if again and over.any():
            arrived = arrived.copy()
            for ended_episode in np.flatnonzero(over):
                self._deal(int(ended_episode))
            self.active = self._who()
        return Step(arrived, paid, ended, terminated, over, self._false, active)

    def active_in(self, state: Any) -> np.ndarray:
        """Who has a say in one state, [n]."""
        return self.readers[0].active_in(state)

    def read(self, transition: Transition, arrived: np.ndarray) -> tuple[np.ndarray, Step]:
        """The action [1] and what the step brought, of a transition that somebody else played."""
        reader, number = self.readers[0], transition.action - self.task.first_action
        self.torn = True  # the reader looks elsewhere now than where the episode stands
        reader.arrive(transition.observation)
        reader.check_reward(transition.reward)
        terminated, truncated = reader.step(number, transition[3:4] + transition[2:3] + transition[4:])
        over, dealt = np.array([terminated or truncated]), np.zeros(1, bool)
        active, ended = self._who(), reader.has_ended[None].astype(np.uint8)
        return np.array([number]), Step(arrived, reader.paid[None], ended, np.array([terminated]), over, dealt, active)

    def forget(self, steps: np.ndarray) -> None:
        """The episodes are given up, after `steps` [N] of them and of others: new ones can be begun."""
        for stretch, step in zip(self.stretches, steps.tolist(), strict=True):
            stretch.begin(step)
        self.steps[...], self.torn = steps, False

    def tensors(self) -> dict[str, np.ndarray]:
        """Where the episodes stand: seeds and actions."""
        trails = [stretch.trail for stretch in self.stretches]
        return {
            "seeded_at": np.array([stretch.seeded_at for stretch in self.stretches], np.int64),
            "env_steps": self.steps, "trail_lengths": np.array([len(trail) for trail in trails], np.int64),
            "trail": self._array([action for trail in trails for action in trail]),
        }  # fmt: skip

    def _array(self, trail: list[Any]) -> np.ndarray:
        """Actions as an array: [T] their numbers, or [T, size] from -1 to 1."""
        size = () if self.readers[0].box is None else (self.readers[0].box.size,)
        return np.array(trail, np.float32 if size else np.int64).reshape(len(trail), *size)

    def restore(self, tensors: Arrays, steps: np.ndarray) -> bool:
        """Take up what `tensors` gave after `steps` [N], and play the stretches again up to where they were."""
        count = len(self.envs)
        box = self.readers[0].box
        if box is None:
            trail = whole(tensors, "trail", (None,), 0, len(self.task.actions))
        else:
            trail = array(tensors, "trail", (None, box.size), np.float32)
            require((np.abs(trail) <= 1.0).all(), "trail")
        lengths = whole(tensors, "trail_lengths", (count,), 0, len(trail) + 1)
        seeded_at = whole(tensors, "seeded_at", (count,))
        require((whole(tensors, "env_steps", (count,)) == steps).all(), "env_steps")
        require((seeded_at + lengths == steps).all() and lengths.sum() == len(trail), "trail_lengths")
        self.steps[...] = steps
        parts = np.split(trail, np.cumsum(lengths)[:-1])
        for stretch, begun, part in zip(self.stretches, seeded_at.tolist(), parts, strict=True):
            stretch.seeded_at, stretch.trail = begun, part.tolist() if box is None else list(part)
        self.find_back()
        return True

    def find_back(self) -> None:
        """Play the stretches again up to where they were."""
        for i, (reader, stretch) in enumerate(zip(self.readers, self.stretches, strict=True)):
            if stretch.again(reader.reset, reader.step):
                self._deal(i)
            else:
                self._arrive(i)
        self.active, self.torn = self._who(), False


class VectorSource:
    """A vector environment of one's own.

    A saved run that is taken up again begins new episodes in it: nothing is known of how such an environment is seeded.
    """

    def __init__(self, task: Task, env: Any, seed: int, image: bool) -> None:
        from gymnasium.vector import AutoresetMode
        from gymnasium.vector.utils import iterate

        self.task, self.env, self.seed, self._iterate = task, env, seed, iterate
        self.mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if self.mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise BadInput("the vector environment does not reset itself: choose another autoreset mode")
        self.waits = self.mode == AutoresetMode.NEXT_STEP
        self.sight = sight_of(env.single_observation_space, task.advisors, image)
        assert task.adapter is not None
        self.reader = task.adapter
        if any(callable(advisor.reward) or advisor.ended is not None for advisor in task.advisors):
            raise BadInput(
                "in a vector environment advisors take components of the reward or terms in info: an advisor with a "
                "function "
                "of the transition needs an environment of single episodes"
            )
        self.opened = 0
        self.steps, self.over = np.zeros(env.num_envs, np.int64), np.zeros(env.num_envs, bool)

    def _each(self, observations: Any) -> list[Any]:
        """The observations of the single episodes, also where they are dictionaries or tuples of arrays."""
        return list(self._iterate(self.env.observation_space, observations))

    def _rows(self, observations: list[Any]) -> np.ndarray:
        return np.stack([self.sight.convert(each) for each in observations])

    def _who(self, observations: list[Any]) -> np.ndarray:
        return np.stack([self.reader.active_in(each) for each in observations]) if self.reader.varies else NOBODY

    def open(self) -> None:
        """Begin every episode."""
        seen = begin_episode(self.env, environment_seed(self.seed, ENVIRONMENT, self.opened))
        self.opened += 1
        each = self._each(seen)
        self.current, self.active = self._rows(each), self._who(each)
        self.over = np.zeros(self.env.num_envs, bool)

    def step(self, actions: np.ndarray) -> Step:
        """A step of every episode; where one had ended, a new one is dealt."""
        count, n = self.env.num_envs, self.task.n
        dealt = self.over if self.waits else np.zeros(count, bool)
        self.steps += ~dealt  # first: where the step fails, nobody knows where the episodes are
        seen, rewards, terminated, truncated, infos = five(self.env.step(self.reader.played(actions)))
        over = np.asarray(terminated | truncated)
        self.reader.check_reward(rewards[0])
        paid = self._paid(np.asarray(rewards, float).reshape(count, -1), infos, over, dealt)
        paid = np.where(self.active, paid, 0.0) if len(self.active) else paid
        ended = np.repeat(np.asarray(terminated, np.uint8)[:, None], n, axis=1)
        each = self._each(seen)
        self.current, self.active = self._rows(each), self._who(each)
        arrived, active = self.current, self.active
        if over.any() and not self.waits:
            last = [infos["final_obs"][i] if over[i] else each[i] for i in range(count)]
            arrived, active = self._rows(last), self._who(last)
        self.over = over
        return Step(arrived, paid, ended, np.asarray(terminated), over, dealt, active)

    def _paid(self, rewards: np.ndarray, infos: Any, over: np.ndarray, dealt: np.ndarray) -> np.ndarray:
        """[N, n] from the rewards [N, d]; the terms of an episode's last step stand apart where the next begins with
        it."""
        terms, source = self.reader.terms, self.reader.source
        if not terms.any:
            return rewards[:, source]
        paid = np.zeros((len(rewards), self.task.n))
        signals = np.zeros(max(rewards.shape[1], 1) + self.task.n)
        for i in np.flatnonzero(~dealt).tolist():  # an episode that was only begun has no terms
            last = over[i] and not self.waits
            signals[: rewards.shape[1]] = rewards[i]
            terms.fill(signals, terms.of_episode(infos.get("final_info", {}) if last else infos, i))
            paid[i] = signals[source]
        return paid

    def active_in(self, state: Any) -> np.ndarray:
        """Who has a say in one state, [n]."""
        return self.reader.active_in(state)

    def forget(self, steps: np.ndarray) -> None:
        """The episodes are given up, after `steps` [N]: new ones can be begun."""
        self.steps[...] = steps

    def tensors(self) -> dict[str, np.ndarray]:
        """How often the episodes were begun."""
        return {"opened": np.array([self.opened], np.int64)}

    def restore(self, tensors: Arrays, steps: np.ndarray) -> bool:
        """Begin new episodes, and say so."""
        self.opened = int(whole(tensors, "opened", (1,))[0])
        self.forget(steps)
        self.open()
        return False


def training_keys(seeds: Sequence[int], episodes: int) -> np.ndarray:
    """The keys [N] of the episodes of each run."""
    return np.array([stream_key(seed, TRAINING, episode) for seed in seeds for episode in range(episodes)], np.uint64)


def evaluation_keys(seed: int, evaluation: int, episodes: int) -> np.ndarray:
    """The keys of the episodes of one evaluation of a run."""
    return np.array([episode_key(seed, evaluation, episode) for episode in range(episodes)], np.uint64)
