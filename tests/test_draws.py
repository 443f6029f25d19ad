"""Random numbers: the published sequence, uniformity, and independence of how a run is cut."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multiadvisor.core import rng

GOLDEN = 0x9E3779B97F4A7C15


def test_mix_is_splitmix64():
    # the first outputs of SplitMix64 from the state 1234567, as its author publishes them
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    states = [(1234567 + (k + 1) * GOLDEN) % 2**64 for k in range(4)]
    assert [int(rng.mix(np.uint64(state))) for state in states] == expected


@given(st.integers(0, 2**64 - 1))
def test_python_twin_of_mix(word):
    assert rng._mix_python(word) == int(rng.mix(np.uint64(word)))


def words(count):
    key = rng.stream_key(3, rng.TRAINING)
    steps = (np.uint64(rng.step_key(key, step)) for step in range(count // 4))
    return [np.uint64(rng.draw(step, purpose)) for step in steps for purpose in range(4)]


def test_every_bit_is_fair_and_words_differ():
    sample = np.array(words(20_000), np.uint64)
    assert len(np.unique(sample)) == len(sample)
    share = [((sample >> np.uint64(bit)) & np.uint64(1)).mean() for bit in range(64)]
    assert np.abs(np.array(share) - 0.5).max() < 5 * 0.5 / math.sqrt(len(sample))


def test_below_is_uniform():
    counts = np.bincount([rng.below(word, 3) for word in words(30_000)], minlength=3)
    assert np.abs(counts - 10_000).max() < 5 * math.sqrt(30_000 * 2 / 9)


def test_halves_are_independent():
    high, low = np.array([(rng.high_half(w), rng.low_half(w)) for w in words(20_000)]).T
    assert abs(np.corrcoef(high, low)[0, 1]) < 5 / math.sqrt(20_000)
    assert 0 <= high.min() < 0.001
    assert 0.999 < high.max() < 1


def test_normal_has_the_normal_distribution():
    sample = np.sort([rng.normal(word) for word in words(200_000)])
    cdf = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in sample[::20]])
    rank = np.arange(len(sample))[::20] / len(sample)
    assert np.abs(cdf - rank).max() < 1.95 / math.sqrt(len(sample))  # Kolmogorov and Smirnov, p about 0.001
    tail = (np.abs(sample) > rng._TAIL).mean()
    assert tail == pytest.approx(math.erfc(rng._TAIL / math.sqrt(2)), rel=0.5)
    assert abs(sample.mean()) < 5 / math.sqrt(len(sample))


def test_streams_differ():
    keys = {int(rng.stream_key(s, t, i)) for s in range(20) for t in range(1, 4) for i in range(20)}
    assert len(keys) == 20 * 3 * 20
