"""The update: targets worked out by hand, gradients by finite differences, clipping and the target network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import multiadvisor as mad
from multiadvisor.core.aggregator import Team, aggregator_of
from multiadvisor.core.plannings import PLANNINGS, agnostic, egocentric, empathic
from multiadvisor.learners.dqn.backend import jax, jnp
from multiadvisor.learners.dqn.dqn_update import Batch, Rules, bootstrap, clipped, losses, make_update
from multiadvisor.learners.dqn.network import Layer, Network, initial, plan_networks

pytestmark = pytest.mark.slow

# Two advisors, three actions. With weights (1, 1) action 0 has 5, action 1 has 4, action 2 has 6.
JUDGE = np.array([[5.0, 1.0, 2.0], [0.0, 3.0, 4.0]], np.float32)
VALUE = np.array([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]], np.float32)
ALL = np.ones(2, np.float32)


def rules(planning, weights, aggregation="sum"):
    advisors = tuple(mad.Advisor(f"j{j}") for j in range(len(weights)))
    aggregator = aggregator_of(Team("task", advisors), aggregation)
    return Rules((planning,) * len(advisors), aggregator, tuple(np.asarray(weights, float).tolist()), 0.0)


def expected(planning, weights, judge, value, active=ALL):
    return np.asarray(bootstrap(rules(planning, weights), judge, value, jnp.asarray(active)))


def test_the_target_networks_own_advice():
    alone = jnp.asarray(JUDGE)
    assert expected(egocentric, [1, 1], alone, alone).tolist() == [5.0, 4.0]
    np.testing.assert_allclose(expected(agnostic, [1, 1], alone, alone), [8 / 3, 7 / 3], rtol=1e-6)
    assert expected(empathic, [1, 1], alone, alone).tolist() == [2.0, 4.0]  # 5, 4, 6: action 2
    assert expected(empathic, [2, 1], alone, alone).tolist() == [5.0, 0.0]  # 10, 5, 8: action 0
    assert expected(empathic, [-1, 1], alone, alone).tolist() == [1.0, 3.0]  # -5, 2, 2: the first of the tied
    assert expected(empathic, [-2, 1], alone, alone).tolist() == [1.0, 3.0]  # -10, 1, 0: action 1
    assert expected(empathic, [1, 1], alone, alone, [1, 0]).tolist() == [5.0, 0.0]  # advisor 1 has no say: action 0
    assert expected(egocentric, [1, 1], alone, alone, [1, 0]).tolist() == [5.0, 4.0]


def test_one_network_chooses_and_the_other_values():
    judge, value = jnp.asarray(JUDGE), jnp.asarray(VALUE)
    assert expected(egocentric, [1, 1], judge, value).tolist() == [10.0, 60.0]
    np.testing.assert_allclose(expected(agnostic, [1, 1], judge, value), [20.0, 50.0], rtol=1e-6)
    assert expected(empathic, [1, 1], judge, value).tolist() == [30.0, 60.0]
    assert expected(empathic, [-2, 1], judge, value).tolist() == [20.0, 50.0]
    assert expected(empathic, [1, 1], judge, value, [0, 1]).tolist() == [30.0, 60.0]
    assert expected(empathic, [1, 1], judge, value, [1, 0]).tolist() == [10.0, 40.0]


def table_network(table):
    """A network without hidden layers that looks its advice [states, n, A] up."""
    states, n, actions = np.shape(table)
    plan = plan_networks((states,), 1.0, [(1,) * states] * n, ["all"] * n, actions, hidden=())
    weight = np.asarray(table, np.float32).reshape(1, 1, states, n * actions)
    return Network((), (), Layer(weight, np.zeros((1, 1, 1, n * actions), np.float32)), plan)


def batch_of(states, actions, rewards, discounts, nexts, active=None, next_active=None, count=2):
    rows = np.eye(count, dtype=np.float32)
    ones = np.ones((1, len(states), len(rewards[0])), np.float32)
    return Batch(
        rows[states][None], np.array(actions, np.int32)[None], np.array(rewards, np.float32)[None],
        np.array(discounts, np.float32)[None], rows[nexts][None],
        ones if active is None else np.array(active, np.float32)[None],
        ones if next_active is None else np.array(next_active, np.float32)[None],
    )  # fmt: skip


def some_losses(network, target, batch, weights, planning, double, huber):
    return np.asarray(losses(network, target, batch, rules(planning, weights), double, huber))


NOW = [[[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]], JUDGE.tolist()]  # advice in the states 0 and 1
OLD = [[[0.0] * 3] * 2, VALUE.tolist()]  # and the target network's


@pytest.mark.parametrize(
    ("planning", "double", "follows"),
    [("egocentric", False, [30, 60]), ("egocentric", True, [10, 60]), ("agnostic", False, [20, 50]),
     ("agnostic", True, [20, 50]), ("empathic", False, [30, 60]), ("empathic", True, [30, 60])],
)  # fmt: skip
def test_squared_losses_by_hand(planning, double, follows):
    """From state 0 by action 0 and 2 to state 1; each advisor with its own gamma, one of them ended in the second."""
    batch = batch_of([0, 0], [0, 2], [[1, 2], [3, 4]], [[0.5, 0.9], [0.0, 0.9]], [1, 1])
    got = some_losses(table_network(NOW), table_network(OLD), batch, [1, 1], PLANNINGS[planning], double, False)
    a, b = follows
    first = ((1 - (1 + 0.5 * a)) ** 2 + (0 - 3) ** 2) / 2
    second = ((0 - (2 + 0.9 * b)) ** 2 + (2 - (4 + 0.9 * b)) ** 2) / 2
    np.testing.assert_allclose(got, [[first, second]], rtol=1e-5)


def test_weights_and_activity_decide_who_is_followed():
    for weights, next_active, follows in (([1, 1], [1, 1], 2), ([1, 1], [1, 0], 0), ([-2, 1], [1, 1], 1)):
        batch = batch_of([0], [1], [[0, 0]], [[1, 1]], [1], next_active=[next_active])
        got = some_losses(table_network(NOW), table_network(OLD), batch, weights, empathic, True, False)
        np.testing.assert_allclose(got, [VALUE[:, follows] ** 2], rtol=1e-5)


def test_those_without_a_say_do_not_learn():
    batch = batch_of([0, 0], [0, 0], [[9, 9], [9, 9]], [[0, 0], [0, 0]], [1, 1], active=[[1, 0], [0, 0]])
    got = some_losses(table_network(NOW), table_network(OLD), batch, [1, 1], egocentric, False, False)
    np.testing.assert_allclose(got, [[(1 - 9) ** 2 / 2, 0]], rtol=1e-6)


def test_huber_is_half_the_square_near_zero_and_a_line_beyond_one():
    batch = batch_of([0, 0], [0, 2], [[0.5, 0], [4, 2.25]], [[0, 0], [0, 0]], [1, 1])  # errors .5, -4 and 0, -.25
    got = some_losses(table_network(NOW), table_network(OLD), batch, [1, 1], egocentric, False, True)
    np.testing.assert_allclose(got, [[(0.125 + 3.5) / 2, 0.03125 / 2]], rtol=1e-6)


@pytest.mark.parametrize("planning", ["egocentric", "agnostic", "empathic"])
@pytest.mark.parametrize("double", [False, True])
def test_gradients_by_finite_differences(planning, double):
    """Of the loss with the targets held: they must not be differentiated, though double Q asks the same network."""
    generator = np.random.default_rng(5)
    plan = plan_networks((3,), 1.0, [(1, 1, 0), (1, 1, 1)], ["all"] * 2, 3, hidden=(4,))
    network, target = initial(plan, (0,)), initial(plan, (1,))
    batch = Batch(
        generator.normal(size=(1, 6, 3)).astype(np.float32), generator.integers(3, size=(1, 6)).astype(np.int32),
        generator.normal(size=(1, 6, 2)).astype(np.float32), np.full((1, 6, 2), 0.9, np.float32),
        generator.normal(size=(1, 6, 3)).astype(np.float32), np.ones((1, 6, 2), np.float32),
        np.ones((1, 6, 2), np.float32),
    )  # fmt: skip
    weights, rule = np.array([1.0, -0.5]), PLANNINGS[planning]
    # the targets by hand, on NumPy arrays
    judge = (network if double else target)(batch.next_observation)[0]
    value = target(batch.next_observation)[0]
    policies = {
        "egocentric": lambda one: one.argmax(axis=1), "agnostic": lambda one: None,
        "empathic": lambda one: np.repeat((weights[:, None] * one).sum(axis=0).argmax(), 2),
    }  # fmt: skip
    wanted = np.zeros((6, 2))
    for b in range(6):
        chosen = policies[planning](judge[b])
        follows = value[b].mean(axis=1) if chosen is None else value[b][np.arange(2), chosen]
        wanted[b] = batch.reward[0, b] + 0.9 * follows

    def loss(net):
        chosen = net(batch.observation)[0].astype(float)[np.arange(6), :, batch.action[0]]
        return ((chosen - wanted) ** 2).mean(axis=0).sum()

    def whole(net):
        given = Batch(*map(jnp.asarray, batch))
        return losses(net, target, given, rules(rule, weights), double, False).sum()

    value_now, gradient = jax.jit(jax.value_and_grad(whole))(jax.tree.map(jnp.asarray, network))
    np.testing.assert_allclose(value_now, loss(network), rtol=1e-5)
    leaves, tree = jax.tree.flatten(network)
    for k, slope in enumerate(jax.tree.leaves(gradient)):
        place = tuple(int(generator.integers(size)) for size in leaves[k].shape)
        sides = []
        for step in (1e-3, -1e-3):
            moved = [leaf.astype(np.float64) for leaf in leaves]
            moved[k] = moved[k].copy()
            moved[k][place] += step
            sides.append(loss(jax.tree.unflatten(tree, moved)))
        np.testing.assert_allclose(slope[place], (sides[0] - sides[1]) / 2e-3, rtol=2e-2, atol=1e-4)


@hypothesis_settings(max_examples=25)
@given(seed=st.integers(0, 10_000), double=st.booleans())
def test_with_one_advisor_egocentric_and_empathic_are_dqn(seed, double):
    generator = np.random.default_rng(seed)
    judge, value = (jnp.asarray(generator.normal(size=(1, 4)), jnp.float32) for _ in range(2))
    value = value if double else judge
    dqn = np.asarray(value)[0, int(np.asarray(judge)[0].argmax())]
    for planning in (egocentric, empathic):
        np.testing.assert_allclose(expected(planning, [2.0], judge, value, [1.0]), [dqn], rtol=1e-6)


def test_each_runs_gradient_is_clipped_by_itself():
    """Norms 5 and 0.5 in two runs, over several leaves: the first is cut to 1, the second stays."""
    network = table_network(np.zeros((1, 1, 2)))
    two = jax.tree.map(lambda leaf: np.zeros((2, *leaf.shape[1:]), np.float32), network)
    two.last.weight[0].flat[0], two.last.bias[0].flat[1] = 3.0, 4.0
    two.last.weight[1].flat[0], two.last.bias[1].flat[1] = 0.3, 0.4
    cut = clipped(two, 1.0)
    got = [[float(leaf[run].ravel()[k]) for leaf, k in ((cut.last.weight, 0), (cut.last.bias, 1))] for run in (0, 1)]
    np.testing.assert_allclose(got, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)


# ---- the compiled call -----------------------------------------------------------------------------------------------
def repeated(batch, count):
    return Batch(*(np.repeat(part[None], count, axis=0) for part in batch))


def leaves_of(network):
    return [np.array(leaf) for leaf in jax.tree.leaves(network)]


def equal(first, second):
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def test_first_steps_of_adam_and_the_target_by_hand():
    """Adam's first step is the learning rate times the gradient's sign; the target is copied at every third update."""
    deep = mad.DQN(learning_rate=0.01, target_update_interval=3, clip_norm=0.0, loss="squared", double=False)
    start, update = make_update(deep, rules(egocentric, np.ones(2)))
    network = table_network(NOW)
    batch = batch_of([0], [0], [[9, -9]], [[0, 0]], [1])
    state = start(network)
    before = leaves_of(network)
    state, loss = update(state, repeated(batch, 1), np.full(1, 0.01, np.float32))
    np.testing.assert_allclose(loss, [[64, 81]], rtol=1e-6)
    moved = np.array(state.network.last.weight) - before[0]
    np.testing.assert_allclose(moved.reshape(2, 2, 3)[0], [[0.01, 0, 0], [-0.01, 0, 0]], rtol=1e-3)
    np.testing.assert_allclose(moved.reshape(2, 2, 3)[1], 0.0)
    assert equal(leaves_of(state.target), before)
    for number in range(2, 8):
        old = leaves_of(state.target)
        state, _ = update(state, repeated(batch, 1), np.full(1, 0.01, np.float32))
        assert int(state.updates) == number
        if number in (3, 6):
            assert equal(leaves_of(state.target), leaves_of(state.network))
        else:
            assert equal(leaves_of(state.target), old)
            assert not equal(leaves_of(state.target), leaves_of(state.network))
    # the same seven in one call, the losses summed
    again, total = update(start(network), repeated(batch, 7), np.full(7, 0.01, np.float32))
    assert int(again.updates) == 7
    np.testing.assert_allclose(leaves_of(again.network)[0], leaves_of(state.network)[0], rtol=1e-5)
    np.testing.assert_allclose(leaves_of(again.target)[0], leaves_of(state.target)[0], rtol=1e-5)
    assert 6 * 64 < float(total[0, 0]) < 7 * 64


def test_runs_do_not_disturb_each_other():
    """A run whose gradient is not finite leaves the others alone."""
    deep = mad.DQN(learning_rate=0.01, hidden=(4,))
    plan = plan_networks((2,), 1.0, [(1, 1)] * 2, ["all"] * 2, 3, hidden=(4,))
    batch = batch_of([0, 1], [0, 2], [[1, 2], [3, 4]], [[0.5, 0.9], [0.0, 0.9]], [1, 0])
    wrong = batch._replace(reward=np.full_like(batch.reward, np.nan))
    results = []
    start, update = make_update(deep, rules(empathic, np.ones(2)))
    for other in (batch, wrong):
        both = Batch(*(np.concatenate(parts) for parts in zip(batch, other, strict=True)))
        state, loss = update(start(initial(plan, (0, 1))), repeated(both, 2), np.full(2, 0.01, np.float32))
        results.append([leaf[0] for leaf in leaves_of(state.network)])
    assert equal(*results)
    assert np.isfinite(loss[0]).all()
    assert not np.isfinite(loss[1]).any()
