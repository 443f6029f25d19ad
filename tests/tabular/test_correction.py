"""The learned correction: its readable twin, the optimum where the sum gets stuck, checkpoints, and what is refused."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from test_parity import assert_adapter_parity, assert_compiled_parity, errands, varied

import multiadvisor as mad
from multiadvisor.analysis import theory
from multiadvisor.learners.tabular import kernel
from refusal import refused

CORRECTED = {"planning": "egocentric", "aggregation": "correction"}


# ---- the readable twin -----------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", ["three-fruits", "four-fruits", "two-goal", "dollars-and-euros", "random-mdp"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_reference_and_the_kernel_give_the_same_bytes(name, noise):
    assert_compiled_parity(varied(mad.make(name)), 1500, **CORRECTED, noise=noise, epsilon=0.3, seed=3)


@pytest.mark.parametrize("planning", ["agnostic", "empathic"])
def test_so_they_do_with_other_plannings(planning):
    task = varied(mad.make("three-fruits"))
    assert_compiled_parity(task, 1500, planning=planning, aggregation="correction", epsilon=0.3, alpha_half=500)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_so_they_do_in_a_python_environment_where_advisors_come_and_go(noise):
    how = {**CORRECTED, "noise": noise, "epsilon": 0.2, "seed": 5}
    agent = assert_adapter_parity(errands, 1600, 4, **how)
    assert np.count_nonzero(agent.values("whole")) > 10
    names, advice = agent.advice(np.array([1, 1, 1]))
    assert names[-1] == "correction"
    assert advice[-1].any()


# ---- the optimum -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "score", "steps"), [("two-goal", 1, 1), ("three-fruits", 3, 10), ("four-fruits", 4, 14)]
)
def test_it_finishes_optimally_where_the_sum_is_stuck(name, score, steps):
    task = mad.make(name)
    plain = mad.MultiAdvisor(task, planning="egocentric", gamma=0.9, epsilon=0.2, seed=1).learn(50_000)
    assert plain.evaluate(episodes=20).terminated == 0.0
    for seed in range(3):
        agent = mad.MultiAdvisor(task, **CORRECTED, gamma=0.9, epsilon=0.2, seed=seed)
        found = agent.learn(200_000).evaluate(episodes=20)
        assert (found.terminated, found.score, found.length) == (1.0, score, steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two-goal", "three-fruits", "four-fruits"])
def test_what_it_prefers_is_the_optimum_and_what_it_takes_off_is_not_negative(name):
    agent = mad.MultiAdvisor(mad.make(name), **CORRECTED, gamma=0.9, epsilon=1.0, seed=0).learn(2_000_000)
    mdp = theory.enumerate_task(agent.task)
    best, _ = theory.optimum(mdp, 0.9)
    start = agent.task.initial_state()
    assert agent.preferences(start) == pytest.approx(best[mdp.start.argmax()], abs=1e-4)
    assert agent.advice(start)[1][-1].min() > -1e-9


def test_a_python_environment_is_corrected_as_well():
    def best_of(**how):
        task = mad.Task.from_gymnasium(gymnasium.make("multiadvisor/mo-TwoGoal-v0", r2=2.0))
        agent = mad.MultiAdvisor(task, planning="egocentric", gamma=0.9, epsilon=0.3, **how)
        return agent.learn(4_000).preferences(0)

    assert best_of() == pytest.approx([2.7, 1.0, 2.0], abs=1e-3)
    assert best_of(aggregation="correction") == pytest.approx([1.8, 1.0, 2.0], abs=1e-3)


@pytest.mark.slow
def test_features_of_ones_own():
    """The whole state, spelled as a function, is the same table; the cell alone is enough to leave the attractor."""
    task = mad.make("three-fruits")
    sizes = task.world.sizes

    def everything(world, x):
        total = 0
        for k in range(4):
            total = total * sizes[k] + x[k]
        return total

    def cell(world, x):
        return x[0]

    def learned(correction, **how):
        own = dataclasses.replace(task, extra_advisor=correction)
        return mad.MultiAdvisor(own, **CORRECTED, epsilon=0.2, **how).learn(50_000)

    whole = mad.Advisor("correction", state=everything, states=15 * 8)
    assert np.array_equal(learned(whole)._learner.table, learned(None)._learner.table)
    slow = mad.Advisor("correction", state=everything, states=15 * 8, alpha=0.01)
    assert not np.array_equal(learned(slow)._learner.table, learned(None)._learner.table)
    assert learned(mad.Advisor("correction", state=cell, states=15)).evaluate(episodes=10).score > 0


# ---- keeping ---------------------------------------------------------------------------------------------------------
def test_an_evaluation_tells_of_the_tasks_own_advisors():
    agent = mad.MultiAdvisor(mad.make("three-fruits"), **CORRECTED).learn(2_000)
    found = agent.evaluate(episodes=3)
    assert set(found.advisors) == set(agent.task.names)
    assert found.played.returns.shape == (3, 3)
    assert found.score == found.played.returns.sum(axis=1).mean()


# ---- what is refused -------------------------------------------------------------------------------------------------
def test_states_that_cannot_be_counted_are_refused():
    refused(r"all 1.7e\+28 states of task 'pac-boy'.*name features", mad.MultiAdvisor, mad.make("pac-boy"), **CORRECTED)
    task = mad.make("three-fruits")
    unknown = dataclasses.replace(task, world=dataclasses.replace(task.world, sizes=None))
    refused("cannot be counted", mad.MultiAdvisor, unknown, **CORRECTED)
    env = gymnasium.make("MountainCar-v0")
    car = mad.Task.from_gymnasium(env, [mad.Advisor("time", state=lambda observation: int(observation[0] > 0))])
    refused("advisor 'correction' looks at the whole observation", mad.MultiAdvisor, car, **CORRECTED)


@pytest.mark.slow
def test_features_out_of_range_are_refused_while_learning():
    task = dataclasses.replace(
        mad.make("three-fruits"), extra_advisor=mad.Advisor("correction", state=lambda world, x: x[0], states=5)
    )
    refused("out of range", lambda: mad.MultiAdvisor(task, **CORRECTED).learn(1_000))


@pytest.mark.parametrize(
    ("advisor", "message"),
    [
        (mad.Advisor("correction", state="cell", states=5), "compiled function"),
        (mad.Advisor("correction", state=lambda world, x: 0), "number of values"),
        (mad.Advisor("correction", state=lambda world, x: 0, states=10**9), "from 1 to 4000000"),
    ],
)
def test_features_without_their_number(advisor, message):
    refused(
        message, mad.MultiAdvisor, dataclasses.replace(mad.make("three-fruits"), extra_advisor=advisor), **CORRECTED
    )


def test_a_part_of_the_sum_and_silent_advisors_are_refused():
    task = mad.make("three-fruits")
    refused("alone, for everybody", mad.MultiAdvisor, task, aggregation="fruits=correction")
    refused("linear Q-learning is a sum", mad.MultiAdvisor, task, aggregation="correction", learner="linear")
    silent = dataclasses.replace(task, world=dataclasses.replace(task.world, advises=kernel.everybody_advises))
    refused("fall silent", mad.MultiAdvisor, silent, **CORRECTED)
