"""Generalised policy improvement, learned: its readable twin, the exact cross values, episodes, and what is refused."""

import dataclasses

import numpy as np
import pytest
from test_committees import assert_same_in_pieces
from test_parity import Errands, assert_adapter_parity, assert_compiled_parity, errand_advisors, varied

import multiadvisor as mad
from exact_plans import exact_plans
from multiadvisor.analysis import theory
from multiadvisor.analysis.episodes import record
from multiadvisor.runs.trace import explain_step
from refusal import refused

pytestmark = pytest.mark.slow

FRUITS = {"planning": "egocentric", "aggregation": "fruits=gpi"}


def assert_the_same_bytes(task, steps, **how):
    agent = assert_compiled_parity(task, steps, 5, **how)
    assert np.count_nonzero(agent._learner.extra.table) > 10


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("planning", ["egocentric", "fruits=egocentric,ghosts=empathic"])
def test_fruits_by_their_plans_and_ghosts_summed(noise, planning):
    small = mad.make("pac-boy", maze="P..\n.#.\nG..\n")
    how = {**FRUITS, "planning": planning, "noise": noise, "epsilon": 0.3, "seed": 4}
    assert_the_same_bytes(varied(small), 500, **how)


@pytest.mark.parametrize("name", ["two-goal", "random-mdp"])
def test_a_task_of_one_group(name):
    assert_the_same_bytes(varied(mad.make(name)), 500, planning="egocentric", aggregation="gpi", epsilon=0.3, noise=0.1)


@pytest.mark.parametrize("name", ["two-goal", "random-mdp"])
def test_it_learns_the_exact_cross_values(name):
    task = mad.make(name)
    agent = mad.MultiAdvisor(task, planning="egocentric", aggregation="gpi", gamma=0.5, epsilon=1.0, alpha_half=2_000)
    found = theory.improve(theory.enumerate_task(task), 0.5)
    agent.learn(4_000_000)
    for state in range(found.mdp.states):
        assert agent.preferences(np.array([state])) == pytest.approx(found.preferences[state], abs=0.03)


@pytest.mark.parametrize("name", ["three-fruits", "four-fruits"])
def test_it_finishes_where_the_sum_is_stuck(name):
    agent = mad.MultiAdvisor(mad.make(name), **FRUITS, gamma=0.9, epsilon=0.2).learn(100_000)
    assert agent.evaluate(episodes=10).terminated == 1.0
    alone = mad.MultiAdvisor(agent.task, planning="egocentric", gamma=0.9, epsilon=0.2).learn(100_000)
    assert alone.evaluate(episodes=10).terminated == 0.0


@pytest.mark.parametrize("gamma", [0.9, 0.99])
def test_exact_plans_finish_every_board(gamma):
    assert exact_plans(mad.make("pac-boy", ghosts=False), gamma).evaluate(episodes=300).terminated == 1.0


def test_a_run_that_was_saved_takes_other_weights(tmp_path):
    agent = mad.MultiAdvisor(mad.make("three-fruits"), **FRUITS, noise=0.1, epsilon=0.2, seed=2)
    agent.learn(1_234).save(tmp_path / "run")
    other = mad.load(tmp_path / "run", agent.task.with_weights(**{"fruit (0, 2)": 9.0}))
    assert other.act(other.task.initial_state()) == 0  # to the North, where what is worth nine lies


# ---- Python environments ---------------------------------------------------------------------------------------------
def errands(**how):
    """Three that look at the place alone, and two that see more: one of them is summed, the other one is silent."""

    def place(observation):
        return int(observation[0])

    near, three = {"state": place, "states": 12, "group": "errands"}, 3
    advisors = [
        mad.Advisor("A", reward=lambda t: t.info["paid"][0], active=lambda o: bool(o[1]),
                  ended=lambda t: t.info["paid"][0] > 0, **near),
        mad.Advisor("whole", weight=-0.25, **how),
        mad.Advisor("B", reward=lambda t: t.info["paid"][1], active=lambda o: bool(o[2]), gamma=0.7, weight=2.0,
                  ended=lambda t: t.info["paid"][1] > 0, **near),
        mad.Advisor("third", reward=lambda t: float(t.next_observation[0] == three), weight=0.5, **near),
    ]  # fmt: skip
    return mad.Task.from_gymnasium(Errands(), advisors, name="errands")


ERRANDS = {"planning": "egocentric", "aggregation": "errands=gpi", "epsilon": 0.2, "alpha_half": 1000, "seed": 5}


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_python_environment(noise):
    agent = assert_adapter_parity(errands, 1200, 4, **ERRANDS, noise=noise)
    assert np.count_nonzero(agent._learner.extra.table) > 50
    # whoever looks at a state finds what the loop finds
    assert agent.preferences(np.array([4, 1, 1])) == pytest.approx(
        agent._learner._total(np.array([4, 1, 1])), abs=1e-12
    )


@pytest.mark.parametrize("kind", ["compiled", "adapter"])
def test_a_run_goes_on_bit_for_bit(kind, tmp_path):
    task, how = (mad.make("three-fruits"), {**FRUITS, "noise": 0.1}) if kind == "compiled" else (errands(), ERRANDS)
    assert assert_same_in_pieces(task, tmp_path, how, 5)._learner.extra.table.any()


def test_a_table_that_grows_keeps_its_plans():
    advisors = [mad.Advisor("paid", reward=lambda t: sum(t.info["paid"])), mad.Advisor("time", reward=lambda t: -0.1)]
    agent = mad.MultiAdvisor(mad.Task.from_gymnasium(Errands(), advisors), planning="egocentric", aggregation="gpi")
    agent.learn(2_000)  # 48 states of two rows each, counted as they are met
    assert agent._learner.adapter.rows > 64
    assert np.count_nonzero(agent._learner.extra.table) > 100
    found = agent.explain(np.array([2, 1, 1]))
    assert found.plans[0].advisor in ("paid", "time")
    assert sum(found.plans[0].worth.values()) == pytest.approx(found.plans[0].value)


# ---- explained -------------------------------------------------------------------------------------------------------
def test_whose_plan_is_followed_and_what_it_is_worth_to_each():
    task = mad.make("two-goal")
    agent = theory.exact_agent(task, "egocentric", 0.9, aggregation="gpi")
    cross = theory.improve(theory.enumerate_task(task), 0.9).cross[:, :, 0]  # [J, n, A]
    agent._learner.extra.table[...] = cross.reshape(agent._learner.extra.table.shape)
    found = agent.explain(task.initial_state(), "a_1", "a_0")
    assert found.preferences == pytest.approx({"a_0": 0.9, "a_1": 1.0, "a_2": 1.0})
    (plan,) = found.plans
    assert (plan.advisor, plan.value, plan.next) == ("goal 1", pytest.approx(1.0), None)
    assert plan.worth == pytest.approx({"goal 1": 1.0, "goal 2": 0.0})
    assert found.attractor is None
    assert found.stuck is False


def test_the_sentence_names_plans_and_shares():
    agent = exact_plans(mad.make("pac-boy", ghosts=False), 0.9)
    found = agent.explain(agent.task.initial_state())
    assert found.sentence.startswith("goes North: the plan of fruit at (0, 9) is worth most, 3.61 (0.90 to fruit at")
    assert found.sentence.endswith("to 6 more), and no plan would go elsewhere")
    assert list(found.preferences.values()) == pytest.approx(agent.preferences(agent.task.initial_state()).tolist())
    assert agent.explain(agent.task.initial_state(), "S").sentence.startswith(
        "South would be worse than North: the plan of fruit at (0, 9) is the best for both, 3.25"
    )
    trace = record(agent, 1, 0)
    told = [explain_step(agent, trace, 0, step) for step in range(0, int(trace.length[0]), 10)]
    assert any("; the next, that of fruit at (" in one.sentence for one in told)
    for one in told:
        (plan,) = one.plans
        assert sum(plan.worth.values()) == pytest.approx(plan.value)
        assert one.preferences[one.action] == pytest.approx(plan.value)
    # without an advisor, its weight is 0 and its plan is still a plan
    one, name = told[1], told[1].names[3]
    lighter = exact_plans(agent.task.with_weights(**{name: 0.0}), 0.9)
    state = trace.step(0, 10).state
    now, then = agent.preferences(state), lighter.preferences(state)
    pair = [agent.task.actions.index(each) for each in (one.action, one.against)]
    lost = (now[pair[0]] - now[pair[1]]) - (then[pair[0]] - then[pair[1]])
    assert one.differences[name] == pytest.approx(lost, abs=1e-9)


def test_advisors_with_other_local_states_and_networks_are_refused():
    how = {"aggregation": "gpi"}
    line = "advisor 'ghost 1' of task 'pac-boy' shares its table.*fruits=gpi"
    refused(line, mad.MultiAdvisor, mad.make("pac-boy"), **how)
    line = "'job 2' of task 'resource-scheduling' does not see what 'job 1' sees"
    refused(line, mad.MultiAdvisor, mad.make("resource-scheduling"), **how)
    several = mad.Task.from_gymnasium(Errands(), errand_advisors())
    refused("'here A' of task 'Errands' shares its table", mad.MultiAdvisor, several, **how)
    line = "advisor 'whole' of task 'errands' does not see what 'A' sees"
    refused(line, mad.MultiAdvisor, errands(group="errands"), aggregation="errands=gpi")
    refused("learned beside tables", mad.MultiAdvisor, mad.make("three-fruits"), learner=mad.DQN(), **how)
    many = mad.make("fruit-grid", width=100, height=100, fruits=5)
    refused("fewer advisors", mad.MultiAdvisor, dataclasses.replace(many, name="large"), aggregation="fruits=gpi")
