"""The update by hand: densities, targets, and that the critic beside leaves control as it is."""

import numpy as np
import pytest

from multiadvisor.learners.dqn.backend import jax, jnp
from multiadvisor.learners.sac.actor_critic import explored, forward, initial, means, sampled, slopes
from multiadvisor.learners.sac.sac_update import SACTask, decomposed, plain, targets
from multiadvisor.learners.sac.transition_buffer import Columns, Memory

DRAW = np.random.default_rng(0)
COLUMNS = Columns(features=3, dimensions=2, advisors=2, ends=False, activity=False)
TASK = SACTask(np.array([2.0, -1.0], np.float32), np.array([0.9, 0.5], np.float32), np.float32(0.9))


def constant(*outputs):
    """A critic that always says the same."""
    return ((np.zeros((5, 1), np.float32), np.zeros(1, np.float32)),
            (np.zeros((len(outputs), 1), np.float32), np.array(outputs, np.float32)))  # fmt: skip


def row(reward, terminated, columns=COLUMNS, **more):
    found = np.zeros((1, columns.width), np.float32)
    for name, value in {"reward": reward, "terminated": terminated, **more}.items():
        getattr(columns.split(found), name)[...] = value
    return columns.split(jnp.asarray(found))


@pytest.mark.slow
def test_the_density_is_that_of_the_squashed_normal():
    actor = initial(DRAW, 3, (8,), 4)
    seen, noise = DRAW.normal(size=(5, 3)).astype(np.float32), DRAW.normal(size=(5, 2)).astype(np.float32)
    action, log_density = sampled(actor, jnp.asarray(seen), jnp.asarray(noise))
    assert np.allclose(action, explored(actor, seen, noise), atol=1e-6)
    mean, log_std = np.split(forward(actor, seen), 2, axis=1)
    density = np.exp(-0.5 * noise**2) / np.sqrt(2 * np.pi) / np.exp(log_std) / (1 - np.asarray(action) ** 2)
    assert np.allclose(log_density, np.log(density).sum(axis=1), atol=1e-4)
    assert np.allclose(means(actor, seen), np.tanh(mean))


@pytest.mark.slow
def test_slopes_are_the_derivatives():
    critic = initial(DRAW, 5, (16, 16), 3)
    x = DRAW.normal(size=5).astype(np.float32)
    assert np.allclose(slopes(critic, x), jax.jacobian(lambda x: forward(critic, x[None])[0])(x), atol=1e-6)


def test_the_plain_target_is_soft_actor_critics():
    heads = plain(row([3.0, 1.0], 0.0), TASK)
    twins = constant(7.0), constant(4.0)
    found = targets(twins, heads, jnp.zeros((1, 3)), jnp.zeros((1, 2)), jnp.array([0.5]))
    assert np.allclose(found, [[2 * 3 - 1 + 0.9 * (4.0 + 0.5)]])
    ended = plain(row([3.0, 1.0], 1.0), TASK)
    assert targets(twins, ended, jnp.zeros((1, 3)), jnp.zeros((1, 2)), jnp.array([0.5])).tolist() == [[5.0]]


def test_all_heads_follow_the_twin_whose_weighted_sum_is_lower():
    """Here 2 q_0 - q_1 + q_entropy is 5 for the first twin and 4 for the second, though its q_0 is higher."""
    heads = decomposed(row([3.0, 1.0], 0.0), TASK)
    twins = constant(1.0, 2.0, 5.0), constant(2.0, 1.0, 1.0)
    found = targets(twins, heads, jnp.zeros((1, 3)), jnp.zeros((1, 2)), jnp.array([0.5]))
    assert np.allclose(found, [[3 + 0.9 * 2, 1 + 0.5 * 1, 0.9 * (1 + 0.5)]])
    ended = decomposed(row([3.0, 1.0], 1.0), TASK)
    assert targets(twins, ended, jnp.zeros((1, 3)), jnp.zeros((1, 2)), jnp.array([0.5])).tolist() == [[3.0, 1.0, 0.0]]


def test_own_ends_and_inactive_advisors_are_left_out():
    columns = Columns(3, 2, 2, ends=True, activity=True)
    batch = row([3.0, 1.0], 0.0, columns, ended=[1.0, 0.0], active=[1.0, 0.0], next_active=[1.0, 1.0])
    heads = decomposed(batch, TASK)
    assert np.allclose(heads.discount, [[0.0, 0.5, 0.9]])
    assert heads.active.tolist() == [[1.0, 0.0, 1.0]]
    assert heads.mix.tolist() == [[2.0, 0.0, 1.0]]
    assert heads.next_mix.tolist() == [[2.0, -1.0, 1.0]]
    assert plain(batch, TASK).reward.tolist() == [[6.0]]


def test_rows_have_everything_in_its_place_and_a_ring_keeps_the_newest():
    columns = Columns(3, 2, 2, ends=True, activity=True)
    whole = np.arange(columns.width)
    assert [len(part) for part in columns.split(whole)] == [3, 3, 2, 2, 1, 2, 2, 2]
    assert np.concatenate(columns.split(whole)).tolist() == whole.tolist()
    memory = Memory(COLUMNS, 1, 4)
    for k in range(3):
        memory.add(np.full((1, 2, COLUMNS.width), k, np.float32))
    assert (memory.seen, memory.filled) == (6, 4)
    assert memory.rows(np.array([[0, 1, 2, 3]]))[0, :, 0].tolist() == [2, 2, 1, 1]
