"""The compiled world of finite MDPs given as arrays: the gadgets of the theory, and anything small enough to list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from multiadvisor.core.compiling import compiled
from multiadvisor.core.rng import WORLD, draw, uniform
from multiadvisor.task import Listing, World


class FiniteConstants(NamedTuple):
    """Transitions as rows of outcomes: outcome k of (state, action) has the next state, the rewards and the end."""

    start: np.ndarray  # [states] cumulative probability of the first state
    cumulative: np.ndarray  # [states, actions, outcomes] cumulative probability
    successor: np.ndarray  # [states, actions, outcomes] the next state
    reward: np.ndarray  # [states, actions, outcomes, n]
    final: np.ndarray  # [states, actions, outcomes] 1 where the episode ends
    local: np.ndarray  # [n, states] phi_j, or -1 where advisor j's own part is over


@compiled
def reset(world, x, key):
    """Draw the first state."""
    chance = uniform(draw(key, WORLD))
    state = 0
    while chance >= world.start[state]:
        state += 1
    x[0] = state


@compiled
def begin(world, x, advisors):
    """The advisors whose own part is not over."""
    m = 0
    for j in range(world.local.shape[0]):
        if world.local[j, x[0]] >= 0:
            advisors[m] = j
            m += 1
    return m


@compiled
def local_states(world, x, advisors, m, local):
    """phi_j by table."""
    for i in range(m):
        local[i] = world.local[advisors[i], x[0]]


@compiled
def step(world, x, action, key, advisors, m, reward, ended):
    """Draw an outcome."""
    chance = uniform(draw(key, WORLD))
    state, outcome = x[0], 0
    while chance >= world.cumulative[state, action, outcome]:
        outcome += 1
    arrived = world.successor[state, action, outcome]
    for i in range(m):
        reward[i] = world.reward[state, action, outcome, advisors[i]]
        ended[i] = 1 if world.local[advisors[i], arrived] < 0 else 0
    x[0] = arrived
    return world.final[state, action, outcome] == 1


# ---- what a listed world answers besides -----------------------------------------------------------------------------
def listing(world: FiniteConstants) -> Listing:
    """All of it."""
    start, probability = (np.diff(rising, axis=-1, prepend=0.0) for rising in (world.start, world.cumulative))
    return Listing(start, probability, world.successor, world.reward, world.final == 1, world.local)


def world_of(constants: FiniteConstants) -> World:
    """The world with these constants."""
    paid = constants.reward.reshape(-1, constants.reward.shape[-1])
    bounds = np.stack([np.minimum(paid.min(axis=0), 0.0), np.maximum(paid.max(axis=0), 0.0)], axis=1)
    return World(
        constants, 1, reset, begin, local_states, step, (len(constants.start),), listing=listing, bounds=bounds
    )
