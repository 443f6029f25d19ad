"""Kernel against reference where advisors differ: every aggregation, groups, a planning for each, who is silent."""

import dataclasses

import numpy as np
import pytest
from reference import AdapterSource, CompiledSource
from test_parity import Errands, assert_compiled_parity, errand_advisors, random_mdp, reference_of, ring

import multiadvisor as mad
from multiadvisor.core import rng
from multiadvisor.core.aggregations import AGGREGATIONS, LEARNED

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


def assert_close_parity(task, steps, **how):
    """To the last bit where only sums are taken; powers and exponentials of two libraries may differ there."""
    agent = mad.MultiAdvisor(task, **how)
    source = CompiledSource(task, rng.stream_key(agent.settings.seed, rng.TRAINING))
    told = reference_of(agent, source, np.zeros_like(agent._learner.table))
    told.learn(steps)
    agent._learner.run(steps)
    np.testing.assert_allclose(agent._learner.table, told.table, rtol=1e-9, atol=1e-9)
    assert np.count_nonzero(told.table) > 3


@pytest.mark.parametrize("planning", ["empathic", "sarsa"])
@pytest.mark.parametrize("aggregation", [name for name in AGGREGATIONS if name not in LEARNED])
def test_every_aggregation(aggregation, planning):
    assert_close_parity(committee(), 600, aggregation=aggregation, planning=planning, epsilon=0.2)


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


@pytest.mark.parametrize(
    "aggregation", ["early=max", "early=max,late=max", "j0=majority,late=max,ranks", "early=max,max"]
)
def test_groups_are_heard_by_themselves_and_added(aggregation):
    assert_compiled_parity(committee(), 600, aggregation=aggregation, epsilon=0.2, noise=0.1)


@pytest.mark.parametrize("aggregation", ["sum", "late=max"])
def test_advisors_that_plan_differently_and_learn_at_their_own_pace(aggregation):
    how = {"planning": MIXED, "aggregation": aggregation, "epsilon": 0.3, "alpha_half": 500, "epsilon_half": 700}
    assert_compiled_parity(committee(), 1000, **how)


@pytest.mark.parametrize("aggregation", ["max", "j0=max,j1=max"])
def test_a_table_that_advisors_share(aggregation):
    assert_compiled_parity(ring(5), 600, planning="j1=sarsa,j3=agnostic,empathic", aggregation=aggregation, epsilon=0.3)


def test_advisors_whose_part_is_over():
    """Of those who plan by the action taken nobody may be left, while others go on."""
    task = mad.make("resource-scheduling", jobs=3, work=2)
    assert_compiled_parity(
        task, 900, planning="job 2=sarsa,job 3=expected_sarsa,empathic", aggregation="job 1=max", epsilon=0.4
    )


# ---- who speaks ------------------------------------------------------------------------------------------------------
@mad.compiled
def hushed(constants, x, advisors, m, voice):
    for i in range(m):
        if (x[0] + advisors[i]) % 3 == 0:
            voice[i] = 0.0


def silent_at_times():
    task = committee()
    return dataclasses.replace(task, world=dataclasses.replace(task.world, advises=hushed))


@pytest.mark.slow
@pytest.mark.parametrize(("planning", "aggregation"), [("empathic", "late=max"), (MIXED, "sum"), ("sarsa", "majority")])
def test_the_silent_learn_in_a_compiled_world(planning, aggregation):
    assert_compiled_parity(silent_at_times(), 800, planning=planning, aggregation=aggregation, epsilon=0.2)


@pytest.mark.slow
def test_the_silent_have_no_say_when_it_acts():
    task = silent_at_times()
    agent = mad.MultiAdvisor(task, aggregation="max").learn(2000, progress=False)
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
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Errands(), errands_committee()), **how)
    twin = mad.Task.from_gymnasium(Errands(), errands_committee())
    table = np.zeros((4000, 3))
    told = reference_of(agent, AdapterSource(twin, 5), table)
    for _ in range(4):
        agent._learner.run(400)
        told.learn(400)
        rows = twin.adapter.rows
        assert np.array_equal(agent._learner.table[:rows], table[:rows])
    assert np.count_nonzero(table) > 100


# ---- cut and taken up again ------------------------------------------------------------------------------------------
def pieces(task, folder, how, lengths):
    """Learn in pieces, saved and loaded between any two of them."""
    agent = mad.MultiAdvisor(task, **how)
    for k, length in enumerate(lengths):
        agent.learn(length, progress=False)
        agent.save(folder / str(k))
        agent = mad.load(folder / str(k), task)
    return agent


@pytest.mark.parametrize("kind", ["compiled", "adapter"])
def test_the_action_that_sarsa_has_learned_from_is_taken_after_a_pause(kind, tmp_path):
    """With much exploration: an action that is drawn again would be another one two times out of three."""
    if kind == "compiled":
        task, how = committee(), {"planning": MIXED, "aggregation": "late=max"}
    else:
        task, how = mad.Task.from_gymnasium(Errands(), errands_committee()), {"planning": "sarsa"}
    how = {**how, "epsilon": 0.8, "seed": 4}
    cut = pieces(task, tmp_path, how, [1, 1, 7, 13, 100, 3, 75])
    whole = mad.MultiAdvisor(task, **how).learn(200, progress=False)
    for name, array in whole._learner.tensors().items():
        np.testing.assert_array_equal(cut._learner.tensors()[name], array, err_msg=name)


def test_an_episode_that_cannot_be_taken_up_takes_no_action_along(tmp_path):
    """Without `sizes` nobody can tell whether a saved state is sound: a new episode begins, with a choice of its
    own."""
    task = committee()
    task = dataclasses.replace(task, world=dataclasses.replace(task.world, sizes=None))
    agent = mad.MultiAdvisor(task, planning="sarsa", epsilon=0.5, seed=1)
    agent.learn(1, progress=False)
    while not agent._learner.progress["held"]:
        agent.learn(1, progress=False)
    agent.save(tmp_path / "run")
    again = mad.load(tmp_path / "run", task)
    assert again._learner.progress[["fresh", "held"]].tolist() == [(1, 0)]
    assert again.learn(50, progress=False).steps == agent.steps + 50
