"""Boards of fruit: exact local values of mazes of any size, one board at a time, and thousands of random ones.

In a maze without ghosts Q_j(x, a) = gamma^d_j(P(x, a)) for egocentric advisors, so that the aggregator climbs the
potential V(x) = sum_j w_j gamma^d_j(x), and an attractor is a strict peak of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.bounds import Bound, bound_of
from multiadvisor.analysis.theory.mdp import FiniteMDP, LocalMDP
from multiadvisor.analysis.theory.solver import Solution, backup, error_bound, solve_local
from multiadvisor.core.aggregator import Aggregator, aggregator_of, by_name, in_words
from multiadvisor.core.plannings import PLANNINGS, bootstrap
from multiadvisor.envs.worlds.maze import MazeConstants, ghost_moves, maze_of, touched
from multiadvisor.errors import BadInput
from multiadvisor.task import Task


def maze_constants(task: Task) -> MazeConstants:
    """The maze of a task, or an error that says that it has none."""
    constants = maze_of(task)
    if constants is None:
        raise BadInput(f"task {task.name!r} is not a maze: boards are for pac-boy, fruit-grid and their like")
    return constants


def fruit_mdp(world: MazeConstants, cell: int) -> LocalMDP:
    """Pac-Boy's cell, until he arrives at that of the fruit."""
    arrives = world.neighbour == cell
    return LocalMDP(
        world.neighbour[:, :, None],
        np.where(arrives, 0.0, 1.0)[:, :, None],
        np.where(arrives, world.fruit_reward, 0.0),
    )


def _ghost_mdp(world: MazeConstants) -> LocalMDP:
    """(Pac-Boy's cell, the ghost's cell), with each of the ghost's moves."""
    cells = len(world.neighbour)
    mine, its = np.divmod(np.arange(cells * cells), cells)  # [S]
    mine_next = world.neighbour[mine][:, :, None]  # [S, A, 1]
    moves, chance = ghost_moves(world)
    its_next, weight = moves[its][:, None, :], np.broadcast_to(chance[its][:, None, :], (cells * cells, 4, 4))
    touch = touched.py_func(world, mine[:, None, None], mine_next, its[:, None, None], its_next)
    reward = world.touch_reward * (weight * touch).sum(axis=-1)
    return LocalMDP(mine_next * cells + its_next, weight, reward)


def local_values(task: Task, planning: str, gamma: float) -> Iterator[tuple[np.ndarray, float]]:
    """Each advisor's exact Q_j [local states, A] and its Bellman residual: egocentric or agnostic, any size of maze."""
    if planning not in ("egocentric", "agnostic"):
        raise BadInput(
            f"{planning!r} values depend on all advisors at once and are not defined in a local state alone: choose "
            "egocentric or agnostic, or enumerate the task"
        )
    gammas = task.gammas(gamma)
    if task.world is not None and task.world.listing is not None:
        from multiadvisor.analysis.theory.enumeration import enumerate_task

        mdp = enumerate_task(task)
        mdps: Iterable[LocalMDP] = (mdp.local_mdp(j)[0] for j in range(task.n))
    else:
        world = maze_constants(task)
        ghosts = [_ghost_mdp(world)] * len(world.ghost_start)
        fruits = (fruit_mdp(world, int(cell)) for cell in world.fruit_cell)
        mdps = (local for part in (ghosts, fruits) for local in part)
    known: dict[tuple[int, float], tuple[np.ndarray, float]] = {}
    for local, discount in zip(mdps, gammas, strict=True):
        key = (id(local.reward), float(discount))  # ghosts that share a table share their values
        if key not in known:
            q, residual, took = solve_local(local, float(discount), planning)
            if took < 0:
                raise BadInput(
                    f"the {planning} values of {task.name!r} did not converge at gamma = {discount}: lower it"
                )
            known = {key: (q, residual)}
        yield known[key]


def board_values(task: Task, x: np.ndarray, planning: str, gamma: float) -> Iterator[tuple[np.ndarray, float]]:
    """The exact values of the fruits that lie on the board x, one after the other."""
    world = maze_constants(task)
    for place in np.flatnonzero(x[1 + len(world.ghost_start) :]):
        q, residual, _ = solve_local(fruit_mdp(world, int(world.fruit_cell[place])), gamma, planning)
        yield q, residual


def exact_agent(task: Task, planning: str, gamma: float, seed: int = 0, aggregation: str = "sum") -> MultiAdvisor:
    """An agent whose tables hold the exact values instead of learned ones."""
    agent = MultiAdvisor(task, planning=planning, gamma=gamma, seed=seed, aggregation=aggregation)
    for j, (q, _) in enumerate(local_values(task, planning, gamma)):
        agent.tables.fill(j, np.arange(len(q)), q)
    return agent


# ---- one board -------------------------------------------------------------------------------------------------------
def board_solution(
    task: Task, x: np.ndarray, gamma: float = 0.9, agent: MultiAdvisor | None = None, aggregation: str = "sum"
) -> Solution:
    """The board x as it lies, over all of Pac-Boy's cells: eating a fruit ends it, ghosts stay where they are.

    The values are the exact egocentric ones of the fruits, or those of a trained agent, its ghost advisors included and
    heard as it hears them.
    """
    world = maze_constants(task)
    assert task.world is not None
    x = task.world.checked(x, task.name)
    cells, ghosts = len(world.neighbour), len(world.ghost_start)
    there = np.flatnonzero(x[1 + ghosts :])  # the places that hold fruit
    if len(there) == 0:
        raise BadInput(f"the board of {task.name!r} has no fruit: there is nothing to solve")
    if agent is None:
        used = [ghosts + int(place) for place in there]
        found = list(board_values(task, x, "egocentric", gamma))
        values, residual = np.array([q for q, _ in found]), max(off for _, off in found)
    else:
        used = [*range(ghosts), *(ghosts + int(place) for place in there)]
        values = _learned_values(agent, x, used, ghosts, cells)
        residual = _learned_residual(world, agent, [j for j in used if j >= ghosts], gamma)
    mdp = board_mdp(task, x, used, () if agent is None else tuple(task.advisors[j].gamma for j in used))
    values = np.where((mdp.local < 0)[:, :, None], 0.0, values)  # Pac-Boy never stands on a fruit
    bound = (
        error_bound(residual, np.array([gamma]), values) if agent is None else np.inf
    )  # learned: nothing is promised
    planning = "egocentric" if agent is None else agent.settings.planning
    heard = present(task, mdp, aggregation if agent is None else agent.settings.aggregation)
    return Solution(mdp, planning, gamma, values, residual, bound, True, 0, aggregation=heard)


def board_mdp(task: Task, x: np.ndarray, used: list[int], gammas: tuple[float | None, ...] = ()) -> FiniteMDP:
    """The board x over all of Pac-Boy's cells, of these advisors."""
    world = maze_constants(task)
    cells, ghosts = len(world.neighbour), len(world.ghost_start)
    holds = np.isin(np.arange(cells), world.fruit_cell[np.flatnonzero(x[1 + ghosts :])])
    reward = np.zeros((cells, 4, len(used)))
    for k, j in enumerate(used):
        if j >= ghosts:
            reward[:, :, k] = np.where(world.neighbour == world.fruit_cell[j - ghosts], world.fruit_reward, 0.0)
    return FiniteMDP(
        name=task.name, actions=task.actions, advisors=tuple(task.names[j] for j in used),
        successor=world.neighbour[:, :, None], probability=np.ones((cells, 4, 1)),
        final=holds[world.neighbour][:, :, None], reward=reward, weights=task.weights[used],
        local=np.tile(np.where(holds, -1, np.arange(cells)), (len(used), 1)), start=np.eye(cells)[x[0]],
        labels=tuple(task.grid.name(cell) for cell in range(cells)), gammas=gammas,
        groups=tuple(task.advisors[j].group for j in used),
    )  # fmt: skip


def present(task: Task, mdp: FiniteMDP, aggregation: str) -> str:
    """The aggregation without the names of advisors that have no part in this MDP, as places without fruit."""
    aggregator_of(task, aggregation)  # what the task itself does not know is refused
    here = set(mdp.advisors) | set(mdp.groups) | {""}
    return (
        in_words({name: value for name, value in by_name("aggregation", aggregation).items() if name in here}) or "sum"
    )


def has_tables(agent: Any) -> bool:
    """Whether an agent of a compiled world knows a value for each local state, and not only advice in a whole state."""
    try:
        return len(agent.values(0)) == agent.task.advisors[0].states
    except (AttributeError, TypeError, NotImplementedError, BadInput):
        return False


def _learned_values(agent: Any, x: np.ndarray, used: list[int], ghosts: int, cells: int) -> np.ndarray:
    """[advisors, cells, A] from the agent's tables, or where it has none from its advice on every cell."""
    if has_tables(agent):
        return np.array([
            agent.values(j)[np.arange(cells) * cells + x[1 + j]] if j < ghosts else agent.values(j) for j in used
        ])  # fmt: skip
    return np.moveaxis(np.array([agent.advice(np.array([cell, *x[1:]]))[1] for cell in range(cells)], float), 0, 1)


def _learned_residual(world: MazeConstants, agent: MultiAdvisor, fruits: list[int], gamma: float) -> float:
    """The Bellman residual of the learned values of the fruits; not a number for empathic ones, which have none."""
    planning, ghosts = agent.settings.planning, len(world.ghost_start)
    if planning not in ("egocentric", "agnostic") or not has_tables(agent):
        return float("nan")
    largest = 0.0
    for j in fruits:
        goal, q = int(world.fruit_cell[j - ghosts]), agent.values(j)
        off = np.abs(backup(fruit_mdp(world, goal), bootstrap(PLANNINGS[planning], q), gamma) - q)
        largest = max(largest, float(np.delete(off, goal, axis=0).max()))  # on its own fruit nobody ever stands
    return largest


def board_bound(task: Task) -> Bound:
    """Theorem 4 for the fruit advisors of a maze."""
    world = maze_constants(task)
    cells = np.arange(len(world.neighbour))
    parts = (
        (f"fruit {task.grid.name(int(cell))}", fruit_mdp(world, int(cell)), cells[cells != cell])
        for cell in world.fruit_cell
    )
    return bound_of(parts, task.actions, task.weights)


# ---- many boards -----------------------------------------------------------------------------------------------------
def distances(task: Task) -> np.ndarray:
    """d [fruits, cells]: the steps from each cell to each fruit place."""
    world = maze_constants(task)
    result = np.full((len(world.fruit_cell), len(world.neighbour)), np.inf)
    result[np.arange(len(result)), world.fruit_cell] = 0
    while True:  # each round finds what is one step further away
        nearer = np.minimum(result, 1 + result[:, world.neighbour].min(axis=-1))
        if np.array_equal(nearer, result):
            return result
        result = nearer


def random_boards(task: Task, count: int, seed: int = 0) -> np.ndarray:
    """[count, fruits] bool: where the fruits lie at the start of so many episodes."""
    from multiadvisor.core.rng import ENVIRONMENT, stream_key
    from multiadvisor.envs.compiled_env import CompiledEnv

    x = CompiledEnv(task, [stream_key(seed + k, ENVIRONMENT) for k in range(count)]).reset()
    return x[:, 1 + len(maze_constants(task).ghost_start) :] == 1


def peaks(
    task: Task, boards: np.ndarray, gamma: float, steps: np.ndarray | None = None, aggregation: str = "sum"
) -> tuple[np.ndarray, np.ndarray]:
    """[boards, cells] bool: the attractors of each board without ghosts, and those of them that are stable.

    `steps` are the `distances` of the task, for those who ask at many gammas.
    """
    world = maze_constants(task)
    cells = len(world.neighbour)
    worth = gamma ** (distances(task) if steps is None else steps)  # [fruits, C]
    aggregator = aggregator_of(task, aggregation)
    stay, around = (_potential if aggregator.plain else _cell_by_cell)(task, aggregator, boards, worth)  # [B, C] each
    fruit = np.zeros((len(boards), cells), bool)
    fruit[:, world.fruit_cell] = boards
    peak = ~fruit & np.isfinite(around) & (stay - around > 1e-12 * np.maximum(1.0, np.abs(stay)))
    return peak, peak & _walls(world).any(axis=-1)


def _walls(world: MazeConstants) -> np.ndarray:
    """[C, A] bool: the actions that stay where they are."""
    return world.neighbour == np.arange(len(world.neighbour))[:, None]


def _potential(
    task: Task, aggregator: Aggregator, boards: np.ndarray, worth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What staying, and the best way out, are worth [B, C] to a sum: one potential serves all cells."""
    world = maze_constants(task)
    potential = (boards * task.weights[len(world.ghost_start) :]) @ worth
    return potential, np.where(_walls(world), -np.inf, potential[:, world.neighbour]).max(axis=-1)


def _cell_by_cell(
    task: Task, aggregator: Aggregator, boards: np.ndarray, worth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same for any aggregation: the imagined action that stays is heard beside the others."""
    world = maze_constants(task)
    advisors = len(world.ghost_start) + np.arange(len(worth))
    heard = boards * task.weights[advisors]  # [B, fruits]
    stay, around = np.empty((len(boards), len(world.neighbour))), np.empty((len(boards), len(world.neighbour)))
    for cell, walls in enumerate(_walls(world)):
        advice = worth[:, [*world.neighbour[cell], cell]]  # [fruits, A + 1]
        preferences = aggregator.prefer(np.broadcast_to(advice, (len(boards), *advice.shape)), heard, advisors)
        stay[:, cell] = preferences[:, -1]
        around[:, cell] = np.where(walls, -np.inf, preferences[:, :-1]).max(axis=-1)
    return stay, around


def trap_shares(
    task: Task, gammas: Iterable[float], count: int = 2000, seed: int = 0,
    tell: Callable[[str], None] = lambda text: None, aggregation: str = "sum",
) -> list[dict[str, Any]]:  # fmt: skip
    """How often a random board has an attractor, a stable one, and how often the greedy episode ends stuck."""
    if len(maze_constants(task).ghost_start):
        raise BadInput(f"boards of {task.name!r} are analysed without ghosts: add --no-ghosts")
    boards, steps = random_boards(task, count, seed), distances(task)
    result = []
    for gamma in gammas:
        tell(f"{count} boards and episodes at gamma = {gamma:.4g}")
        peak, stable = peaks(task, boards, gamma, steps, aggregation)
        played = exact_agent(task, "egocentric", gamma, seed, aggregation).evaluate(count)
        result.append({
            "gamma": float(gamma), "attractor": float(peak.any(axis=1).mean()),
            "stable": float(stable.any(axis=1).mean()), "stuck": 1.0 - played.terminated, "boards": count,
        })  # fmt: skip
    return result
