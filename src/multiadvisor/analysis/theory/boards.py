"""Boards of fruit: exact local values of mazes of any size, one board at a time, and thousands of random ones.

In a maze without ghosts Q_j(x, a) = gamma^d_j(P(x, a)) for egocentric advisors, so that the aggregator climbs the
potential V(x) = sum_j w_j gamma^d_j(x), and an attractor is a strict peak of it.

A board is a snapshot, and what gets stuck is an episode that passes through many: greedy episodes with exact values are
followed from board to board until all fruit is eaten, or until no greedy action leads to any more of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.agent import MultiAdvisor
from multiadvisor.analysis.theory.attractors import safe_and_caught
from multiadvisor.analysis.theory.bounds import Bound, bound_of
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP, LocalMDP
from multiadvisor.analysis.theory.solver import (
    LOCAL,
    Solution,
    best_actions,
    error_bound,
    exceeds,
    fixpoint,
    solve_local,
)
from multiadvisor.core.aggregator import Aggregator, aggregator_of, by_name, in_words
from multiadvisor.core.rng import ENVIRONMENT, stream_key
from multiadvisor.envs.compiled_env import CompiledEnv
from multiadvisor.envs.worlds.maze import ghost_moves, maze_of, touched
from multiadvisor.errors import BadInput
from multiadvisor.task import Task

_TIES = 10  # episodes that are played where ties leave a choice
OTHERS = 1000  # random episodes beside the one that was asked for


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
        self.ghosts, self.cells = len(found.ghost_start), len(found.neighbour)
        self.weights = task.weights[self.ghosts :]  # [fruits] of the advisors of fruit, who come after those of ghosts

    @cached_property
    def walls(self) -> np.ndarray:
        """[cells, A] bool: the actions that stay where they are."""
        return np.asarray(self.world.neighbour == np.arange(self.cells)[:, None])

    @cached_property
    def distances(self) -> np.ndarray:
        """d [fruits, cells]: the steps from each cell to each place of fruit."""
        first = np.full((len(self.world.fruit_cell), self.cells), np.inf)
        first[np.arange(len(first)), self.world.fruit_cell] = 0
        return fixpoint(lambda d: np.minimum(d, 1 + d[:, self.world.neighbour].min(axis=-1)), first)

    def worth(self, gamma: float, distances: np.ndarray) -> np.ndarray:
        """[fruits, cells] reward * gamma^d, with the advisors' own gammas."""
        gammas = self.task.gammas(gamma)[self.ghosts :]
        return np.asarray(self.world.fruit_reward * gammas[:, None] ** distances)

    def fruit(self, x: np.ndarray) -> np.ndarray:
        """[fruits] bool: the places that hold fruit on the board x."""
        return np.asarray(x[1 + self.ghosts :] == 1)

    def advisors_on(self, x: np.ndarray) -> list[int]:
        """The ghosts, and the advisors of the fruit that lies on the board x."""
        return [*range(self.ghosts), *(self.ghosts + np.flatnonzero(self.fruit(x))).tolist()]

    def states(self, x: np.ndarray) -> list[np.ndarray]:
        """The board x with Pac-Boy on each of the cells."""
        return [np.array([cell, *x[1:]]) for cell in range(self.cells)]

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
    for local, discount in zip(mdps, gammas.tolist(), strict=True):
        key = (id(local.reward), discount)  # ghosts that share a table share their values
        if key not in known:
            q, residual, took = solve_local(local, discount, planning)
            if took < 0:
                raise BadInput(
                    f"the {planning} values of {task.name!r} did not converge at gamma = {discount}: lower it"
                )
            known = {key: (q, residual)}
        yield known[key]


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
    aggregated as it does.
    """
    maze = Maze(task)
    assert task.world is not None
    x = task.world.checked(x, task.name)
    used = maze.advisors_on(x)
    if len(used) == maze.ghosts:
        raise BadInput(f"the board of {task.name!r} has no fruit: there is nothing to solve")
    if agent is not None:
        return advised_solution(agent, maze.board_mdp(x, used), maze.states(x))
    fruits = used[maze.ghosts :]
    mdp = maze.board_mdp(x, fruits, gammas=())
    found = [solve_local(maze.fruit_mdp(j - maze.ghosts), gamma) for j in fruits]
    values, residual = np.array([q for q, _, _ in found]), max(off for _, off, _ in found)
    bound = error_bound(residual, np.array([gamma]), values)
    values = np.where((mdp.local < 0)[:, :, None], 0.0, values)  # Pac-Boy never stands on a fruit
    aggregation = present(task, mdp, aggregation)
    return Solution(mdp, "egocentric", gamma, values, residual, bound, True, 0, aggregation=aggregation)


def advised_solution(agent: Any, mdp: FiniteMDP, states: list[Any]) -> Solution:
    """What the agent's advisors say in each of the states, as a solution of which nothing is promised."""
    values, place = np.zeros((mdp.n, mdp.states, len(mdp.actions))), {name: j for j, name in enumerate(mdp.advisors)}
    for state, at in enumerate(states):
        names, advice = agent.advice(at)
        values[[place[name] for name in names], state] = advice
    values = np.where((mdp.local < 0)[:, :, None], 0.0, values)  # Pac-Boy never stands on a fruit
    settings = agent.settings
    aggregation = present(agent.task, mdp, getattr(settings, "aggregation", "sum"))
    return Solution(mdp, settings.planning, settings.gamma, values, np.nan, np.inf, True, 0, aggregation=aggregation)


def present(task: Task, mdp: FiniteMDP, aggregation: str) -> str:
    """The aggregation without the names of advisors that have no part in this MDP, as places without fruit."""
    aggregator_of(task, aggregation)  # what the task itself does not know is refused
    here, given = {*mdp.advisors, *mdp.groups, ""}, by_name("aggregation", aggregation)
    return in_words({name: value for name, value in given.items() if name in here}) or "sum"


def has_tables(agent: Any) -> bool:
    """Whether an agent of a compiled world knows a value for each local state, and not only advice in a whole state."""
    try:
        return bool(len(agent.values(0)) == agent.task.advisors[0].states)
    except (AttributeError, TypeError, NotImplementedError, BadInput):
        return False


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
    """The same for any aggregation: the imagined action that stays stands beside the others."""
    weights, advisors = boards * maze.weights, maze.ghosts + np.arange(len(worth))  # [B, fruits]
    stay, around = np.empty((2, len(boards), maze.cells))
    for cell, walls in enumerate(maze.walls):
        advice = worth[:, [*maze.world.neighbour[cell], cell]]  # [fruits, A + 1]
        preferences = aggregator.prefer(np.broadcast_to(advice, (len(boards), *advice.shape)), weights, advisors)
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


# ---- greedy episodes -------------------------------------------------------------------------------------------------
class Ending(NamedTuple):
    """How a greedy episode ends."""

    steps: int
    """Until the last fruit was eaten, or until the episode was found to be stuck."""
    fruit: np.ndarray
    """[fruits] bool: those that are never eaten."""
    cell: int
    """Where Pac-Boy is then."""
    tied: bool
    """Whether several actions were best somewhere, so that another episode may go another way."""

    @property
    def left(self) -> int:
        """How many are never eaten: 0 where the episode is finished."""
        return int(self.fruit.sum())


def fruit_advice(maze: Maze, gamma: float) -> np.ndarray:
    """Exact egocentric values [cells, fruits, A]: reward * gamma^d."""
    return np.ascontiguousarray(maze.worth(gamma, maze.distances)[:, maze.world.neighbour].transpose(1, 0, 2))


def greedy_on(
    maze: Maze, advice: np.ndarray, fruit: np.ndarray, aggregator: Aggregator
) -> tuple[np.ndarray, np.ndarray]:
    """The greedy actions on one board [cells, A] bool; and the cells from which none of them, ties taken either way,
    ever leads to fruit [cells] bool."""
    there, to = np.flatnonzero(fruit), maze.world.neighbour
    weights = np.broadcast_to(maze.weights[there], (maze.cells, len(there)))
    best = best_actions(aggregator.prefer(advice[:, there], weights, maze.ghosts + there), tiny=True)
    eats = best & np.isin(to, maze.world.fruit_cell[there])
    stuck = fixpoint(lambda still: still & ~(eats | (best & ~still[to])).any(axis=1), np.ones(maze.cells, bool))
    return best, stuck


def greedy_episode(maze: Maze, x: np.ndarray, advice: np.ndarray, seed: int = 0, aggregation: str = "sum") -> Ending:
    """Play the episode that begins with the board x, without ghosts; ties are broken at random."""
    fruit, aggregator = maze.fruit(x).copy(), aggregator_of(maze.task, aggregation)
    cell, steps, tied, chance = int(x[0]), 0, False, np.random.default_rng(seed)
    longest = 4 * maze.cells * (int(fruit.sum()) + 1)  # without ties a walk to the next fruit visits no cell twice
    while fruit.any() and steps < longest:
        (best, stuck), seen = greedy_on(maze, advice, fruit, aggregator), set[int]()
        while steps < longest and not (cell in seen and stuck[cell]):
            seen.add(cell)
            choices = maze.world.neighbour[cell, best[cell]].tolist()
            tied = tied or len(choices) > 1
            cell = choices[0] if len(choices) == 1 else choices[int(chance.integers(len(choices)))]
            steps += 1
            place = int(maze.world.fruit_at[cell])
            if place >= 0 and fruit[place]:
                fruit[place] = False
                break
        else:
            break
    return Ending(steps, fruit, cell, tied)


def endings(maze: Maze, x: np.ndarray, gamma: float, aggregation: str = "sum") -> Iterator[Ending]:
    """The greedy episode from the board x, and where ties leave a choice, some more."""
    advice = fruit_advice(maze, gamma)
    first = greedy_episode(maze, x, advice, 0, aggregation)
    yield first
    yield from (greedy_episode(maze, x, advice, seed, aggregation) for seed in range(1, _TIES if first.tied else 1))


def other_episodes(task: Task, gamma: float, count: int = OTHERS, aggregation: str = "sum") -> float:
    """The share of greedy episodes from random boards that end stuck: not finished in ample time."""
    ample = replace(task, limit=max(task.limit or 0, 4 * Maze(task).cells))
    return 1.0 - exact_agent(ample, "egocentric", gamma, aggregation=aggregation).evaluate(count).terminated


@dataclass(frozen=True)
class Outlook:
    """What becomes of greedy episodes: of those that begin with one board, and of others in the same maze."""

    ending: Ending
    """How the episode that begins with this board ends at the gamma that was asked for; stuck, if any of its episodes
    is."""
    safe: float
    """Up to this gamma no greedy episode that begins with this board was found to get stuck."""
    stuck: float | None
    """At this gamma the first one does."""
    others: int
    """How many other episodes were played at each gamma; 0 where all episodes begin with this board."""
    others_safe: float | None
    """Up to this gamma none of them got stuck."""
    others_stuck: float | None
    """The share of them that gets stuck at the gamma that was asked for."""

    @property
    def keep(self) -> float | None:
        """The gamma to stay at or below; None where nothing got stuck at any gamma."""
        if self.stuck is None and (self.others_safe is None or self.others_safe >= _LAST):
            return None
        return self.safe if self.others_safe is None else min(self.safe, self.others_safe)

    def as_dict(self, task: Task) -> dict[str, Any]:
        """For JSON."""
        return {
            "steps": self.ending.steps, "left": self.ending.left, "cell": task.grid.name(self.ending.cell),
            "safe_gamma": self.safe, "stuck_gamma": self.stuck, "others": self.others,
            "others_safe_gamma": self.others_safe, "others_stuck": self.others_stuck, "keep_gamma": self.keep,
        }  # fmt: skip


_LAST = 0.99  # of the other episodes: two digits are what so many episodes can tell


def outlook(
    task: Task, x: np.ndarray, gamma: float, above: float = 0.0, tell: Callable[[str], None] = lambda text: None,
    aggregation: str = "sum",
) -> Outlook:  # fmt: skip
    """Play greedy episodes at many gammas; `above` is a gamma up to which a theorem promises that nothing gets
    stuck."""
    maze = Maze(task)

    def stuck_here(g: float) -> bool:
        tell(f"the episode of this board at gamma = {g:.4g}")
        return any(one.left for one in endings(maze, x, g, aggregation))

    def stuck_elsewhere(g: float) -> bool:
        tell(f"{OTHERS} other episodes at gamma = {g:.4g}")
        return other_episodes(task, g, aggregation=aggregation) > 0

    ending = max(endings(maze, x, gamma, aggregation), key=lambda one: one.left)
    safe, stuck = safe_and_caught(stuck_here, [*(k / 100 for k in range(1, 100)), 0.9999], 4)
    if maze.world.start >= 0 and maze.world.fruits == len(maze.world.fruit_cell):  # every episode is this one
        return Outlook(ending, safe, stuck, 0, None, None)
    above = math.floor(100 * above) / 100
    steps = [k / 20 for k in range(1, 20) if k / 20 > above]
    elsewhere, _ = safe_and_caught(stuck_elsewhere, [*steps, _LAST], 2, above)
    return Outlook(ending, safe, stuck, OTHERS, elsewhere, other_episodes(task, gamma, aggregation=aggregation))
