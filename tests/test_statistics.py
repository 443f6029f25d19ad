"""Bootstrap intervals against what is known of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multiadvisor.core.intervals import estimate, interquartile_mean, interval, paired, stratified, unpaired

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


def test_the_interval_of_normal_means_is_about_four_standard_errors_wide():
    values = np.random.default_rng(3).normal(5.0, 2.0, 400)
    low, high = interval(values)
    assert low < 5.1
    assert high > 4.9
    assert high - low == pytest.approx(4 * 2.0 / np.sqrt(400), rel=0.15)


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    caught = sum(low <= 0 <= high for low, high in (interval(generator.normal(size=30)) for _ in range(300)))
    assert 0.89 < caught / 300 < 0.98


@settings(deadline=None, max_examples=60)
@given(numbers)
def test_the_interquartile_mean_is_between_the_quartiles_and_blind_to_the_ends(values):
    found, ordered = interquartile_mean(np.array(values)), np.sort(values)
    n = len(ordered)
    assert ordered[n // 4] - 1e-6 <= found <= ordered[n - 1 - n // 4] + 1e-6
    if n >= 4:
        wild = ordered.copy()
        wild[0], wild[-1] = -1e9, 1e9
        assert interquartile_mean(wild) == pytest.approx(found, abs=1e-6)


def test_the_interquartile_mean_by_hand():
    assert interquartile_mean(np.array([0.0, 1.0, 3.0, 100.0])) == 2.0
    # of five runs the middle 2.5 count: three quarters of the second and of the fourth
    assert interquartile_mean(np.array([0.0, 4.0, 5.0, 8.0, 100.0])) == pytest.approx((0.75 * 4 + 5 + 0.75 * 8) / 2.5)
    assert interquartile_mean(np.array([[1.0, 1.0], [3.0, 5.0]]), axis=0).tolist() == [2.0, 3.0]


def test_pairs_cancel_what_seeds_have_in_common():
    luck = np.random.default_rng(1).normal(0, 50, 12)
    better = paired(luck + 1.0, luck)
    assert better.value == pytest.approx(1.0)
    assert better.high - better.low < 1e-9
    alone = estimate(luck + 1.0)
    assert alone.high - alone.low > 20
    with pytest.raises(ValueError, match="same seeds"):
        paired(luck, luck[:3])


def test_unpaired_differences_carry_the_spread_of_both_sides():
    generator = np.random.default_rng(4)
    one, other = generator.normal(3, 1, 200), generator.normal(1, 2, 50)
    found = unpaired(one, other)
    assert found.value == pytest.approx(one.mean() - other.mean())
    spread = np.sqrt(one.var() / 200 + other.var() / 50)
    assert found.high - found.low == pytest.approx(3.92 * spread, rel=0.1)


def test_strata_are_resampled_by_themselves():
    """Two settings far apart: their mean is known well, though a single sample of both would look wide."""
    generator = np.random.default_rng(2)
    low, high = generator.normal(0, 1, 10), generator.normal(100, 1, 10)
    narrow = stratified([low, high])
    wide = interval(np.concatenate([low, high]))
    assert narrow[0] < 50.3
    assert narrow[1] > 49.7
    assert narrow[1] - narrow[0] < 2
    assert wide[1] - wide[0] > 30


def test_one_value_has_no_interval_and_repeats_itself():
    assert interval(np.array([3.0])) == (3.0, 3.0)
    values = np.random.default_rng(0).normal(size=9)
    assert interval(values) == interval(values)
    assert str(estimate([2.0, 2.0])) == "2.00 [2.00, 2.00]"


def test_the_intervals_of_a_table_are_those_of_its_rows():
    table = np.random.default_rng(4).normal(size=(6, 5))
    assert list(zip(*interval(table), strict=True)) == [interval(row) for row in table]
    assert interval(table[:, :1]) == (table[:, 0].tolist(),) * 2
