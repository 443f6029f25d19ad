"""The verdict on value mapping follows from the runs."""

import pytest

from multiadvisor.studies.study import Evidence, Plan
from multiadvisor.studies.systems import value_mapping

PLAN = Plan(seeds=2, first_seed=1000)


def made_up(plain, log, errors):
    shares = {"plain": plain, "logarithm": log}
    runs = {
        value_mapping.job(scale, gamma, seed).id: {"evaluations": [{"terminated": share}]}
        for scale, share in shares.items() for gamma in value_mapping.GAMMAS for seed in PLAN.each
    }  # fmt: skip
    return runs | {value_mapping.channels_job(seed).id: {"errors": errors} for seed in PLAN.each}


def holds(results):
    return {one.claim.id: one.holds for one in value_mapping.findings(Evidence(PLAN, results))}


def test_runs_that_refute_it():
    assert all(holds(made_up(0.2, 1.0, [0.3, 0.1, 0.01])).values())
    assert not holds(made_up(1.0, 1.0, [0.3, 0.1, 0.01]))["small-gamma"]
    assert not holds(made_up(0.2, 0.9, [0.3, 0.1, 0.01]))["any-gamma"]
    assert not holds(made_up(0.2, 1.0, [0.3, 0.1, 0.06]))["converges"]
    assert not holds(made_up(0.2, 1.0, [0.3, 0.01, 0.02]))["settles"]


@pytest.mark.slow
def test_the_work():
    found = value_mapping.work({"mappings": ["log:50", None, None], "looks": [1000, 100_000], "seed": 0})
    assert found["errors"][1] < 0.2 * found["errors"][0]
