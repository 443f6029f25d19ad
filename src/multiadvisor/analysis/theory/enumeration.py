"""From a task to its finite MDP: every state that can be reached, and what may happen there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multiadvisor.analysis.theory.environment_model import SAMPLE, estimated, model_of
from multiadvisor.analysis.theory.mdp import LARGEST, FiniteMDP
from multiadvisor.core.rng import stream_key
from multiadvisor.envs.registry import make
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.learners.gvf.gvf_spec import goal_name
from multiadvisor.task import Outcome, Task, Transition, World

if TYPE_CHECKING:
    import gymnasium

MOST_STATES = 20_000
_KEYS = 32  # a world that does the same for so many keys is taken to be deterministic
Happens = Callable[[Any, int], Iterable[Outcome]]


def enumerate_task(
    task: Task | gymnasium.Env | str, x: np.ndarray | None = None, *, full: bool = False,
    sample: int | Iterable[Transition] = SAMPLE,
) -> FiniteMDP:  # fmt: skip
    """The finite MDP of a task, an environment or its id, from the state x on or from the task's own start.

    With `full`, every advisor sees the whole state instead of its own local state. A Gymnasium environment is listed
    by its own table (`env.unwrapped.P`), else explored by copying it, else estimated from this many steps of random
    actions, or in any case from the given sample of transitions; `known` says which.

    >>> import multiadvisor as mad
    >>> enumerate_task(mad.make("three-fruits")).states
    93
    >>> enumerate_task("FrozenLake-v1").known
    "11 states, from the environment's own table of transitions (env.unwrapped.P)"
    """
    task = make(task)
    if x is not None and (task.world is None or task.world.listing is not None):
        raise BadInput(f"task {task.name!r} is listed whole: leave x out")
    if task.world is None:
        return of_environment(task, sample, full)[0]
    if task.world.pseudo is not None:
        raise BadInput(
            f"the advisors of task {task.name!r} learn from pseudo-rewards, which are no part of the task: solve it "
            "with others"
        )
    if task.world.listing is not None:
        listing = task.world.listing(task.world.constants)
        return FiniteMDP.of_task(
            task, range(task.n), successor=listing.successor, probability=listing.probability, final=listing.final,
            reward=(listing.probability[..., None] * listing.reward).sum(axis=2), start=listing.start,
            labels=task.labels, local=np.tile(np.arange(len(listing.start)), (task.n, 1)) if full else listing.local,
        )  # fmt: skip
    first = _first_state(task) if x is None else tuple(int(value) for value in x)
    order, arrays = _explore(task, {first: 1.0}, _outcomes(task, task.world))
    labels = tuple(label_of(task, state) for state in order)
    return _whole(task, np.stack([local_states(task, state) for state in order], axis=1), full, labels=labels, **arrays)


def of_environment(
    task: Task, sample: int | Iterable[Transition] = SAMPLE, full: bool = False
) -> tuple[FiniteMDP, list[Any]]:
    """What an environment says of itself, or shows; and an observation of each state."""
    model = model_of(task, sample=sample) if isinstance(sample, int) else estimated(task, sample)
    order, arrays = _explore(task, model.starts, model.happens)
    seen = [model.seen[state] for state in order]
    mdp = _whole(
        task, views_of(task, seen), full, labels=tuple(state_label(task, one) for one in seen),
        known=model.known(len(order)), estimated=model.estimated, **arrays,
    )  # fmt: skip
    return mdp, seen


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


def _outcomes(task: Task, world: World) -> Happens:
    """What the world says may happen, checked as it is asked; or what was seen to happen, where it does not say."""
    if (outcomes := world.outcomes) is None:
        return _deterministic_outcomes(task, world)

    def happens(x: tuple[int, ...], action: int) -> Iterator[Outcome]:
        total = 0.0
        for outcome in outcomes(world.constants, x, action):
            total += outcome.probability
            yield outcome
        if not abs(total - 1.0) < 1e-9:
            raise BadInput(
                f"the outcomes of task {task.name!r} after {task.actions[action]} in {list(x)} have probabilities that "
                f"sum to {total:g}: let them sum to 1"
            )

    return happens


def _deterministic_outcomes(task: Task, world: World) -> Happens:
    """A world of somebody's own: tried with several keys, and refused where they lead to different things."""
    n, keys = task.n, [stream_key(seed, 0) for seed in range(_KEYS)]

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


def _explore(task: Task, starts: dict[Any, float], happens: Happens) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Breadth first from the first states on: the states in the order they are met, and the arrays of their MDP."""
    order = list(starts)
    number: dict[Hashable, int] = {state: place for place, state in enumerate(order)}
    rows = []
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
    shape = (states, actions, width)
    return order, {
        "successor": successor.reshape(shape), "probability": probability.reshape(shape), "final": final.reshape(shape),
        "reward": np.array([pay for _, pay in rows]).reshape(states, actions, task.n),
        "start": np.array([starts.get(state, 0.0) for state in order]),
    }  # fmt: skip


def _whole(task: Task, local: np.ndarray, full: bool, *, reward: np.ndarray, **arrays: Any) -> FiniteMDP:
    """The MDP of those advisors that ever speak, as not those of places without fruit; local [n, S], -1: inactive."""
    used = np.flatnonzero((local >= 0).any(axis=1))
    sees = np.tile(np.arange(local.shape[1]), (len(used), 1)) if full else local[used]
    return FiniteMDP.of_task(task, used, local=sees, reward=reward[:, :, used], **arrays)


def local_states(task: Task, x: Any) -> np.ndarray:
    """phi_j(x) [n] of a compiled world, -1 where advisor j is inactive."""
    world = task.world
    assert world is not None
    x, advisors, seen = np.array(x, np.int64), np.zeros(task.n, np.int64), np.zeros(task.n, np.int64)
    m = world.begin(world.constants, x, advisors)
    world.local_states(world.constants, x, advisors, m, seen)
    local = np.full(task.n, -1)
    local[advisors[:m]] = seen[:m]
    return local


def views_of(task: Task, observations: Sequence[Any]) -> np.ndarray:
    """phi_j [n, S] of an environment, counted in the order they are met, -1 where advisor j is inactive.

    Where local states have no tables, every advisor sees the whole state.
    """
    assert task.adapter is not None
    table = task.adapter.refusal is None
    adapter, local = task.adapter.fresh(table), np.empty((task.n, len(observations)), np.int64)
    for place, observation in enumerate(observations):
        adapter.look(observation)
        local[:, place] = np.where(adapter.now_active, adapter.firsts[adapter.view_of] if table else place, -1)
    for row in local:
        number = {value: k for k, value in enumerate(dict.fromkeys(row[row >= 0].tolist()))}
        row[:] = [number.get(value, -1) for value in row.tolist()]
    return local


def label_of(task: Task, x: tuple[int, ...]) -> str:
    """A state as people would say it."""
    if task.labels and len(x) == 1:
        return task.labels[x[0]]
    return " ".join(str(value) for value in x) if task.board is None else task.board.label(np.array(x))


def state_label(task: Task, state: Any) -> str:
    """A state in a few words: the player's cell, what people call it, or its numbers, by name where they have names."""
    if task.board is not None:
        return task.board.name(int(task.board.movers(state)[0]))
    if task.labels and len(state) == 1:
        return task.labels[int(state[0])]
    if (name := goal_name(task, state)) is not None:
        return name
    names = task.observation_names
    parts = flat_row(state)
    if len(parts) > 24:
        return f"an observation of {len(parts)} numbers"
    shown = [f"{part:.3g}" if isinstance(part, float | np.floating) else str(part) for part in parts.tolist()]
    if len(names) == len(shown):
        return ", ".join(f"{name} {part}" for name, part in zip(names, shown, strict=True))
    return f"({', '.join(shown)})" if len(shown) > 1 else shown[0]


def flat_row(state: Any) -> np.ndarray:
    """The numbers of an observation in one row, those of its parts one behind the other; texts stay what they are."""
    if isinstance(state, dict | tuple):
        parts = list(state.values()) if isinstance(state, dict) else list(state)
        return np.concatenate([flat_row(part) for part in parts]) if parts else np.zeros(0)
    row = np.ravel(np.asarray(state))
    return row.astype(object) if row.dtype.kind == "U" else row
