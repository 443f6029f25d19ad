"""Tasks in emulators of old machines: their names and options. What they need is loaded when one is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from multiadvisor.envs.registry import register_task
from multiadvisor.task import Task

MS_PACMAN: dict[str, Any] = {
    "planning": "agnostic", "gamma": 0.99, "aggregation": "normalised", "epsilon": 0.03, "steps": 300_000,
    "eval_every": 20_000, "eval_episodes": 4,
}  # fmt: skip


@register_task("ms-pacman", environment="multiadvisor.envs.worlds.atari.emulator:MsPacman", defaults=MS_PACMAN)
def ms_pacman(
    without: str = "", spare: bool = True, lure: int = 0, doubt: float = 0.0, explore: int = 12_000,
    sweeps: int = 10, restless: float = 0.03, sticky: float = 0.25, limit: int = 27_000, emulators: int = 1,
) -> Task:  # fmt: skip
    """Atari's Ms. Pac-Man in an emulator, seen through its memory: pellets, pills, fruit and ghosts are advisors.

    without: a group that is left out, or several with commas between them.
    spare: leave power pills where they are while there are ghosts to be eaten.
    lure: hunting ghosts that have to be near before a power pill is worth going for.
    doubt: steps before a ghost can be in a cell for which it is ever less safe; 0: it is lost 3 steps before.
    explore: steps in a maze in which the frontier of what was never tried is heard.
    sweeps: how often all that was observed is replayed after each episode.
    restless: the probability of a random action in evaluation as well, while no ghost is near.
    sticky: the probability that the machine repeats the last action.
    limit: episodes are cut off after this many steps of four frames.
    emulators: episodes that are played at the same time while learning, each in a process of its own.
    """
    from multiadvisor.envs.worlds.atari import ms_pacman

    task = ms_pacman.make_task(without, spare, lure, doubt, explore, sweeps, restless, sticky, limit, emulators)
    return replace(task, defaults=MS_PACMAN)
