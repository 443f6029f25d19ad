"""The update: soft actor-critic whose critics may have an output for each advisor, several updates in one call.

A critic is described by its heads. The plain one has a single head, paid the weighted sum of the advisors' rewards and
the entropy. A decomposed one has a head for each advisor and one for the entropy: what the actor will do is the same
for all of them, so that every advisor is empathic. `MODES` says which of them the actor follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.continuous.memory import Columns
from multiadvisor.continuous.networks import Layers, critic_input, forward, sampled
from multiadvisor.deep.backend import jax, jnp, optax
from multiadvisor.settings import ContinuousSettings

Array = Any
Twins = tuple[Layers, ...]


class Heads(NamedTuple):
    """What a batch asks of a critic with H heads."""

    reward: Array  # [B, H]
    discount: Array  # [B, H] of what follows; 0 where nothing does
    mix: Array  # [B, H] how the heads add up to what the actor follows
    next_mix: Array  # [B, H] and in the next state
    active: Array  # [B, H] 0 where a head learns nothing
    entropy: Array  # [H] 1 for the head that is paid the entropy


class Task(NamedTuple):
    """What an update has to know of the task; arrays, so that another weight needs no new program."""

    weights: Array  # [n]
    gammas: Array  # [n]
    gamma: Array  # of the plain critic and of the entropy


def plain(columns: Columns, rows: Array, task: Task) -> Heads:
    """One head for the weighted sum, entropy included: soft actor-critic as it is known."""
    one = jnp.ones((rows.shape[0], 1), rows.dtype)
    paid = columns.reward(rows) * columns.active(rows)
    discount = task.gamma * (1.0 - columns.terminated(rows))
    return Heads((paid @ task.weights)[:, None], discount, one, one, one, jnp.ones(1, rows.dtype))


def decomposed(columns: Columns, rows: Array, task: Task) -> Heads:
    """A head for each advisor, and the last one for the entropy."""
    one, zero = jnp.ones((rows.shape[0], 1), rows.dtype), jnp.zeros((rows.shape[0], 1), rows.dtype)

    def beside(advisors: Array, entropy: Array) -> Array:
        return jnp.concatenate([advisors, entropy], axis=1)

    active, following = (one * part for part in (columns.active(rows), columns.next_active(rows)))
    weights = task.weights * jnp.ones_like(columns.reward(rows))
    discount = task.gammas * (1.0 - columns.ended(rows)) * following
    return Heads(
        beside(columns.reward(rows), zero), beside(discount, task.gamma * (1.0 - columns.terminated(rows))),
        beside(weights * active, one), beside(weights * following, one), beside(active * jnp.ones_like(weights), one),
        jnp.zeros(weights.shape[1] + 1, rows.dtype).at[-1].set(1.0),
    )  # fmt: skip


class Mode(NamedTuple):
    """Which critics there are."""

    control: Callable[[Columns, Array, Task], Heads]
    """What the actor follows: twins of it, of which the lower one counts."""
    beside: Callable[[Columns, Array, Task], Heads] | None = None
    """What only values: a single one, as nothing is maximised over it."""


MODES = {"one": Mode(plain), "shared": Mode(decomposed), "beside": Mode(plain, decomposed)}


def heads_of(kind: Callable[..., Heads], n: int) -> int:
    """How many outputs such a critic has."""
    return 1 if kind is plain else n + 1


class Learned(NamedTuple):
    """Networks with their optimiser."""

    networks: Any
    optimiser: Any


class State(NamedTuple):
    """What learning changes."""

    actor: Learned  # Layers
    critic: Learned  # Twins
    target: Twins
    beside: Learned  # Twins: none, or one
    beside_target: Twins
    temperature: Learned  # its logarithm []


def targets(twins: Twins, heads: Heads, observation: Array, action: Array, bonus: Array) -> Array:
    """What each head should say, [B, H]: all of them follow the twin whose weighted sum is lower.

    (The lowest of each head by itself would belong to no policy at all.) `bonus` [B] is paid for the entropy.
    """
    values = [forward(twin, critic_input(observation, action)) for twin in twins]  # [B, H] each
    follows = values[0]
    for other in values[1:]:
        lower = ((other - follows) * heads.next_mix).sum(axis=1, keepdims=True) < 0
        follows = jnp.where(lower, other, follows)
    return heads.reward + heads.discount * (follows + bonus[:, None] * heads.entropy)


def critic_loss(twins: Twins, heads: Heads, observation: Array, action: Array, wanted: Array) -> Array:
    """Half the squared error, summed over heads and twins."""
    errors = [(forward(twin, critic_input(observation, action)) - wanted) * heads.active for twin in twins]
    return sum(0.5 * jnp.square(error).sum(axis=1).mean() for error in errors)


def actor_loss(
    actor: Layers, twins: Twins, heads: Heads, observation: Array, noise: Array, temperature: Array
) -> tuple[Array, Array]:
    """What is lost by acting so, less the entropy; and the mean logarithm of the density."""
    action, log_density = sampled(actor, observation, noise)
    sums = [(forward(twin, critic_input(observation, action)) * heads.mix).sum(axis=1) for twin in twins]
    lower = sums[0]
    for other in sums[1:]:
        lower = jnp.minimum(lower, other)
    return (temperature * log_density - lower).mean(), log_density.mean()


Updater = Callable[[State, Task, Array, Array, Array], tuple[State, Array]]


def make_update(
    settings: ContinuousSettings, columns: Columns, runs: int
) -> tuple[Callable[[Layers, Twins, Twins], State], Updater]:
    """(start, update): the state of fresh networks, and K updates in one compiled call.

    `update(state, task, rows [K, B, W], noise [K, 2, B, d], first)` makes the updates number `first` and on, and gives
    their losses summed; with several runs rows, noise and losses have an axis more, in front, and so has the state.
    """
    key = (settings, columns, runs > 1)
    if key not in _MADE:
        while len(_MADE) >= _MOST_MADE:
            del _MADE[next(iter(_MADE))]
        _MADE[key] = _make_update(settings, columns, runs)
    return _MADE[key]


_MADE: dict[Any, tuple[Callable[[Layers, Twins, Twins], State], Updater]] = {}
_MOST_MADE = 32


def _make_update(
    settings: ContinuousSettings, columns: Columns, runs: int
) -> tuple[Callable[[Layers, Twins, Twins], State], Updater]:
    adam, mode, tau = optax.adam(settings.learning_rate), MODES[settings.critics], settings.tau
    entropy = -float(columns.dimensions) if settings.target_entropy is None else settings.target_entropy

    def better(learned: Learned, gradient: Any) -> Learned:
        change, optimiser = adam.update(gradient, learned.optimiser, learned.networks)
        return Learned(optax.apply_updates(learned.networks, change), optimiser)

    def nearer(target: Twins, twins: Twins) -> Twins:
        return jax.tree.map(lambda old, new: old + tau * (new - old), target, twins)

    def one(state: State, task: Task, rows: Array, noise: Array, number: Array) -> tuple[State, Array]:
        observation, following = columns.observation(rows), columns.next_observation(rows)
        action, heads = columns.action(rows), mode.control(columns, rows, task)
        temperature = jnp.exp(state.temperature.networks) if not settings.temperature else settings.temperature
        ahead, log_density = sampled(state.actor.networks, following, noise[1])
        bonus = -temperature * log_density

        def valued(critic: Learned, target: Twins, heads: Heads) -> tuple[Learned, Array]:
            wanted = jax.lax.stop_gradient(targets(target, heads, following, ahead, bonus))
            loss, gradient = jax.value_and_grad(critic_loss)(critic.networks, heads, observation, action, wanted)
            return better(critic, gradient), loss

        critic, loss = valued(state.critic, state.target, heads)
        (lost, density), gradient = jax.value_and_grad(actor_loss, has_aux=True)(
            state.actor.networks, critic.networks, heads, observation, noise[0], temperature
        )
        actor = better(state.actor, gradient)
        warmth = state.temperature
        if not settings.temperature:
            warmth = better(warmth, -(density + entropy))  # the derivative of -log(temperature) (density + entropy)
        beside, beside_target, extra = state.beside, state.beside_target, jnp.zeros(())
        if mode.beside is not None:
            own = mode.beside(columns, rows, task)

            def value() -> tuple[Learned, Twins, Array]:
                learned, loss = valued(state.beside, state.beside_target, own)
                return learned, nearer(state.beside_target, learned.networks), loss

            due = number % settings.beside_every == 0
            beside, beside_target, extra = jax.lax.cond(
                due, value, lambda: (state.beside, state.beside_target, jnp.zeros(()))
            )
        target = nearer(state.target, critic.networks)
        return State(actor, critic, target, beside, beside_target, warmth), loss + lost + extra

    def several(state: State, task: Task, rows: Array, noise: Array, first: Array) -> tuple[State, Array]:
        def step(state: State, part: Any) -> tuple[State, Array]:
            return one(state, task, *part)

        numbers = first + jnp.arange(rows.shape[0])
        state, losses = jax.lax.scan(step, state, (rows, noise, numbers))
        return state, losses.sum()

    def start(actor: Layers, critic: Twins, beside: Twins) -> State:
        def fresh(networks: Any) -> Learned:
            networks = jax.tree.map(jnp.array, networks)
            init = jax.vmap(adam.init, axis_size=runs) if runs > 1 else adam.init
            return Learned(networks, init(networks))

        def copied(networks: Any) -> Any:  # the buffers of the state are given away, and none may be given twice
            return jax.tree.map(jnp.array, networks)

        first = np.zeros((runs,) if runs > 1 else (), np.float32)
        return State(fresh(actor), fresh(critic), copied(critic), fresh(beside), copied(beside), fresh(first))

    update = several if runs == 1 else jax.vmap(several, in_axes=(0, None, 0, 0, None))
    return start, jax.jit(update, donate_argnums=0)
