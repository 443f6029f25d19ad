"""Boards of fruit: exact local values of mazes of any size, one board at a time, and thousands of random ones.

In a maze without ghosts Q_j(x, a) = gamma^d_j(P(x, a)) for egocentric advisors, so that the aggregator climbs the
potential V(x) = sum_j w_j gamma^d_j(x), and an attractor is a strict peak of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.bounds import Bound, bound_of
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP, LocalMDP
from multiadvisor.analysis.theory.solver import LOCAL, Solution, error_bound, exceeds, fixpoint, solve_local
from multiadvisor.core.aggregator import Aggregator, aggregator_of, by_name, in_words
from multiadvisor.core.plannings import PLANNINGS, bootstrap
from multiadvisor.core.rng import ENVIRONMENT, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.worlds.maze import ghost_moves, maze_of, touched
from multiadvisor.errors import BadInput
from multiadvisor.task import Task


class Maze:
    """The maze of a task as the solver sees it: cells, places of fruit, distances, and every advisor's own MDP.

    >>> import multiadvisor as mad
    >>> maze = Maze(mad.make("three-fruits"))
    >>> maze.distances.shape, maze.fruit(mad.make("three-fruits").initial_state())
    ((3, 15), array([ True,  True,  True]))
    """

    def __init__(self, task: Task) -> None:
        found = maze_of(task)
        if found is None:
            raise BadInput(f"task {task.name!r} is not a maze: boards are for pac-boy, fruit-grid and their like")
        self.task, self.world = task, found

    @property
    def ghosts(self) -> int:
        """The number of ghosts, whose advisors come first."""
        return len(self.world.ghost_start)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.world.neighbour)

    @property
    def weights(self) -> np.ndarray:
        """[fruits] of the advisors of fruit."""
        return self.task.weights[self.ghosts :]

    @cached_property
    def walls(self) -> np.ndarray:
        """[cells, A] bool: the actions that stay where they are."""
        found: np.ndarray = self.world.neighbour == np.arange(self.cells)[:, None]
        return found

    @cached_property
    def distances(self) -> np.ndarray:
        """d [fruits, cells]: the steps from each cell to each place of fruit."""
        first = np.full((len(self.world.fruit_cell), self.cells), np.inf)
        first[np.arange(len(first)), self.world.fruit_cell] = 0
        return fixpoint(lambda d: np.minimum(d, 1 + d[:, self.world.neighbour].min(axis=-1)), first)

    def worth(self, gamma: float, distances: np.ndarray) -> np.ndarray:
        """[fruits, cells] reward * gamma^d, with the advisors' own gammas."""
        gammas = self.task.gammas(gamma)[self.ghosts :]
        found: np.ndarray = self.world.fruit_reward * gammas[:, None] ** distances
        return found

    def fruit(self, x: np.ndarray) -> np.ndarray:
        """[fruits] bool: the places that hold fruit on the board x."""
        return np.asarray(x[1 + self.ghosts :] == 1)

    def random_boards(self, count: int, seed: int = 0) -> np.ndarray:
        """[count, fruits] bool: where the fruits lie at the start of this many episodes."""
        x = CompiledEnv(self.task, [stream_key(seed + k, ENVIRONMENT) for k in range(count)]).reset()
        return np.asarray(x[:, 1 + self.ghosts :] == 1)

    def fruit_mdp(self, place: int) -> LocalMDP:
        """Pac-Boy's cell, until he arrives at that of the fruit."""
        neighbour, arrives = self.world.neighbour, self.world.neighbour == self.world.fruit_cell[place]
        weight, reward = np.where(arrives, 0.0, 1.0), np.where(arrives, self.world.fruit_reward, 0.0)
        return LocalMDP(neighbour[:, :, None], weight[:, :, None], reward)

    @cached_property
    def ghost_mdp(self) -> LocalMDP:
        """(Pac-Boy's cell, the ghost's cell), with each of the ghost's moves; the same for all ghosts."""
        states = self.cells**2
        mine, its = np.divmod(np.arange(states), self.cells)  # [S]
        mine_next = self.world.neighbour[mine][:, :, None]  # [S, A, 1]
        moves, chance = ghost_moves(self.world)
        its_next, weight = moves[its][:, None, :], np.broadcast_to(chance[its][:, None, :], (states, 4, 4))
        touch = touched.py_func(self.world, mine[:, None, None], mine_next, its[:, None, None], its_next)
        reward = self.world.touch_reward * (weight * touch).sum(axis=-1)
        return LocalMDP(mine_next * self.cells + its_next, weight, reward)

    def board_mdp(self, x: np.ndarray, used: list[int], **changes: Any) -> FiniteMDP:
        """The board x over all of Pac-Boy's cells, of these advisors: eating a fruit ends it, ghosts stay."""
        neighbour, held = self.world.neighbour, self.world.fruit_cell[self.fruit(x)]
        holds = np.isin(np.arange(self.cells), held)
        reward = [self.fruit_mdp(j - self.ghosts).reward if j >= self.ghosts else np.zeros_like(neighbour, float)
                  for j in used]  # fmt: skip
        arrays = {
            "successor": neighbour[:, :, None], "probability": np.ones((*neighbour.shape, 1)),
            "final": holds[neighbour][:, :, None], "reward": np.stack(reward, axis=-1),
            "local": np.tile(np.where(holds, -1, np.arange(self.cells)), (len(used), 1)),
            "start": np.eye(self.cells)[x[0]], "labels": tuple(map(self.task.grid.name, range(self.cells))),
        }  # fmt: skip
        return FiniteMDP.of_task(self.task, used, **arrays, **changes)

    def bound(self) -> Bound:
        """Theorem 4 for the advisors of fruit."""
        cells, name = np.arange(self.cells), self.task.grid.name
        parts = (
            (f"fruit {name(int(cell))}", self.fruit_mdp(place), cells[cells != cell])
            for place, cell in enumerate(self.world.fruit_cell)
        )
        return bound_of(parts, self.task.actions, self.task.weights)


def local_values(task: Task, planning: str, gamma: float) -> Iterator[tuple[np.ndarray, float]]:
    """Each advisor's exact Q_j [local states, A] and its Bellman residual: egocentric or agnostic, any size of maze."""
    if planning not in LOCAL:
        raise BadInput(
            f"{planning!r} values depend on all advisors at once and are not defined in a local state alone: choose "
            "egocentric or agnostic, or enumerate the task"
        )
    gammas = task.gammas(gamma)
    if task.world is not None and task.world.listing is not None:
        mdps: Iterable[LocalMDP] = (local for local, _ in enumerate_task(task).local_mdps)
    else:
        maze = Maze(task)
        mdps = (maze.fruit_mdp(j - maze.ghosts) if j >= maze.ghosts else maze.ghost_mdp for j in range(task.n))
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
    maze = Maze(task)
    for place in np.flatnonzero(maze.fruit(x)).tolist():
        yield solve_local(maze.fruit_mdp(place), gamma, planning)[:2]


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
    maze = Maze(task)
    assert task.world is not None
    x = task.world.checked(x, task.name)
    lying = [maze.ghosts + place for place in np.flatnonzero(maze.fruit(x)).tolist()]
    if not lying:
        raise BadInput(f"the board of {task.name!r} has no fruit: there is nothing to solve")
    if agent is None:
        mdp, planning = maze.board_mdp(x, lying, gammas=()), "egocentric"
        found = list(board_values(task, x, planning, gamma))
        values, residual = np.array([q for q, _ in found]), max(off for _, off in found)
        bound = error_bound(residual, np.array([gamma]), values)
    else:
        mdp, planning = maze.board_mdp(x, [*range(maze.ghosts), *lying]), agent.settings.planning
        values, residual = _learned_values(maze, agent, x, mdp), _learned_residual(maze, agent, lying, gamma)
        bound, aggregation = np.inf, agent.settings.aggregation  # nothing is promised of what was learned
    values = np.where((mdp.local < 0)[:, :, None], 0.0, values)  # Pac-Boy never stands on a fruit
    heard = present(task, mdp, aggregation)
    return Solution(mdp, planning, gamma, values, residual, bound, True, 0, aggregation=heard)


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
        return bool(len(agent.values(0)) == agent.task.advisors[0].states)
    except (AttributeError, TypeError, NotImplementedError, BadInput):
        return False


def _learned_values(maze: Maze, agent: Any, x: np.ndarray, mdp: FiniteMDP) -> np.ndarray:
    """[advisors, cells, A] from the agent's tables, or where it has none from its advice on every cell."""
    cells = np.arange(maze.cells)
    if has_tables(agent):
        used = [maze.task.names.index(name) for name in mdp.advisors]
        return np.array([agent.values(j)[cells * maze.cells + x[1 + j] if j < maze.ghosts else cells] for j in used])
    return np.moveaxis(np.array([agent.advice(np.array([cell, *x[1:]]))[1] for cell in cells], float), 0, 1)


def _learned_residual(maze: Maze, agent: MultiAdvisor, fruits: list[int], gamma: float) -> float:
    """The Bellman residual of the learned values of the fruits; not a number for empathic ones, which have none."""
    if agent.settings.planning not in LOCAL or not has_tables(agent):
        return float("nan")
    planning, largest = PLANNINGS[agent.settings.planning], 0.0
    for j in fruits:
        q, place = agent.values(j), j - maze.ghosts
        off = np.abs(maze.fruit_mdp(place).backup(bootstrap(planning, q), gamma) - q)
        off[maze.world.fruit_cell[place]] = 0.0  # on its own fruit nobody ever stands
        largest = max(largest, float(off.max()))
    return largest


# ---- many boards -----------------------------------------------------------------------------------------------------
def peaks(maze: Maze, boards: np.ndarray, gamma: float, aggregation: str = "sum") -> tuple[np.ndarray, np.ndarray]:
    """[boards, cells] bool: the attractors of each board without ghosts, and those of them that are stable."""
    worth = gamma**maze.distances  # [fruits, C]
    aggregator = aggregator_of(maze.task, aggregation)
    stay, around = (_potential if aggregator.plain else _cell_by_cell)(maze, aggregator, boards, worth)  # [B, C] each
    fruit = np.zeros((len(boards), maze.cells), bool)
    fruit[:, maze.world.fruit_cell] = boards
    peak = ~fruit & np.isfinite(around) & exceeds(stay, around)
    return peak, peak & maze.walls.any(axis=-1)


def _potential(
    maze: Maze, aggregator: Aggregator, boards: np.ndarray, worth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What staying, and the best way out, are worth [B, C] to a sum: one potential serves all cells."""
    potential = (boards * maze.weights) @ worth
    return potential, np.where(maze.walls, -np.inf, potential[:, maze.world.neighbour]).max(axis=-1)


def _cell_by_cell(
    maze: Maze, aggregator: Aggregator, boards: np.ndarray, worth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same for any aggregation: the imagined action that stays is heard beside the others."""
    heard, advisors = boards * maze.weights, maze.ghosts + np.arange(len(worth))  # [B, fruits]
    stay, around = np.empty((2, len(boards), maze.cells))
    for cell, walls in enumerate(maze.walls):
        advice = worth[:, [*maze.world.neighbour[cell], cell]]  # [fruits, A + 1]
        preferences = aggregator.prefer(np.broadcast_to(advice, (len(boards), *advice.shape)), heard, advisors)
        stay[:, cell] = preferences[:, -1]
        around[:, cell] = np.where(walls, -np.inf, preferences[:, :-1]).max(axis=-1)
    return stay, around


def trap_shares(
    task: Task, gammas: Iterable[float], count: int = 2000, seed: int = 0,
    tell: Callable[[str], None] = lambda text: None, aggregation: str = "sum",
) -> list[dict[str, Any]]:  # fmt: skip
    """How often a random board has an attractor, a stable one, and how often the greedy episode ends stuck."""
    maze = Maze(task)
    if maze.ghosts:
        raise BadInput(f"boards of {task.name!r} are analysed without ghosts: add --no-ghosts")
    boards, result = maze.random_boards(count, seed), []
    for gamma in gammas:
        tell(f"{count} boards and episodes at gamma = {gamma:.4g}")
        peak, stable = peaks(maze, boards, gamma, aggregation)
        played = exact_agent(task, "egocentric", gamma, seed, aggregation).evaluate(count)
        result.append({
            "gamma": float(gamma), "attractor": float(peak.any(axis=1).mean()),
            "stable": float(stable.any(axis=1).mean()), "stuck": 1.0 - played.terminated, "boards": count,
        })  # fmt: skip
    return result
