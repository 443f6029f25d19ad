"""Planning and aggregation: values worked by hand, properties, and the same results on JAX arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from multiadvisor import BadInput
from multiadvisor.core import plannings as all_plannings
from multiadvisor.core.aggregations import epsilon_greedy, greedy, weighted_sum
from multiadvisor.core.plannings import PLANNINGS, Ahead, bootstrap, planning_named


def egocentric(advice):
    return bootstrap(all_plannings.egocentric, advice)


def agnostic(advice):
    return bootstrap(all_plannings.agnostic, advice)


def empathic(advice, action):
    return bootstrap(all_plannings.empathic, advice, Ahead(greedy=action))


ADVICE = np.array([[1.0, 2.0, 4.0], [3.0, -1.0, 0.0]])
finite = st.floats(-1e6, 1e6)
advice_arrays = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(lambda s: arrays(float, s, elements=finite))
draws = st.floats(0, 1, exclude_max=True)


def test_hand_worked_values():
    assert egocentric(ADVICE).tolist() == [4.0, 3.0]
    assert agnostic(ADVICE) == pytest.approx([7 / 3, 2 / 3])
    assert empathic(ADVICE, 1).tolist() == [2.0, -1.0]
    assert weighted_sum(ADVICE, np.array([0.5, -2.0])).tolist() == [-5.5, 3.0, 2.0]


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


@pytest.mark.parametrize("name", PLANNINGS)
def test_same_on_jax(name):
    counts, given = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 4.0]]), np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    ahead = Ahead(2, 1, np.array([0.1, 0.2, 0.7]), counts, given)
    expected = bootstrap(PLANNINGS[name], ADVICE, ahead)
    got = jax.jit(lambda advice, then: bootstrap(PLANNINGS[name], advice, then))(jnp.asarray(ADVICE), ahead)
    assert np.asarray(got) == pytest.approx(expected, rel=1e-6)


def test_aggregation_same_on_jax():
    preferences = jnp.asarray([1.0, 3.0, 3.0])
    assert np.asarray(jax.jit(weighted_sum)(jnp.asarray(ADVICE), jnp.asarray([1.0, 2.0]))).tolist() == [7.0, 0.0, 4.0]
    assert [int(jax.jit(greedy)(preferences, draw)) for draw in (0.1, 0.9)] == [1, 2]
    chosen = [int(jax.jit(epsilon_greedy)(preferences, 0.5, explore, 0.0)) for explore in (0.4, 0.6)]
    assert chosen == [0, 1]


def test_wrong_shapes_and_names_are_refused():
    with pytest.raises(ValueError, match="axes"):
        egocentric(np.zeros(3))
    with pytest.raises(ValueError, match="weights"):
        weighted_sum(ADVICE, np.ones(3))
    with pytest.raises(BadInput, match="did you mean 'empathic'"):
        planning_named("emphatic")
