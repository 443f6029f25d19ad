"""The correction as a network: against the exact identity, saved and taken up again, and what is refused."""

import dataclasses

import numpy as np
import pytest
from test_learner import TABLE, uneven

import multiadvisor as mad
from agents import in_pieces, same
from multiadvisor.analysis import theory
from refusal import refused

pytestmark = pytest.mark.slow

CORRECTED = {"planning": "egocentric", "aggregation": "correction", "epsilon": 1.0}


def exact(task, gamma):
    return theory.correct(theory.solve(theory.enumerate_task(task, full=True), "egocentric", gamma))


@pytest.mark.parametrize("double", [False, True])
def test_the_sum_less_what_it_learned_is_the_optimum(double):
    task = mad.make("two-goal")
    deep = dataclasses.replace(TABLE, double=double)
    agent = mad.MultiAdvisor(task, learner=deep, gamma=0.9, **CORRECTED).learn(2_000)
    names, advice = agent.advice(task.initial_state())
    assert names == ("goal 1", "goal 2", "correction")
    assert advice[-1] == pytest.approx([0.9, 0.0, 0.0], abs=0.01)
    best, _ = theory.optimum(theory.enumerate_task(task), 0.9)
    assert agent.preferences(task.initial_state()) == pytest.approx(best[0], abs=0.01)
    assert agent.evaluate(episodes=5).score == 1.0
    found = agent.explain(task.initial_state())
    assert (found.attractor, found.stuck) == (None, False)
    told = mad.MultiAdvisor(task, planning="egocentric", learner=deep, gamma=0.9, epsilon=1.0).learn(2_000)
    assert told.evaluate(episodes=5).score == 0.0  # the sum rests


def test_advisors_that_fall_silent_and_have_gammas_of_their_own():
    task, gamma = uneven(), 0.8
    agent = mad.MultiAdvisor(task, learner=TABLE, gamma=gamma, **CORRECTED).learn(4_000)
    found = exact(task, gamma)
    silent = 0
    for state in range(found.solution.mdp.states):
        names, advice = agent.advice(np.array([state]))
        if len(names) == 1:
            continue  # the episode is over: nobody has ever learned of it
        silent += len(names) < 3
        assert advice[-1] == pytest.approx(found.values[state], abs=5e-3)
        assert agent.preferences(np.array([state])) == pytest.approx(found.preferences[state], abs=1e-2)
    assert silent


def test_groups_and_noise():
    """What advisors are merged into is corrected as well; its own reward has no noise, though what it corrects has."""
    task = mad.make("two-goal")
    for how, given in (({}, {"noise": 0.5}), ({"split": "groups"}, {})):
        deep = dataclasses.replace(TABLE, **how)
        agent = mad.MultiAdvisor(task, learner=deep, gamma=0.9, **CORRECTED, **given).learn(2_000)
        assert agent.advice(task.initial_state())[1][-1] == pytest.approx([0.9, 0.0, 0.0], abs=0.5 if given else 0.02)
        assert agent.advisors[-1].weight == -1.0
        assert len(agent.advice(task.initial_state())[0]) == 3


def test_a_run_that_was_saved_goes_on_bit_for_bit(tmp_path):
    deep = dataclasses.replace(TABLE, hidden=(8,), n_envs=2)
    how = {**CORRECTED, "epsilon": 0.2, "learner": deep, "gamma": 0.9, "noise": 0.1, "seed": 3}
    straight, cut = mad.MultiAdvisor(uneven(), **how).learn(600), mad.MultiAdvisor(uneven(), **how)
    assert same(in_pieces(cut, uneven(), tmp_path, 330, 270), straight)


def test_refused_in_one_line():
    named = dataclasses.replace(uneven(), extra_advisor=mad.Advisor("correction", state=lambda c, x: 0, states=1))
    refused("names features, which are for tables", mad.MultiAdvisor, named, learner=TABLE, **CORRECTED)
    fruits, line = mad.make("three-fruits"), "is learned beside tables, and there are none here"
    refused(line, mad.MultiAdvisor, fruits, aggregation="fruits=gpi", learner=TABLE)
    line = "is of all advisors: give it alone"
    refused(line, mad.MultiAdvisor, fruits, aggregation="fruits=correction", learner=TABLE)
