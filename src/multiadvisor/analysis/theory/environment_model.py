"""Gymnasium environments as finite MDPs, by the first of three ways that an environment allows.

- listed: it shows its own transition table, `env.unwrapped.P`, as Gymnasium's toy texts do, and steps by it;
- explored: it can be copied, and the same action in the same state always does the same: breadth first from the first
  states on. Each step is taken twice, the second time from a copy that came there on another way where there is one,
  and then thousands at random: so chance, and what observations hide, are noticed;
- estimated: how often what followed what, in a sample of its steps.

In the first two a state is an observation, in the last what all advisors see of one. What can be copied is not stepped
itself.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import index
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.envs.step import begin_episode, copied, one_episode, one_step, wrappers_of
from multiadvisor.errors import BadInput, FunctionFailed, in_one_line
from multiadvisor.task import Outcome, Task, Transition

MOST_EXPLORED = 5_000  # states, of each of which a copy of the environment is kept
SAMPLE = 20_000  # steps from which a model is estimated
_TABLE_WALK = 1_000  # steps in which a table is put to the test
_WALK = 5_000  # further steps in which an explored model is put to the test
_RESETS = 64  # from which first states are known, where the environment does not list them


class EnvironmentModel(NamedTuple):
    """What `enumerate_task` asks: states by their keys, and what may happen in them."""

    starts: dict[Hashable, float]  # the probability of each first state
    happens: Callable[[Any, int], Iterable[Outcome]]
    seen: dict[Hashable, Any]  # an observation of each state
    known: Callable[[int], str]  # how all this is known, from the number of states
    estimated: bool = False


class _Unknown(BadInput):
    """This way is not open, and why."""


def model_of(task: Task, sample: int = SAMPLE, seed: int = 0) -> EnvironmentModel:
    """The model of a Gymnasium task; estimated from so many steps (0: not at all) where no other way is open."""
    adapter = task.adapter
    assert adapter is not None
    if adapter.box is not None or adapter.vector:
        raise BadInput(
            f"the {'episodes' if adapter.box is None else 'actions'} of {task.name!r} cannot be listed: ask a trained "
            "agent of it with multiadvisor check --run"
        )
    if silent := [advisor.name for advisor in task.advisors if advisor.advises is not None]:
        raise BadInput(f"the solver does not know silent advisors, and {silent[0]!r} has `advises`: leave it out")
    with contextlib.suppress(_Unknown):
        return _listed(task)
    try:
        return _explored(task)
    except _Unknown as error:
        if not sample:
            raise BadInput(f"the states of {task.name!r} cannot be listed: {error}") from None
        return estimated(task, played(task, sample, seed), str(error))


def key_of(observation: Any) -> Hashable:
    """What tells observations apart."""
    if isinstance(observation, dict | tuple):
        parts = observation.values() if isinstance(observation, dict) else observation
        return tuple(map(key_of, parts))
    try:
        return observation if isinstance(observation, str) else index(observation)
    except TypeError:
        return np.asarray(observation).tobytes()


class _Judge:
    """What each step pays to whom, by the task's own advisors."""

    def __init__(self, task: Task) -> None:
        assert task.adapter is not None
        self.task, self.adapter = task, task.adapter.fresh(table=task.adapter.refusal is None)

    def paid(self, step: Transition, action: int) -> dict[int, float]:
        """By advisor, what is not 0; `action` is counted from 0."""
        try:
            self.adapter.arrive(step.observation)
            self.adapter.step(action, (step.next_observation, step.reward, step.terminated, step.truncated, step.info))
        except FunctionFailed as error:
            raise _Unknown(str(error)) from None
        rewards = self.adapter.paid
        if not np.isfinite(rewards).all():
            name = self.task.names[int(np.isfinite(rewards).argmin())]
            raise BadInput(f"advisor {name!r} of {self.task.name!r} is paid what is not finite: run check on it")
        going = (self.adapter.has_ended != 0) & (self.adapter.now_active != 0)
        if going.any() and not step.terminated:
            name = self.task.names[int(going.argmax())]
            raise BadInput(f"the part of advisor {name!r} of {self.task.name!r} ends where it is still active: let "
                           "`active` be false there")  # fmt: skip
        return {int(j): float(rewards[j]) for j in np.flatnonzero(rewards)}


# ---- listed ----------------------------------------------------------------------------------------------------------
def transition_table(env: Any) -> Any:
    """The environment's own table; refused where it shows none, or where a wrapper makes something else of it."""
    import gymnasium

    table, space = getattr(env.unwrapped, "P", None), env.observation_space
    if not isinstance(table, dict) or not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
        raise _Unknown("it shows no table of transitions")
    changing = gymnasium.ObservationWrapper | gymnasium.RewardWrapper | gymnasium.ActionWrapper
    if any(isinstance(wrapper, changing) for wrapper in wrappers_of(env)):
        raise _Unknown("a wrapper changes what its table says")
    return table


def has_table(task: Task) -> bool:
    """Whether the task's environment lists its own transitions."""
    try:
        return task.adapter is not None and not task.adapter.vector and bool(transition_table(task.adapter.env))
    except _Unknown:
        return False


def _listed(task: Task) -> EnvironmentModel:
    judge = _Judge(task)
    env, table = judge.adapter.env, transition_table(judge.adapter.env)
    first = getattr(env.unwrapped, "initial_state_distrib", None)
    starts: dict[Hashable, float] = {}
    if first is None:
        starts |= {key: chance for key, (chance, _) in _starts(env).items()}
    else:
        starts |= {int(state): float(first[state]) for state in np.flatnonzero(first)}

    def happens(state: Any, action: int) -> Iterator[Outcome]:
        for chance, after, reward, over in table[state][task.played(action)]:
            if chance > 0:
                step = Transition(state, task.played(action), reward, int(after), bool(over), False, {"prob": chance})
                yield Outcome(float(chance), int(after), judge.paid(step, action), bool(over))

    list(happens(next(iter(starts)), 0))  # an advisor may want more than the table has
    for step in played(task, _TABLE_WALK):  # and a wrapper may change what a step does
        action = task.numbered(step.action)
        seen = key_of(step.next_observation), judge.paid(step, action), step.terminated
        if seen not in [one[1:] for one in happens(key_of(step.observation), action)]:
            raise _Unknown("its steps are not those of its table")
    return EnvironmentModel(
        starts, happens, {state: state for state in table},
        lambda states: f"{states} states, from the environment's own table of transitions (env.unwrapped.P)",
    )  # fmt: skip


# ---- explored --------------------------------------------------------------------------------------------------------
def _copy(env: Any, draw: int | None = None) -> Any:
    """A copy whose time limit is far away; with `draw`, one that draws its random numbers otherwise."""
    import gymnasium

    table: Any = getattr(env.unwrapped, "P", None)
    try:
        env = copy.deepcopy(env, {id(table): table})  # which is large, and never changes
    except Exception as error:
        raise _Unknown(f"it cannot be copied ({in_one_line(error)})") from None
    for wrapper in wrappers_of(env):
        if isinstance(wrapper, gymnasium.wrappers.TimeLimit):
            vars(wrapper)["_elapsed_steps"] = 0
    bare = env.unwrapped
    for name, value in list(vars(bare).items()) if draw is not None else ():
        if isinstance(value, np.random.Generator):
            setattr(bare, name, np.random.default_rng(draw))
        elif isinstance(value, random.Random):
            value.seed(draw)
    return env


def _starts(origin: Any) -> dict[Hashable, tuple[float, tuple[Any, Any]]]:
    """The first states that were seen: how often, and a copy of the environment and the observation there."""
    found: dict[Hashable, tuple[Any, Any]] = {}
    count: Counter[Hashable] = Counter()
    for seed in range(_RESETS):
        env = _copy(origin)
        observation = copied(begin_episode(env, seed))
        count[key_of(observation)] += 1
        found.setdefault(key_of(observation), (env, observation))
    return {key: (count[key] / _RESETS, kept) for key, kept in found.items()}


def _explored(task: Task) -> EnvironmentModel:
    judge, actions = _Judge(task), range(len(task.actions))
    if judge.adapter.discretise is not None:
        raise _Unknown("its observations are in bins")
    starts = _starts(judge.adapter.env)
    kept = {key: at for key, (_, at) in starts.items()}  # the first copy in each state
    last: dict[Hashable, Any] = dict(kept)  # and the last, which may have come on another way
    steps: dict[tuple[Hashable, int], Outcome] = {}
    draws = itertools.count()

    def judged(step: Transition, action: int) -> Outcome:
        return Outcome(1.0, key_of(step.next_observation), judge.paid(step, action), step.terminated)

    def step(at: tuple[Any, Any], action: int) -> tuple[Outcome, tuple[Any, Any]]:
        env, (_, before) = _copy(at[0], next(draws)), at
        try:
            done = one_step(env, before, task.played(action))
        except BadInput:
            raise
        except Exception as error:
            raise _Unknown(f"its step raised {in_one_line(error)}") from None
        if done.truncated and not done.terminated:
            raise _Unknown("it cuts episodes off by a counter of its own")
        return judged(done._replace(truncated=False), action), (env, done.next_observation)

    waiting = list(kept)
    for key in waiting:
        for action in actions:
            steps[key, action], arrived = step(kept[key], action)
            to = steps[key, action].x
            if steps[key, action].terminated:
                continue
            last[to] = arrived
            if to not in kept:
                kept[to] = arrived
                waiting.append(to)
                if len(waiting) > MOST_EXPLORED:
                    raise _Unknown(f"it has more than {MOST_EXPLORED:,} states")
    again = ((key, action, step(last[key], action)[0]) for key in kept for action in actions)
    walked = (
        (key_of(one.observation), action, judged(one, action))
        for one in played(task, _WALK)
        for action in [task.numbered(one.action)]
    )
    for key, action, happened in itertools.chain(again, walked):
        if steps.get((key, action)) != happened:
            raise _Unknown("the same action in the same state does not always do the same")
    return EnvironmentModel(
        {key: chance for key, (chance, _) in starts.items()}, lambda key, action: [steps[key, action]],
        {key: observation for key, (_, observation) in kept.items()},
        lambda states: f"{states} states, explored breadth first by copying the environment, where nothing is random",
    )  # fmt: skip


# ---- estimated -------------------------------------------------------------------------------------------------------
def played(task: Task, steps: int, seed: int = 0) -> Iterator[Transition]:
    """Steps of a copy of the environment, or where it cannot be copied of itself, with random actions."""
    assert task.adapter is not None
    try:
        env = _copy(task.adapter.env)
    except _Unknown:
        env, task.adapter.lock.user = task.adapter.env, None  # whoever trains in it has to find its way back
    chance = np.random.default_rng(seed)
    with task.adapter.lock:
        episodes = (
            one_episode(env, (seed + k) % (1 << 31), lambda seen: task.played(int(chance.integers(len(task.actions)))))
            for k in itertools.count()
        )
        yield from itertools.islice(itertools.chain.from_iterable(episodes), steps)


def estimated(task: Task, sample: Iterable[Transition], why: str = "") -> EnvironmentModel:
    """From recorded steps, in the order they were played. What was never tried is taken to do what the actions that
    were tried there do, on average, so that it never looks better than all of them."""
    judge = _Judge(task)
    if judge.adapter.refusal is not None:
        raise judge.adapter.refusal
    ways: dict[tuple[Hashable, int], Counter[Hashable]] = {}  # where it led; None: to the end
    pay: dict[tuple[Hashable, int], np.ndarray] = {}  # [n] in all
    seen: dict[Hashable, Any] = {}
    begun: Counter[Hashable] = Counter()
    before: Any = None

    def key(observation: Any) -> Hashable:
        judge.adapter.look(observation)
        found = (*judge.adapter.firsts.tolist(), *judge.adapter.now_active.tolist())
        seen.setdefault(found, observation)
        return found

    for step in sample:
        here, action = key(step.observation), task.numbered(step.action)
        if before is None or before.terminated or before.truncated:
            begun[here] += 1
        paid = judge.paid(step, action)
        total = pay.setdefault((here, action), np.zeros(task.n))
        for j, reward in paid.items():
            total[j] += reward
        to = None if step.terminated else key(step.next_observation)
        ways.setdefault((here, action), Counter())[to] += 1
        before = step
    if not ways:
        raise BadInput(f"the sample of {task.name!r} has no step: play some")
    tried: dict[Hashable, list[int]] = {}
    for state, action in ways:
        tried.setdefault(state, []).append(action)

    def happens(state: Hashable, action: int) -> Iterator[Outcome]:
        known = [action] if (state, action) in ways else tried.get(state, [])
        if not known:  # the sample ended here
            yield Outcome(1.0, state, {}, True)
        for one in known:
            count = ways[state, one].total()
            paid = {int(j): float(pay[state, one][j]) / count for j in np.flatnonzero(pay[state, one])}
            for to, times in ways[state, one].items():
                yield Outcome(times / count / len(known), to, paid, to is None)

    steps, pairs = sum(count.total() for count in ways.values()), len(ways)
    median = int(np.median([count.total() for count in ways.values()]))

    def known(states: int) -> str:
        share = pairs / (states * len(task.actions))
        text = (
            f"estimated from {steps:,} steps, as they happened: {states} states, {share:.1%} of their actions tried, "
            f"half of these at least {median} times"
        )
        return f"{text} ({why})" if why else text

    starts = {state: times / begun.total() for state, times in begun.items()}
    return EnvironmentModel(starts, happens, seen, known, True)
