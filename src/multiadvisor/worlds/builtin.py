"""The built-in tasks: Pac-Boy, fruit grids and the gadgets of the theory, by name."""

from __future__ import annotations

import inspect
import math
import re
import typing
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from multiadvisor.errors import BadInput, short, unknown
from multiadvisor.grid import Grid, Sprite, Tile
from multiadvisor.settings import finite_number
from multiadvisor.task import BY_ADVISOR, Focus, Task
from multiadvisor.worlds.board import DIRECTIONS, Board, parse_maze, read_maze
from multiadvisor.worlds.registration import register

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

_MOST_NUMBERS = 10_000_000  # in the tables of a finite task

TASKS: dict[str, Callable[..., Task]] = {}
FILES = ("maze",)
"""Options that name files; where a task is kept, the text of the file stands in their place."""


def register_task(name: str) -> Callable[[Callable[..., Task]], Callable[..., Task]]:
    """Register a function that makes a task: for `make`, the command line, sweeps, checkpoints and Gymnasium alike.

    Its parameters are the task's options: each has a default and a type, bool, int, float or str, so that flags and
    files can give it. The task that it returns has them as its `options`; its docstring is what `tasks` shows.

    >>> @register_task("line")
    ... def line(length: int = 3) -> Task:
    ...     return replace(make("bridge", length=length), name="line", options={"length": length})
    >>> make("line", length=5).maker
    'line'
    >>> del TASKS["line"]
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise BadInput(f"{name!r} cannot name a task: use lower-case words, with hyphens between them")
    if name in TASKS:
        raise BadInput(f"a task called {name!r} is registered already: choose another name")

    def keep(build: Callable[..., Task]) -> Callable[..., Task]:
        hints = typing.get_type_hints(build)
        for option, parameter in inspect.signature(build).parameters.items():
            kinds = set(typing.get_args(hints.get(option)) or (hints.get(option),))
            if parameter.default is parameter.empty or not kinds <= {bool, int, float, str, type(None)}:
                raise BadInput(
                    f"option {option!r} of task {name!r} needs a default, and a type: bool, int, float or str"
                )
            if option in BY_ADVISOR:
                raise BadInput(f"option {option!r} of task {name!r} is one that every task has: choose another name")
        TASKS[name] = build
        register(name)
        return build

    return keep


def make(name: str, /, **options: Any) -> Task:
    """A task by its name (`multiadvisor tasks` lists them), or `gymnasium:ID` for any registered environment.

    Any task takes `weights`, `gammas` and `alphas`: numbers by advisor or group, in the place of its own.

    >>> make("pac-boy", rules="hra").n
    77
    """
    own = {what: numbers for what in BY_ADVISOR if (numbers := options.pop(what, None)) is not None}
    if own:
        task = make(name, **options)
        for what, numbers in own.items():
            task = task.with_numbers(what, numbers)
        return task
    if name.startswith("gymnasium:"):
        from multiadvisor.worlds.gymnasium_tasks import make_gymnasium

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
    return replace(TASKS[name](**options), maker=name, by_hand="")


def checked_options(task: str, given: dict[str, Any], modules: bool = False) -> dict[str, Any]:
    """Options of a task from a file, each of the kind its function declares, and all of them: defaults are written out.

    Nothing is imported or read because a file names it: modules only where a user has named them himself, of files the
    text.
    """
    if task.startswith("gymnasium:"):
        if ":" in task.removeprefix("gymnasium:") and not modules:
            raise BadInput(
                f"task {task!r} names a module to import, which no file may do: name it yourself, with --task or as "
                "load(folder, name)"
            )
        from multiadvisor.worlds.gymnasium_tasks import plain_options

        return plain_options(task, given)
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    hints, parameters = typing.get_type_hints(TASKS[task]), inspect.signature(TASKS[task]).parameters
    options = {name: parameter.default for name, parameter in parameters.items()}
    for name, value in given.items():
        if name not in parameters:
            raise (
                unknown(f"option of task {task!r}", name, parameters)
                if parameters
                else BadInput(f"task {task!r} takes no option, and so no {name!r}")
            )
        kinds = typing.get_args(hints[name]) or (hints[name],)
        if float in kinds and isinstance(value, int) and not isinstance(value, bool):
            value = finite_number(f"option {name} of task {task!r}", value)
        if type(value) not in kinds or (isinstance(value, int) and abs(value) >= 1 << 63):
            words = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
            raise BadInput(f"option {name} of task {task!r} is {value!r}: give a value of the kind {words}")
        if name in FILES and isinstance(value, str) and "\n" not in value:
            raise BadInput(f"option {name} of task {task!r} is {short(value)!r}, the name of a file: give its text")
        options[name] = value
    return {name: value for name, value in options.items() if value is not None}


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

    return Task(
        name=name, actions=tuple(DIRECTIONS), foci=tuple(foci), world=maze.world_of(constants), limit=limit,
        options=options, board=maze.grid_of(constants, board), measures=touches if g else None,
    )  # fmt: skip


@register_task("pac-boy")
def pac_boy(rules: str = "paper", maze: str | None = None, ghosts: bool = True, limit: int = 300) -> Task:
    """The paper's fruit collection game: an 11 x 11 maze, 75 fruit places, two ghosts, 77 advisors.

    rules: "paper", or "hra": ghosts always move, and swapping places with one is a touch.
    maze: a text file with a maze of your own, or its text.
    ghosts: without them the task is pure navigation.
    limit: games are cut off after this many turns.
    """
    board = parse_maze(PAC_BOY) if maze is None else parse_maze(read_maze(maze), f"the maze {short(maze)!r}")
    # the text and not the file's name: a file may be moved, or edited
    text = None if maze is None else f"{board.text}\n"
    options = {"rules": rules, "maze": text, "ghosts": ghosts, "limit": limit}
    return _maze_task("pac-boy", board, options=options, rules=rules, ghosts=ghosts, limit=limit)


@register_task("fruit-grid")
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


@register_task("three-fruits")
def three_fruits() -> Task:
    """The paper's three-fruit attractor: above gamma = 1/2 egocentric advisors send Pac-Boy South, into the wall."""
    return _maze_task("three-fruits", parse_maze(THREE_FRUITS), options={}, limit=50)


@register_task("four-fruits")
def four_fruits() -> Task:
    """Four fruits around Pac-Boy: an attractor for egocentric advisors above gamma = 1/3."""
    return _maze_task("four-fruits", parse_maze(FOUR_FRUITS), options={}, limit=50)


def finite_task(
    name: str, actions: tuple[str, ...], advisors: tuple[str, ...], start: np.ndarray, probability: np.ndarray,
    successor: np.ndarray, reward: np.ndarray, final: np.ndarray, *, local: np.ndarray | None = None,
    labels: tuple[str, ...] = (), limit: int | None = None, options: dict[str, Any] | None = None,
    board: Grid | None = None,
) -> Task:  # fmt: skip
    """A task from a finite MDP: outcome k of (state, action) has probability [S, A, K], successor [S, A, K],
    reward [S, A, K, n] and final [S, A, K] (1: the game ends); start [S] gives the first state's probabilities.

    local [n, S] is what each advisor sees, or -1 where its own part is over, for good; without it, the whole state.
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
        local=np.tile(np.arange(states), (len(advisors), 1)) if local is None else local.astype(np.int64),
    )  # fmt: skip
    arrives = constants.local[:, constants.successor]  # [n, S, A, K]
    again = (constants.local[:, :, None, None] < 0) & (arrives >= 0) & (probability > 0) & (final != 1)
    if again.any():
        j, state = np.argwhere(again)[0][:2]
        raise BadInput(f"advisor {advisors[j]!r} of task {name!r} is over in state {state} and comes back: it may not")
    foci = tuple(
        Focus(advisor, state="state" if local is None else f"part {j}", states=int(row.max()) + 1)
        for j, (advisor, row) in enumerate(zip(advisors, constants.local, strict=True))
    )
    endless = not ((final == 1) & (probability > 0)).any()
    return Task(
        name=name, actions=actions, foci=foci, world=finite.world_of(constants), limit=limit, endless=endless,
        options=options or {}, labels=labels, board=board,
    )  # fmt: skip


def _cumulative(probability: np.ndarray) -> np.ndarray:
    total = np.cumsum(probability, axis=-1)
    total[..., -1] = 1.0  # so that rounding leaves no gap above the last outcome
    return total


@register_task("two-goal")
def two_goal(r1: float = 1.0, r2: float = 1.0) -> Task:
    """The paper's attractor figure: a_0 waits, a_1 and a_2 earn r1 or r2 and end the game.

    r1, r2: what the two goals pay; waiting wins above gamma = max(r1, r2) / (r1 + r2).
    """
    if not (0 < r1 < math.inf and 0 < r2 < math.inf):
        raise BadInput(f"the goals of two-goal pay {r1} and {r2}: give finite numbers above 0")
    board = Grid(
        (1, 3), np.array([(0, 1)]), np.zeros((1, 3), np.int64), ((0, 0), (0, -1), (0, 1)), (Sprite("player", 0),),
        (((0, 1),), ((0, 1),)), tiles=(Tile("goal", 0, 0, f"+{r1:g}"), Tile("goal", 0, 2, f"+{r2:g}")),
    )  # fmt: skip
    return finite_task(
        "two-goal", ("a_0", "a_1", "a_2"), ("goal 1", "goal 2"), np.ones(1), np.ones((1, 3, 1)),
        np.zeros((1, 3, 1)), np.array([[[[0.0, 0.0]], [[r1, 0.0]], [[0.0, r2]]]]), np.array([[[0], [1], [1]]]),
        limit=50, options={"r1": r1, "r2": r2}, board=board,
    )  # fmt: skip


@register_task("dollars-and-euros")
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


@register_task("bridge")
def bridge(length: int = 3, danger: float = 1.0) -> Task:
    """A bridge over water: agnostic advisors will not set foot on it, egocentric and empathic ones cross.

    length: the number of steps on the bridge.
    danger: what a fall costs; reaching the other side pays 1.
    """
    if not 1 <= length <= 1000:
        raise BadInput(f"the bridge has length {length}: choose 1 to 1000")
    if not 0 <= danger < math.inf:
        raise BadInput(f"danger is {danger}: give a finite number of at least 0")
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
        final, labels=("bank", *(f"bridge {k}" for k in range(1, states))), limit=100,
        options={"length": length, "danger": danger}, board=board,
    )  # fmt: skip


@register_task("resource-scheduling")
def resource_scheduling(jobs: int = 3, work: int = 2) -> Task:
    """Each turn one unit of work goes to one of several jobs, each with an advisor: progressive, so no attractor ever.

    jobs: how many.
    work: the units each of them needs; a job that is done pays 1.
    """
    if not (1 <= jobs <= 8 and 1 <= work <= 100 and (work + 1) ** jobs <= 100_000):
        raise BadInput(f"{jobs} jobs of {work} units cannot be: choose 1 or more, with (work + 1)^jobs below 100,000")
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
        limit=100 + 10 * jobs * work, options={"jobs": jobs, "work": work},
    )  # fmt: skip


@register_task("random-mdp")
def random_mdp(states: int = 10, actions: int = 3, advisors: int = 3, outcomes: int = 3, instance: int = 0) -> Task:
    """A random finite MDP: random outcomes, normal rewards for every advisor, games that end now and then.

    states, actions, advisors: how many of each.
    outcomes: how many things may happen after an action.
    instance: which of the random ones.
    """
    for what, count, most in (("states", states, 5000), ("actions", actions, 100), ("advisors", advisors, 500),
                              ("outcomes", outcomes, 100)):  # fmt: skip
        if not 1 <= count <= most:
            raise BadInput(f"random-mdp with {count} {what} cannot be: choose 1 to {most}")
    if instance < 0:
        raise BadInput(f"instance is {instance}: give a whole number of at least 0")
    if (size := states * actions * outcomes * advisors) > _MOST_NUMBERS:
        raise BadInput(f"random-mdp with {size} rewards cannot be: choose fewer, at most {_MOST_NUMBERS}")
    generator = np.random.default_rng([instance, states, actions, advisors, outcomes])
    shape = (states, actions, outcomes)
    final = generator.random(shape) < 0.1
    final[0, 0, 0] = True
    options = {"states": states, "actions": actions, "advisors": advisors, "outcomes": outcomes, "instance": instance}
    return finite_task(
        "random-mdp", tuple(f"a_{a}" for a in range(actions)), tuple(f"advisor {j + 1}" for j in range(advisors)),
        np.full(states, 1.0 / states), generator.dirichlet(np.ones(outcomes), shape[:2]),
        generator.integers(states, size=shape), generator.normal(size=(*shape, advisors)), final, limit=200,
        options=options,
    )  # fmt: skip
