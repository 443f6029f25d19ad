"""Generalised policy improvement, learned: its readable twin, the exact cross values, games, and what is refused."""

import dataclasses

import numpy as np
import pytest
from test_parity import Errands, errand_foci, reference_of, varied

import multiadvisor as mad
from multiadvisor import draws, theory
from multiadvisor.errors import BadInput
from multiadvisor.tabular.reference import CompiledSource
from multiadvisor.theory.gpi import exact_plans

FRUITS = {"planning": "egocentric", "aggregation": "fruits=gpi"}


def assert_the_same_bytes(task, turns, **how):
    agent = mad.MultiAdvisor(task, **how)
    source = CompiledSource(task, draws.stream_key(agent.settings.seed, draws.TRAINING))
    told = reference_of(agent, source, np.zeros_like(agent._learner.table))
    for _ in range(5):
        told.learn(turns // 5)
        agent._learner.run(turns // 5)
        assert np.array_equal(agent._learner.table, told.table)
        assert np.array_equal(agent._learner.plans.table, told.plans)
    assert np.count_nonzero(told.plans) > 10


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("planning", ["egocentric", "fruits=egocentric,ghosts=empathic"])
def test_fruits_by_their_plans_and_ghosts_summed(noise, planning):
    small = mad.make("pac-boy", maze="P..\n.#.\nG..\n")
    how = {**FRUITS, "planning": planning, "noise": noise, "epsilon": 0.3, "seed": 4}
    assert_the_same_bytes(varied(small), 500, **how)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two-goal", "random-mdp"])
def test_a_task_of_one_group(name):
    assert_the_same_bytes(varied(mad.make(name)), 500, planning="egocentric", aggregation="gpi", epsilon=0.3, noise=0.1)


@pytest.mark.parametrize("name", ["two-goal", "random-mdp"])
def test_it_learns_the_exact_cross_values(name):
    task = mad.make(name)
    agent = mad.MultiAdvisor(task, planning="egocentric", aggregation="gpi", gamma=0.5, epsilon=1.0, alpha_half=2_000)
    found = theory.improve(theory.enumerate_task(task), 0.5)
    agent.learn(4_000_000, progress=False)
    for state in range(found.mdp.states):
        assert agent.preferences(np.array([state])) == pytest.approx(found.preferences[state], abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three-fruits", "four-fruits"])
def test_it_finishes_where_the_sum_is_stuck(name):
    agent = mad.MultiAdvisor(mad.make(name), **FRUITS, gamma=0.9, epsilon=0.2).learn(100_000, progress=False)
    assert agent.evaluate(games=10).finished == 1.0
    alone = mad.MultiAdvisor(agent.task, planning="egocentric", gamma=0.9, epsilon=0.2).learn(100_000, progress=False)
    assert alone.evaluate(games=10).finished == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.9, 0.99])
def test_exact_plans_finish_every_board(gamma):
    assert exact_plans(mad.make("pac-boy", ghosts=False), gamma).evaluate(games=300).finished == 1.0


def test_a_run_that_was_saved_goes_on_bit_for_bit_and_takes_other_weights(tmp_path):
    def fresh():
        return mad.MultiAdvisor(mad.make("three-fruits"), **FRUITS, noise=0.1, epsilon=0.2, seed=2)

    straight = fresh().learn(3_000, progress=False)
    fresh().learn(1_234, progress=False).save(tmp_path / "run")
    again = mad.load(tmp_path / "run").learn(3_000 - 1_234, progress=False)
    assert np.array_equal(again._learner.plans.table, straight._learner.plans.table)
    other = mad.load(tmp_path / "run", straight.task.with_weights(**{"fruit (0, 2)": 9.0}))
    assert other.act(other.task.deal()) == 0  # to the North, where what is worth nine lies


def test_advisors_with_other_local_states_python_environments_and_networks_are_refused():
    pac_boy = mad.make("pac-boy")
    with pytest.raises(BadInput, match=r"advisor 'ghost 1' of task 'pac-boy' shares its table.*fruits=gpi"):
        mad.MultiAdvisor(pac_boy, aggregation="gpi")
    jobs = mad.make("resource-scheduling")
    with pytest.raises(BadInput, match="'job 2' of task 'resource-scheduling' does not see what 'job 1' sees"):
        mad.MultiAdvisor(jobs, aggregation="gpi")
    with pytest.raises(BadInput, match="is a Python environment"):
        mad.MultiAdvisor(mad.Task.from_gymnasium(Errands(), errand_foci()), aggregation="gpi")
    with pytest.raises(BadInput, match="learned beside tables"):
        mad.MultiAdvisor(mad.make("three-fruits"), aggregation="fruits=gpi", deep=mad.DeepSettings())
    many = mad.make("fruit-grid", width=100, height=100, fruits=5)
    with pytest.raises(BadInput, match="fewer advisors"):
        mad.MultiAdvisor(dataclasses.replace(many, name="large"), aggregation="fruits=gpi")
