"""From a task to its finite MDP: every state that can be reached, with exact probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from multiadvisor.analysis.theory.mdp import LARGEST, FiniteMDP
from multiadvisor.core.rng import stream_key
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.task import Listing, Outcome, Task

MOST_STATES = 20_000
_KEYS = 32  # a world that does the same for so many keys is taken to be deterministic
Happens = Callable[[tuple[int, ...], int], Iterator[Outcome]]


def enumerate_task(task: Task, x: np.ndarray | None = None, *, full: bool = False) -> FiniteMDP:
    """The finite MDP of a task, from the state x on or from the task's own start.

    With `full`, every advisor sees the whole state instead of its own local state.

    >>> import multiadvisor as mad
    >>> enumerate_task(mad.make("three-fruits")).states
    93
    """
    if task.world is None:
        raise BadInput(
            f"task {task.name!r} is a Python environment, whose probabilities nobody knows: give the theory lab arrays "
            "(FiniteMDP.from_arrays), or a trained agent"
        )
    if task.world.pseudo is not None:
        raise BadInput(
            f"the advisors of task {task.name!r} learn from pseudo-rewards, which are no part of the task: solve it "
            "with others"
        )
    if task.world.listing is not None:
        if x is not None:
            raise BadInput(f"task {task.name!r} is listed whole: leave x out")
        return _listed(task, task.world.listing(task.world.constants), full)
    first = _first_state(task) if x is None else tuple(int(value) for value in x)
    return _explore(task, first, _outcomes(task), full)


def _first_state(task: Task) -> tuple[int, ...]:
    """The state every episode starts from."""
    from multiadvisor.envs.compiled_env import CompiledEnv

    firsts = {tuple(x) for x in CompiledEnv(task, [stream_key(seed, 0) for seed in range(8)]).reset().tolist()}
    if len(firsts) > 1:
        ways = "choose one board with --board SEED, or ask how often a random board is a trap with --boards"
        if maze_of(task) is None:
            ways = "give one with enumerate_task(task, x)"
        raise BadInput(f"the episodes of {task.name!r} start from different states: {ways}")
    return firsts.pop()


def _listed(task: Task, listing: Listing, full: bool) -> FiniteMDP:
    return FiniteMDP.of_task(
        task,
        range(task.n),
        successor=listing.successor,
        probability=listing.probability,
        final=listing.final,
        reward=(listing.probability[..., None] * listing.reward).sum(axis=2),
        local=np.tile(np.arange(len(listing.start)), (task.n, 1)) if full else listing.local,
        start=listing.start,
        labels=task.labels,
    )


def _outcomes(task: Task) -> Happens:
    """What the world says may happen, checked as it is asked; or what was seen to happen, where it does not say."""
    world = task.world
    assert world is not None
    if (told := world.outcomes) is None:
        return _deterministic_outcomes(task)

    def happens(x: tuple[int, ...], action: int) -> Iterator[Outcome]:
        total = 0.0
        for outcome in told(world.constants, x, action):
            total += outcome.probability
            yield outcome
        if not abs(total - 1.0) < 1e-9:
            raise BadInput(
                f"the outcomes of task {task.name!r} after {task.actions[action]} in {list(x)} have probabilities that "
                f"sum to {total:g}: let them sum to 1"
            )

    return happens


def _deterministic_outcomes(task: Task) -> Happens:
    """A world of somebody's own: tried with several keys, and refused where they lead to different things."""
    world, n = task.world, task.n
    assert world is not None
    keys = [stream_key(seed, 0) for seed in range(_KEYS)]

    def happens(x: tuple[int, ...], action: int) -> Iterator[Outcome]:
        found = set()
        for key in keys:
            state, advisors = np.array(x, np.int64), np.zeros(n, np.int64)
            m = world.begin(world.constants, state, advisors)
            reward, ended = np.zeros(n), np.zeros(n, np.int64)
            over = bool(world.step(world.constants, state, action, key, advisors, m, reward, ended))
            pay = tuple((int(advisors[i]), float(reward[i])) for i in range(m) if reward[i] != 0)
            found.add((tuple(state.tolist()), pay, over))
        if len(found) > 1:
            raise BadInput(
                f"task {task.name!r} is random and does not list its outcomes: give them with World(outcomes=...), or "
                "as arrays with FiniteMDP.from_arrays"
            )
        arrived, paid, done = found.pop()
        yield Outcome(1.0, arrived, dict(paid), done)

    return happens


def _explore(task: Task, first: tuple[int, ...], happens: Happens, full: bool) -> FiniteMDP:
    """Breadth first from one state on."""
    number: dict[tuple[int, ...], int] = {first: 0}
    order, rows = [first], []
    for state in order:
        for action in range(len(task.actions)):
            merged: dict[tuple[int, bool], float] = {}
            pay = np.zeros(task.n)
            for chance, x, reward, terminated in happens(state, action):
                if not terminated and x not in number:
                    number[x] = len(order)
                    order.append(x)
                    if len(order) > MOST_STATES:
                        way = "make it smaller"
                        if maze_of(task) is not None:
                            way = "look at one board with --board SEED, or at many random ones with --boards"
                        raise BadInput(f"{task.name!r} has more than {MOST_STATES:,} states, too many to list: {way}")
                to = (0 if terminated else number[x], terminated)
                merged[to] = merged.get(to, 0.0) + chance
                for j, value in reward.items():
                    pay[j] += chance * value
            rows.append((merged, pay))
    states, actions = len(order), len(task.actions)
    width = max(len(merged) for merged, _ in rows)
    if states * actions * width > LARGEST:
        raise BadInput(f"{task.name!r} has {states * actions * width:.1e} outcomes, too many to list")
    successor = np.zeros((states * actions, width), np.int64)
    probability, final = np.zeros((states * actions, width)), np.zeros((states * actions, width), bool)
    for row, (merged, _) in enumerate(rows):
        for k, (arrival, chance) in enumerate(merged.items()):
            (successor[row, k], final[row, k]), probability[row, k] = arrival, chance
    local = _local(task, order)
    used = np.flatnonzero((local >= 0).any(axis=1))  # a place without fruit has no advisor that ever speaks
    shape = (states, actions, width)
    return FiniteMDP.of_task(
        task,
        used,
        successor=successor.reshape(shape),
        probability=probability.reshape(shape),
        final=final.reshape(shape),
        reward=np.array([pay[used] for _, pay in rows]).reshape(states, actions, len(used)),
        local=np.tile(np.arange(states), (len(used), 1)) if full else local[used],
        start=np.eye(states)[0],
        labels=tuple(label_of(task, state) for state in order),
    )


def _local(task: Task, order: list[tuple[int, ...]]) -> np.ndarray:
    """phi_j [n, S], -1 where the advisor is inactive."""
    world, n = task.world, task.n
    assert world is not None
    local = np.full((n, len(order)), -1, np.int64)
    for number, state in enumerate(order):
        x, advisors, seen = np.array(state, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        m = world.begin(world.constants, x, advisors)
        world.local_states(world.constants, x, advisors, m, seen)
        local[advisors[:m], number] = seen[:m]
    return local


def label_of(task: Task, x: tuple[int, ...]) -> str:
    """A state as people would say it."""
    if task.labels and len(x) == 1:
        return task.labels[x[0]]
    return " ".join(str(value) for value in x) if task.board is None else task.board.label(np.array(x))
