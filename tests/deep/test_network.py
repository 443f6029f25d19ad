"""The network: masks, sharing and convolutions against loops and smaller networks, NumPy against JAX."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from multiadvisor.learners.dqn.backend import jax
from multiadvisor.learners.dqn.network import initial, plan_networks
from refusal import refused

VECTOR = [(1, 1, 1)] * 3


def forward(network, observation):
    return np.asarray(jax.jit(lambda net, x: net(x))(network, observation))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "scale", "views", "shares", "convolutions", "strides"),
    [
        ((3,), 1.0, VECTOR, ["all"] * 3, (), ()),
        ((3,), 0.5, [(1, 0, 1), (1, 1, 1), (1, 0, 1)], ["a", "a", "b"], (), ()),
        ((2, 7, 6), 1 / 255, [(1, 1), (0, 1)], ["all", "all"], (3, 4), (1, 2)),
    ],
)
def test_numpy_and_jax_agree(shape, scale, views, shares, convolutions, strides):
    network = initial(plan_networks(shape, scale, views, shares, 4, convolutions, strides, (5,)), (0, 1))
    observation = np.random.default_rng(0).integers(0, 256, (2, 6, *shape)).astype(np.uint8)
    advice = network(observation)
    assert advice.shape == (2, 6, len(views), 4)
    assert advice.dtype == np.float32
    np.testing.assert_allclose(advice, forward(network, observation), rtol=2e-5, atol=1e-5)


def by_hand(network, run, j, x):
    """Advisor j's advice [A] for one flat observation, with loops and without batches."""
    plan = network.plan
    g = plan.network_of[j]
    x = [value * plan.scale * seen for value, seen in zip(x, plan.masks[g], strict=True)]
    for layer in network.hidden:
        weight, bias = layer.weight[run, g], layer.bias[run, g, 0]
        x = [max(sum(x[i] * weight[i, o] for i in range(len(x))) + bias[o], 0.0) for o in range(len(bias))]
    rank = sum(1 for other in range(j) if plan.network_of[other] == g)
    weight, bias = network.last.weight[run, g], network.last.bias[run, g, 0]
    outputs = range(rank * plan.actions, (rank + 1) * plan.actions)
    return [sum(x[i] * weight[i, o] for i in range(len(x))) + bias[o] for o in outputs]


@pytest.mark.slow
@hypothesis_settings(max_examples=30)
@given(
    who=st.lists(st.tuples(st.sampled_from([(1, 1, 0), (0, 1, 1), (1, 1, 1)]), st.sampled_from("ab")), min_size=1,
                 max_size=5),
    hidden=st.sampled_from([(), (2,), (3, 2)]), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_sharing_equals_loops_over_units(who, hidden, seed):
    """Networks with different numbers of advisors, in any order."""
    views, shares = zip(*who, strict=True)
    network = initial(plan_networks((3,), 0.5, views, shares, 2, hidden=hidden), (seed, seed + 1))
    observation = np.random.default_rng(seed).normal(size=(2, 2, 3)).astype(np.float32)
    advice = network(observation)
    for run in range(2):
        for b in range(2):
            expected = [by_hand(network, run, j, observation[run, b]) for j in range(len(who))]
            np.testing.assert_allclose(advice[run, b], expected, rtol=1e-4, atol=1e-5)


def test_who_shares_a_network():
    same = [(1, 1, 1)] * 4
    assert plan_networks((3,), 1.0, same, ["all"] * 4, 2).network_of == (0, 0, 0, 0)
    assert plan_networks((3,), 1.0, same, ["x", "y", "x", "y"], 2).network_of == (0, 1, 0, 1)
    own = plan_networks((3,), 1.0, same, list("abcd"), 2)
    assert own.network_of == (0, 1, 2, 3)
    assert own.outputs == 1
    mixed = plan_networks((3,), 1.0, same, ["x", "y", "x", "x"], 2)
    assert (mixed.outputs, mixed.places.tolist()) == (3, [0, 3, 1, 2])


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_convolution_is_the_librarys(stride):
    """One layer of filters, against jax.lax.conv; the mask hides a channel from one of the networks."""
    views = [(1, 1), (1, 0)]
    plan = plan_networks((2, 8, 7), 1.0, views, ["all", "all"], 1, (5,), (stride,), ())
    network = initial(plan, (0, 1))
    image = np.random.default_rng(2).normal(size=(2, 3, 2, 8, 7)).astype(np.float32)
    advice = network(image)
    layer = network.convolutions[0]
    for run in range(2):
        for j, view in enumerate(views):
            kernel = layer.weight[run, j].reshape(3, 3, 2, 5).transpose(3, 2, 0, 1)  # [out, in, height, width]
            seen = image[run] * np.array(view, np.float32)[:, None, None]
            exact = "highest"
            planes = np.asarray(jax.lax.conv(seen, kernel, (stride, stride), "VALID", precision=exact))
            planes = np.maximum(planes + layer.bias[run, j, 0][:, None, None], 0)
            flat = planes.transpose(0, 2, 3, 1).reshape(3, -1)
            expected = flat @ network.last.weight[run, j] + network.last.bias[run, j, 0]
            np.testing.assert_allclose(advice[run, :, j], expected, rtol=1e-4, atol=1e-5)


def test_a_network_depends_on_its_own_seed_alone():
    plan = plan_networks((3,), 1.0, VECTOR, ["all"] * 3, 4, hidden=(5,))
    together = jax.tree.leaves(initial(plan, (4, 9)))
    for part, seed in enumerate((4, 9)):
        for leaf, alone in zip(together, jax.tree.leaves(initial(plan, (seed,))), strict=True):
            assert leaf[part].tobytes() == alone[0].tobytes()
    assert together[0][0].tobytes() != together[0][1].tobytes()
    limit = 1 / np.sqrt(3)
    first = initial(dataclasses.replace(plan, hidden=(4000,)), (0,)).hidden[0].weight
    assert 0.99 * limit < np.abs(first).max() <= limit
    assert abs(first.mean()) < 0.02


def test_an_image_too_small_for_its_convolutions_is_refused():
    plan = plan_networks((1, 5, 5), 1.0, [(1,)], ["all"], 2, (4, 4), (2, 2))
    refused("leave nothing of an image of 5 x 5", initial, plan, (0,))
