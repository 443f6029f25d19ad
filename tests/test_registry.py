"""Every registered planning and aggregation: array form against compiled twin, values worked by hand, properties."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agents import LEARNED
from multiadvisor.core import plannings as all_plannings
from multiadvisor.core.aggregations import (
    AGGREGATIONS,
    aggregation_named,
    epsilon_greedy,
    greedy,
    maximum,
    p_norm,
    weighted_sum,
)
from multiadvisor.core.compiling import compiled
from multiadvisor.core.plannings import Ahead, bootstrap, planning_named
from multiadvisor.learners.tabular import switch
from refusal import refused

# Where both forms only add, multiply or compare in the same order, they give the same bits; powers, exponentials and
# sums that NumPy takes in pairs may differ in the last one.
SAME_BITS = {"egocentric", "empathic", "sarsa", "sum", "max", "majority", "ranks", "normalised"}
PARAMETERS = dict.fromkeys(("boltzmann_product", "boltzmann_sum"), (1e-3, 1.0))
PARAMETERS |= {"max_plus": (0.1, 0.5), "p_norm": (1.0, 2.0, 5.0, 64.0)}
TOLD = [one.name for one in switch.SHIPPED_AGGREGATIONS if one.name not in LEARNED]  # by the advice alone
PLANNINGS = {one.name: one for one in switch.SHIPPED_PLANNINGS}
FORMS = [(name, parameter) for name in TOLD for parameter in PARAMETERS.get(name, (0.0,))]

twin = functools.cache(compiled)
numbers = st.floats(-1e6, 1e6).map(lambda value: 0.0 if abs(value) < 1e-6 else value)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))
advices = sizes.flatmap(lambda size: arrays(float, size, elements=numbers))
ties = sizes.flatmap(lambda size: arrays(float, size, elements=st.integers(-2, 2).map(float)))
some_advice = st.one_of(advices, ties)


def weights_for(advice, low=-3.0):
    weight = st.one_of(st.just(0.0), st.floats(low, 3.0).map(lambda value: round(value, 3)))
    return arrays(float, len(advice), elements=weight)


def close(got, wanted, name, scale=1.0):
    """To the last bit, or to 1e-12 of the largest number that was added."""
    if name in SAME_BITS:
        np.testing.assert_array_equal(got, wanted)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12 * scale)


def filled(name, parameter, advice, weights):
    """What the compiled twin gives."""
    table = np.vstack([advice, np.full((1, advice.shape[1]), np.nan)])  # a row that nobody looks at
    preferences = np.full(advice.shape[1], np.nan)
    twin(AGGREGATIONS[name].fill)(table, np.arange(len(advice)), weights, len(advice), parameter, preferences)
    return preferences


def ahead_for(advice, action, seed):
    generator = np.random.default_rng(seed)
    counts = generator.integers(1, 9, advice.shape).astype(float)
    behaviour, *targets = generator.dirichlet(np.ones(advice.shape[1]), 1 + len(advice))
    return Ahead(action, action, behaviour, counts, np.array(targets))


# ---- the two forms ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PLANNINGS)
@settings(deadline=None, max_examples=50)
@given(some_advice, st.data(), st.integers(0, 99))
def test_a_planning_and_its_twin_agree(name, advice, data, seed):
    planning, action = PLANNINGS[name], data.draw(st.integers(0, advice.shape[1] - 1))
    ahead, scale = ahead_for(advice, action, seed), np.abs(advice).max()
    wanted = bootstrap(planning, advice, ahead)
    rows = zip(advice, ahead.counts, ahead.target, strict=True)
    got = [twin(planning.value)(q, ahead._replace(counts=times, target=policy)) for q, times, policy in rows]
    close(got, wanted, name, scale)
    policy = np.asarray(planning(advice, ahead))
    assert (policy >= 0).all()
    np.testing.assert_allclose(policy.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameter"), FORMS)
@settings(deadline=None, max_examples=50)
@given(some_advice, st.data())
def test_an_aggregation_and_its_twin_agree(name, parameter, advice, data):
    weights = data.draw(weights_for(advice))
    wanted = AGGREGATIONS[name](advice, weights, parameter)
    scale = np.abs(advice).max() / (parameter if "boltzmann" in name else 1.0)
    close(filled(name, parameter, advice, weights), wanted, name, scale * max(1.0, np.abs(weights).sum()))


@pytest.mark.parametrize("name", PLANNINGS)
def test_a_planning_on_jax_arrays(name):
    advice = np.random.default_rng(1).normal(size=(5, 4))
    ahead = ahead_for(advice, 2, 1)
    with jax.enable_x64(True):
        there = Ahead(2, 2, *(jnp.asarray(each) for each in (ahead.behaviour, ahead.counts, ahead.target)))
        got = jax.jit(lambda a, b: bootstrap(PLANNINGS[name], a, b))(jnp.asarray(advice), there)
        np.testing.assert_allclose(got, bootstrap(PLANNINGS[name], advice, ahead), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "parameter"), FORMS)
def test_an_aggregation_on_jax_arrays_and_on_batches(name, parameter):
    generator = np.random.default_rng(2)
    advice, weights = generator.normal(size=(3, 2, 5, 4)), generator.normal(size=(3, 2, 5))
    weights[0, 0] = 0.0
    wanted = AGGREGATIONS[name](advice, weights, parameter)
    each = [[AGGREGATIONS[name](advice[i, k], weights[i, k], parameter) for k in range(2)] for i in range(3)]
    close(wanted, np.array(each), "", 1.0)
    with jax.enable_x64(True):
        got = jax.jit(lambda a, w: AGGREGATIONS[name](a, w, parameter))(jnp.asarray(advice), jnp.asarray(weights))
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


# ---- worked by hand --------------------------------------------------------------------------------------------------
ADVICE = np.array([[1.0, 3.0, 2.0], [4.0, 0.0, 4.0], [-1.0, -2.0, 0.0]])
WEIGHTS = np.array([1.0, 0.5, 2.0])
E = np.exp
NORMS = np.log(E(0.5) + E(1.5) + E(1)) + 0.5 * np.log(2 * E(2) + 1) + 2 * np.log(E(-0.5) + E(-1) + 1)
BY_HAND = {
    "sum": [1 + 2 - 2, 3 + 0 - 4, 2 + 2 + 0],
    "max": [2, 3, 2],
    "max_plus:0.5": [2 + 1.5, 3 + 1.5, 2 + 2],
    "p_norm:1": [1 + 2, 3, 2 + 2],
    "p_norm:2": [5**0.5, 3, 8**0.5],
    "majority": [0.25, 1, 0.25 + 2],  # the second advisor splits its half vote
    "ranks": [1 + 0.5 * 2.5 + 2 * 2, 3 + 0.5 * 1 + 2 * 1, 2 + 0.5 * 2.5 + 2 * 3],
    "normalised": [(1 + 2) / 4, 3 / 4, 1],
    "boltzmann_sum": [
        E(1) / (E(1) + E(3) + E(2)) + 0.5 * E(4) / (2 * E(4) + 1) + 2 * E(-1) / (E(-1) + E(-2) + 1),
        E(3) / (E(1) + E(3) + E(2)) + 0.5 * 1 / (2 * E(4) + 1) + 2 * E(-2) / (E(-1) + E(-2) + 1),
        E(2) / (E(1) + E(3) + E(2)) + 0.5 * E(4) / (2 * E(4) + 1) + 2 * 1 / (E(-1) + E(-2) + 1),
    ],
    # the sum of w_j Q_j / T, less the same for all actions: log sum exp of each advisor
    "boltzmann_product:2": [total / 2 - NORMS for total in (1 + 2 - 2, 3 + 0 - 4, 2 + 2 + 0)],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", BY_HAND)
def test_aggregations_worked_by_hand(text):
    aggregation, parameter = aggregation_named(text)
    for got in (aggregation(ADVICE, WEIGHTS, parameter), filled(aggregation.name, parameter, ADVICE, WEIGHTS)):
        np.testing.assert_allclose(got, BY_HAND[text], rtol=1e-14)


def near(distance):
    """How likely a tempered advisor thinks an action so far below its best one, but for a factor."""
    return (1 + distance / 1.6) ** -16


def test_plannings_worked_by_hand():
    targets = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.25, 0.5, 0.25]])
    ahead = Ahead(1, 2, np.array([0.5, 0.25, 0.25]), np.array([[1.0, 1, 2], [4, 0, 0], [0, 3, 1]]), targets)
    wanted = {
        "egocentric": [3, 4, 0], "agnostic": [2, 8 / 3, -1], "empathic": [3, 0, -2], "sarsa": [2, 4, 0],
        "expected_sarsa": [1.75, 3, -1], "estimate": [2, 4, -1.5], "target": [2, 4, -1.25],
        "tempered": [
            (near(2) * 1 + 3 + near(1) * 2) / (near(2) + 1 + near(1)), 8 / (2 + near(4)),
            (near(1) * -1 + near(2) * -2) / (near(1) + near(2) + 1),
        ],
    }  # fmt: skip
    assert set(wanted) == set(PLANNINGS)
    for name, values in wanted.items():
        np.testing.assert_allclose(bootstrap(PLANNINGS[name], ADVICE, ahead), values, rtol=1e-14)


def test_every_aggregation_is_worked_by_hand():
    assert {text.partition(":")[0] for text in BY_HAND} == set(TOLD)


# ---- properties ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "parameter"), FORMS)
@settings(deadline=None, max_examples=50)
@given(some_advice, st.data())
def test_weight_0_is_silent(name, parameter, advice, data):
    weights = data.draw(weights_for(advice))
    heard, scale = weights != 0, np.abs(advice).max() * max(1.0, np.abs(weights).sum())
    for got in (AGGREGATIONS[name](advice, weights, parameter), filled(name, parameter, advice, weights)):
        wanted = AGGREGATIONS[name](advice[heard], weights[heard], parameter)
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12 * scale / (parameter or 1.0))


@pytest.mark.parametrize(("name", "parameter"), FORMS)
@settings(deadline=None, max_examples=50)
@given(some_advice, st.data())
def test_the_order_of_advisors_does_not_matter(name, parameter, advice, data):
    weights, order = data.draw(weights_for(advice)), data.draw(st.permutations(range(len(advice))))
    scale = np.abs(advice).max() * max(1.0, np.abs(weights).sum())
    got = AGGREGATIONS[name](advice[list(order)], weights[list(order)], parameter)
    wanted = AGGREGATIONS[name](advice, weights, parameter)
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12 * scale / (parameter or 1.0))


@pytest.mark.parametrize(("name", "parameter"), FORMS)
@settings(deadline=None, max_examples=50)
@given(
    sizes.flatmap(lambda size: arrays(float, size, elements=st.sampled_from([-1e6, -1.0, 0.0, 1.0, 1e6]))), st.data()
)
@example(np.array([[1e6, -1e6], [-1e6, 1e6]]), None)
def test_nothing_overflows(name, parameter, advice, data):
    weights = np.array([3.0, -3.0]) if data is None else data.draw(weights_for(advice))
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        got = AGGREGATIONS[name](advice, weights, parameter)
    assert np.isfinite(got).all()
    assert np.isfinite(filled(name, parameter, advice, weights)).all()


MONOTONE = [lambda q: 3.0 * q + 1.0, np.arctan, lambda q: q**3, lambda q: np.sign(q) * np.log1p(np.abs(q))]


@settings(deadline=None, max_examples=50)
@given(ties, st.data(), st.sampled_from(MONOTONE))
def test_ranks_and_majority_do_not_change_under_monotone_transformations_of_one_advisor(advice, data, change):
    weights, one = data.draw(weights_for(advice)), data.draw(st.integers(0, len(advice) - 1))
    other = advice.copy()
    other[one] = change(advice[one])
    for name in ("ranks", "majority"):
        wanted = AGGREGATIONS[name](advice, weights)
        np.testing.assert_array_equal(AGGREGATIONS[name](other, weights), wanted)
        np.testing.assert_array_equal(filled(name, 0.0, other, weights), wanted)


@settings(deadline=None, max_examples=50)
@given(some_advice, st.data(), st.sampled_from([0.125, 0.5, 2.0, 1024.0]))  # exact, so that equal values stay equal
def test_majority_does_not_change_under_scaling(advice, data, by):
    weights, one = data.draw(weights_for(advice)), data.draw(st.integers(0, len(advice) - 1))
    other = advice.copy()
    other[one] *= by
    np.testing.assert_array_equal(AGGREGATIONS["majority"](other, weights), AGGREGATIONS["majority"](advice, weights))


@settings(deadline=None, max_examples=50)
@given(advices.map(np.abs), st.data())
def test_p_norms_lead_from_the_sum_to_the_maximum(advice, data):
    weights = np.abs(data.draw(weights_for(advice)))
    total, best = weighted_sum(advice, weights), maximum(advice, weights)
    np.testing.assert_allclose(p_norm(advice, weights, 1.0), total, rtol=1e-12)
    np.testing.assert_allclose(p_norm(advice, weights, 1e6), best, rtol=1e-5)  # m ** 1e-6 at most
    between = [p_norm(advice, weights, p) for p in (1.0, 1.5, 4.0, 32.0)]
    for larger, smaller in zip(between, [*between[1:], best], strict=True):
        assert (larger * (1 + 1e-12) >= smaller).all()


@settings(deadline=None, max_examples=50)
@given(some_advice, st.data())
def test_a_boltzmann_product_prefers_as_the_sum_does(advice, data):
    """The logarithms differ from the sum over the temperature by a number for all actions."""
    weights = data.draw(weights_for(advice))
    got, total = AGGREGATIONS["boltzmann_product"](advice, weights, 2.0), weighted_sum(advice, weights)
    scale = max(1.0, np.abs(advice).max() * np.abs(weights).sum())
    np.testing.assert_allclose(got - got[0], (total - total[0]) / 2.0, rtol=1e-9, atol=1e-12 * scale)


@settings(deadline=None, max_examples=50)
@given(some_advice, st.data())
def test_a_boltzmann_sum_shares_out_the_weights(advice, data):
    weights = data.draw(weights_for(advice))
    assert AGGREGATIONS["boltzmann_sum"](advice, weights).sum() == pytest.approx(weights.sum(), abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(some_advice, st.data())
def test_normalised_preferences_lie_between_0_and_1(advice, data):
    weights = data.draw(weights_for(advice))
    got = AGGREGATIONS["normalised"](advice, weights)
    assume((weights[:, None] * advice > 0).any())
    assert got.min() >= 0.0
    assert got.max() == 1.0


@pytest.mark.parametrize("name", TOLD)
def test_where_nobody_is_there_or_everybody_is_silent_nothing_is_preferred(name):
    for advice in (np.zeros((0, 3)), ADVICE):
        silent = np.zeros(len(advice))
        np.testing.assert_array_equal(AGGREGATIONS[name](advice, silent), np.zeros(3))
    np.testing.assert_array_equal(filled(name, AGGREGATIONS[name].parameter, ADVICE, np.zeros(3)), np.zeros(3))


# ---- the three plannings of the paper, and how an action is chosen ---------------------------------------------------
def egocentric(advice):
    return bootstrap(all_plannings.egocentric, advice)


def agnostic(advice):
    return bootstrap(all_plannings.agnostic, advice)


def empathic(advice, action):
    return bootstrap(all_plannings.empathic, advice, Ahead(greedy=action))


advice_arrays = sizes.flatmap(lambda size: arrays(float, size, elements=st.floats(-1e6, 1e6)))
draws = st.floats(0, 1, exclude_max=True)


@given(advice_arrays)
def test_egocentric_bounds_the_others(advice):
    best = egocentric(advice)
    assert (best >= agnostic(advice) - 1e-9).all()
    for action in range(advice.shape[1]):
        assert (best >= empathic(advice, action)).all()


@given(advice_arrays)
def test_sum_of_maxima_is_at_least_the_maximum_of_the_sum(advice):
    weights = np.ones(len(advice))
    assert egocentric(advice).sum() >= weighted_sum(advice, weights).max() - 1e-6


@given(advice_arrays, st.data())
def test_empathic_bootstraps_sum_to_the_best_preference(advice, data):
    weights = data.draw(arrays(float, len(advice), elements=st.floats(-3, 3)))
    preferences = weighted_sum(advice, weights)
    action = int(greedy(preferences, data.draw(draws)))
    assert (weights * empathic(advice, action)).sum() == pytest.approx(preferences.max(), rel=1e-9, abs=1e-6)


@given(arrays(float, st.integers(1, 8), elements=st.integers(-2, 2).map(float)), draws)
def test_greedy_takes_a_best_action(preferences, draw):
    assert preferences[int(greedy(preferences, draw))] == preferences.max()


def test_greedy_breaks_ties_evenly():
    preferences = np.array([1.0, 0.0, 1.0, 1.0])
    picked = np.bincount([int(greedy(preferences, draw)) for draw in np.linspace(0, 1, 3001)[:-1]], minlength=4)
    assert picked.tolist() == [1000, 0, 1000, 1000]


def test_epsilon_greedy_explores_below_epsilon_only():
    preferences = np.array([0.0, 5.0, 0.0])
    assert [int(epsilon_greedy(preferences, 0.3, explore, 0.99)) for explore in (0.29, 0.3)] == [2, 1]
    assert int(epsilon_greedy(preferences, 1.0, 0.999, 0.0)) == 0


def test_choices_are_the_same_on_jax():
    preferences = jnp.asarray([1.0, 3.0, 3.0])
    assert [int(jax.jit(greedy)(preferences, draw)) for draw in (0.1, 0.9)] == [1, 2]
    chosen = [int(jax.jit(epsilon_greedy)(preferences, 0.5, explore, 0.0)) for explore in (0.4, 0.6)]
    assert chosen == [0, 1]


def test_wrong_shapes_and_names_are_refused():
    with pytest.raises(ValueError, match="axes"):
        egocentric(np.zeros(3))
    with pytest.raises(ValueError, match="weights"):
        weighted_sum(ADVICE[:2], np.ones(3))
    refused("did you mean 'empathic'", planning_named, "emphatic")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("summ", "unknown aggregation 'summ': did you mean 'sum'?"),
        ("mine", "max, max_plus, normalised, p_norm, ranks, sum, w_learning, or import the file that registers it "),
        ("p_norm:0.5", "the exponent of 'p_norm' is '0.5': give a number of at least 1, as in p_norm:5"),
        ("p_norm:", "the exponent of 'p_norm' is '': give a number of at least 1"),
        ("p_norm:inf", "the exponent of 'p_norm' is 'inf'"),
        ("boltzmann_sum:0", "the temperature of 'boltzmann_sum' is '0': give a number of at least 1e-06"),
        ("max_plus:-2", "the share of the sum of 'max_plus' is '-2': give a number of at least -1, as in max_plus:0.1"),
        ("max:3", "the aggregation 'max' takes no parameter: leave ':3' out"),
    ],
)
def test_what_no_aggregation_is_called(text, message):
    refused(re.escape(message), aggregation_named, text)
