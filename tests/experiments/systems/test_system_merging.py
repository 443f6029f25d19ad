"""The verdict on merging follows from the runs."""

from multiadvisor.studies.study import Evidence, Plan
from multiadvisor.studies.systems import merging_system

PLAN = Plan(seeds=2, first_seed=1000)


def made_up(merged, same, components=10):
    run = {"merged": merged, "plain": 100, "components": components, "same": same, "inside": True}
    return {merging_system.job(seed).id: run for seed in PLAN.each}


def holds(results):
    return {one.claim.id: one.holds for one in merging_system.findings(Evidence(PLAN, results))}


def test_runs_that_refute_it():
    assert all(holds(made_up(50, 1.0)).values())
    assert holds(made_up(100, 1.0)) == {"same-policy": True, "fewer-backups": False, "with-components": False}
    assert not holds(made_up(50, 0.99))["same-policy"]
    assert not holds(made_up(50, 1.0, 60))["with-components"]


def test_the_work():
    found = merging_system.work({"components": 2, "states": 3, "own": 3, "busy": 1, "gamma": 0.8, "seed": 0})
    assert found["same"] == 1.0
    assert found["inside"]
    assert found["decided"][0][-1] == found["decided"][1][-1] == 1.0
