"""The update: soft actor-critic whose critics may have an output for each advisor, several updates in one call.

A critic is described by its heads. The plain one has a single head, paid the weighted sum of the advisors' rewards and
the entropy. A decomposed one has a head for each advisor and one for the entropy: what the actor will do is the same
for all of them, so that every advisor is empathic. `MODES` says which of them the actor follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.learners.dqn.backend import jax, jnp, optax
from multiadvisor.learners.sac.actor_critic import Layers, critic_input, forward, sampled
from multiadvisor.learners.sac.packing import Layout, PackedTree
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.learners.sac.transition_buffer import Columns

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


MODES = {"one": Mode(plain), "shared": Mode(decomposed), "separate": Mode(plain, decomposed)}


def heads_of(kind: Callable[..., Heads], n: int) -> int:
    """How many outputs such a critic has."""
    return 1 if kind is plain else n + 1


class TrainState(NamedTuple):
    """Networks with their optimiser."""

    networks: Any
    optimiser: Any


class State(NamedTuple):
    """What the update of actor and critic changes."""

    actor: TrainState  # Layers
    critic: TrainState  # Twins
    target: Twins
    temperature: TrainState  # its logarithm []


class SeparateCritic(NamedTuple):
    """And what the update of a critic beside changes."""

    critic: TrainState  # Twins: a single one
    target: Twins


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


class Pace(NamedTuple):
    """How fast a critic learns, and its target follows."""

    rate: Array  # []
    tau: float


class Program(NamedTuple):
    """The compiled calls; with several runs, all but the task has an axis more, in front."""

    start: Callable[[Layers, Twins], State]
    """The state of fresh networks."""
    update: Callable[[Layout, PackedTree, Task, Array, Array, Array], tuple[PackedTree, Array]]
    """K updates of a packed State: rows [K, B, W], noise [K, 2, B, d] and learning rates [K]; their losses summed."""
    start_beside: Callable[[Twins], SeparateCritic]
    value: Callable[[Layout, Layout, PackedTree, PackedTree, Task, Array, Array, Array], tuple[PackedTree, Array]]
    """The same for the critic beside (the second of each), of the actor as it is now (the first of each)."""


def program(settings: SAC, columns: Columns, runs: int) -> Program:
    """Compiled once for all agents that learn alike."""
    control = "one" if MODES[settings.critics].control is plain else "shared"
    key = (
        replace(settings, critics=control, n_envs=1, learning_starts=0, buffer_size=settings.batch_size),
        columns,
        runs,
    )
    if key not in _MADE:
        while len(_MADE) >= _MOST_MADE:
            del _MADE[next(iter(_MADE))]
        _MADE[key] = _program(*key)
    return _MADE[key]


_MADE: dict[Any, Program] = {}
_MOST_MADE = 32


def _program(settings: SAC, columns: Columns, runs: int) -> Program:
    adam = optax.flatten(optax.scale_by_adam())  # one long vector is faster than many short ones
    control, every = MODES[settings.critics].control, settings.advisors_train_freq
    slowly = 1.0 - (1.0 - settings.tau) ** every  # of a critic beside: as fast, seen from the episodes
    entropy = -float(columns.dimensions) if settings.target_entropy is None else settings.target_entropy

    def better(learned: TrainState, gradient: Any, rate: Array) -> TrainState:
        change, optimiser = adam.update(gradient, learned.optimiser, learned.networks)
        return TrainState(jax.tree.map(lambda old, step: old - rate * step, learned.networks, change), optimiser)

    def nearer(target: Twins, twins: Twins, step: float) -> Twins:
        moved: Twins = jax.tree.map(lambda old, new: old + step * (new - old), target, twins)
        return moved

    def warmth(state: State) -> Array:
        return settings.temperature or jnp.exp(state.temperature.networks)

    def valued(
        critic: TrainState, target: Twins, heads: Heads, state: State, rows: Array, noise: Array, pace: Pace
    ) -> tuple[TrainState, Twins, Array]:
        """A better critic, its target and its loss."""
        following = columns.next_observation(rows)
        ahead, log_density = sampled(state.actor.networks, following, noise[1])
        wanted = jax.lax.stop_gradient(targets(target, heads, following, ahead, -warmth(state) * log_density))
        loss, gradient = jax.value_and_grad(critic_loss)(
            critic.networks, heads, columns.observation(rows), columns.action(rows), wanted
        )
        critic = better(critic, gradient, pace.rate)
        return critic, nearer(target, critic.networks, pace.tau), loss

    def one(state: State, task: Task, rows: Array, noise: Array, rate: Array) -> tuple[State, Array]:
        heads = control(columns, rows, task)
        critic, target, loss = valued(state.critic, state.target, heads, state, rows, noise, Pace(rate, settings.tau))
        (lost, density), gradient = jax.value_and_grad(actor_loss, has_aux=True)(
            state.actor.networks, critic.networks, heads, columns.observation(rows), noise[0], warmth(state)
        )
        temperature = state.temperature
        if not settings.temperature:
            # the derivative of -log(temperature) (density + entropy)
            temperature = better(temperature, -(density + entropy), rate)
        return State(better(state.actor, gradient, rate), critic, target, temperature), loss + lost

    def update(state: State, task: Task, rows: Array, noise: Array, rates: Array) -> tuple[State, Array]:
        state, losses = jax.lax.scan(lambda state, part: one(state, task, *part), state, (rows, noise, rates))
        return state, losses.sum()

    def value(beside: SeparateCritic, state: State, task: Task, rows: Array, noise: Array, rates: Array) -> Any:
        def step(beside: SeparateCritic, part: Any) -> tuple[SeparateCritic, Array]:
            rows, noise, rate = part
            heads, pace = decomposed(columns, rows, task), Pace(every * rate, slowly)
            critic, target, loss = valued(beside.critic, beside.target, heads, state, rows, noise, pace)
            return SeparateCritic(critic, target), loss

        beside, losses = jax.lax.scan(step, beside, (rows, noise, rates))
        return beside, losses.sum()

    def fresh(networks: Any) -> TrainState:
        networks = copied(networks)
        init = jax.vmap(adam.init, axis_size=runs) if runs > 1 else adam.init
        return TrainState(networks, init(networks))

    def copied(networks: Any) -> Any:  # the buffers of a state are given away, and none may be given twice
        return jax.tree.map(jnp.array, networks)

    def start(actor: Layers, critic: Twins) -> State:
        first = np.zeros((runs,) if runs > 1 else (), np.float32)
        return State(fresh(actor), fresh(critic), copied(critic), fresh(first))

    def start_beside(critic: Twins) -> SeparateCritic:
        return SeparateCritic(fresh(critic), copied(critic))

    def packed_update(layout: Layout, packed: PackedTree, *rest: Any) -> tuple[PackedTree, Array]:
        def inside(packed: PackedTree, *rest: Any) -> tuple[PackedTree, Array]:
            state, loss = update(layout.unpack(packed), *rest)
            return layout.pack(state), loss

        return (jax.vmap(inside, in_axes=(0, None, 0, 0, None)) if runs > 1 else inside)(packed, *rest)

    def packed_value(
        of: Layout, layout: Layout, state: PackedTree, packed: PackedTree, *rest: Any
    ) -> tuple[PackedTree, Array]:
        def inside(state: PackedTree, packed: PackedTree, *rest: Any) -> tuple[PackedTree, Array]:
            beside, loss = value(layout.unpack(packed), of.unpack(state), *rest)
            return layout.pack(beside), loss

        return (jax.vmap(inside, in_axes=(0, 0, None, 0, 0, None)) if runs > 1 else inside)(state, packed, *rest)

    return Program(
        start, jax.jit(packed_update, static_argnums=0, donate_argnums=1), start_beside,
        jax.jit(packed_value, static_argnums=(0, 1), donate_argnums=3),
    )  # fmt: skip
