"""The fishery (Russell and Zimdars 2003) as a finite task: boats share one stock of fish, an advisor for each.

In a year the boats decide one after the other how hard to fish the tenth of the waters that is theirs; then the stock
grows. The stock stands on levels; what falls between two of them goes to either, so that its mean is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from multiadvisor.core.board_layout import Grid, Sprite
from multiadvisor.core.compiling import compiled
from multiadvisor.envs.registry import Between, register_task
from multiadvisor.envs.worlds.gadgets import finite_task
from multiadvisor.task import Task

GROWTH, MOST, FIRST, LEAST = 0.5, 200_000, 150_000, 200
CAUGHT, COST, UNIT = 0.98, 1000.0, 1000.0  # rewards are in thousands of fish
EFFORTS = np.array([0.0, 0.1, 0.2, 0.3, 0.5, 1.0])
LEVELS = np.array([LEAST, 600, 2000, 5000, *range(10_000, MOST + 1, 10_000)])


@compiled
def one_advises(world, x, advisors, m, weight):
    """Only the boat whose turn it is."""
    for i in range(m):
        weight[i] = weight[i] if advisors[i] == x[0] % world.local.shape[0] else 0.0


def _grid(boats: int) -> Grid:
    """A state is a cell: the row is the stock, the highest at the top, the column the boat whose turn it is."""
    states = np.arange(len(LEVELS) * boats)
    cells = np.stack([len(LEVELS) - 1 - states // boats, states % boats], axis=1)
    next_boat = states + np.where(states % boats == boats - 1, 1 - boats, 1)
    return Grid(
        (len(LEVELS), boats), cells, np.repeat(next_boat[:, None], len(EFFORTS), axis=1), ((0, 1),) * len(EFFORTS),
        (Sprite("player", 0),), (((0, 1),),) * boats,
    )  # fmt: skip


@register_task("fishery")
def fishery(
    boats: Annotated[int, Between(1, 50)] = 10, heard: Literal["fleet", "boat"] = "fleet",
    start: Literal["paper", "anywhere"] = "paper", years: Annotated[int, Between(1, 100_000)] = 100,
) -> Task:  # fmt: skip
    """Boats share a stock of fish and decide one after the other how hard to fish; they can fish it to extinction.

    boats: how many, each with an advisor.
    heard: "fleet", all advisors judge every boat's decision, or "boat", only that of the boat that decides.
    start: "paper", 150,000 fish, or "anywhere", any level.
    years: episodes are cut off after this many.
    """
    boat = np.tile(np.arange(boats), len(LEVELS))[:, None]  # [S, 1] whose turn it is
    stock = np.repeat(LEVELS, boats)[:, None]  # [S, 1]
    last = boat == boats - 1
    caught = CAUGHT * EFFORTS * stock / boats  # [S, A]
    left = stock - caught
    after = np.where(last, np.minimum(left * np.exp(GROWTH * (1.0 - left / MOST)), MOST), left)
    above = np.clip(np.searchsorted(LEVELS, after), 1, len(LEVELS) - 1)  # the level not below it
    share = np.clip((after - LEVELS[above - 1]) / (LEVELS[above] - LEVELS[above - 1]), 0.0, 1.0)
    following = np.where(last, 0, boat + 1)
    successor = np.stack([(above - 1) * boats + following, above * boats + following], axis=-1)  # [S, A, 2]
    reward = np.zeros((*caught.shape, 2, boats))
    reward[np.arange(len(stock)), :, :, boat[:, 0]] = ((caught - COST * EFFORTS**2) / UNIT)[:, :, None]
    final = np.repeat((last & (left < LEAST))[:, :, None], 2, axis=2)
    first = np.repeat(LEVELS == FIRST if start == "paper" else np.full(len(LEVELS), True), boats) * (boat[:, 0] == 0)
    task = finite_task(
        "fishery", tuple(f"{effort:g}" for effort in EFFORTS), tuple(f"boat {k + 1}" for k in range(boats)),
        first / first.sum(), np.stack([1.0 - share, share], axis=-1), successor, reward, final, limit=boats * years,
        labels=tuple(f"{fish:,} fish, boat {k + 1}" for fish in LEVELS for k in range(boats)), board=_grid(boats),
    )  # fmt: skip
    if heard == "fleet" or task.world is None:
        return task
    return replace(task, world=replace(task.world, advises=one_advises))
