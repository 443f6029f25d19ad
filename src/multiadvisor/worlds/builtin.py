"""The built-in tasks: Pac-Boy, fruit grids and the gadgets of the theory, by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from multiadvisor.errors import BadInput, unknown
from multiadvisor.task import Focus, Task, World
from multiadvisor.worlds.board import DIRECTIONS, Board, parse_maze, read_maze

PAC_BOY = """\
....#.#....
.##.#.#.##.
...........
.#.##.##.#.
.#.##.##.#.
G#..G....#.
.###.#.###.
...........
###.###.###
....###....
.##.....##P"""

THREE_FRUITS = """\
__F__
_____
F_P_F"""

FOUR_FRUITS = """\
__F__
_____
F_P_F
_____
__F__"""

TASKS: dict[str, Callable[..., Task]] = {}


def _task(name: str) -> Callable[[Callable[..., Task]], Callable[..., Task]]:
    def keep(build: Callable[..., Task]) -> Callable[..., Task]:
        TASKS[name] = build
        return build

    return keep


def make(name: str, /, **options: Any) -> Task:
    """A task by its name (`multiadvisor tasks` lists them), or `gymnasium:ID` for any registered environment.

    >>> make("pac-boy", rules="hra").n
    77
    """
    if name.startswith("gymnasium:"):
        from multiadvisor.worlds.adapter import make_gymnasium

        return make_gymnasium(name, **options)
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    known = inspect.signature(TASKS[name]).parameters
    for option in options:
        if option not in known:
            raise (
                unknown(f"option of task {name!r}", option, known)
                if known
                else BadInput(f"task {name!r} takes no option, and so no {option!r}")
            )
    return TASKS[name](**options)


def _maze_task(
    name: str, board: Board, *, options: dict[str, Any], rules: str = "paper", ghosts: bool = True, limit: int = 300,
    fruits: int = -1, probability: float = 0.5, touch_reward: float = -10.0,
) -> Task:  # fmt: skip
    from multiadvisor.worlds import maze

    if rules not in ("paper", "hra"):
        raise unknown("rules", rules, ("paper", "hra"))
    if limit < 1:
        raise BadInput(f"limit is {limit}: a game has at least 1 turn")
    cells = len(board.place)
    free = np.zeros((cells, 4), np.int64)
    degree = np.zeros(cells, np.int64)
    for cell, row in enumerate(board.neighbour):
        others = [to for to in row if to != cell]
        degree[cell] = len(others)
        free[cell, : len(others)] = others
    ghost_start = board.ghosts if ghosts else board.ghosts[:0]
    fruit_at = np.full(cells, -1, np.int64)
    fruit_at[board.fruit] = np.arange(len(board.fruit))
    if board.fixed:
        fruits = len(board.fruit)
    constants = maze.MazeConstants(
        neighbour=board.neighbour, free=free, degree=degree, start=board.start, ghost_start=ghost_start,
        fruit_cell=board.fruit, fruit_at=fruit_at, fruits=fruits, probability=probability,
        ghosts_always_move=rules == "hra", fruit_reward=1.0, touch_reward=touch_reward,
    )  # fmt: skip
    g = len(ghost_start)
    foci = [
        Focus(f"ghost {i + 1}", state=f"cell, ghost {i + 1}", states=cells * cells, table="ghosts", group="ghosts")
        for i in range(g)
    ]
    foci += [Focus(f"fruit {board.name(c)}", state="cell", states=cells, group="fruits") for c in board.fruit]

    def touches(returns: np.ndarray) -> dict[str, np.ndarray]:
        return {"touches": np.rint(returns[:, :g].sum(axis=1) / touch_reward)}

    sizes = (cells,) * (1 + g) + (2,) * len(board.fruit)
    world = World(constants, len(sizes), maze.reset, maze.begin, maze.local_states, maze.step, sizes)
    return Task(
        name=name, actions=tuple(DIRECTIONS), foci=tuple(foci), world=world, limit=limit, options=options,
        board=board, measures=touches if g else None,
    )  # fmt: skip


@_task("pac-boy")
def pac_boy(rules: str = "paper", maze: str | None = None, ghosts: bool = True, limit: int = 300) -> Task:
    """The paper's fruit collection game: an 11 x 11 maze, 75 fruit places, two ghosts, 77 advisors.

    rules: "paper", or "hra": ghosts always move, and swapping places with one is a touch.
    maze: a text file with a maze of your own.
    ghosts: without them the task is pure navigation.
    limit: games are cut off after this many turns.
    """
    board = parse_maze(read_maze(maze), f"the maze {maze!r}") if maze is not None else parse_maze(PAC_BOY)
    options = {"rules": rules, "maze": maze, "ghosts": ghosts, "limit": limit}
    return _maze_task("pac-boy", board, options=options, rules=rules, ghosts=ghosts, limit=limit)


@_task("fruit-grid")
def fruit_grid(width: int = 5, height: int = 5, fruits: int = 5, limit: int = 300) -> Task:
    """An open grid without ghosts: Pac-Boy starts anywhere, `fruits` fruits lie anywhere else.

    width, height: the size of the grid.
    fruits: how many of them, on other cells in every game.
    limit: games are cut off after this many turns.
    """
    if not (1 <= width <= 1000 and 1 <= height <= 1000 and width * height >= 2):
        raise BadInput(f"a fruit grid of {width} x {height} cannot be: choose sides from 1 to 1000, two cells at least")
    if not 1 <= fruits < width * height:
        raise BadInput(f"{fruits} fruits do not fit on {width} x {height} cells beside Pac-Boy: choose 1 or more")
    board = parse_maze("\n".join(["." * width] * height), "the grid", random_start=True)
    options = {"width": width, "height": height, "fruits": fruits, "limit": limit}
    return _maze_task("fruit-grid", board, options=options, limit=limit, fruits=fruits)


@_task("three-fruits")
def three_fruits() -> Task:
    """The paper's three-fruit attractor: above gamma = 1/2 egocentric advisors send Pac-Boy South, into the wall."""
    return _maze_task("three-fruits", parse_maze(THREE_FRUITS), options={}, limit=50)


@_task("four-fruits")
def four_fruits() -> Task:
    """Four fruits around Pac-Boy: an attractor for egocentric advisors above gamma = 1/3."""
    return _maze_task("four-fruits", parse_maze(FOUR_FRUITS), options={}, limit=50)


def finite_task(
    name: str, actions: tuple[str, ...], advisors: tuple[str, ...], start: np.ndarray, probability: np.ndarray,
    successor: np.ndarray, reward: np.ndarray, final: np.ndarray, *, limit: int | None = None,
    options: dict[str, Any] | None = None,
) -> Task:  # fmt: skip
    """A task from a finite MDP: outcome k of (state, action) has probability [S, A, K], successor [S, A, K],
    reward [S, A, K, n] and final [S, A, K] (1: the game ends); start [S] gives the first state's probabilities.

    Every advisor sees the whole state.
    """
    from multiadvisor.worlds import finite

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
        local=np.tile(np.arange(states), (len(advisors), 1)),
    )  # fmt: skip
    foci = tuple(Focus(advisor, state="state", states=states) for advisor in advisors)
    world = World(constants, 1, finite.reset, finite.begin, finite.local_states, finite.step, (states,))
    endless = not ((final == 1) & (probability > 0)).any()
    return Task(name=name, actions=actions, foci=foci, world=world, limit=limit, endless=endless, options=options or {})


def _cumulative(probability: np.ndarray) -> np.ndarray:
    total = np.cumsum(probability, axis=-1)
    total[..., -1] = 1.0  # so that rounding leaves no gap above the last outcome
    return total


@_task("two-goal")
def two_goal(r1: float = 1.0, r2: float = 1.0) -> Task:
    """The paper's attractor figure: a_0 waits, a_1 and a_2 earn r1 or r2 and end the game.

    r1, r2: what the two goals pay; waiting wins above gamma = max(r1, r2) / (r1 + r2).
    """
    if not (0 < r1 < math.inf and 0 < r2 < math.inf):
        raise BadInput(f"the goals of two-goal pay {r1} and {r2}: give finite numbers above 0")
    return finite_task(
        "two-goal", ("a_0", "a_1", "a_2"), ("goal 1", "goal 2"), np.ones(1), np.ones((1, 3, 1)),
        np.zeros((1, 3, 1)), np.array([[[[0.0, 0.0]], [[r1, 0.0]], [[0.0, r2]]]]), np.array([[[0], [1], [1]]]),
        limit=50, options={"r1": r1, "r2": r2},
    )  # fmt: skip


@_task("dollars-and-euros")
def dollars_and_euros(failure: float = 0.1) -> Task:
    """Left pays a dollar, Right a euro, Up 0.6 of each, NoOp nothing (Russell and Zimdars 2003).

    failure: the probability that a move fails; a move that works ends the game.
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
        np.zeros((1, 4, 2)), reward, final, limit=50, options={"failure": failure},
    )  # fmt: skip
