"""W-learning and Arbi-Q as systems: results that refute them are seen to, and what they run is what they say."""

import numpy as np

from multiadvisor.studies.study import Evidence, Plan
from multiadvisor.studies.systems import arbi_q, w_learning

PLAN = Plan(seeds=2, first_seed=1000)


def regrets(found):
    """Results of W-learning with these worst regrets, by case."""
    return {
        w_learning.job(*case, seed).id: {"regret": [0.0, found(*case)]}
        for case in w_learning.cases()
        for seed in PLAN.each
    }


def holds(module, results):
    return {one.claim.id: one.holds for one in module.findings(Evidence(PLAN, results))}


def test_regrets_that_refute_it():
    def good(heard, minds, constant):
        return {"sum": 3.0, "max": 2.0 + constant, "w_learning": 1.0 if minds == "alike" else 3.0}[heard]

    assert all(holds(w_learning, regrets(good)).values())
    equal = holds(w_learning, regrets(lambda *case: 1.0))
    assert equal == {"worst-regret": False, "independent": True, "constants": True, "strongest-wish": False}
    moved = holds(w_learning, regrets(lambda heard, minds, constant: constant))
    assert not moved["constants"]


def test_five_of_one_mind():
    task = w_learning.crowd(0, "alike", 5.0)
    reward = task.world.constants.reward
    assert np.array_equal(reward[..., 1], reward[..., 4])
    assert np.allclose(reward[..., 0] - 5.0, reward[..., 1])
    assert not np.array_equal(w_learning.crowd(0, "apart").world.constants.reward[..., 1], reward[..., 1])
    assert task.endless


def scored(found):
    return {
        arbi_q.job(heard, scale, seed).id: {"scores": [found(heard, scale)] * arbi_q.EVALUATIONS}
        for heard in arbi_q.HEARD for scale in arbi_q.SCALES for seed in PLAN.each
    }  # fmt: skip


def test_scores_that_refute_it():
    good = holds(arbi_q, scored(lambda heard, scale: 1.0 if heard == "arbi_q" or scale == "as they are" else 2.0))
    assert all(good.values())
    assert len(good) == 4
    bad = holds(arbi_q, scored(lambda heard, scale: 1.0 if heard == "sum" or scale == "as they are" else 2.0))
    assert not any(bad.values())
    assert not holds(arbi_q, scored(lambda heard, scale: 1.0))["sum-food-100"]


def test_the_arbitrator_is_paid_as_the_task_pays_and_the_advisors_as_told():
    task = arbi_q.scaled(100.0, 1.0)
    step = type("Step", (), {"reward": np.array([1.0, -1.0])})
    assert [advisor.reward(step) for advisor in task.advisors] == [100.0, -1.0]
    assert task.arbitrator.reward(step) == 0.0
