"""What makes the paper's report quick: less of what is run at one length."""

from multiadvisor.studies import study_report
from multiadvisor.studies.paper import (
    claims_results,
    deviations,
    dqn_clipped,
    pac_boy_study,
    theory_checks,
    value_function,
)

SHIPPED = {"command": "make it", "machine": "Linux", "device": "cpu", "date": "2026-11-01", "sha256": "made up"}


def make_shallow(setattr=setattr):
    """In this process; workers of their own would know nothing of it."""
    setattr(theory_checks, "TD_STEPS", 40_000)
    setattr(theory_checks, "AGGREGATIONS", {"sum": None, "majority": None})
    setattr(theory_checks, "RANDOM_STEPS", 40_000)
    setattr(theory_checks, "ROUNDS", 1_000)
    setattr(pac_boy_study, "DANGER_EPISODES", 4)
    setattr(pac_boy_study, "SWEPT", pac_boy_study.SWEPT[:2])
    setattr(deviations, "MAZES", 1)
    setattr(value_function, "STARTS", 40)


def ships(monkeypatch, epochs, seeds=3):
    """As if runs of so many epochs were shipped of DQN-clipped."""
    made = dqn_clipped.ShippedRuns({**SHIPPED, "epochs": epochs}, [{}] * seeds)
    for module in (dqn_clipped, claims_results, pac_boy_study, study_report):
        monkeypatch.setattr(module, "shipped", lambda path=None: made)
