"""Which setting for which noise: the numbers behind it by hand and by learning, and cases that flip it."""

import math

import numpy as np
import pytest

import multiadvisor as mad
from command_line import printed, typed
from multiadvisor.analysis.theory import noise_bounds
from multiadvisor.analysis.theory.noise_bounds import choose, largest_of, maximisation_bias, noise_limit, wandering
from refusal import refused

EGOCENTRIC, EMPATHIC = "--planning egocentric --aggregation max", "--planning empathic --aggregation max"


def test_the_largest_of_several_normals():
    drawn = np.random.default_rng(0).normal(size=(200_000, 5))
    assert largest_of(5) == pytest.approx(drawn.max(axis=1).mean(), abs=0.01)
    assert largest_of(1) == pytest.approx(0.0, abs=1e-9)
    assert largest_of(2) == pytest.approx(1 / math.sqrt(math.pi), abs=1e-6)


def test_a_learned_value_wanders_as_far_as_it_is_said_to():
    """One state, one action that pays nothing but noise and ends: its value is an average of the last rewards."""
    agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric", gamma=0.0, alpha=0.1, noise=0.5, epsilon=1.0)
    seen = []
    for _ in range(2_000):
        agent.learn(30, progress=False)
        seen.append(agent.values("goal 1")[0, 0])
    assert np.std(seen) == pytest.approx(wandering(0.5, 0.1), rel=0.1)


def test_an_egocentric_advisor_hopes_in_vain_as_much_as_it_is_said_to():
    """A corridor without end: nothing is ever paid, and yet something is hoped for."""
    maze = mad.make("fruit-grid", width=6, height=6, fruits=1)
    quiet = maze.with_weights(**dict.fromkeys(maze.names, 0.0))  # at random, whatever is learned
    agent = mad.MultiAdvisor(quiet, planning="egocentric", gamma=0.5, noise=0.5, epsilon=1.0)
    agent.learn(2_000_000, progress=False)
    hoped = np.mean([agent.values(name).max(axis=1).mean() for name in maze.names])
    assert hoped > 0.5 * maximisation_bias(0.5, 0.5, 0.1, 4)


def test_the_limit_is_where_both_sides_are_equal():
    for wish, gamma in ((1.0, 0.9), (0.2, 0.9), (0.5, 0.4)):
        noise = noise_limit(wish, 1.0, gamma, 0.1, 4)
        gap = (1 - gamma) * wish * (1 - maximisation_bias(noise, gamma, 0.1, 4))
        assert gap == pytest.approx(math.sqrt(2) * wandering(noise, 0.1))
    assert noise_limit(0.5, 1.0, 1.0, 0.1, 4) == 0.0


def test_more_noise_and_farther_goals_flip_it():
    near, far = (mad.make("fruit-grid", width=side, height=side, fruits=2) for side in (3, 12))
    assert noise_bounds.wish_of(near, 0.9).weakest > 2 * noise_bounds.wish_of(far, 0.9).weakest
    for task in (near, far):
        limit = choose(task, 0.0).limit
        assert choose(task, 0.9 * limit).use == EGOCENTRIC
        assert choose(task, 1.1 * limit).use == f"{EMPATHIC} --alpha-half 500000"
    between = 0.5 * (choose(near, 0.0).limit + choose(far, 0.0).limit)
    assert choose(near, between).use == EGOCENTRIC
    assert choose(far, between).use.startswith(EMPATHIC)
    scaled = mad.make("two-goal", r1=10.0, r2=10.0)
    assert choose(scaled, 0.0).limit == pytest.approx(10 * choose(mad.make("two-goal"), 0.0).limit)


def test_ghosts_are_summed_and_rewards_of_both_signs_are_left_to_the_sum():
    assert choose(mad.make("pac-boy"), 0.0).use == "--planning egocentric --aggregation fruits=max"
    mixed = mad.make("random-mdp", states=5, advisors=2)
    assert choose(mixed, 0.0).use == "--planning egocentric --aggregation sum"
    assert choose(mixed, 50.0).use == "--planning empathic --aggregation sum"


def test_the_command(capsys):
    told = printed(capsys, "solve", "pac-boy", "--noise", "0.3")
    assert told["use"].startswith("--planning empathic --aggregation fruits=max")
    assert 0.03 < told["limit"] < 0.1
    code, text, _ = typed(capsys, "solve", "three-fruits", "--noise", "0.01")
    assert (code, "use --planning egocentric --aggregation max" in text) == (0, True)
    feared = mad.make("two-goal").with_weights(**{"goal 1": -1.0, "goal 2": -1.0})
    refused("nobody has anything to wish for", choose, feared, 0.1)
