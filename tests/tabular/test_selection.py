"""One advisor in control: the readable twin, claims worked out by hand, checkpoints, explanations, what is refused."""

import dataclasses

import numpy as np
import pytest
from reference import AdapterSource, reference
from test_parity import Errands, assert_compiled_parity, errand_advisors, varied

import multiadvisor as mad
from multiadvisor.core import rng
from multiadvisor.core.aggregations import SELECTIONS
from multiadvisor.errors import BadInput
from multiadvisor.explorer import bundle
from multiadvisor.runs.trace import record

both = pytest.mark.parametrize("selection", SELECTIONS)


def some_silent():
    """Errands, whose first advisor is silent at times."""
    here, *others = errand_advisors()
    return [dataclasses.replace(here, advises=lambda o: o[0] % 3 != 2), *others]


def errands(selection, **how):
    task = mad.Task.from_gymnasium(Errands(), some_silent())
    return mad.MultiAdvisor(task, planning="egocentric", aggregation=selection, epsilon=0.2, seed=5, **how)


def learned(selection, steps=4_000, **options):
    task = mad.make("two-goal", **options)
    return mad.MultiAdvisor(task, planning="egocentric", aggregation=selection, epsilon=0.3).learn(
        steps, progress=False
    )


# ---- the readable twin -----------------------------------------------------------------------------------------------
@both
@pytest.mark.slow
def test_the_reference_and_the_kernel_give_the_same_bytes(selection):
    how = {"planning": "egocentric", "aggregation": selection, "epsilon": 0.3, "noise": 0.1, "alpha_half": 500}
    for name in ("random-mdp", "resource-scheduling"):  # with advisors that end before the episode does
        assert_compiled_parity(varied(mad.make(name)), 600, **how, seed=3)


@both
@pytest.mark.slow
def test_so_they_do_in_a_python_environment_where_advisors_come_and_go_and_fall_silent(selection):
    agent, twin = errands(selection, noise=0.1), errands(selection, noise=0.1)._learner.task
    table = np.zeros((4000, 3))
    told = reference(twin, agent.settings, AdapterSource(twin, 5), table, rng.stream_key(5, rng.TRAINING))
    for _ in range(3):
        agent._learner.run(300)
        told.learn(300)
        rows = agent._learner.adapter.rows
        assert np.array_equal(agent._learner.table[:rows], table[:rows])
        assert np.array_equal(agent._learner.extra.table[:rows], told.claims[:rows])
    state = np.array([1, 1, 1])
    assert len(agent.advice(state)[0]) == 1
    assert np.array_equal(agent.preferences(state), agent._learner._total(state))
    assert not any(name.startswith("here A") for name in agent.advice(np.array([2, 1, 1]))[0]), "it is silent there"


# ---- by hand ---------------------------------------------------------------------------------------------------------
def claims(agent):
    """Those of the two advisors in the one state of two-goal, whose rows are 0, 1 and for an arbitrator 2."""
    found = agent._learner.extra
    return (found.table[2] if found.arbitrated else found.table[:2, 0]).tolist()


@pytest.mark.slow
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
        agent.learn(1, progress=False)
    assert agent.episodes > 0, "a goal was reached"
    assert claims(agent)[0] == 0.5, "who is in control learns no W"
    assert claims(agent)[1] > 0, f"W_2 is learned in step {last}, when goal 1 was obeyed"


@pytest.mark.slow
def test_the_arbitrator_learns_what_all_earn_with_each_in_control():
    agent = learned("arbi_q", r2=2.0)
    assert claims(agent) == pytest.approx([1.0, 2.0], abs=0.05)
    assert agent.act(agent.task.initial_state()) == 2


@pytest.mark.slow
def test_an_arbitrator_with_a_reward_of_its_own():
    """It is paid for the first goal only, whatever the advisors get."""
    import gymnasium

    env = gymnasium.make("multiadvisor/mo-TwoGoal-v0", r2=2.0)
    own = mad.Advisor("arbitrator", reward=lambda t: float(t.reward[0]))
    task = mad.Task.from_gymnasium(env, arbitrator=own)
    agent = mad.MultiAdvisor(task, planning="egocentric", aggregation="arbi_q", epsilon=0.3).learn(
        2_000, progress=False
    )
    assert agent.act(0) == 1
    with pytest.raises(BadInput, match="'arbi_q' learns from the action taken next: give next_action"):
        agent.observe(0, 0, np.zeros(2), 0, terminated=False)


# ---- keeping and showing ---------------------------------------------------------------------------------------------
@both
def test_a_run_that_was_saved_goes_on_bit_for_bit(selection, tmp_path):
    straight = learned(selection, 2_000)
    learned(selection, 1_234).save(tmp_path / "run")
    again = mad.load(tmp_path / "run").learn(2_000 - 1_234, progress=False)
    assert np.array_equal(again._learner.table, straight._learner.table)
    assert np.array_equal(again._learner.extra.table, straight._learner.extra.table)
    assert straight._learner.extra.table.any()
    with pytest.raises(BadInput, match="reweight=True"):
        mad.load(tmp_path / "run", straight.task.with_weights(**{"goal 1": 2.0}))


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
    with pytest.raises(BadInput, match="give it alone, for everybody"):
        mad.MultiAdvisor(task, aggregation=f"fruits={selection}")
    with pytest.raises(BadInput, match="learned beside tables"):
        mad.MultiAdvisor(task, aggregation=selection, learner=mad.DQN())


def test_an_arbitrator_of_a_compiled_world():
    with pytest.raises(
        BadInput, match=r"the arbitrator on all .* states of task 'pac-boy' is too large: name features"
    ):
        mad.MultiAdvisor(mad.make("pac-boy"), aggregation="arbi_q")
    own = dataclasses.replace(mad.make("two-goal"), arbitrator=mad.Advisor("arbitrator", reward=lambda t: 0.0))
    with pytest.raises(BadInput, match="has its own reward"):
        mad.MultiAdvisor(own, aggregation="arbi_q")
