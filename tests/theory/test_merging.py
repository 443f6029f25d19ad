"""Merging MDPs: the bounds hold, the policy is the optimum's, and what cannot be bounded is refused."""

from dataclasses import replace

import numpy as np
import pytest

import multiadvisor as mad
from multiadvisor.analysis.theory import enumerate_task, optimum
from multiadvisor.analysis.theory.merging import component_bounds, decided, merge, random_components, value_iteration
from refusal import refused


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_and_the_policy_is_the_best(seed):
    mdp = random_components(2, 4, 3, 1, seed)
    best, _ = optimum(mdp, 0.8)
    lower, upper, _ = component_bounds(mdp, 0.8)
    assert (lower <= best.max(axis=1) + 1e-9).all()
    assert (upper >= best.max(axis=1) - 1e-9).all()
    merged, plain = merge(mdp, 0.8), value_iteration(mdp, 0.8)
    assert decided(merged.allowed) == 1.0 or seed == 1, "two actions of the second one are equal somewhere"
    for found in (merged, plain):
        assert (found.lower <= best.max(axis=1) + 1e-9).all()
        assert (found.upper >= best.max(axis=1) - 1e-9).all()
        assert (best[found.allowed] >= best.max(axis=1, keepdims=True).repeat(5, axis=1)[found.allowed] - 1e-5).all()
    assert merged.backups < plain.backups


def test_actions_that_are_equal_stay_and_the_bounds_meet():
    task = mad.make("fruit-grid", width=3, height=3, fruits=3)
    mdp = enumerate_task(task, task.initial_state(0))
    merged = merge(mdp, 0.9, 1e-4)
    best, _ = optimum(mdp, 0.9)
    assert decided(merged.allowed) < 1.0
    assert (merged.upper - merged.lower).max() <= 1e-4
    assert merged.allowed[best >= best.max(axis=1, keepdims=True) - 1e-12].all()


def test_what_has_no_bounds_is_refused():
    mdp = random_components(2, 3, 2, 1)
    for wrong, word in ((replace(mdp, weights=np.array([1.0, -1.0])), "may lose"),
                        (replace(mdp, gammas=(0.5, None)), "gammas"),
                        (replace(mdp, local=np.zeros_like(mdp.local)), "not an MDP")):  # fmt: skip
        refused(word, merge, wrong, 0.9)
