"""Generalised policy improvement and the correction, exact: the inequality and the identity on 500 random MDPs each."""

import dataclasses
import functools

import numpy as np
import pytest
from random_mdps import ending

import multiadvisor as mad
from multiadvisor.analysis import theory
from multiadvisor.analysis.theory.better_aggregators import correct, improve
from refusal import refused

SEEDS = range(500)


@functools.cache
def random_mdp(seed, signs=True):
    """2 to 20 states, 2 to 5 actions, 1 to 5 advisors; rewards of either sign, some actions end the episode."""
    generator = np.random.default_rng(seed)
    states, actions, n = generator.integers(2, 21), generator.integers(2, 6), generator.integers(1, 6)
    weights, rewards = generator.normal(size=n), generator.normal(size=(n, states, actions))
    weights = weights if signs else np.abs(weights)
    return ending(generator, states, actions, rewards, weights), (0.5, 0.8, 0.9, 0.95)[seed % 4]


@functools.cache
def corrected(seed):
    """An MDP, its gamma, the plain sum, the correction and the optimum: several tests ask for them."""
    mdp, gamma = random_mdp(seed)
    solution = theory.solve(mdp, "egocentric", gamma)
    return mdp, gamma, solution, correct(solution), theory.optimum(mdp, gamma)[0]


@pytest.mark.slow
def test_gpi_is_at_least_as_good_as_any_advisor_in_control_with_weights_of_any_sign():
    better = 0
    for seed in SEEDS:
        mdp, gamma = random_mdp(seed)
        found = improve(mdp, gamma)
        achieved = theory.evaluate(mdp, found.policy, gamma).preferences
        assert (achieved >= found.plans - 1e-9).all(), seed
        better += bool((achieved > found.plans + 1e-6).any(axis=0).all())
    assert better > 250  # and as a rule better than the best of them somewhere


def test_cross_values_on_the_diagonal_are_the_advisors_own():
    mdp, gamma = random_mdp(3)
    own = theory.solve(mdp, "egocentric", gamma).values
    cross = improve(mdp, gamma).cross
    for j in range(mdp.n):
        assert cross[j, j] == pytest.approx(own[j], abs=1e-10)


@pytest.mark.parametrize("task", ["two-goal", "three-fruits", "four-fruits", "resource-scheduling"])
def test_gpi_has_no_stuck_state_where_the_sum_has_and_local_advisors_are_corrected_to_the_optimum(task):
    mdp = theory.enumerate_task(mad.make(task))
    best, _ = theory.optimum(mdp, 0.9)
    assert correct(theory.solve(mdp, "egocentric", 0.9)).preferences == pytest.approx(best, abs=1e-10)
    policy = improve(mdp, 0.9).policy
    never = theory.evaluate(mdp, policy, 0.9).preferences.max(axis=1) <= 1e-12
    alive = (mdp.local >= 0).any(axis=0)
    assert not (never & alive).any()


@pytest.mark.slow
def test_the_corrected_sum_is_the_optimum_with_weights_of_any_sign():
    for seed in SEEDS:
        _, _, _, found, best = corrected(seed)
        assert found.converged
        assert np.abs(found.preferences - best).max() < 1e-10, seed


@pytest.mark.slow
def test_the_correction_is_never_negative_with_weights_of_at_least_zero():
    for seed in SEEDS:
        mdp, gamma = random_mdp(seed, signs=False)
        assert correct(theory.solve(mdp, "egocentric", gamma)).values.min() > -1e-10, seed


def test_with_a_negative_weight_the_correction_may_be_negative():
    assert any(corrected(seed)[3].values.min() < -0.1 for seed in range(20))


def test_agnostic_advisors_and_advisors_with_gammas_of_their_own_are_corrected_as_well():
    for seed in range(50):
        mdp, gamma, _, _, best = corrected(seed)
        assert np.abs(correct(theory.solve(mdp, "agnostic", gamma)).preferences - best).max() < 1e-10
        short = dataclasses.replace(mdp, gammas=tuple([0.3, 0.6, None, 0.0, 0.9][: mdp.n]))
        assert np.abs(correct(theory.solve(short, "egocentric", gamma)).preferences - best).max() < 1e-10


@pytest.mark.slow
def test_an_error_of_the_correction_is_the_error_of_the_sum_and_no_more():
    """Nor is the value of a state further off, and the policy loses at most 2 / (1 - gamma) times as much."""
    for seed in range(200):
        mdp, gamma, solution, found, best = corrected(seed)
        generator = np.random.default_rng(seed)
        for scale in (0.0, 0.1, 1.0):  # 0: no correction at all, the plain sum
            guess = scale * (found.values + generator.normal(size=found.values.shape))
            off = np.abs(guess - found.values)
            prefer = solution.preferences - guess
            assert (np.abs(prefer - best) <= off + 1e-9).all()
            assert (np.abs(prefer.max(axis=1) - best.max(axis=1)) <= off.max(axis=1) + 1e-9).all()
            policy = theory.solver.greedy_policy(prefer)
            worth = (policy * theory.evaluate(mdp, policy, gamma).preferences).sum(axis=1)
            assert (best.max(axis=1) - worth <= 2 * off.max() / (1 - gamma) + 1e-9).all()


def test_what_cannot_be_improved_or_corrected_is_refused_in_one_line():
    mdp, gamma = random_mdp(0)
    refused("different gammas", improve, dataclasses.replace(mdp, gammas=(0.5, *(None,) * (mdp.n - 1))), 0.9)
    refused("egocentric or agnostic", correct, theory.solve(mdp, "empathic", gamma))
    blurred = dataclasses.replace(mdp, local=np.zeros_like(mdp.local))
    refused("full=True", correct, theory.solve(blurred, "egocentric", gamma))
