"""Which setting for a given noise: a rule of thumb, from what the noise does to a wish that is far away.

With a constant step size alpha and noise of standard deviation sigma on every reward, a learned value wanders about its
mean with sigma sqrt(alpha / (2 - alpha)). An egocentric advisor takes the largest of A such values at every step of its
plan, and so hopes for gamma c_A / (1 - gamma) times that in vain (c_A: the mean of the largest of A standard normals).
A goal that is worth `largest` when it is reached, and the wish w from where the agent stands, then differ between two
neighbouring states by (1 - gamma) w (1 - bias / largest). Where that is less than the difference of two values wanders,
the strongest wish is drowned, and a maximum over advisors picks the luckiest. Empathic advisors do not take a maximum
of their own, and hold out longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from multiadvisor.analysis.theory.attractors import critical_gamma
from multiadvisor.analysis.theory.boards import Maze
from multiadvisor.analysis.theory.earning import hope
from multiadvisor.analysis.theory.enumeration import enumerate_task
from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.analysis.theory.solver import Solution, best_actions, fixpoint, solve
from multiadvisor.analysis.theory.ways_out import wishes
from multiadvisor.envs.worlds.maze import maze_of
from multiadvisor.errors import BadInput
from multiadvisor.task import Task

BOARDS = 200  # random ones that are looked at
USUAL = 0.1  # a farther wish than in nine of ten episodes is not counted
ALPHA_HALF = 500_000  # the step size that the report's search has chosen for empathic advisors
FROM = "a rule of thumb for a constant learning rate: noise against far wishes (docs/beyond-the-paper.md); no guarantee"


# ---- what noise does -------------------------------------------------------------------------------------------------
def largest_of(count: int) -> float:
    """c_A: the mean of the largest of so many standard normals.

    >>> [round(largest_of(count), 3) for count in (1, 2, 4)]
    [0.0, 0.564, 1.029]
    """
    at = np.linspace(0.0, 10.0, 4_001)
    half = np.array([0.5 * math.erf(x / math.sqrt(2.0)) for x in at])
    return float(np.trapezoid(1.0 - (0.5 + half) ** count - (0.5 - half) ** count, at))


def wandering(noise: float, alpha: float) -> float:
    """The standard deviation of a value that is learned with a constant step size."""
    return noise * math.sqrt(alpha / (2.0 - alpha))


def maximisation_bias(noise: float, gamma: float, alpha: float, actions: int) -> float:
    """What an egocentric advisor hopes for in vain, far from its goal; infinite where gamma is 1.

    >>> round(maximisation_bias(0.1, 0.9, 0.1, 4), 2)
    0.21
    """
    hoped = gamma * largest_of(actions) * wandering(noise, alpha)
    return hoped / (1.0 - gamma) if gamma < 1.0 else math.inf if hoped else 0.0


def noise_limit(wish: float, largest: float, gamma: float, alpha: float, actions: int) -> float:
    """The noise at which a wish is drowned: (1 - gamma) wish (1 - bias / largest) is what two values wander apart.

    >>> round(noise_limit(0.9 ** 9, 1.0, 0.9, 0.1, 4), 3)
    0.095
    """
    if gamma >= 1.0 or wish <= 0.0:
        return 0.0
    step = (1.0 - gamma) * wish / (math.sqrt(2.0) + gamma * largest_of(actions) * wish / largest)
    return step / wandering(1.0, alpha)


# ---- the wishes of a task --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Wish:
    """What there is to go for in a task."""

    weakest: float
    """The strongest wish, where it is weakest: on the way of most episodes."""
    largest: float
    aggregation: str | None
    """The aggregation that takes the maximum of wishes; None where wishes and fears cannot be told apart."""
    mdp: FiniteMDP | None


def wish_of(task: Task, gamma: float) -> Wish:
    """From the exact values of a task that can be listed, or of random boards of a maze, without its ghosts."""
    if maze_of(task) is not None:
        return _of_boards(task, gamma)
    mdp = enumerate_task(task)
    aggregation = wishes(mdp)
    solution = solve(mdp, "egocentric", gamma, aggregation or "sum")
    own = (mdp.state_weights.T[:, :, None] * solution.values).max(axis=(0, 2))
    worth = own if aggregation is None else hope(solution)  # [S]
    met = _met(solution) & (worth > 0)
    weakest = float(worth[met].min()) if met.any() else 0.0
    return Wish(weakest, float(worth.max(initial=0.0)), aggregation, mdp)


def _met(solution: Solution) -> np.ndarray:
    """[S] bool: the states that greedy episodes may come to, ties taken either way."""
    mdp, greedy = solution.mdp, best_actions(solution.preferences)
    leads = (mdp.probability > 0) & ~mdp.final & greedy[:, :, None]  # [S, A, K]

    def one_further(met: np.ndarray) -> np.ndarray:
        more = met.copy()
        more[mdp.successor[leads & met[:, None, None]]] = True
        return more

    return fixpoint(one_further, mdp.start > 0)


def _of_boards(task: Task, gamma: float) -> Wish:
    """The weakest wish that is followed in an episode, as it is in most of many episodes."""
    maze = Maze(task)
    worth = maze.weights[:, None] * maze.worth(gamma, np.maximum(maze.distances - 1, 0))
    weakest = []
    for k, fruit in enumerate(maze.random_boards(BOARDS)):
        cell, left, least = int(task.initial_state(k)[0]), fruit.copy(), math.inf
        while left.any():
            wished = np.where(left, worth[:, cell], -np.inf)
            first = int(wished.argmax())
            cell, least, left[first] = int(maze.world.fruit_cell[first]), min(least, float(wished[first])), False
        weakest.append(least)
    aggregation = "max" if not maze.ghosts else "fruits=max"
    return Wish(float(np.quantile(weakest, USUAL)), float(worth.max()), aggregation, None)


# ---- what to use -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Choice:
    """Which setting to use for a task and a noise, and the numbers behind it."""

    task: str
    noise: float
    gamma: float
    alpha: float
    use: str
    """The flags."""
    why: str
    limit: float
    """Up to this noise egocentric advisors tell their wishes apart."""
    bias: float | None
    """What they hope for in vain at this noise; None where it is infinite."""
    weakest: float
    largest: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.__dict__, "from": FROM}

    def __str__(self) -> str:
        return f"{self.task}, noise {self.noise:g}, gamma = {self.gamma:g}\nuse {self.use}\n{self.why}\n({FROM})"


def choose(task: Task, noise: float, gamma: float = 0.9, alpha: float = 0.1) -> Choice:
    """Egocentric or empathic advisors, aggregated by a maximum or by the paper's sum.

    >>> import multiadvisor as mad
    >>> [choose(mad.make("three-fruits"), noise).use for noise in (0.0, 0.5)]
    ['--planning egocentric --aggregation max', '--planning empathic --aggregation max --alpha-half 500000']
    """
    if not (math.isfinite(noise) and noise >= 0):
        raise BadInput(f"noise is {noise:g}: give a number of at least 0")
    wish = wish_of(task, gamma)
    if wish.weakest <= 0:
        raise BadInput(f"nobody has anything to wish for in {task.name!r}, so that no noise can drown it: any will do")
    actions = len(task.actions)
    limit = noise_limit(wish.weakest, wish.largest, gamma, alpha, actions)
    bias = maximisation_bias(noise, gamma, alpha, actions)
    calm = noise <= limit
    followed = (
        f"a wish of {wish.weakest:.3g} has to be followed (the largest is {wish.largest:.3g}); egocentric advisors "
        f"can tell where it leads up to noise {limit:.2g}"
    )
    if wish.aggregation is not None:
        use = "egocentric" if calm else "empathic"
        cooling = "" if calm else f" --alpha-half {ALPHA_HALF}"
        flags = f"--planning {use} --aggregation {wish.aggregation}{cooling}"
        end = "and this is less" if calm else f"and here hope for {bias:.2g} in vain, so that a maximum errs"
    else:
        flags, end = _papers(wish, gamma, calm)
    kept = bias if math.isfinite(bias) else None
    return Choice(task.name, noise, gamma, alpha, flags, f"{followed}, {end}", limit, kept, wish.weakest, wish.largest)


def _papers(wish: Wish, gamma: float, calm: bool) -> tuple[str, str]:
    """Where wishes and fears cannot be told apart a maximum is out of the question: one of the paper's two."""
    why = "and an advisor has rewards of both signs, so that the sum is the way to hear it"
    assert wish.mdp is not None
    own = any(one is not None for one in wish.mdp.gammas)
    stuck = None if own else critical_gamma(wish.mdp, "stuck")
    if calm and not own and (stuck is None or stuck > gamma):
        return "--planning egocentric --aggregation sum", f"{why}; it is not stuck at this gamma"
    return "--planning empathic --aggregation sum", why if calm else f"beyond which a maximum errs, {why}"
