"""Finite tasks given as arrays: the other gadgets of the theory, and random ones."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from multiadvisor.core.board_layout import Grid, Sprite, Tile
from multiadvisor.envs.registry import Between, register_task
from multiadvisor.envs.worlds.board import DIRECTIONS
from multiadvisor.errors import BadInput
from multiadvisor.task import Advisor, Task

_MOST_NUMBERS = 10_000_000  # in the tables of a finite task


def finite_task(
    name: str, actions: tuple[str, ...], names: tuple[str, ...], start: np.ndarray, probability: np.ndarray,
    successor: np.ndarray, reward: np.ndarray, final: np.ndarray, *, local: np.ndarray | None = None,
    labels: tuple[str, ...] = (), limit: int | None = None, board: Grid | None = None,
) -> Task:  # fmt: skip
    """A task from a finite MDP: outcome k of (state, action) has probability [S, A, K], successor [S, A, K],
    reward [S, A, K, n] and final [S, A, K] (1: the episode ends); start [S] gives the first state's probabilities.

    local [n, S] is what each advisor sees, or -1 where its own part is over, for good; without it, the whole state.
    """
    from multiadvisor.envs.worlds import finite

    states = len(start)
    for what, table in (("start", start[None]), ("transition", probability.reshape(-1, probability.shape[-1]))):
        off = np.flatnonzero(~(np.abs(table.sum(axis=1) - 1.0) < 1e-9) | (table < 0).any(axis=1))
        if len(off):
            raise BadInput(f"the {what} probabilities of task {name!r} do not sum to one in row {off[0]}")
    if not np.isfinite(reward).all():
        raise BadInput(f"task {name!r} has a reward that is not finite")
    constants = finite.FiniteConstants(
        start=_cumulative(start), cumulative=_cumulative(probability), successor=successor.astype(np.int64),
        reward=reward.astype(float), final=final.astype(np.int64),
        local=np.tile(np.arange(states), (len(names), 1)) if local is None else local.astype(np.int64),
    )  # fmt: skip
    arrives = constants.local[:, constants.successor]  # [n, S, A, K]
    again = (constants.local[:, :, None, None] < 0) & (arrives >= 0) & (probability > 0) & (final != 1)
    if again.any():
        j, state = np.argwhere(again)[0][:2]
        raise BadInput(f"advisor {names[j]!r} of task {name!r} is over in state {state} and comes back: it may not")
    advisors = tuple(
        Advisor(own, state="state" if local is None else f"part {j}", states=int(row.max()) + 1)
        for j, (own, row) in enumerate(zip(names, constants.local, strict=True))
    )
    endless = not ((final == 1) & (probability > 0)).any()
    return Task(
        name=name, actions=actions, advisors=advisors, world=finite.world_of(constants), limit=limit, endless=endless,
        labels=labels, board=board,
    )  # fmt: skip


def _cumulative(probability: np.ndarray) -> np.ndarray:
    total = np.cumsum(probability, axis=-1)
    total[..., -1] = 1.0  # so that rounding leaves no gap above the last outcome
    return total


@register_task("two-goal")
def two_goal(r1: float = 1.0, r2: float = 1.0) -> Task:
    """The paper's attractor figure: a_0 waits, a_1 and a_2 earn r1 or r2 and end the episode.

    r1, r2: what the two goals pay; waiting wins above gamma = max(r1, r2) / (r1 + r2).
    """
    if min(r1, r2) <= 0:
        raise BadInput(f"the goals of two-goal pay {r1} and {r2}: give finite numbers above 0")
    board = Grid(
        (1, 3), np.array([(0, 1)]), np.zeros((1, 3), np.int64), ((0, 0), (0, -1), (0, 1)), (Sprite("player", 0),),
        (((0, 1),), ((0, 1),)), tiles=(Tile("goal", 0, 0, f"+{r1:g}"), Tile("goal", 0, 2, f"+{r2:g}")),
    )  # fmt: skip
    return finite_task(
        "two-goal", ("a_0", "a_1", "a_2"), ("goal 1", "goal 2"), np.ones(1), np.ones((1, 3, 1)),
        np.zeros((1, 3, 1)), np.array([[[[0.0, 0.0]], [[r1, 0.0]], [[0.0, r2]]]]), np.array([[[0], [1], [1]]]),
        limit=50, board=board,
    )  # fmt: skip


@register_task("dollars-and-euros")
def dollars_and_euros(failure: float = 0.1) -> Task:
    """Left pays a dollar, Right a euro, Up 0.6 of each, NoOp nothing (Russell and Zimdars 2003).

    failure: the probability that a move fails; a move that works ends the episode.
    """
    if not 0.0 <= failure < 1.0:
        raise BadInput(f"failure is {failure}: choose a probability of at least 0 and below 1")
    pay = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [0.0, 0.0]])  # [action, advisor]
    probability = np.array([[[1 - failure, failure]] * 3 + [[0.0, 1.0]]])
    reward = np.zeros((1, 4, 2, 2))
    reward[0, :, 0] = pay
    final = np.zeros((1, 4, 2))
    final[0, :3, 0] = 1
    return finite_task(
        "dollars-and-euros", ("Left", "Right", "Up", "NoOp"), ("dollars", "euros"), np.ones(1), probability,
        np.zeros((1, 4, 2)), reward, final, limit=50,
    )  # fmt: skip


@register_task("bridge")
def bridge(length: Annotated[int, Between(1, 1000)] = 3, danger: Annotated[float, Between(0)] = 1.0) -> Task:
    """A bridge over water: agnostic advisors will not set foot on it, egocentric and empathic ones cross.

    length: the number of steps on the bridge.
    danger: what a fall costs; reaching the other side pays 1.
    """
    states = length + 1  # the bank, then the places on the bridge
    successor, final, reward = np.zeros((states, 4, 1)), np.zeros((states, 4, 1)), np.zeros((states, 4, 1, 2))
    place = np.arange(states)
    successor[:, 1, 0], successor[:, 3, 0] = np.maximum(place - 1, 0), np.minimum(place + 1, length)
    final[length, 3], reward[length, 3, 0, 0] = 1, 1.0
    for aside in (0, 2):  # N and S: into the water, or nowhere from the bank
        final[1:, aside], reward[1:, aside, 0, 1] = 1, -danger
    water = [Tile("water", row, column) for column in range(1, states) for row in (0, 2)]
    banks = [Tile("wall", row, column) for column in (0, states) for row in (0, 2)]
    stays = np.stack([place, successor[:, 1, 0], place, successor[:, 3, 0]], axis=1).astype(np.int64)
    board = Grid(
        (3, states + 1), np.stack([np.ones_like(place), place], axis=1), stays, tuple(DIRECTIONS.values()),
        (Sprite("player", 0),), (((0, 1),), ((0, 1),)), tiles=(*water, *banks, Tile("goal", 1, states, "+1")),
    )  # fmt: skip
    return finite_task(
        "bridge", tuple(DIRECTIONS), ("goal", "water"), np.eye(states)[0], np.ones((states, 4, 1)), successor, reward,
        final, labels=("bank", *(f"bridge {k}" for k in range(1, states))), limit=100, board=board,
    )  # fmt: skip


@register_task("resource-scheduling")
def resource_scheduling(
    jobs: Annotated[int, Between(1, 8)] = 3, work: Annotated[int, Between(1, 100)] = 2
) -> Task:  # fmt: skip
    """Each step one unit of work goes to one of several jobs, each with an advisor: progressive, so no attractor ever.

    jobs: how many.
    work: the units each of them needs; a job that is done pays 1.
    """
    if (work + 1) ** jobs > 100_000:
        raise BadInput(f"{jobs} jobs of {work} units are too many states: let (work + 1)^jobs be at most 100,000")
    left = np.stack(np.unravel_index(np.arange((work + 1) ** jobs), (work + 1,) * jobs))  # [jobs, S] units to do
    states = left.shape[1]
    successor, final = np.zeros((states, jobs, 1)), np.zeros((states, jobs, 1))
    reward = np.zeros((states, jobs, 1, jobs))
    for job in range(jobs):
        after = left.copy()
        after[job] = np.maximum(after[job] - 1, 0)
        successor[:, job, 0] = np.ravel_multi_index(tuple(after), (work + 1,) * jobs)
        reward[:, job, 0, job] = left[job] == 1
        final[:, job, 0] = (after == 0).all(axis=0)
    return finite_task(
        "resource-scheduling", tuple(f"work on {k + 1}" for k in range(jobs)),
        tuple(f"job {k + 1}" for k in range(jobs)),
        np.eye(states)[-1], np.ones((states, jobs, 1)), successor, reward, final, local=left - 1,
        labels=tuple("units left " + " ".join(str(units) for units in column) for column in left.T),
        limit=100 + 10 * jobs * work,
    )  # fmt: skip


@register_task("random-mdp")
def random_mdp(
    states: Annotated[int, Between(1, 5000)] = 10, actions: Annotated[int, Between(1, 100)] = 3,
    advisors: Annotated[int, Between(1, 500)] = 3, outcomes: Annotated[int, Between(1, 100)] = 3,
    instance: Annotated[int, Between(0)] = 0,
) -> Task:  # fmt: skip
    """A random finite MDP: random outcomes, normal rewards for every advisor, episodes that end now and then.

    states: how many.
    actions: how many.
    advisors: how many.
    outcomes: how many things may happen after an action.
    instance: which of the random ones.
    """
    if (size := states * actions * outcomes * advisors) > _MOST_NUMBERS:
        raise BadInput(f"random-mdp with {size} rewards cannot be: choose fewer, at most {_MOST_NUMBERS}")
    generator = np.random.default_rng([instance, states, actions, advisors, outcomes])
    shape = (states, actions, outcomes)
    final = generator.random(shape) < 0.1
    final[0, 0, 0] = True
    return finite_task(
        "random-mdp", tuple(f"a_{a}" for a in range(actions)), tuple(f"advisor {j + 1}" for j in range(advisors)),
        np.full(states, 1.0 / states), generator.dirichlet(np.ones(outcomes), shape[:2]),
        generator.integers(states, size=shape), generator.normal(size=(*shape, advisors)), final, limit=200,
    )  # fmt: skip
