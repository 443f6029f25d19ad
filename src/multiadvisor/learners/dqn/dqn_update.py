"""The update: from a batch of transitions to better networks, in one compiled call.

What is special to multi-advisor learning is `bootstrap`, on one transition; the rest is deep Q-learning as usual, with
one output for each advisor. With a single advisor it is DQN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregations import behaviour, greedy
from multiadvisor.core.aggregator import Aggregator
from multiadvisor.core.plannings import Ahead, Planning
from multiadvisor.learners.dqn.backend import jax, jnp, optax
from multiadvisor.learners.dqn.dqn_settings import DQN
from multiadvisor.learners.dqn.network import Network
from multiadvisor.learners.dqn.own_output import OwnOutput
from multiadvisor.learners.optimiser import TrainState, better, copied, fresh

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


class DQNState(NamedTuple):
    """What learning changes."""

    learned: TrainState  # Network
    target: Network
    updates: Array  # how many were made

    @property
    def network(self) -> Network:
        """The one that learns."""
        found: Network = self.learned.networks
        return found


class Rules(NamedTuple):
    """How the network's advisors plan and are aggregated."""

    plannings: tuple[Planning, ...]  # [n]
    aggregator: Aggregator
    weights: tuple[float, ...]  # [n]
    epsilon: float
    own: OwnOutput | None = None
    """How the last advisor learns, where it is the aggregator's own."""


def bootstrap(rules: Rules, judge: Array, value: Array, active: Array) -> Array:
    """What each advisor expects of the next state, [n].

    `judge` [n, A] decides which actions follow and `value` [n, A] what they are worth: the same network's advice, or
    two networks' in double Q-learning.
    """
    preferences = rules.aggregator.prefer(judge, jnp.asarray(rules.weights, judge.dtype) * active)
    ahead = Ahead(greedy(preferences, 0.0), behaviour=behaviour(preferences, rules.epsilon))
    kinds = tuple(dict.fromkeys(rules.plannings))
    policy = kinds[0](judge, ahead)  # [n, A]
    for kind in kinds[1:]:
        own = np.array([planning == kind for planning in rules.plannings])[:, None]
        policy = jnp.where(own, kind(judge, ahead), policy)
    follows = (policy * value).sum(axis=1)
    if rules.own is None:
        return follows
    return follows.at[-1].set(rules.own.expects(rules, value, active, ahead.greedy))


def paid(rules: Rules, batch: Batch, follows: Array) -> Array:
    """The rewards [S, B, n]."""
    if rules.own is None:
        return batch.reward
    return jnp.concatenate([batch.reward[..., :-1], rules.own.earns(rules, batch, follows)], axis=-1)


def losses(network: Network, target: Network, batch: Batch, rules: Rules, double: bool, huber: bool) -> Array:
    """The loss of every run and advisor, [S, n]."""
    value = target(batch.next_observation)  # [S, B, n, A]
    judge = jax.lax.stop_gradient(network(batch.next_observation)) if double else value
    follows = jax.vmap(jax.vmap(partial(bootstrap, rules)))(judge, value, batch.next_active)
    wanted = jax.lax.stop_gradient(paid(rules, batch, follows) + batch.discount * follows)  # [S, B, n]
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
    found: Network = jax.tree.map(lambda leaf: leaf * factor.reshape(-1, *(1,) * (leaf.ndim - 1)), gradient)
    return found


Updater = Callable[[DQNState, Batch, Array], tuple[DQNState, Array]]


def make_update(deep: DQN, rules: Rules) -> tuple[Callable[[Network], DQNState], Updater]:
    """(start, update): the state of a fresh network, and K updates on a batch [K, S, B, ...] in one compiled call.

    `update` takes the learning rates [K] besides, so that those may change, and also returns the losses of the K
    updates summed, [S, n]. Agents that learn alike share it, compiled once.
    """
    alike: Any = rules.aggregator.parts, tuple(rules.aggregator.of.tolist())  # arrays cannot be looked up
    return _make_update(deep, rules._replace(aggregator=alike))


@lru_cache(maxsize=32)
def _make_update(deep: DQN, known: Any) -> tuple[Callable[[Network], DQNState], Updater]:
    rules = known._replace(aggregator=Aggregator(known.aggregator[0], np.array(known.aggregator[1])))
    huber, step = deep.loss == "huber", jax.vmap(better, in_axes=(0, 0, None))

    def total(network: Network, target: Network, batch: Batch) -> tuple[Array, Array]:
        each = losses(network, target, batch, rules, deep.double, huber)
        return each.sum(), each

    def one(state: DQNState, part: tuple[Batch, Array]) -> tuple[DQNState, Array]:
        batch, rate = part
        (_, each), gradient = jax.value_and_grad(total, has_aux=True)(state.network, state.target, batch)
        if deep.clip_norm:
            gradient = clipped(gradient, deep.clip_norm)
        learned, updates = step(state.learned, gradient, rate), state.updates + 1
        due = updates % deep.target_update_interval == 0  # chosen value by value: a GPU would wait for a branch
        target = jax.tree.map(partial(jnp.where, due), learned.networks, state.target)
        return DQNState(learned, target, updates), each

    def update(state: DQNState, batch: Batch, rates: Array) -> tuple[DQNState, Array]:
        state, each = jax.lax.scan(one, state, (batch, rates))
        return state, each.sum(axis=0)

    def start(network: Network) -> DQNState:
        return DQNState(fresh(network, True), copied(network), jnp.zeros((), jnp.int32))

    return start, jax.jit(update, donate_argnums=0)
