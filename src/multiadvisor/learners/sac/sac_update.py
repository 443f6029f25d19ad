"""The update: soft actor-critic whose critics may have an output for each advisor, several updates in one call.

A critic is described by its heads. The plain one has a single head, paid the weighted sum of the advisors' rewards and
the entropy. A decomposed one has a head for each advisor and one for the entropy: what the actor will do is the same
for all of them, so that every advisor is empathic. `MODES` says which of them the actor follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.learners.dqn.backend import jax, jnp
from multiadvisor.learners.optimiser import TrainState, better, copied, fresh
from multiadvisor.learners.packed import Packed, on_packed
from multiadvisor.learners.sac.actor_critic import Layers, critic_input, forward, sampled
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.learners.sac.transition_buffer import Columns, Transitions

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


class SACTask(NamedTuple):
    """What an update has to know of the task; arrays, so that another weight needs no new program."""

    weights: Array  # [n]
    gammas: Array  # [n]
    gamma: Array  # of the plain critic and of the entropy


def plain(batch: Transitions, task: SACTask) -> Heads:
    """One head for the weighted sum, entropy included: soft actor-critic as it is known."""
    one = jnp.ones_like(batch.terminated)
    paid = batch.reward * batch.active
    discount = task.gamma * (1.0 - batch.terminated)
    return Heads((paid @ task.weights)[:, None], discount, one, one, one, one[0])


def decomposed(batch: Transitions, task: SACTask) -> Heads:
    """A head for each advisor, and the last one for the entropy."""
    one, zero = jnp.ones_like(batch.terminated), jnp.zeros_like(batch.terminated)

    def beside(advisors: Array, entropy: Array) -> Array:
        return jnp.concatenate([advisors, entropy], axis=1)

    active, following = (one * part for part in (batch.active, batch.next_active))
    weights = task.weights * jnp.ones_like(batch.reward)
    discount = task.gammas * (1.0 - batch.ended) * following
    return Heads(
        beside(batch.reward, zero), beside(discount, task.gamma * (1.0 - batch.terminated)),
        beside(weights * active, one), beside(weights * following, one), beside(active * jnp.ones_like(weights), one),
        jnp.zeros(weights.shape[1] + 1, weights.dtype).at[-1].set(1.0),
    )  # fmt: skip


class Mode(NamedTuple):
    """Which critics there are."""

    control: Callable[[Transitions, SACTask], Heads]
    """What the actor follows: twins of it, of which the lower one counts."""
    beside: Callable[[Transitions, SACTask], Heads] | None = None
    """What only values: a single one, as nothing is maximised over it."""


MODES = {"one": Mode(plain), "shared": Mode(decomposed), "separate": Mode(plain, decomposed)}


def heads_of(kind: Callable[..., Heads], n: int) -> int:
    """How many outputs such a critic has."""
    return 1 if kind is plain else n + 1


class Critic(NamedTuple):
    """A critic, and the slower one that says what follows."""

    learned: TrainState  # Twins
    target: Twins


class SACState(NamedTuple):
    """What the update of actor and critic changes."""

    actor: TrainState  # Layers
    critic: Critic
    temperature: TrainState  # its logarithm []


class Learned(NamedTuple):
    """All that is learned."""

    control: SACState
    beside: Critic | None


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
    return sum(0.5 * jnp.vdot(error, error) for error in errors) / wanted.shape[0]


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


class Program(NamedTuple):
    """The compiled calls; with several runs, all but the task has an axis more, in front."""

    start: Callable[[Layers, Twins], SACState]
    """The state of fresh networks."""
    update: Callable[[Packed, SACTask, Array, Array, Array], tuple[Packed, Array]]
    """K updates of a packed state: rows [K, B, W], noise [K, 2, B, d] and learning rates [K]; their losses summed."""
    start_critic: Callable[[Twins], Critic]
    value: Callable[[Packed, Packed, SACTask, Array, Array, Array], tuple[Packed, Array]]
    """The same for the packed critic beside, of the actor as it is now."""


def program(settings: SAC, columns: Columns, runs: int) -> Program:
    """Compiled once for all agents that learn alike."""
    control = "one" if MODES[settings.critics].control is plain else "shared"
    alike = replace(settings, critics=control, n_envs=1, learning_starts=0, buffer_size=settings.batch_size)
    return _program(alike, columns, runs)


@lru_cache(maxsize=32)
def _program(settings: SAC, columns: Columns, runs: int) -> Program:
    control, every = MODES[settings.critics].control, settings.advisors_train_freq
    slowly = 1.0 - (1.0 - settings.tau) ** every  # of a critic beside: as fast, seen from the episodes
    entropy = -float(columns.dimensions) if settings.target_entropy is None else settings.target_entropy

    def warmth(state: SACState) -> Array:
        return settings.temperature or jnp.exp(state.temperature.networks)

    def valued(
        critic: Critic, heads: Heads, state: SACState, batch: Transitions, noise: Array, rate: Array, tau: float
    ) -> tuple[Critic, Array]:
        """A better critic, and its loss."""
        ahead, log_density = sampled(state.actor.networks, batch.next_observation, noise[1])
        bonus = -warmth(state) * log_density
        wanted = jax.lax.stop_gradient(targets(critic.target, heads, batch.next_observation, ahead, bonus))
        loss, gradient = jax.value_and_grad(critic_loss)(
            critic.learned.networks, heads, batch.observation, batch.action, wanted
        )
        learned = better(critic.learned, gradient, rate)
        target = jax.tree.map(lambda old, new: old + tau * (new - old), critic.target, learned.networks)
        return Critic(learned, target), loss

    def one(state: SACState, task: SACTask, rows: Array, noise: Array, rate: Array) -> tuple[SACState, Array]:
        batch = columns.split(rows)
        heads = control(batch, task)
        critic, loss = valued(state.critic, heads, state, batch, noise, rate, settings.tau)
        (lost, density), gradient = jax.value_and_grad(actor_loss, has_aux=True)(
            state.actor.networks, critic.learned.networks, heads, batch.observation, noise[0], warmth(state)
        )
        temperature = state.temperature
        if not settings.temperature:
            # the derivative of -log(temperature) (density + entropy)
            temperature = better(temperature, -(density + entropy), rate)
        return SACState(better(state.actor, gradient, rate), critic, temperature), loss + lost

    def update(state: SACState, task: SACTask, rows: Array, noise: Array, rates: Array) -> tuple[SACState, Array]:
        state, losses = jax.lax.scan(lambda state, part: one(state, task, *part), state, (rows, noise, rates))
        return state, losses.sum()

    def value(beside: Critic, state: SACState, task: SACTask, rows: Array, noise: Array, rates: Array) -> Any:
        def step(beside: Critic, part: Any) -> tuple[Critic, Array]:
            rows, noise, rate = part
            batch = columns.split(rows)
            return valued(beside, decomposed(batch, task), state, batch, noise, every * rate, slowly)

        beside, losses = jax.lax.scan(step, beside, (rows, noise, rates))
        return beside, losses.sum()

    def start(actor: Layers, critic: Twins) -> SACState:
        first = np.zeros((runs,) if runs > 1 else (), np.float32)
        return SACState(fresh(actor, runs > 1), start_critic(critic), fresh(first, runs > 1))

    def start_critic(critic: Twins) -> Critic:
        return Critic(fresh(critic, runs > 1), copied(critic))

    def for_runs(call: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
        return jax.vmap(call, in_axes=axes) if runs > 1 else call

    return Program(
        start, on_packed(for_runs(update, (0, None, 0, 0, None)), runs > 1), start_critic,
        on_packed(for_runs(value, (0, 0, None, 0, 0, None)), runs > 1),
    )  # fmt: skip
