"""One advisor in control: the readable twin, claims worked out by hand, checkpoints, explanations, what is refused."""

import dataclasses
from functools import partial

import gymnasium
import numpy as np
import pytest
from test_parity import assert_adapter_parity, assert_compiled_parity, errand_advisors, errands, varied

import multiadvisor as mad
from agents import SELECTIONS
from multiadvisor.analysis.episodes import record
from multiadvisor.explorer import bundle
from refusal import refused

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("selection", SELECTIONS)


def some_silent():
    """Errands, whose first advisor is silent at times."""
    here, *others = errand_advisors()
    return [dataclasses.replace(here, advises=lambda o: o[0] % 3 != 2), *others]


def learned(selection, steps=4_000, **options):
    task = mad.make("two-goal", **options)
    return mad.MultiAdvisor(task, planning="egocentric", aggregation=selection, epsilon=0.3).learn(steps)


# ---- the readable twin -----------------------------------------------------------------------------------------------
@both
def test_the_reference_and_the_kernel_give_the_same_bytes(selection):
    how = {"planning": "egocentric", "aggregation": selection, "epsilon": 0.3, "noise": 0.1, "alpha_half": 500}
    for name in ("random-mdp", "resource-scheduling"):  # with advisors that end before the episode does
        assert_compiled_parity(varied(mad.make(name)), 600, **how, seed=3)


@both
def test_so_they_do_in_a_python_environment_where_advisors_come_and_go_and_fall_silent(selection):
    how = {"planning": "egocentric", "aggregation": selection, "epsilon": 0.2, "noise": 0.1, "seed": 5}
    agent = assert_adapter_parity(partial(errands, some_silent), 900, 3, **how)
    state = np.array([1, 1, 1])
    assert len(agent.advice(state)[0]) == 1
    assert np.array_equal(agent.preferences(state), agent._learner._total(state))
    assert not any(name.startswith("here A") for name in agent.advice(np.array([2, 1, 1]))[0]), "it is silent there"


# ---- by hand ---------------------------------------------------------------------------------------------------------
def claims(agent):
    """Those of the two advisors in the one state of two-goal, whose rows are 0, 1 and for an arbitrator 2."""
    found = agent._learner.extra
    return (found.table[2] if found.arbitrated else found.table[:2, 0]).tolist()


def test_w_is_what_the_one_that_is_not_obeyed_loses():
    agent = learned("w_learning", r2=2.0)
    first, second = claims(agent)
    assert first == pytest.approx(1.0, abs=0.01), "to be passed over costs it what its goal pays"
    assert first < second <= 2.0, "it rises towards 2 until it is in control, and no further"
    assert agent.act(agent.task.initial_state()) == 2


def test_it_is_not_learned_from_a_step_in_which_nobody_was_obeyed():
    agent = mad.MultiAdvisor(mad.make("two-goal"), planning="egocentric", aggregation="w_learning", epsilon=1.0)
    agent._learner.table[:] = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    agent._learner.extra.table[:, 0] = [0.5, 0.0]
    while agent.steps < 20 and claims(agent) == [0.5, 0.0]:
        last = agent.steps
        agent.learn(1)
    assert agent.episodes > 0, "a goal was reached"
    assert claims(agent)[0] == 0.5, "who is in control learns no W"
    assert claims(agent)[1] > 0, f"W_2 is learned in step {last}, when goal 1 was obeyed"


def test_the_arbitrator_learns_what_all_earn_with_each_in_control():
    agent = learned("arbi_q", r2=2.0)
    assert claims(agent) == pytest.approx([1.0, 2.0], abs=0.05)
    assert agent.act(agent.task.initial_state()) == 2


def test_an_arbitrator_with_a_reward_of_its_own():
    """It is paid for the first goal only, whatever the advisors get."""
    env = gymnasium.make("multiadvisor/mo-TwoGoal-v0", r2=2.0)
    own = mad.Advisor("arbitrator", reward=lambda t: float(t.reward[0]))
    task = mad.Task.from_gymnasium(env, extra_advisor=own)
    agent = mad.MultiAdvisor(task, planning="egocentric", aggregation="arbi_q", epsilon=0.3).learn(2_000)
    assert agent.act(0) == 1
    line = "'arbi_q' learns from the action taken next: give next_action"
    refused(line, agent.observe, 0, 0, np.zeros(2), 0, terminated=False)


# ---- keeping and showing ---------------------------------------------------------------------------------------------
@both
def test_who_is_in_control_is_said_and_shown(selection):
    agent = learned(selection, r2=2.0)
    x = agent.task.initial_state()
    assert agent.advice(x)[0] == ("goal 2",)
    assert agent.explain(x).sentence.startswith("goal 2 is in control: chooses a_2")
    assert not bundle.sends_table(agent)
    trace = record(agent, 1, advice=True)
    assert trace.step(0, 0).names == ("goal 2",)
    assert bundle.episode_pack(trace, 0, agent)
    assert set(agent.evaluate(episodes=2).advisors) == {"goal 1", "goal 2"}


# ---- what is refused -------------------------------------------------------------------------------------------------
@both
def test_groups_networks_and_states_that_cannot_be_counted(selection):
    task = mad.make("three-fruits")
    refused("give it alone, for everybody", mad.MultiAdvisor, task, aggregation=f"fruits={selection}")
    refused("learned beside tables", mad.MultiAdvisor, task, aggregation=selection, learner=mad.DQN())


def test_an_arbitrator_of_a_compiled_world():
    line = "the arbitrator on all .* states of task 'pac-boy' is too large: name features"
    refused(line, mad.MultiAdvisor, mad.make("pac-boy"), aggregation="arbi_q")
    own = dataclasses.replace(mad.make("two-goal"), extra_advisor=mad.Advisor("arbitrator", reward=lambda t: 0.0))
    refused("has its own reward", mad.MultiAdvisor, own, aggregation="arbi_q")
