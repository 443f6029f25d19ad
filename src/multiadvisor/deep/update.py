"""The update: from a batch of transitions to better networks, in one compiled call.

What is special to multi-advisor learning is `bootstrap`, on one transition; the rest is deep Q-learning as usual, with
one output for each advisor. With a single advisor it is DQN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.aggregation import greedy, weighted_sum
from multiadvisor.deep.backend import jax, jnp, optax
from multiadvisor.deep.network import Network
from multiadvisor.planning import Planning, planning_named
from multiadvisor.settings import DeepSettings, Settings

Array = Any


class Batch(NamedTuple):
    """Transitions, with the axes [K, S, B] in front: K updates, S runs, B samples."""

    observation: Array  # [..., *shape]
    action: Array  # [...] int32
    reward: Array  # [..., n] discounted and summed over the steps until next_observation
    discount: Array  # [..., n] of the value there: gamma_j ** steps, or 0 where nothing follows for advisor j
    next_observation: Array  # [..., *shape]
    active: Array  # [..., n] 1 where the advisor has a say, and learns
    next_active: Array  # [..., n]


class State(NamedTuple):
    """What learning changes."""

    network: Network
    target: Network
    optimiser: Any
    updates: Array  # how many were made


def bootstrap(planning: Planning, weights: Array, judge: Array, value: Array, active: Array) -> Array:
    """What each advisor expects of the next state, [n].

    `judge` [n, A] decides which actions follow and `value` [n, A] what they are worth: the same network's advice, or
    two networks' in double Q-learning. A planning is linear in the advice once the actions are chosen, so that its
    gradient is the policy it expects: the chosen actions' one-hot, or the uniform one.
    """
    action = greedy(weighted_sum(judge, weights * active), 0.0)
    if judge is value:
        return planning(value, action)
    policy = jax.grad(lambda advice: planning(advice, action).sum())(judge)  # [n, A]
    return (policy * value).sum(axis=1)


def losses(
    network: Network, target: Network, batch: Batch, weights: Array, planning: Planning, double: bool, huber: bool
) -> Array:
    """The loss of every run and advisor, [S, n]."""
    value = target(batch.next_observation)  # [S, B, n, A]
    judge = jax.lax.stop_gradient(network(batch.next_observation)) if double else value
    expect = partial(bootstrap, planning, weights)
    if not double:
        follows = jax.vmap(jax.vmap(lambda advice, active: expect(advice, advice, active)))(value, batch.next_active)
    else:
        follows = jax.vmap(jax.vmap(expect))(judge, value, batch.next_active)
    wanted = jax.lax.stop_gradient(batch.reward + batch.discount * follows)  # [S, B, n]
    advice = network(batch.observation)  # [S, B, n, A]
    chosen = jnp.take_along_axis(advice, batch.action[:, :, None, None], axis=3)[..., 0]  # [S, B, n]
    error = chosen - wanted
    each = optax.huber_loss(error) if huber else jnp.square(error)
    return (each * batch.active).mean(axis=1)


def clipped(gradient: Network, limit: float) -> Network:
    """The gradient, at most so long; each run by itself."""
    squares = [jnp.square(leaf).sum(axis=tuple(range(1, leaf.ndim))) for leaf in jax.tree.leaves(gradient)]
    norm = jnp.sqrt(sum(squares))  # [S]
    factor = jnp.minimum(1.0, limit / (norm + 1e-6))
    return jax.tree.map(lambda leaf: leaf * factor.reshape(-1, *(1,) * (leaf.ndim - 1)), gradient)


Updater = Callable[[State, Batch], tuple[State, Array]]


def make_update(settings: Settings, weights: np.ndarray) -> tuple[Callable[[Network], State], Updater]:
    """(start, update): the state of a fresh network, and K updates on a batch [K, S, B, ...] in one compiled call.

    `update` also returns the losses of the K updates summed, [S, n]. Agents that learn alike share it, compiled once.
    """
    assert settings.deep is not None
    return _make_update(settings.planning, settings.deep, tuple(weights.tolist()))


@lru_cache(maxsize=32)
def _make_update(
    planning_name: str, deep: DeepSettings, weights: tuple[float, ...]
) -> tuple[Callable[[Network], State], Updater]:
    adam = optax.adam(deep.learning_rate)
    planning = planning_named(planning_name)
    huber, weight = deep.loss == "huber", jnp.asarray(weights, jnp.float32)

    def total(network: Network, target: Network, batch: Batch) -> tuple[Array, Array]:
        each = losses(network, target, batch, weight, planning, deep.double, huber)
        return each.sum(), each

    def one(state: State, batch: Batch) -> tuple[State, Array]:
        (_, each), gradient = jax.value_and_grad(total, has_aux=True)(state.network, state.target, batch)
        if deep.clip_norm:
            gradient = clipped(gradient, deep.clip_norm)
        change, optimiser = adam.update(gradient, state.optimiser, state.network)
        network = optax.apply_updates(state.network, change)
        updates = state.updates + 1
        target = jax.lax.cond(updates % deep.target_every == 0, lambda: network, lambda: state.target)
        return State(network, target, optimiser, updates), each

    def update(state: State, batch: Batch) -> tuple[State, Array]:
        state, each = jax.lax.scan(one, state, batch)
        return state, each.sum(axis=0)

    def start(network: Network) -> State:
        network = jax.tree.map(jnp.asarray, network)
        # a copy: the buffers of the state are given away at every update, and none may be given twice
        return State(network, jax.tree.map(jnp.array, network), adam.init(network), jnp.zeros((), jnp.int32))

    return start, jax.jit(update, donate_argnums=0)
