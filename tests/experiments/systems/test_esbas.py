"""ESBAS as a system: results that refute it are seen to, and a run of two members."""

import numpy as np

from multiadvisor.runs.jobs import perform
from multiadvisor.studies.study import Evidence, Plan
from multiadvisor.studies.systems import esbas

ALL = tuple(esbas.MEMBERS)

PLAN = Plan(seeds=2, first_seed=1000)


def made_up(**found):
    """Results with these returns in all epochs, or early and late; others return 0."""
    results = {}
    for who in (ALL, *((name,) for name in ALL)):
        early, late = found.get("portfolio" if who == ALL else who[0].replace(" ", "_"), (0.0, 0.0))
        for seed in PLAN.each:
            curve = [early] * (esbas.EPOCHS - 1) + [late]
            results[esbas.job(who, seed).id] = {"returns": curve, "chosen": [[1.0] * len(who)] * esbas.EPOCHS}
    return results


def holds(**found):
    return {one.claim.id: one.holds for one in esbas.findings(Evidence(PLAN, made_up(**found)))}


def test_returns_that_refute_it():
    staggered = {"coarse_table": (0.5, 0.5), "network": (0.0, 0.9)}
    good = holds(portfolio=(0.5, 0.9), **staggered)
    assert all(good.values())
    late = holds(portfolio=(0.3, 0.5), **staggered)
    assert not late["last-half"]
    assert not late["regret"]
    never = holds(coarse_table=(0.5, 0.5))
    assert never == {"early": True, "late": False, "regret": False, "last-half": False, "blind": False}


def test_a_dialogue_counts_once_however_long_its_epoch_is():
    curve = np.zeros((1, esbas.EPOCHS))
    curve[0, -1] = 1.0
    assert esbas.an_episode(curve)[0] == 2 ** (esbas.EPOCHS - 1) / (2**esbas.EPOCHS - 1)


def test_a_run():
    config = {"members": ["coarse table", "fine table"], "epochs": 5, "seed": 1}
    first, second = (perform("portfolio", config, None, lambda share: None) for _ in range(2))
    assert first == second
    assert len(first["returns"]) == 5
    assert np.allclose(np.sum(first["chosen"], axis=1), 1.0)
