"""Boards without ghosts: greedy walks on exact values beside a near-optimal tour of the same fruits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.analysis.theory.boards import Maze
from multiadvisor.core.aggregations import aggregation_named
from multiadvisor.envs.registry import make
from multiadvisor.runs.jobs import Job, Tell, kind, silent

WALKS = (("sum", 0.4), ("sum", 0.9), ("max", 0.9), ("max", 0.99), ("max_plus:0.1", 0.9), ("p_norm:3", 0.9),
         ("p_norm:5", 0.9), ("p_norm:8", 0.9), ("max_plus:-0.001", 0.9))  # fmt: skip
RESTARTS = 20
FIRST_BOARD = 10_000  # a seed: boards of no other experiment
TIE = 1e-12


def tours_job(boards: int) -> Job:
    """So many boards."""
    return Job("tours", {"boards": boards, "walks": [list(walk) for walk in WALKS], "restarts": RESTARTS})


@kind("tours", lease=600.0)
def tours_work(config: dict[str, Any], folder: Path | None = None, tell: Tell = silent) -> dict[str, Any]:
    """Steps until all fruit is eaten, a list over boards for each walk (the limit where it never is), and the tours."""
    task = make("pac-boy", ghosts=False)
    maze = Maze(task)
    boards, distance, world = maze.random_boards(config["boards"], FIRST_BOARD), maze.distances, maze.world
    tours = []
    for k, board in enumerate(boards):
        places = np.flatnonzero(board)
        stops = np.array([world.start, *world.fruit_cell[places]])
        tours.append(tour(distance[places][:, stops], config["restarts"], np.random.default_rng(FIRST_BOARD + k)))
        tell(0.9 * k / len(boards))
    walks = [walk(task, boards, distance, name, gamma).tolist() for name, gamma in config["walks"]]
    return {"walks": walks, "tours": tours, "limit": task.limit, "fruits": boards.sum(axis=1).tolist()}


def walk(
    task: Any, boards: np.ndarray, distance: np.ndarray, aggregation: str, gamma: float, seed: int = 0,
    epsilon: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """[boards] steps of the greedy walk on exact egocentric values Q_j = gamma^d; ties are broken at random.

    With epsilon every action is a random one with this probability.
    """
    world, (aggregate, parameter) = Maze(task).world, aggregation_named(aggregation)
    generator = np.random.default_rng(seed)
    left, cell = boards.copy(), np.full(len(boards), world.start)
    steps = np.zeros(len(boards), np.int64)
    value = np.moveaxis(gamma ** distance[:, world.neighbour], 1, 0)  # [cells, fruits, A]
    for _ in range(task.limit):
        going = np.flatnonzero(left.any(axis=1))
        if len(going) == 0:
            break
        preferences = aggregate(value[cell[going]], left[going].astype(float), parameter)
        best = preferences >= preferences.max(axis=1, keepdims=True) - TIE
        if epsilon > 0:
            best |= generator.random((len(going), 1)) < epsilon
        action = np.where(best, generator.random(best.shape), -1.0).argmax(axis=1)
        cell[going] = world.neighbour[cell[going], action]
        steps[going] += 1
        eaten = world.fruit_at[cell[going]]
        left[going[eaten >= 0], eaten[eaten >= 0]] = False
    return steps


def tour(away: np.ndarray, restarts: int, generator: np.random.Generator) -> int:
    """The length of a short path from the start over all fruits: 2-opt with or-opt moves, the best of many restarts.

    away [fruits, 1 + fruits]: the distance from each fruit to the start and to each fruit. The first path goes to the
    nearest fruit each time, the others begin at random.
    """
    fruits = len(away)
    apart = np.zeros((fruits + 2, fruits + 2))  # the last stop is nowhere: any path may end anywhere
    apart[1:-1, :-1], apart[0, 1:-1] = away, away[:, 0]
    best = np.inf
    for k in range(restarts):
        inner = _nearest(apart) if k == 0 else 1 + generator.permutation(fruits)
        path = np.array([0, *inner, fruits + 1])
        improved = True
        while improved:
            path, turned = _turned(path, apart)
            path, moved = _moved(path, apart)
            improved = turned or moved
        best = min(best, apart[path[:-1], path[1:]].sum())
    return int(best)


def _nearest(apart: np.ndarray) -> list[int]:
    here, left, found = 0, list(range(1, len(apart) - 1)), []
    while left:
        here = min(left, key=lambda to: apart[here, to])
        left.remove(here)
        found.append(here)
    return found


def _turned(path: np.ndarray, apart: np.ndarray) -> tuple[np.ndarray, bool]:
    """2-opt: the best stretch to walk backwards, until there is none."""
    changed = False
    while True:
        a, b = path[:-1], path[1:]
        step = apart[a, b]
        gain = step[:, None] + step[None, :] - apart[a[:, None], a[None, :]] - apart[b[:, None], b[None, :]]
        gain = np.triu(gain, 1)  # [i, k]: edges i < k are replaced
        i, k = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[i, k] <= 0:
            return path, changed
        path = np.concatenate([path[: i + 1], path[i + 1 : k + 1][::-1], path[k + 1 :]])
        changed = True


def _moved(path: np.ndarray, apart: np.ndarray) -> tuple[np.ndarray, bool]:
    """Or-opt: the first stretch of up to three stops that is better elsewhere, either way round."""
    for size in (1, 2, 3):
        for i in range(1, len(path) - size):
            part, rest = path[i : i + size], np.concatenate([path[:i], path[i + size :]])
            saved = apart[path[i - 1], part[0]] + apart[part[-1], path[i + size]] - apart[path[i - 1], path[i + size]]
            before, after = rest[:-1], rest[1:]
            for stretch in (part, part[::-1]):
                cost = apart[before, stretch[0]] + apart[stretch[-1], after] - apart[before, after]
                place = int(cost.argmin())
                if cost[place] < saved:
                    return np.concatenate([rest[: place + 1], stretch, rest[place + 1 :]]), True
    return path, False
