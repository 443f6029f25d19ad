"""Greedy episodes with exact values: a board is a snapshot, and what gets stuck is an episode that passes through many.

An episode is followed from board to board until all fruit is eaten, or until no greedy action leads to any more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.analysis.theory.boards import Maze, exact_agent
from multiadvisor.analysis.theory.solver import best_actions
from multiadvisor.core.aggregator import Aggregator, aggregator_of
from multiadvisor.task import Task

_TIES = 10  # episodes that are played where ties leave a choice
OTHERS = 1000  # random episodes beside the one that was asked for


class Ending(NamedTuple):
    """How a greedy episode ends."""

    steps: int
    """Until the last fruit was eaten, or until the episode was found to be stuck."""
    left: int
    """Fruits that are never eaten: 0 where the episode is finished."""
    cell: int
    """Where Pac-Boy is then."""
    tied: bool
    """Whether several actions were best somewhere, so that another episode may go another way."""


def fruit_advice(maze: Maze, gamma: float) -> np.ndarray:
    """Exact egocentric values [cells, fruits, A]: reward * gamma^d."""
    return np.ascontiguousarray(maze.worth(gamma, maze.distances)[:, maze.world.neighbour].transpose(1, 0, 2))


class _Walk:
    """The greedy actions on one board after the other, each found once."""

    def __init__(self, maze: Maze, advice: np.ndarray, fruit: np.ndarray, aggregator: Aggregator) -> None:
        self.maze, self.advice, self.aggregator = maze, advice, aggregator
        self.fruit = fruit.copy()  # [fruits] bool
        self._known: dict[int, list[int]] = {}

    def best(self, cell: int) -> list[int]:
        """The cells that the best actions lead to."""
        if cell not in self._known:
            there = np.flatnonzero(self.fruit)
            advice, weights = self.advice[cell, there], self.maze.weights[there]
            preferences = self.aggregator.prefer(advice, weights, self.maze.ghosts + there)  # [A]
            self._known[cell] = self.maze.world.neighbour[cell, best_actions(preferences, tiny=True)].tolist()
        return self._known[cell]

    def holds(self, cell: int) -> bool:
        """Whether there is fruit on the cell."""
        place = int(self.maze.world.fruit_at[cell])
        return place >= 0 and bool(self.fruit[place])

    def eat(self, cell: int) -> None:
        """The next board."""
        self.fruit[self.maze.world.fruit_at[cell]] = False
        self._known.clear()

    def stuck(self, cell: int) -> bool:
        """Whether no greedy action, ties taken either way, ever leads from here to fruit."""
        seen, ahead = {cell}, [cell]
        while ahead:
            for to in self.best(ahead.pop()):
                if self.holds(to):
                    return False
                if to not in seen:
                    seen.add(to)
                    ahead.append(to)
        return True


def greedy_episode(maze: Maze, x: np.ndarray, advice: np.ndarray, seed: int = 0, aggregation: str = "sum") -> Ending:
    """Play the episode that begins with the board x, without ghosts; ties are broken at random."""
    walk = _Walk(maze, advice, maze.fruit(x), aggregator_of(maze.task, aggregation))
    cell, steps, tied = int(x[0]), 0, False
    chance = np.random.default_rng(seed)
    left, seen = int(walk.fruit.sum()), {cell}
    longest = 4 * maze.cells * (left + 1)  # without ties a walk to the next fruit visits no cell twice
    while left > 0 and steps < longest:
        choices = walk.best(cell)
        tied = tied or len(choices) > 1
        cell = choices[0] if len(choices) == 1 else choices[int(chance.integers(len(choices)))]
        steps += 1
        if walk.holds(cell):
            walk.eat(cell)
            left, seen = left - 1, {cell}
        elif cell in seen and walk.stuck(cell):
            break
        seen.add(cell)
    return Ending(steps, left, cell, tied)


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


def safe_and_caught(
    caught: Callable[[float], bool], lattice: int, stride: int, above: float = 0.0
) -> tuple[float, float | None]:
    """Two gammas k / lattice: up to the first nothing is caught, at the second something is (None: nowhere).

    Tries every `stride`-th one upwards from `above`, which is known to be safe, and bisects the first stretch in which
    something is caught. What comes and goes within one stretch may be missed.
    """
    low = int(above * lattice)
    for high in [*range((low // stride + 1) * stride, lattice, stride), lattice - 1]:
        if caught(high / lattice):
            break
        low = high
    else:
        return low / lattice, None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if caught(middle / lattice) else (middle, high)
    return low / lattice, high / lattice


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


_LATTICE = 100  # of the other episodes: two digits are what so many episodes can tell
_LAST = (_LATTICE - 1) / _LATTICE


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
    safe, stuck = safe_and_caught(stuck_here, 10_000, 100)
    if maze.world.start >= 0 and maze.world.fruits == len(maze.world.fruit_cell):  # every episode is this one
        return Outlook(ending, safe, stuck, 0, None, None)
    elsewhere, _ = safe_and_caught(stuck_elsewhere, _LATTICE, 5, above)
    return Outlook(ending, safe, stuck, OTHERS, elsewhere, other_episodes(task, gamma, aggregation=aggregation))
