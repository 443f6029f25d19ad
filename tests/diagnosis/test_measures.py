"""The benchmarks of the diagnosis: planted faults are found, and true explanations are told from false ones."""

import json

import numpy as np
import pytest

from multiadvisor.commands.benchmark import KINDS, measure_named

faults, faithfulness = measure_named("faults"), measure_named("faithfulness")


@pytest.mark.slow
def test_planted_faults_are_counted_and_cases_reported_are_not_those_chosen_on():
    found = faults.measure(("FrozenLake-v1",), range(1))
    assert found["faults"] == {fault: [1, 1] for fault in faults.FAULTS if fault != "lingers"}  # here holes end it
    assert (found["found"], found["clean"], found["accused"]) == ([6, 6], 2, 0)
    text = faults.describe("faults", {"machine": "here", "environments": ["FrozenLake-v1"], **found})
    assert "6 of 6 planted faults found; 0 of 2 clean ones accused" in text
    assert not set(faults.CHOSEN) & set(faults.REPORTED)


@pytest.mark.parametrize("name", ["MountainCar-v0", "MountainCarContinuous-v0", "Taxi-v4"])
def test_a_policy_that_rests_is_stuck_and_one_that_arrives_is_not(name):
    where = faults.setting(name, 7)
    kinds = [
        {one.kind for one in faults.said(faults.paid(faults.sampled(where, policy, 1_500), where.weights)).findings}
        for policy in (lambda seen, draw: where.case.rests(seen), where.case.does)
    ]
    assert ["stuck" in one for one in kinds] == [True, False]


def asked(expected, short, truth):
    told = np.ones(short.shape, bool)
    without = expected.sum(axis=1)[:, None] - expected < 0
    return faithfulness.Asked(np.repeat(truth[:, None], 4, axis=1), short, told, expected, without, 0.01)


def test_true_explanations_are_told_from_false_ones():
    truth = np.random.default_rng(0).normal(size=(40, 2)) * [1.0, 3.0]
    found = faithfulness.judged(asked(-truth, truth, truth))
    assert found["on demand"]["r"] == pytest.approx([1, 1])
    assert found["on demand"]["strong signs"] == [1, 1]
    assert found["expected"]["r"] == pytest.approx([-1, -1])
    assert found["expected"]["better action"] == 0
    assert found["expected"]["leading term"] == 1
    assert found["told right"] == 1
    assert found["halves"] == pytest.approx([1, 1])
    assert 0.5 <= found["constant"]["better action"] < 0.8
    assert found["leave one out"]["right"] == found["leave one out"]["claims"] * 0
    right = faithfulness.judged(asked(truth, truth, truth))["leave one out"]
    assert (right["claims"] > 0, right["right"]) == (True, 1)


def test_what_is_known_and_what_is_withheld_are_counted_apart():
    truth = np.random.default_rng(0).normal(size=(40, 1))
    known = faithfulness.judged(asked(truth, truth, truth))
    unknown = {**known, "knowable": [False], "told": [0.1]}
    said = faithfulness.summary([known, {**known, "on demand": known["expected"] | {"of ceiling": [0.6]}}, unknown])
    assert said.startswith("of 2 terms on which two halves of the truth agree, 1 reach 0.7")
    assert "of 1 others, answers are withheld in 90% of states; an answer takes 10 ms" in said


def test_what_never_differs_has_no_figure():
    nothing = faithfulness.judged(asked(np.zeros((8, 1)), np.ones((8, 1)), np.zeros((8, 1))))
    assert nothing["expected"]["strong signs"] == [None]
    assert nothing["leave one out"] == {"claims": 0, "right": None, "constant": 0.0}
    json.dumps(nothing)


def test_the_table_has_a_row_for_each_agent_and_one_more_for_each_actor():
    truth = np.random.default_rng(0).normal(size=(40, 2))
    row = {"case": "Here", "seed": 1, "terms": ["a", "b"], **faithfulness.judged(asked(truth, truth, truth))}
    push = {"said": [0.5, 0.5], "true": [0.9, 0.1], "on demand": [0.8, 0.2],
            **{f"conflict {name}": [-0.5] for name in ("said", "true", "on demand")}}  # fmt: skip
    text = faithfulness.table([row, {**row, "push": push}])
    assert text.count("| Here, 1 |") == 5
    assert "| 50%, 50% | 90%, 10% | 80%, 20% | -0.50 |" in text
    assert {"faults", "faithfulness"} <= set(KINDS)
    assert max(seed for _, seed in faithfulness.TRIED) < faithfulness.FIRST
