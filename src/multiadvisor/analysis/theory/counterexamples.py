"""Small worlds in which a promise fails: what `max` cannot do, each with the numbers that show it."""

from __future__ import annotations

import numpy as np

from multiadvisor.analysis.theory.mdp import FiniteMDP
from multiadvisor.errors import BadInput


def gate(toll: float = 0.5) -> FiniteMDP:
    """A fear that holds a wish for ever: a gate costs `toll`, and behind it 1 is waiting.

    The wish believes that it passes next step if not now, the fear that it never passes. To the sum of both waiting is
    worth gamma^2, going gamma - toll: they wait for ever where toll > gamma - gamma^2, and going is the optimum where
    toll < gamma.
    """
    transition = np.zeros((2, 2, 2))  # [state, action, next state]
    transition[[0, 1], 0, [0, 1]] = transition[0, 1, 1] = 1.0
    reward = np.zeros((2, 2, 2))  # [advisor, state, action]
    reward[0, 1, 1], reward[1, 0, 1] = 1.0, -toll
    return FiniteMDP.from_arrays(
        transition, reward, end=np.array([[0, 0], [0, 1]]), name="gate", actions=("wait", "go"),
        advisors=("treasure", "toll"), groups=("wishes", "fears"),
    )  # fmt: skip


def slippery(success: float = 0.1) -> FiniteMDP:
    """Chance breaks the bound on steps: each try at a climb succeeds with this probability; at the top 1 is waiting.

    At gamma = 0.9 and success = 0.1 the bound would be 8 steps. The mean is 11, and nothing limits the worst.
    """
    _check(success)
    transition = np.zeros((2, 1, 2))
    transition[0, 0] = 1.0 - success, success
    return FiniteMDP.from_arrays(
        transition, np.array([[[0.0], [1.0]]]), end=np.array([[0], [1]]), name="slippery", actions=("climb",),
        advisors=("flag",),
    )  # fmt: skip


def gamble(luck: float = 0.5) -> FiniteMDP:
    """Chance breaks "always": a jump leads to the treasure with this probability, else into a pit; the stairs are long.

    At gamma = 0.9 and luck = 0.5 the jump is worth 0.45, the ten stairs 0.9^10 = 0.35. Who jumps into the pit never
    earns anything; the probability of earning is exactly what is left of the bound, M(x) / max M, over gamma.
    """
    _check(luck)
    stairs = 10  # states: 0 the start, 1 .. 9 stairs, 10 the treasure's room, 11 the pit
    transition = np.zeros((stairs + 2, 2, stairs + 2))
    for state in range(stairs):
        transition[state, :, state + 1] = 1.0
    transition[0, 1] = 0.0
    transition[0, 1, [stairs, stairs + 1]] = luck, 1.0 - luck
    transition[stairs + 1, :, stairs + 1] = 1.0
    reward, end = np.zeros((1, stairs + 2, 2)), np.zeros((stairs + 2, 2))
    reward[0, stairs] = end[stairs] = 1.0
    return FiniteMDP.from_arrays(
        transition, reward, end=end, name="gamble", actions=("walk", "jump"), advisors=("treasure",)
    )


def shared_meal(guests: int = 3, alone: float = 1.0, together: float = 0.9) -> FiniteMDP:
    """A synergy that a maximum does not see: one action pays one advisor 1, another pays each of the guests 0.9."""
    reward = np.zeros((1 + guests, 1, 2))
    reward[0, 0, 0], reward[1:, 0, 1] = alone, together
    return FiniteMDP.from_arrays(
        np.zeros((1, 2, 1)), reward, end=np.ones((1, 2)), name="shared-meal", actions=("alone", "together"),
        advisors=("host", *(f"guest {k + 1}" for k in range(guests))),
    )  # fmt: skip


def _check(probability: float) -> None:
    if not 0.0 < probability < 1.0:
        raise BadInput(f"the probability is {probability}: give one between 0 and 1")
