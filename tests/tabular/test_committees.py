"""Kernel against reference where advisors differ: every aggregation, groups, a planning for each, who is silent."""

import dataclasses
from functools import partial

import numpy as np
import pytest
from test_parity import assert_adapter_parity, assert_compiled_parity, errand_advisors, errands, random_mdp, ring

import multiadvisor as mad
from agents import LEARNED, SELECTIONS, in_pieces, same
from multiadvisor.core.aggregations import AGGREGATIONS
from refusal import refused

MIXED = "j0=egocentric,j1=sarsa,late=expected_sarsa,j3=estimate,agnostic"


def committee(n=7, seed=3, actions=4):
    """A random task whose advisors differ in weight, gamma, alpha and group."""
    task = random_mdp(6, actions, n, seed)
    advisors = [
        dataclasses.replace(
            advisor, weight=(1.0, -0.5, 2.0, 0.0)[j % 4], gamma=(None, 0.5)[j % 2], alpha=(None, 0.3, 0.01)[j % 3],
            group=("early", "late", "")[j % 3], planning="empathic" if j == 4 else None,
        )
        for j, advisor in enumerate(task.advisors)
    ]  # fmt: skip
    return dataclasses.replace(task, advisors=tuple(advisors))


@pytest.mark.parametrize("planning", ["empathic", "sarsa"])
@pytest.mark.parametrize("aggregation", [name for name in AGGREGATIONS if name not in LEARNED])
def test_every_aggregation(aggregation, planning):
    """Powers and exponentials of two libraries may differ in the last bit."""
    how = {"aggregation": aggregation, "planning": planning, "epsilon": 0.2}
    assert_compiled_parity(committee(), 600, rounds=1, rtol=1e-9, **how)


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", [name for name in AGGREGATIONS if name not in LEARNED])
def test_each_is_heard_as_itself_and_not_as_the_sum(aggregation):
    """By its array form on what the advisors say, as kernel and reference might both have been told of another one."""
    task = committee()
    agent, kind = mad.MultiAdvisor(task, aggregation=aggregation), AGGREGATIONS[aggregation]
    agent._learner.table[:] = np.random.default_rng(0).normal(size=agent._learner.table.shape)
    told = agent._learner.consult(task.initial_state())
    wanted = kind(told.advice, told.weights, kind.parameter)
    np.testing.assert_allclose(agent._learner.preferences(task.initial_state()), wanted, rtol=1e-12)
    assert aggregation == "sum" or not np.allclose(wanted, told.weights @ told.advice)


OWN_PACE = {"planning": MIXED, "epsilon": 0.3, "alpha_half": 500, "epsilon_half": 700}
CROSSING = {"planning": "j1=sarsa,j3=agnostic,empathic", "epsilon": 0.3}


@pytest.mark.parametrize(("make", "steps", "how"), [
    *((committee, 600, {"aggregation": groups, "epsilon": 0.2, "noise": 0.1})
      for groups in ("early=max", "early=max,late=max", "j0=majority,late=max,ranks", "early=max,max")),
    # advisors that plan differently and learn at their own pace
    (committee, 1000, {"aggregation": "sum", **OWN_PACE}), (committee, 1000, {"aggregation": "late=max", **OWN_PACE}),
    # a table that advisors share
    (partial(ring, 5), 600, {"aggregation": "max", **CROSSING}),
    (partial(ring, 5), 600, {"aggregation": "j0=max,j1=max", **CROSSING}),
    # advisors whose part is over: of those who plan by the action taken nobody may be left, while others go on
    (partial(mad.make, "resource-scheduling", jobs=3, work=2), 900,
     {"aggregation": "job 1=max", "planning": "job 2=sarsa,job 3=expected_sarsa,empathic", "epsilon": 0.4}),
])  # fmt: skip
def test_groups_are_heard_by_themselves_and_added(make, steps, how):
    assert_compiled_parity(make(), steps, **how)


# ---- who speaks ------------------------------------------------------------------------------------------------------
@mad.compiled
def hushed(constants, x, advisors, m, weight):
    for i in range(m):
        if (x[0] + advisors[i]) % 3 == 0:
            weight[i] = 0.0


def silent_at_times():
    task = committee()
    return dataclasses.replace(task, world=dataclasses.replace(task.world, advises=hushed))


@pytest.mark.slow
@pytest.mark.parametrize(("planning", "aggregation"), [(MIXED, "late=max"), ("sarsa", "majority")])
def test_the_silent_learn_in_a_compiled_world(planning, aggregation):
    assert_compiled_parity(silent_at_times(), 800, planning=planning, aggregation=aggregation, epsilon=0.2)


@pytest.mark.slow
def test_the_silent_have_no_say_when_it_acts():
    task = silent_at_times()
    agent = mad.MultiAdvisor(task, aggregation="max", planning="sarsa").learn(2000)  # by the loop of the test above
    for state in range(6):
        x = np.array([state])
        names, advice = agent.advice(x)
        assert all((state + task.names.index(name)) % 3 for name in names)
        rows = [task.names.index(name) for name in names]
        wanted = agent._learner.aggregator.prefer(advice, task.weights[rows], np.array(rows))
        np.testing.assert_array_equal(agent.preferences(x), wanted)


def errands_committee():
    """Errands whose advisors are silent at times, in groups."""
    here, there, time, whole, even = errand_advisors()
    return [
        dataclasses.replace(here, group="errands", advises=lambda o: o[0] != 2),
        dataclasses.replace(there, group="errands", alpha=0.4),
        dataclasses.replace(time, advises=lambda o: o[0] > 5, planning="sarsa"),
        dataclasses.replace(whole, advises=lambda o: False, planning="expected_sarsa"),
        dataclasses.replace(even, planning="egocentric"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", ["sum", "errands=max", "errands=max,time=majority,ranks"])
def test_adapter(aggregation):
    how = {"planning": "here A=estimate,empathic", "aggregation": aggregation, "noise": 0.1, "epsilon": 0.2, "seed": 5}
    agent = assert_adapter_parity(partial(errands, errands_committee), 1600, 4, **how)
    assert np.count_nonzero(agent._learner.table) > 100


# ---- cut and taken up again ------------------------------------------------------------------------------------------
def assert_same_in_pieces(task, folder, how, times=1):
    """Learned in pieces, saved and loaded between any two of them, it is the same as learned at once."""
    steps = [times * length for length in (1, 1, 7, 13, 100, 3, 75)]
    whole = mad.MultiAdvisor(task, **how).learn(sum(steps))
    assert same(in_pieces(mad.MultiAdvisor(task, **how), task, folder, *steps), whole)
    return whole


@pytest.mark.parametrize("kind", ["compiled", "adapter"])
def test_the_action_that_sarsa_has_learned_from_is_taken_after_a_pause(kind, tmp_path):
    """With much exploration: an action that is drawn again would be another one two times out of three."""
    if kind == "compiled":
        task, how = committee(), {"planning": MIXED, "aggregation": "late=max"}
    else:
        task, how = errands(errands_committee), {"planning": "sarsa"}
    assert_same_in_pieces(task, tmp_path, {**how, "epsilon": 0.8, "seed": 4})


@pytest.mark.parametrize("make", [partial(mad.make, "four-fruits"), errands], ids=["compiled", "adapter"])
@pytest.mark.parametrize("aggregation", ["correction", *SELECTIONS])
def test_what_the_aggregator_learns_goes_on_bit_for_bit(make, aggregation, tmp_path):
    how = {"planning": "egocentric", "aggregation": aggregation, "noise": 0.1, "epsilon": 0.2, "seed": 2}
    learner = assert_same_in_pieces(make(), tmp_path, how, 10)._learner
    assert aggregation == "correction" or learner.extra.table.any()


@pytest.mark.parametrize("aggregation", ["correction", *SELECTIONS])
def test_other_weights_are_refused(aggregation, tmp_path):
    agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric", aggregation=aggregation).learn(20)
    agent.save(tmp_path / "run")
    refused("reweight=True", mad.load, tmp_path / "run", agent.task.with_weights(**{"goal 1": 2.0}))


def test_an_episode_that_cannot_be_taken_up_takes_no_action_along(tmp_path):
    """Without `sizes` nobody can tell whether a saved state is sound: a new episode begins, with a choice of its
    own."""
    task = committee()
    task = dataclasses.replace(task, world=dataclasses.replace(task.world, sizes=None))
    agent = mad.MultiAdvisor(task, planning="sarsa", epsilon=0.5, seed=1)
    agent.learn(1)
    while not agent._learner.progress["held"]:
        agent.learn(1)
    agent.save(tmp_path / "run")
    again = mad.load(tmp_path / "run", task)
    assert again._learner.progress[["fresh", "held"]].tolist() == [(1, 0)]
    assert again.learn(50).steps == agent.steps + 50
