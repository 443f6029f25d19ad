"""Ms. Pac-Man as a task: who wants what, from the machine's memory. The weights are set by hand.

Every cell of a maze is the goal of a general value function on Ms. Pac-Man's cell and direction. The advisors point at
cells: a pellet at its own, from the time on when one was first eaten there; ghosts and fruit at the cell they are in.
The frontier, which is whatever was never tried, is an advisor while a maze is new.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np

from multiadvisor.envs.adapter import Adapter
from multiadvisor.envs.registry import Between, register_task
from multiadvisor.envs.worlds.atari import ram
from multiadvisor.envs.worlds.atari.emulator import ACTIONS, LIMIT, STICKY, MsPacman
from multiadvisor.errors import unknown
from multiadvisor.learners.gvf.gvf_spec import FRONTIER, REFUGE, Aims, Goals, KnownModel, Threat
from multiadvisor.task import Advisor, Task

PELLETS, PILLS, FRUIT, EDIBLE, GHOSTS, UNSEEN, SAFE = GROUPS = (
    "pellets", "pills", "fruit", "edible", "ghosts", "frontier", "refuge",
)  # fmt: skip
WEIGHTS = {PELLETS: 10.0, PILLS: 50.0, FRUIT: 1.0, EDIBLE: 1000.0, GHOSTS: -3.0, UNSEEN: 10.0, SAFE: 10.0}
AT = {
    PELLETS: slice(0, 252), PILLS: slice(252, 256), FRUIT: slice(256, 257), EDIBLE: slice(257, 261),
    GHOSTS: slice(261, 265), UNSEEN: slice(265, 266), SAFE: slice(266, 267),
}  # fmt: skip
N = 267
LATE = 2  # the timer of edible ghosts at which they are feared again
PLACE, HEADING = np.divmod(np.arange(ram.CELLS * ram.DIRECTIONS), ram.DIRECTIONS)  # [states] of a local state
# Cells that a ghost goes while Ms. Pac-Man goes one, hunting and edible; the steps by which it should be late wherever
# she goes; and the steps in which the timer of edible ghosts goes down by one.
HUNTS, FLEES, LATER, TICK = 0.86, 0.53, 3.0, 1.0
AT_ONCE = 1e-9  # steps of doubt where there are none
EXPLORE = 12_000  # steps in a maze in which the frontier of what was never tried is heard
RESTLESS = 0.03  # the probability of a random action in evaluation as well, while no ghost is near


def local_state(seen: np.ndarray) -> int:
    """Ms. Pac-Man's cell and direction."""
    return int(seen[ram.CELL]) * ram.DIRECTIONS + int(seen[ram.DIRECTION])


def make_advisors() -> tuple[Advisor, ...]:
    """The advisors [267], in the order of `AT`. Those who are afraid of a ghost plan in a way of their own."""
    names = {
        PELLETS: [f"pellet {row + 1}.{column + 1}" for row in range(ram.PELLET_ROWS)
                  for column in range(ram.PELLET_COLUMNS)],
        PILLS: [f"pill {where}" for where in ram.PILL_PLACES], FRUIT: ["fruit"],
        EDIBLE: [f"edible ghost {k + 1}" for k in range(ram.GHOSTS)],
        GHOSTS: [f"ghost {k + 1}" for k in range(ram.GHOSTS)], UNSEEN: ["frontier"], SAFE: ["refuge"],
    }  # fmt: skip
    alone = {"planning": "egocentric", "gamma": 0.7, "aggregation": "sum"}
    own: dict[str, Any] = {GHOSTS: alone, SAFE: alone}
    return tuple(
        Advisor(name, state=local_state, weight=WEIGHTS[group], group=group, **own.get(group, {}))
        for group in GROUPS
        for name in names[group]
    )


# ---- how the bank reads an observation -------------------------------------------------------------------------------
def maze_of(seen: np.ndarray) -> int:
    """The maze: each has tables of its own."""
    return int(seen[ram.MAZE])


def label(seen: np.ndarray) -> str:
    """Where Ms. Pac-Man is, by the rows and columns of pellets, and how many lives are left."""
    row, column = divmod(int(seen[ram.CELL]), ram.COLUMNS)
    place = f"maze {maze_of(seen) + 1}, row {row / 2 + 1:g}, column {(column + 1) / 2:g}"
    return f"{place}, lives left: {int(seen[ram.LIVES])}"


def is_new_life(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether a life was lost, or the pellets of a new level are there."""
    return bool(before[ram.LIVES] != after[ram.LIVES] or (after[ram.PELLET] > before[ram.PELLET]).any())


def aim(explore: int, spare: bool, seen: np.ndarray, look: KnownModel, silent: tuple[str, ...] = ()) -> Aims:
    """Where each advisor looks: -1 where there is nothing of the kind, and for `silent` groups."""
    place, factor = np.full(N, -1, np.int64), np.ones(N)
    ghosts, state = seen[ram.GHOST_CELL], seen[ram.GHOST_STATE]
    edible = (state == ram.EDIBLE) & (seen[ram.TIMER] > LATE)
    place[AT[PELLETS]] = np.where((seen[ram.PELLET] == 1) & look.met[AT[PELLETS]], ram.PELLET_CELL, -1)
    place[AT[PILLS]] = np.where((seen[ram.PILL] == 1) & ~(spare & edible.any()), ram.PILL_CELL, -1)
    place[AT[FRUIT]], factor[AT[FRUIT]] = seen[ram.FRUIT], seen[ram.FRUIT_POINTS]
    place[AT[EDIBLE]] = np.where(edible, ghosts, -1)
    place[AT[GHOSTS]] = np.where((state != ram.AWAY) & ~edible, ghosts, -1)
    place[AT[UNSEEN]] = FRONTIER if look.steps < explore else -1
    place[AT[SAFE]] = REFUGE if (state != ram.AWAY).any() else -1
    for group in silent:
        place[AT[group]] = -1
    return Aims(place, factor)


def threat(seen: np.ndarray, look: KnownModel) -> Threat:
    """When the ghosts can be in each cell at the earliest, if they never turn back; pills are havens.

    Those that can be eaten go more slowly until their time is over, and may turn back as that begins.
    """
    closed, haven = np.full(ram.CELLS, np.inf), np.zeros(ram.CELLS, bool)
    left = TICK * float(seen[ram.TIMER])
    for cell, heading, state in zip(
        seen[ram.GHOST_CELL], seen[ram.GHOST_DIRECTION], seen[ram.GHOST_STATE], strict=True
    ):
        first = int(cell) * ram.DIRECTIONS
        if state == ram.HUNTING:
            steps = look.distances([first + int(heading)])[0] / HUNTS
        elif state == ram.EDIBLE:
            away = look.distances(first + np.arange(ram.DIRECTIONS)).min(axis=0)
            steps = left + np.maximum(away - FLEES * left, 0.0) / HUNTS
        else:
            continue
        np.minimum(closed, steps - LATER, out=closed)
    haven[ram.PILL_CELL[seen[ram.PILL] == 1]] = True
    return Threat(closed, haven, AT_ONCE)


def paid(before: np.ndarray, after: np.ndarray, reward: float) -> np.ndarray:
    """Who reached what in a step [267]: 1 for a pellet, a pill, fruit, a ghost that was eaten, or one that caught."""
    out = np.zeros(N)
    alive = before[ram.LIVES] <= after[ram.LIVES]
    if before[ram.MAZE] != after[ram.MAZE] or (alive and reward == 0):
        return out
    if not alive:
        hunting = np.flatnonzero(before[ram.GHOST_STATE] == ram.HUNTING)
        if len(hunting):
            rows, columns = np.divmod(before[ram.GHOST_CELL][hunting], ram.COLUMNS)
            row, column = divmod(int(before[ram.CELL]), ram.COLUMNS)
            out[AT[GHOSTS].start + hunting[np.argmin(abs(rows - row) + abs(columns - column))]] = 1.0
        return out
    out[AT[PELLETS]] = (before[ram.PELLET] == 1) & (after[ram.PELLET] == 0) & (reward > 0)
    out[AT[PILLS]] = (before[ram.PILL] == 1) & (after[ram.PILL] == 0)
    out[AT[EDIBLE]] = (before[ram.GHOST_STATE] == ram.EDIBLE) & (after[ram.GHOST_STATE] == ram.AWAY) & (reward >= 200)
    if before[ram.FRUIT] >= 0 > after[ram.FRUIT] and reward >= before[ram.FRUIT_POINTS]:
        out[AT[FRUIT]] = 1.0
    return out


# ---- the picture -----------------------------------------------------------------------------------------------------
LEFT, DOWN = -9, 5  # from a position in the memory to the screen
WISH, FEAR = (80, 255, 80), (255, 40, 40)
_HALF = 5  # points


def mark(picture: np.ndarray, cell: int, strength: float) -> None:
    """Draw a frame around a cell into a picture [210, 160, 3]: green for a wish, red for a fear, from faint to bright.

    >>> picture = np.zeros((210, 160, 3), np.uint8)
    >>> mark(picture, 16 * ram.COLUMNS + 18, 0.5)
    >>> picture[98 + DOWN - 5, 88 + LEFT].tolist()
    [40, 127, 40]
    """
    x, y = ram.middle_of(cell)
    x, y = x + LEFT, y + DOWN
    top, bottom = max(y - _HALF, 0), min(y + _HALF, picture.shape[0] - 1)
    left, right = max(x - _HALF, 0), min(x + _HALF, picture.shape[1] - 1)
    colour = np.array(WISH if strength > 0 else FEAR, float)
    share = min(abs(strength), 1.0)
    for part in (
        (top, slice(left, right + 1)), (bottom, slice(left, right + 1)),
        (slice(top, bottom + 1), left), (slice(top, bottom + 1), right),
    ):  # fmt: skip
        picture[part] = (share * colour + (1 - share) * picture[part]).astype(np.uint8)


# ---- the task --------------------------------------------------------------------------------------------------------
@register_task("ms-pacman")
def ms_pacman(
    without: str = "", spare: bool = True, sweeps: Annotated[int, Between(0)] = 10,
    sticky: float = STICKY, limit: int = LIMIT,
) -> Task:  # fmt: skip
    """Atari's Ms. Pac-Man in an emulator, seen through its memory: pellets, pills, fruit and ghosts are advisors.

    without: a group that is left out, or several with commas between them.
    spare: leave power pills where they are while there are ghosts to be eaten.
    sweeps: how often all that was observed is replayed after each episode.
    sticky: the probability that the machine repeats the last action.
    limit: episodes are cut off after this many steps of four frames.
    """
    silent = tuple(name.strip() for name in without.split(",")) if without else ()
    for name in silent:
        if name not in GROUPS:
            raise unknown("group", name, GROUPS)
    advisors = make_advisors()
    goals = Goals(
        states=ram.CELLS * ram.DIRECTIONS, place=PLACE, local=local_state, rooms=ram.MAZES, room=maze_of,
        aim=partial(aim, EXPLORE, spare, silent=silent), paid=paid, cut=is_new_life,
        sweeps=sweeps, wary=0.05, restless=RESTLESS, mark=mark, label=label, heading=HEADING, threat=threat,
    )  # fmt: skip
    env = MsPacman(sticky, limit)
    return Task(
        "ms-pacman", ACTIONS, advisors, adapter=Adapter(env, advisors, None, table=False), goals=goals,
        note="positions come from the machine's memory, and the weights are set by hand",
    )  # fmt: skip
