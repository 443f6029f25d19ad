"""Variants of the advisors' critic, to find out why a shared one fails on Ant-v5, and of the first weights.

`benchmarks/continuous_study.py` knows them as kinds of runs, one a process: importing this file adds them to
`studies.continuous_runs.WAYS`. They change the learner for the whole process, and
are no part of the package.

    normalised   the error of each head in standard deviations of what it should say, in the batch
    apart        a network of its own for each head
    summed       the squared error of the weighted sum is added to those of the heads
    auxiliary    the actor follows a plain head of the sum, with the advisors' heads on the same hidden layers
    flax         one plain critic, first weights drawn as flax draws them (SBX): normal, wider, and biases 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from multiadvisor.learners.dqn.backend import jnp
from multiadvisor.learners.sac import actor_critic, sac_learner, sac_update
from studies import continuous_runs

LEAST = 0.01  # a head's deviation counts at least so much of the sum's


# ---- losses ----------------------------------------------------------------------------------------------------------
def _errors(twins: Any, heads: Any, observation: Any, action: Any, wanted: Any) -> list[Any]:
    seen = actor_critic.critic_input(observation, action)
    return [(sac_update.forward(twin, seen) - wanted) * heads.active for twin in twins]


def normalised_loss(twins: Any, heads: Any, observation: Any, action: Any, wanted: Any) -> Any:
    """Every head counts alike, whatever the size of what it values."""
    whole = (wanted * heads.mix).sum(axis=1).std()
    scale = jnp.maximum(wanted.std(axis=0), LEAST * whole) + 1e-6  # [H]
    errors = _errors(twins, heads, observation, action, wanted)
    return sum(0.5 * jnp.square(error / scale).sum(axis=1).mean() for error in errors)


def summed_loss(twins: Any, heads: Any, observation: Any, action: Any, wanted: Any) -> Any:
    """What the actor follows, the sum, has an error of its own."""
    errors = _errors(twins, heads, observation, action, wanted)
    whole = [(error * heads.mix).sum(axis=1) for error in errors]
    return sum(0.5 * (jnp.square(error).sum(axis=1) + jnp.square(one)).mean()
               for error, one in zip(errors, whole, strict=True))  # fmt: skip


# ---- networks --------------------------------------------------------------------------------------------------------
_forward, _slopes, _initial = actor_critic.forward, actor_critic.slopes, actor_critic.initial


def apart_forward(layers: Any, x: Any) -> Any:
    """[B, in] -> [B, H] by H networks of one output, stacked in front; by one network as ever."""
    if layers[0][0].ndim < 3:
        return _forward(layers, x)
    return _forward(layers, x)[..., 0].T


def apart_slopes(layers: Any, x: np.ndarray) -> np.ndarray:
    """[H, in]."""
    heads = len(layers[0][0])
    return np.concatenate([_slopes(tuple((w[h], b[h]) for w, b in layers), x) for h in range(heads)])


def apart_initial(features: int) -> Callable[..., Any]:
    """Critics, which see more than the features, as one network for each output."""

    def drawn(generator: Any, inputs: int, hidden: Any, outputs: int) -> Any:
        if inputs == features:
            return _initial(generator, inputs, hidden, outputs)
        made = [_initial(generator, inputs, hidden, 1) for _ in range(outputs)]
        return tuple(tuple(np.stack(part) for part in zip(*layer, strict=True)) for layer in zip(*made, strict=True))

    return drawn


def flax_initial(generator: Any, inputs: int, hidden: Any, outputs: int) -> Any:
    """Weights from a normal distribution cut off at two deviations, of variance 1 / inputs; biases 0."""
    layers: list[Any] = []
    for weight, bias in _initial(generator, inputs, hidden, outputs):
        normal = generator.standard_normal(weight.shape)
        while (far := np.abs(normal) > 2).any():
            normal[far] = generator.standard_normal(int(far.sum()))
        width = weight.shape[1 if len(layers) == len(hidden) else 0]  # the last weight is [out, in]
        layers.append(((normal / np.sqrt(width) / 0.87962566).astype(np.float32), np.zeros_like(bias)))
    return tuple(layers)


def auxiliary(batch: Any, task: Any) -> Any:
    """A plain head, which alone counts, before the advisors' heads."""
    first, others = sac_update.plain(batch, task), sac_update.decomposed(batch, task)
    both = [jnp.concatenate([one, other], axis=-1) for one, other in zip(first, others, strict=True)]
    only = jnp.zeros_like(both[2]).at[:, 0].set(1.0)
    return sac_update.Heads(*both)._replace(mix=only, next_mix=only)


# ---- runs ------------------------------------------------------------------------------------------------------------
def _shared(run: Any, halted: Any) -> Iterator[dict[str, Any]]:
    """A run with the shared critic as it is now."""
    return continuous_runs.ours(replace(run, kind="shared"), halted)


def normalised(run: Any, halted: Any) -> Iterator[dict[str, Any]]:
    """Errors in units of their head."""
    sac_update.critic_loss = normalised_loss
    return _shared(run, halted)


def summed(run: Any, halted: Any) -> Iterator[dict[str, Any]]:
    """Errors of the heads and of their sum."""
    sac_update.critic_loss = summed_loss
    return _shared(run, halted)


def apart(run: Any, halted: Any) -> Iterator[dict[str, Any]]:
    """No layer in common."""
    sac_update.forward = sac_learner.forward = apart_forward
    sac_learner.slopes = apart_slopes
    space = continuous_runs.environment_of(run.environment).observation_space
    sac_learner.initial = apart_initial(int(np.prod(space.shape)))
    return _shared(run, halted)


def with_auxiliary(run: Any, halted: Any) -> Iterator[dict[str, Any]]:
    """Hidden layers in common, and a head of its own for control; its returns alone."""
    sac_update.MODES["shared"] = sac_update.Mode(auxiliary)
    heads = sac_update.heads_of
    sac_update.heads_of = sac_learner.heads_of = lambda kind, n: heads(kind, n) + (kind is auxiliary)
    for found in islice(_shared(run, halted), run.evaluations):
        yield found
        if halted():
            return


def flax(run: Any, halted: Any) -> Iterator[dict[str, Any]]:
    """Other first weights."""
    sac_learner.initial = flax_initial
    return continuous_runs.ours(replace(run, kind="one"), halted)


continuous_runs.WAYS |= {
    "normalised": normalised, "summed": summed, "apart": apart, "auxiliary": with_auxiliary, "flax": flax,
}  # fmt: skip
