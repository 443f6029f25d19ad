"""Tasks whose worlds are compiled: their names and options. The worlds, and with them numba, load when one is made."""

from __future__ import annotations

from multiadvisor.envs.registry import register_task
from multiadvisor.task import Task


@register_task("fishery")
def fishery(boats: int = 10, heard: str = "fleet", start: str = "paper", years: int = 100) -> Task:
    """Boats share a stock of fish and decide one after the other how hard to fish; they can fish it to extinction.

    boats: how many, each with an advisor.
    heard: "fleet", all advisors judge every boat's decision, or "boat", only that of the boat that decides.
    start: "paper", 150,000 fish, or "anywhere", any level.
    years: episodes are cut off after this many.
    """
    from multiadvisor.envs.worlds import fishery

    return fishery.make_task(boats, heard, start, years)


@register_task("hra-fruits")
def hra_fruits(heads: str = "goals", limit: int = 300) -> Task:
    """Ten places on an open 10 x 10 grid, fruit on five of them, any start (van Seijen and others 2017).

    heads: "goals", a general value function for each place; "fruits", an advisor while its fruit is there, which sees
        Pac-Boy's cell; "whole", one that sees the whole state.
    limit: episodes are cut off after this many steps.
    """
    from multiadvisor.envs.worlds import fruit_goals

    return fruit_goals.make_task(heads, limit)


@register_task("mountain-car")
def mountain_car(scale: float = 50.0, discount: float = 0.99, limit: int = 200) -> Task:
    """MountainCar-v0 in cells of position and speed: an advisor without shaping, three shaped by a potential.

    scale: the largest difference of potential, in steps.
    discount: that of the shaping; learn with the same gamma, so that it does not change the best policy.
    limit: episodes are cut off after this many steps.
    """
    from multiadvisor.envs.worlds import mountain_car

    return mountain_car.make_task(scale, discount, limit)


@register_task("racetrack")
def racetrack(limit: int = 1000) -> Task:
    """A lap on a track 10 wide around an infield of 15 x 20: an advisor for progress, one for the walls.

    limit: episodes are cut off after this many steps.
    """
    from multiadvisor.envs.worlds import racetrack

    return racetrack.make_task(limit)


@register_task("tile-chain")
def tile_chain(length: int = 50, width: int = 2, mapping: str | None = None, mapped_alpha: float = 1.0) -> Task:
    """A chain of places, any of them the first; beyond its right end is 1. Seen through overlapping tiles.

    length: how many places.
    width: how many of them a tile covers, and how many tilings there are: an advisor for each.
    mapping: the scale on which values are moved, as in log:100.
    mapped_alpha: the step size on that scale.
    """
    from multiadvisor.envs.worlds import tile_chain

    return tile_chain.make_task(length, width, mapping, mapped_alpha)
